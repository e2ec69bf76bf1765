#include "sim/cost/pass_kernels.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace specsim::cost {

namespace {

constexpr double kFromMicro = 1e-6;
constexpr double kUsualSkew = 1.01;       // of routing: measured layers of that power law are the mildest that were measured
constexpr double kSwitchLink = 400e9;     // bytes per second: NVLink 4 and later, whose switches add up what passes them
constexpr double kSmallMessage = 65536;   // bytes that an all-reduce moves in its floor
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

PassKernels::PassKernels(const Hardware& hardware, std::string engine, std::string attention, const Engine& served)
    : hardware_(hardware),
      engine_(std::move(engine)),
      attention_(std::move(attention)),
      allreduce_(served.allreduce.empty() ? engine_ : served.allreduce),
      fused_quantisation_(served.fused_quantisation),
      switch_share_(served.switch_share) {}

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
  double us = found->microseconds(hardware_, x);
  if (fused_quantisation_ && found->dtype.activation_bytes < 2.0) {
    // Beside a plain kernel's floor its own holds the kernel that quantises the activations, which the served model does not run.
    const KernelFit* plain = fit(KernelKind::product, "bfloat16");
    const auto floor = [](const KernelFit& of) { return of.figures[3]; };
    if (plain != nullptr && plain->engine == found->engine)
      us = std::max(0.5 * us, us - std::max(0.0, floor(*found) - floor(*plain)));
  }
  return kFromMicro * us;
}

std::optional<double> PassKernels::attention(const ModelShape& model, const AttentionKind& kind, double batch, double tokens,
                                             double context, bool prompt) const {
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
  if (prompt)
    if (const auto fitted = prompt_attention(x)) return std::max(one, *fitted);
  // FlashAttention 2 walks the keys once for each block of queries; its kernels are those that were measured with many tokens.
  const bool walks =
      attention_ == "serial" || (attention_ == "automatic" && serial != nullptr && serial->kernel.starts_with("Flash") &&
                                 decode->kernel.find("fa3") == std::string::npos);
  if (walks && serial != nullptr) return std::max(one, kFromMicro * serial->microseconds(hardware_, x));
  const double pairs = batch * tokens * (context + 0.5 * (tokens + 1.0));
  const double operations = 4.0 * x.heads * x.head_dim * pairs / (hardware_.flops * kSplitEfficiency);
  return std::max(one, operations);
}

// Keys that were there before are looked at as if they were new ones: a prompt of all, less one of those alone, for prefill was
// measured without. A few tokens over many keys take a walk over the keys instead, each block of queries by itself.
std::optional<double> PassKernels::prompt_attention(const KernelShape& x) const {
  const KernelFit* found = fit(KernelKind::attention_prefill, "bfloat16");
  if (found == nullptr) return std::nullopt;
  KernelShape whole = x;
  whole.context = 0.0;
  whole.tokens = x.context + x.tokens;
  // Of the kernels that the engine has it takes the one for prompts, which is the fastest over the whole.
  for (const KernelFit& one : hardware_.kernels->list)
    if (one.kind == KernelKind::attention_prefill && one.engine == found->engine && one.dtype.name == found->dtype.name &&
        one.microseconds(hardware_, whole) < found->microseconds(hardware_, whole))
      found = &one;
  double us = found->microseconds(hardware_, whole);
  if (x.context >= 1.0) {
    KernelShape before = whole;
    before.tokens = x.context;
    KernelShape alone = whole;
    alone.tokens = 1.0;
    us += found->microseconds(hardware_, alone) - found->microseconds(hardware_, before);
    const KernelFit* walk = nullptr;
    for (const KernelFit& one : hardware_.kernels->list)
      if (one.kind == KernelKind::attention_verify && one.kernel.find("prefill") != std::string::npos) walk = &one;
    if (walk != nullptr) us = std::max(us, walk->figures[3] + walk->figures[4] * (x.context + 0.5 * (x.tokens + 1.0)));
  }
  return kFromMicro * us;
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
  const char* kernel = allreduce_ == "vllm"     ? (launched ? "vLLM_custom_eager" : "vLLM_custom_graph")
                       : allreduce_ == "sglang" ? (launched ? "SGLang_CustomAllReduce_eager" : "SGLang_CustomAllReduce_graph")
                                                : "TRTLLM";
  const KernelFit* found =
      hardware_.kernels ? hardware_.kernels->nearest(KernelKind::allreduce, allreduce_, "bfloat16", kernel) : nullptr;
  if (found == nullptr) return std::nullopt;
  KernelShape x;
  x.gpus = gpus;
  x.bytes = bytes;
  double us = found->microseconds(hardware_, x);
  if (switch_share_ > 0.0 && !launched && hardware_.link_bandwidth >= kSwitchLink) {
    x.bytes = std::min(bytes, kSmallMessage);
    us = std::min(
        us, found->microseconds(hardware_, x) + (bytes - x.bytes) / (hardware_.link_bandwidth * switch_share_) / kFromMicro);
  }
  return kFromMicro * us;
}

}  // namespace specsim::cost
