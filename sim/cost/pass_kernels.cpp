#include "sim/cost/pass_kernels.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace specsim::cost {

namespace {

constexpr double kFromMicro = 1e-6;
constexpr double kUsualSkew = 1.01;       // of routing: measured layers of that power law are the mildest that were measured
constexpr double kSplitEfficiency = 0.4;  // of the peak, by attention that splits the keys; stated, not fitted

// Types of so many bits, the likeliest first.
std::vector<const char*> types_of(double bits) {
  if (bits >= 16.0) return {"bfloat16"};
  if (bits >= 8.0) return {"fp8", "sq", "int8_wo"};
  return {"int4_wo", "w4a16_mxfp4", "nvfp4"};
}

}  // namespace

std::vector<std::string> kernel_engines() { return {"vllm", "sglang", "trtllm"}; }

std::vector<std::string> attention_kernels() { return {"automatic", "split", "serial"}; }

PassKernels::PassKernels(const Hardware& hardware, std::string engine, std::string attention)
    : hardware_(hardware), engine_(std::move(engine)), attention_(std::move(attention)) {}

const KernelFit* PassKernels::fit(KernelKind kind, const std::string& dtype, const std::string& kernel) const {
  return hardware_.kernels ? hardware_.kernels->nearest(kind, engine_, dtype, kernel) : nullptr;
}

const KernelFit* PassKernels::fit_of_type(KernelKind kind, double bits, const std::string& type) const {
  if (!type.empty()) return fit(kind, type == "float16" ? "bfloat16" : type);
  for (const char* likely : types_of(bits))
    if (const KernelFit* found = fit(kind, likely)) return found;
  return nullptr;
}

bool PassKernels::has_products(const std::string& type) const { return fit_of_type(KernelKind::product, 0.0, type) != nullptr; }

std::optional<double> PassKernels::product(double rows, double inner, double outer, double bits, const std::string& type) const {
  const KernelFit* found = fit_of_type(KernelKind::product, bits, type);
  if (found == nullptr) return std::nullopt;
  KernelShape x;
  x.rows = std::ceil(rows);
  x.inner = inner;
  x.outer = outer;
  return kFromMicro * found->microseconds(hardware_, x);
}

std::optional<double> PassKernels::attention(const ModelShape& model, const AttentionKind& kind, double batch, double tokens,
                                             double context) const {
  if (model.latent > 0.0) return std::nullopt;
  KernelShape x;
  x.batch = batch;
  x.context = context + tokens;
  const double shards = model.tensor_parallel;
  x.heads = model.heads / shards;
  x.kv_heads = std::max(1.0, kind.kv_heads / shards);
  x.head_dim = kind.head_dim;
  const bool narrow = model.kv_bits < 16.0;
  const KernelFit* decode = narrow ? fit(KernelKind::attention_decode, "fp8") : nullptr;
  if (decode == nullptr) decode = fit(KernelKind::attention_decode, "bfloat16");
  const KernelFit* serial = nullptr;
  for (const char* type : {"bfloat16", "float16"})
    if (serial == nullptr) serial = fit(KernelKind::attention_verify, type);
  if (decode == nullptr) return std::nullopt;
  const double one = kFromMicro * decode->microseconds(hardware_, x);
  if (tokens <= 1.0) return one;
  x.tokens = tokens;
  x.context = context;
  // FlashAttention 2 walks the keys once for each block of queries; its kernels are those that were measured with many tokens.
  const bool walks =
      attention_ == "serial" || (attention_ == "automatic" && serial != nullptr && serial->kernel.starts_with("Flash") &&
                                 decode->kernel.find("fa3") == std::string::npos);
  if (walks && serial != nullptr) return std::max(one, kFromMicro * serial->microseconds(hardware_, x));
  const double pairs = batch * tokens * (context + 0.5 * (tokens + 1.0));
  const double operations = 4.0 * x.heads * x.head_dim * pairs / (hardware_.flops * kSplitEfficiency);
  return std::max(one, operations);
}

std::optional<double> PassKernels::experts(const ModelShape& model, double tokens) const {
  if (model.experts <= 0.0) return std::nullopt;
  const KernelFit* found = fit_of_type(KernelKind::experts, model.expert_bits, model.expert_type);
  if (found == nullptr) return std::nullopt;
  KernelShape x;
  x.hidden = model.hidden;
  x.expert_width = model.expert_ffn / model.tensor_parallel;
  x.experts = model.experts;
  x.experts_per_token = model.experts_per_token;
  x.tokens = tokens;
  x.skew = kUsualSkew;
  return kFromMicro * found->microseconds(hardware_, x);
}

std::optional<double> PassKernels::allreduce(double gpus, double bytes, bool launched) const {
  const char* kernel = engine_ == "vllm"     ? (launched ? "vLLM_custom_eager" : "vLLM_custom_graph")
                       : engine_ == "sglang" ? (launched ? "SGLang_CustomAllReduce_eager" : "SGLang_CustomAllReduce_graph")
                                             : "TRTLLM";
  const KernelFit* found = fit(KernelKind::allreduce, "bfloat16", kernel);
  if (found == nullptr) return std::nullopt;
  KernelShape x;
  x.gpus = gpus;
  x.bytes = bytes;
  return kFromMicro * found->microseconds(hardware_, x);
}

}  // namespace specsim::cost
