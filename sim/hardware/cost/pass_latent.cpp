// Latent attention (MLA) of a pass, by the kernels of configs/kernels/tables/attention_latent_aic.csv.xz.
#include "sim/hardware/cost/pass_kernels.h"

#include <algorithm>
#include <cmath>
#include <string_view>

namespace specsim::cost {

namespace {

// A prompt's attention without cached tokens takes its operations at .59 to .64 of the peak on H100, H200, B200, B300 and .46 to
// .53 on A100, L40S, RTX PRO 6000, 60 to 80 % of the bandwidth for queries, keys, values and results on the former, and 15 to 17
// us more (context_mla of the same source, TensorRT-LLM's kernels, 1 to 16,384 tokens; errors in docs/results/prices.md).
constexpr double kPromptShare = 0.61;
constexpr double kPromptShareElsewhere = 0.5;
constexpr double kPromptBandwidth = 0.7;
constexpr double kPromptUs = 16.0;
constexpr double kMostRows = 128.0;              // heads of the largest such model
constexpr const char* kTritonEngine = "sglang";  // whose Triton kernel was measured
constexpr const char* kUnsplitEngine = "trtllm";
constexpr double kRemadeShare = 0.7;  // share of the peak that the product reaches which makes keys and values anew; assumed

bool data_centre(const Hardware& hardware) { return hardware.compute_capability >= 9.0 && hardware.compute_capability < 11.0; }

}  // namespace

// Hopper and the Blackwell of data centres run FlashMLA, FlashAttention 3 or trtllm-gen under every engine. Elsewhere vLLM and
// SGLang run a Triton kernel, of which caches in fp8 were not measured (vLLM's whole layers over one on an RTX PRO 6000 take .8
// of those over bf16), nor those of Ampere: the L40S's stands in. TensorRT-LLM's kernels there do not split the keys.
PassKernels::LatentFit PassKernels::latent_fit(const ModelShape& model) const {
  if (hardware_.kernels == nullptr || model.latent == 0.0) return {};
  if (data_centre(hardware_) || latent_ == kUnsplitEngine) {
    for (const char* type : {"fp8", "bfloat16"})
      if (model.kv_bits < 16.0 || std::string_view(type) == "bfloat16")
        if (const KernelFit* found = hardware_.kernels->nearest(KernelKind::attention_latent, latent_, type))
          return {found, false};
    return {};
  }
  if (const KernelFit* own = hardware_.kernels->find(KernelKind::attention_latent, kTritonEngine, "bfloat16"))
    return {own, false};
  return {triton_.get(), true};
}

// Beyond the keys and sequences that were measured time grows with them. Several tokens cost no less than one and no more than as
// many rows as the next measured number has: 32 heads took longer than 64 on a B200, which is of heads and not of tokens.
double PassKernels::latent_us(const KernelFit& fit, KernelShape x) const {
  constexpr std::size_t kFloor = 3;  // kernel_us among the figures
  const double most_keys = fit.most_of_others(0);
  const double most_batch = fit.most_of_others(1);
  const double most_rows = std::min(fit.most_of_others(2), kMostRows);
  const double keys = x.context + 0.5 * (x.tokens + 1.0);
  const double beyond = std::max(1.0, keys / most_keys) * std::max(1.0, x.batch / most_batch);
  x.context -= std::max(0.0, keys - most_keys);
  x.batch = std::min(x.batch, most_batch);
  double us = fit.microseconds(hardware_, x);
  if (x.tokens > 1.0) {
    KernelShape more = x;
    for (double rows = 2.0; rows <= most_rows; rows *= 2.0) {
      if (rows <= x.heads * x.tokens) continue;
      more.heads = rows / x.tokens;
      us = std::min(us, fit.microseconds(hardware_, more));
    }
    KernelShape one = x;
    one.tokens = 1.0;
    us = std::max(us, fit.microseconds(hardware_, one));
  }
  const double floor = std::min(us, fit.figures[kFloor]);
  return floor + (us - floor) * beyond;
}

double PassKernels::latent_prompt(const ModelShape& model, const AttentionKind& kind, double batch, double tokens,
                                  double context) const {
  const double heads = batch * model.heads / model.tensor_parallel;
  const double widths = kind.head_dim + model.value_dim;  // a key and a value
  const double flops = hardware_.flops * (data_centre(hardware_) ? kPromptShare : kPromptShareElsewhere);
  const double operations = model.operations_per_key(kind, true) * heads * tokens * (context + 0.5 * (tokens + 1.0)) / flops;
  const double moved = heads * widths * kActivationBytes * (2.0 * tokens + context) / (hardware_.bandwidth * kPromptBandwidth);
  const double remade = 2.0 * heads * context * model.latent * (kind.head_dim - model.rope_dim + model.value_dim) /
                        (hardware_.flops * kRemadeShare);
  return 1e-6 * kPromptUs + operations + moved + remade;
}

// Engines attend to cached vectors as they are with the tokens that they decode or verify, which are rows beside those of the
// heads; of a prompt they make keys and values anew for every head, where that is cheaper. Tokens that pick what they look at
// share nothing: each is a sequence of its picks.
std::optional<double> PassKernels::latent_attention(const ModelShape& model, const AttentionKind& kind, double batch,
                                                    double tokens, double context, bool prompt) const {
  const KernelFit* fit = latent_fit(model).fit;
  if (fit == nullptr || (prompt && tokens > kMostAsVerified && kind.picked > 0.0)) return std::nullopt;
  KernelShape x;
  x.batch = batch;
  x.tokens = tokens;
  x.context = context;
  x.heads = model.heads / model.tensor_parallel;
  x.latent = model.latent;
  x.rope_dim = model.rope_dim;
  if (kind.picked > 0.0) {
    x.batch *= tokens;
    x.context = std::min(kind.picked, context + 0.5 * (tokens + 1.0)) - 1.0;
    x.tokens = 1.0;
  }
  const double absorbed = 1e-6 * latent_us(*fit, x);
  if (!prompt || kind.picked > 0.0) return absorbed;
  const double remade = latent_prompt(model, kind, batch, tokens, context);
  return context < 1.0 ? remade : std::min(absorbed, remade);
}

}  // namespace specsim::cost
