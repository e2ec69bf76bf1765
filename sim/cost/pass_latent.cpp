// Latent attention (MLA) of a pass, by the kernels of configs/kernels/tables/attention_latent_aic.csv.xz.
#include "sim/cost/pass_kernels.h"

#include <algorithm>
#include <string_view>

namespace specsim::cost {

namespace {

// A prompt's attention without cached tokens takes its operations at .59 to .64 of the peak on H100, H200, B200, B300 and .46 to
// .53 on A100, L40S, RTX PRO 6000, 60 to 80 % of the bandwidth for queries, keys, values and results on the former, and 15 to 17
// us more; 9 to 13 % off in the middle (context_mla of the same source, TensorRT-LLM's kernels, 1 to 16,384 tokens).
constexpr double kPromptShare = 0.61;
constexpr double kPromptShareElsewhere = 0.5;
constexpr double kPromptBandwidth = 0.7;
constexpr double kPromptUs = 16.0;
constexpr double kRemadeShare = 0.7;  // share of the peak that the product reaches which makes keys and values anew; assumed

}  // namespace

const KernelFit* PassKernels::latent_fit(const ModelShape& model) const {
  if (hardware_.kernels == nullptr || model.latent == 0.0) return nullptr;
  for (const char* type : {"fp8", "bfloat16"})
    if (model.kv_bits < 16.0 || std::string_view(type) == "bfloat16")
      if (const KernelFit* found = hardware_.kernels->nearest(KernelKind::attention_latent, latent_, type)) return found;
  return nullptr;
}

double PassKernels::latent_prompt(const ModelShape& model, const AttentionKind& kind, double batch, double tokens,
                                  double context) const {
  const double heads = batch * model.heads / model.tensor_parallel;
  const double widths = kind.head_dim + model.value_dim;  // a key and a value
  const bool data_centre = hardware_.compute_capability >= 9.0 && hardware_.compute_capability < 11.0;
  const double flops = hardware_.flops * (data_centre ? kPromptShare : kPromptShareElsewhere);
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
  const KernelFit* found = latent_fit(model);
  if (found == nullptr || (prompt && tokens > kMostAsVerified && kind.picked > 0.0)) return std::nullopt;
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
  x.context *= share_of_keys(*found, model);
  const double absorbed = 1e-6 * found->microseconds(hardware_, x);
  return prompt && tokens > kMostAsVerified ? std::min(absorbed, latent_prompt(model, kind, batch, tokens, context)) : absorbed;
}

}  // namespace specsim::cost
