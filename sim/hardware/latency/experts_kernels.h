// Implementations of a layer of routed experts.
#pragma once

#include "sim/hardware/gpu/hardware.h"
#include "sim/hardware/latency/kernel.h"
#include "sim/hardware/latency/product_kernels.h"

#include <optional>
#include <string>

namespace specsim::cost {

// Tokens of a pass for which the choice of kernel for a model's experts is reported.
constexpr double kFewTokens = 16.0;

// Experts by fits of measured layers. An engine runs the fastest of its kernels that take such a layer.
class MeasuredExperts final : public Kernel<ExpertsWork> {
 public:
  explicit MeasuredExperts(const KernelLibrary& library) : library_(library) {}
  [[nodiscard]] std::optional<double> seconds(const ExpertsWork& work) const override;
  [[nodiscard]] KernelError error(const ExpertsWork& work) const override;
  [[nodiscard]] KernelLabel label(const ExpertsWork& work) const override;

  // How closely the measurements of a kernel fit a layer. like: the engine's own kernel on a layer like this one. others: another
  // engine's kernel, or other layers. bytes: a bf16 kernel, whose time is scaled by the bytes.
  enum class Basis { like, others, bytes };
  // ratio of experts by tensor to those by block from which the latter's kernel is used
  static constexpr double kMuchSlower = 1.5;
  struct Choice {
    const KernelFit* kernel = nullptr;  // nullptr if none was measured
    double us = 0.0;
    Basis basis = Basis::others;
  };
  [[nodiscard]] Choice choose(const ExpertsWork& work) const;
  // Whether the fit of scales by block replaces one of scales by tensor, because it was measured to be much faster.
  [[nodiscard]] static bool as_blocks(const Choice& choice, const ExpertsWork& work);

 private:
  [[nodiscard]] Choice fastest(const KernelShape& shape, const std::string& dtype, bool own) const;
  [[nodiscard]] Choice marlin(const KernelShape& shape, const WeightType& type) const;

  const KernelLibrary& library_;
};

// Standard deviations of the logarithm of an estimate of experts without any measured layer of experts. Stated.
constexpr double kUnmeasuredExpertsSpread = 0.7;
// The same on kernels or GPUs whose other figures nobody has checked either: four mixtures on a V100, an M3 Ultra and a Strix
// Halo take 1.8 to 3.2 times the estimate over one token.
constexpr double kUncheckedExpertsSpread = 1.2;

// Experts as grouped products, each by the implementations of products, and a fixed time around them, by the data sheet.
class GroupedExperts final : public Kernel<ExpertsWork> {
 public:
  GroupedExperts(const Hardware& hardware, const KernelList<ProductWork>& products) : hardware_(hardware), products_(products) {}
  [[nodiscard]] std::optional<double> seconds(const ExpertsWork& work) const override;
  [[nodiscard]] KernelError error(const ExpertsWork& work) const override;
  [[nodiscard]] KernelLabel label(const ExpertsWork& work) const override;

 private:
  const Hardware& hardware_;
  const KernelList<ProductWork>& products_;
};

}  // namespace specsim::cost
