// Implementations of attention.
#pragma once

#include "sim/hardware/gpu/hardware.h"
#include "sim/hardware/latency/engine.h"
#include "sim/hardware/latency/kernel.h"
#include "sim/hardware/latency/product_kernels.h"

#include <memory>
#include <string>
#include <vector>

namespace specsim::cost {

// A prompt's last chunk of at most this many tokens attends like tokens that are verified; 16 tokens were measured as a prompt.
constexpr double kMostAsVerified = 15.0;

// Bytes and arithmetic by the data sheet, and the calibration's fixed time.
class CalibratedAttention final : public Kernel<AttentionWork> {
 public:
  // `fixed_us`: of a launch. `expands`: prompts recompute keys and values of latent attention from the cached vectors.
  CalibratedAttention(const Hardware& hardware, double fixed_us, bool expands)
      : hardware_(hardware), fixed_us_(fixed_us), expands_(expands) {}
  [[nodiscard]] std::optional<double> seconds(const AttentionWork& work) const override;
  [[nodiscard]] KernelError error(const AttentionWork& work) const override;
  [[nodiscard]] KernelLabel label(const AttentionWork& work) const override;

 private:
  const Hardware& hardware_;
  double fixed_us_;
  bool expands_;
};

// How several tokens of a sequence read the cached keys. walked: each block reads all keys of a head (FlashAttention 2). split:
// blocks share the keys. automatic: as the engine does on that GPU.
enum class KeySplitting { automatic, split, walked };

// Attention over keys and values by fits of measured kernels: one for a single new token, one for several, one for prompts.
class MeasuredAttention final : public Kernel<AttentionWork> {
 public:
  // `kernel`: the engine's kernel for one token, as the library names it; "": the first. `walks`: the engine's blocks read all
  // keys on that GPU.
  MeasuredAttention(const KernelLibrary& library, KeySplitting splitting, const std::string& kernel, bool walks);
  [[nodiscard]] std::optional<double> seconds(const AttentionWork& work) const override;
  [[nodiscard]] KernelError error(const AttentionWork& work) const override;
  [[nodiscard]] KernelLabel label(const AttentionWork& work) const override;

  // Fits of attention for one width of cached keys: one query token; several in blocks that read all keys; several in blocks that
  // share them. If the last was not measured, the first serves for it, with the arithmetic added.
  struct Fits {
    const KernelFit* one = nullptr;
    const KernelFit* walked = nullptr;
    const KernelFit* split = nullptr;
    // The kernel for this many new tokens of a sequence.
    [[nodiscard]] const KernelFit* for_tokens(double tokens) const;
  };
  [[nodiscard]] const Fits& fits(double cache_bits) const { return cache_bits < 16.0 ? narrow_ : wide_; }
  // Bytes of a cached element over those that the fit was measured with; at most 1.
  [[nodiscard]] static double share_of_keys(const KernelFit& fit, double cache_bits);

 private:
  [[nodiscard]] Fits find(bool narrow, bool walks, const std::string& kernel);
  const KernelFit* borrow(const KernelFit& fit);
  [[nodiscard]] double beside_prompt(const AttentionWork& work, const Fits& fits) const;
  [[nodiscard]] double equal_seconds(const AttentionWork& work, const Fits& fits) const;
  [[nodiscard]] std::optional<double> prompt_seconds(const KernelShape& shape) const;

  const KernelLibrary& library_;
  KeySplitting splitting_;
  std::vector<std::shared_ptr<const KernelFit>> borrowed_;  // fits of other GPUs, if this one has none
  Fits wide_;
  Fits narrow_;
};

// Latent attention (MLA) by measured kernels: of queries over the cached vectors, or of a prompt over keys and values that are
// recomputed from them.
class LatentAttention final : public Kernel<AttentionWork> {
 public:
  // `latent_library`: the engine whose kernels of latent attention run.
  LatentAttention(const KernelLibrary& library, std::string latent_library);
  [[nodiscard]] std::optional<double> seconds(const AttentionWork& work) const override;
  [[nodiscard]] KernelError error(const AttentionWork& work) const override;
  [[nodiscard]] KernelLabel label(const AttentionWork& work) const override;
  // The fit for a cache of this many bits; nullptr for none.
  [[nodiscard]] const KernelFit* fit(double cache_bits) const;

 private:
  [[nodiscard]] double cached_us(const KernelFit& fit, KernelShape x) const;
  [[nodiscard]] double prompt_seconds(const AttentionWork& work) const;

  const KernelLibrary& library_;
  std::string latent_library_;
  std::shared_ptr<const KernelFit> triton_;  // used if the GPU has no fit of its own; may be null
};

}  // namespace specsim::cost
