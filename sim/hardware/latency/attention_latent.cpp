// Latent attention (MLA) by the kernels of configs/kernels/tables/attention_latent_aic.csv.xz.
#include "sim/hardware/latency/attention_kernels.h"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>

namespace specsim::cost {

namespace {

// A prompt's attention without cached tokens runs its operations at .59 to .64 of the peak on H100, H200, B200, B300 and at .46
// to .53 on A100, L40S, RTX PRO 6000. On the former it reads queries, keys and values and writes results at 60 to 80 % of the
// bandwidth, and takes 15 to 17 us more. Source: context_mla of the same table, TensorRT-LLM's kernels, 1 to 16,384 tokens;
// errors in `docs/results/prices.md`.
constexpr double kPromptShare = 0.61;
constexpr double kPromptShareElsewhere = 0.5;
constexpr double kPromptBandwidth = 0.7;
constexpr double kPromptUs = 16.0;
constexpr double kMostRows = 128.0;              // heads of the largest such model
constexpr const char* kTritonEngine = "sglang";  // the GPU whose Triton kernel was measured
constexpr const char* kTritonGpu = "l40s";       // the GPU whose fit serves Ampere and Ada, which were not measured
constexpr const char* kUnsplitEngine = "trtllm";
constexpr double kExpandShare = 0.7;  // share of the peak of the product that recomputes keys and values; assumed
constexpr double kBorrowedSpread = 0.3;

bool data_centre(const Hardware& hardware) { return hardware.compute_capability >= 9.0 && hardware.compute_capability < 11.0; }

}  // namespace

LatentAttention::LatentAttention(const KernelLibrary& library, std::string latent_library)
    : library_(library), latent_library_(std::move(latent_library)) {
  if (library.hardware().compute_capability <= 0.0) return;
  if (const KernelFit* found = built_in_kernel_fits(kTritonGpu).find(KernelKind::attention_latent, kTritonEngine, "bfloat16"))
    triton_ = std::make_shared<KernelFit>(*found);
}

// Hopper and data-centre Blackwell run FlashMLA, FlashAttention 3 or trtllm-gen under every engine. Elsewhere vLLM and SGLang run
// a Triton kernel. Two cases were not measured: caches in fp8 (vLLM's whole layers over one on an RTX PRO 6000 take .8 of those
// over bf16) and Ampere, which uses the L40S's fit. TensorRT-LLM's kernels on those GPUs do not split the keys.
const KernelFit* LatentAttention::fit(double cache_bits) const {
  const KernelFits& kernels = *library_.hardware().kernels;
  if (data_centre(library_.hardware()) || latent_library_ == kUnsplitEngine) {
    for (const char* type : {"fp8", "bfloat16"})
      if (cache_bits < 16.0 || std::string_view(type) == "bfloat16")
        if (const KernelFit* found = kernels.nearest(KernelKind::attention_latent, latent_library_, type)) return found;
    return nullptr;
  }
  if (const KernelFit* own = kernels.find(KernelKind::attention_latent, kTritonEngine, "bfloat16")) return own;
  return triton_.get();
}

// Microseconds over the cached vectors. Beyond the measured keys and sequences the time grows in proportion. Several tokens cost
// no less than one token, and no more than the next measured number of rows: 32 heads took longer than 64 on a B200, which
// depends on the heads and not on the tokens.
double LatentAttention::cached_us(const KernelFit& fit, KernelShape x) const {
  constexpr std::size_t kFloor = 3;  // kernel_us among the figures
  const Hardware& hardware = library_.hardware();
  const double most_keys = fit.most_of_others(0);
  const double most_batch = fit.most_of_others(1);
  const double most_rows = std::min(fit.most_of_others(2), kMostRows);
  const double keys = x.context + 0.5 * (x.tokens + 1.0);
  const double beyond = std::max(1.0, keys / most_keys) * std::max(1.0, x.batch / most_batch);
  x.context -= std::max(0.0, keys - most_keys);
  x.batch = std::min(x.batch, most_batch);
  double us = fit.microseconds(hardware, x);
  if (x.tokens > 1.0) {
    KernelShape more = x;
    for (double rows = 2.0; rows <= most_rows; rows *= 2.0) {
      if (rows <= x.heads * x.tokens) continue;
      more.heads = rows / x.tokens;
      us = std::min(us, fit.microseconds(hardware, more));
    }
    KernelShape one = x;
    one.tokens = 1.0;
    us = std::max(us, fit.microseconds(hardware, one));
  }
  const double floor = std::min(us, fit.figures[kFloor]);
  return floor + (us - floor) * beyond;
}

double LatentAttention::prompt_seconds(const AttentionWork& work) const {
  const Hardware& hardware = library_.hardware();
  const double context = work.seen();
  const double heads = work.sequences * work.heads / work.shards;
  const double widths = work.kind.head_dim + work.value_dim;  // a key and a value
  const double flops = hardware.flops * (data_centre(hardware) ? kPromptShare : kPromptShareElsewhere);
  const double operations = work.operations_per_key(true) * heads * work.tokens * (context + 0.5 * (work.tokens + 1.0)) / flops;
  const double moved =
      heads * widths * kActivationBytes * (2.0 * work.tokens + context) / (hardware.bandwidth * kPromptBandwidth);
  const double expanding = 2.0 * heads * context * work.latent * (work.kind.head_dim - work.rope_dim + work.value_dim) /
                           (hardware.flops * kExpandShare);
  return 1e-6 * kPromptUs + operations + moved + expanding;
}

// For tokens that are decoded or verified, engines attend to the cached vectors directly; the tokens are further rows besides
// those of the heads. For a prompt, engines recompute keys and values for every head if that is cheaper. Tokens that select their
// keys share nothing: each counts as a sequence of its selected keys.
std::optional<double> LatentAttention::seconds(const AttentionWork& work) const {
  if (work.latent == 0.0) return std::nullopt;
  const KernelFit* found = fit(work.cache_bits);
  const bool picks = work.kind.picked.has_value();
  if (found == nullptr || (work.prompt && work.tokens > kMostAsVerified && picks)) return std::nullopt;
  KernelShape x;
  x.batch = work.sequences;
  x.tokens = work.tokens;
  x.context = work.seen();
  x.heads = work.heads / work.shards;
  x.latent = work.latent;
  x.rope_dim = work.rope_dim;
  if (picks) {
    x.batch *= work.tokens;
    x.context = std::min(*work.kind.picked, x.context + 0.5 * (work.tokens + 1.0)) - 1.0;
    x.tokens = 1.0;
  }
  const double cached = work.unequal * kSecondsPerMicro * cached_us(*found, x);
  if (!work.prompt || picks) return cached;
  const double expanded = prompt_seconds(work);
  return work.seen() < 1.0 ? expanded : std::min(cached, expanded);
}

KernelError LatentAttention::error(const AttentionWork& work) const {
  const KernelFit* found = fit(work.cache_bits);
  const double spread = found == triton_.get() ? std::max(found->spread, kBorrowedSpread) : found->spread;
  return {spread, library_.hardware().kernels_spread};
}

KernelLabel LatentAttention::label(const AttentionWork& work) const { return library_.label(*fit(work.cache_bits)); }

}  // namespace specsim::cost
