// Implementations of matrix products.
#pragma once

#include "sim/hardware/gpu/hardware.h"
#include "sim/hardware/latency/engine.h"
#include "sim/hardware/latency/kernel.h"

#include <optional>
#include <string>

namespace specsim::cost {

// Whether kernels of the type quantise weights alone. A type without a name counts as such below 8 bits; with 8 bits its kernels
// may quantise activations too.
bool of_weights_alone(const WeightType& type);
// Standard deviation of the logarithm of an estimate by WeightOnlyKernels, used without a fit. Of six measured sets (1 to 64
// rows) five are off by .12 to .26, and SGLang's int8 on an H100 by .58 because its kernel is slow.
constexpr double kWeightOnlySpread = 0.3;

// Whether the engine runs quantised weights on that GPU with another backend than the measured one: llama.cpp's Vulkan, ROCm or
// Metal.
bool other_backend(const Engine& engine, const Hardware& hardware);

// The measured kernels of one library on a GPU: which fit serves a type of weights.
class KernelLibrary {
 public:
  // `name`: one of kernel_engines(). `hardware` must outlive this and have kernels.
  KernelLibrary(const Hardware& hardware, std::string name) : hardware_(hardware), name_(std::move(name)) {}
  [[nodiscard]] const Hardware& hardware() const { return hardware_; }
  [[nodiscard]] const std::string& name() const { return name_; }
  // The library's own fit, or the nearest other one; nullptr if nothing of the dtype was measured.
  [[nodiscard]] const KernelFit* fit(KernelKind kind, const std::string& dtype, const std::string& kernel = "") const;
  // The fit for weights of that type: by its name, or by its bits: fp8 before int8 before weight-only types.
  [[nodiscard]] const KernelFit* fit_of(KernelKind kind, const WeightType& type) const;
  [[nodiscard]] KernelLabel label(const KernelFit& fit) const;

 private:
  const Hardware& hardware_;
  std::string name_;
};

// A product by a fit of measured ones, of one matrix.
class MeasuredProduct final : public Kernel<ProductWork> {
 public:
  // `fused_quantisation`: the engine quantises activations in the kernel before. `narrow`: false leaves weights of fewer than 16
  // bits to other kernels. `own_weight_only`: the engine states the speed of its own weight-only kernels, so that another
  // library's fits are not used for them.
  MeasuredProduct(const KernelLibrary& library, bool fused_quantisation, bool narrow, bool own_weight_only)
      : library_(library), fused_quantisation_(fused_quantisation), narrow_(narrow), own_weight_only_(own_weight_only) {}
  [[nodiscard]] std::optional<double> seconds(const ProductWork& work) const override;
  [[nodiscard]] KernelError error(const ProductWork& work) const override;
  [[nodiscard]] KernelLabel label(const ProductWork& work) const override;
  // The fit that serves a type; nullptr for none.
  [[nodiscard]] const KernelFit* fit(const WeightType& type) const;
  // Measured time of the fit over its estimated time: above 1 if few rows were measured to cost much more than a few more rows.
  [[nodiscard]] double dip(const WeightType& type, double inner, double outer) const;

 private:
  const KernelLibrary& library_;
  bool fused_quantisation_;
  bool narrow_;
  bool own_weight_only_;
};

// A product, or several in one kernel, by the data sheet and the GPU's calibration (product_seconds of hardware.h).
class CalibratedProduct final : public Kernel<ProductWork> {
 public:
  // `efficiency`: share of a plain kernel's bandwidth that narrow weights reach, if a config gives it.
  CalibratedProduct(const Hardware& hardware, const Engine& engine, std::optional<double> efficiency)
      : hardware_(hardware), weight_only_(engine.weight_only), efficiency_(efficiency) {}
  [[nodiscard]] std::optional<double> seconds(const ProductWork& work) const override;
  [[nodiscard]] KernelError error(const ProductWork& work) const override;
  [[nodiscard]] KernelLabel label(const ProductWork& work) const override;
  // Bytes of a weight as they would be if it were read at a plain kernel's share of the bandwidth.
  [[nodiscard]] double bytes_as_read(double bits, bool weights_alone) const;

 private:
  const Hardware& hardware_;
  WeightOnlyKernels weight_only_;
  std::optional<double> efficiency_;
};

// Quantised weights under llama.cpp's Vulkan, ROCm and Metal, over few rows: weights are read once, while plain cores multiply
// each row. AMD's and Intel's plain cores multiply int8 (dp4a). Apple's do not, so that their rate is a fraction and rows are
// paid almost one by one. Over more rows than this kernel takes, another one, whose step is only roughly known.
class BackendProduct final : public Kernel<ProductWork> {
 public:
  BackendProduct(const Hardware& hardware, const Engine& engine, const CalibratedProduct& calibrated)
      : hardware_(hardware), most_rows_(engine.integer->vector_rows), calibrated_(calibrated) {}
  [[nodiscard]] std::optional<double> seconds(const ProductWork& work) const override;
  [[nodiscard]] KernelError error(const ProductWork& work) const override;
  [[nodiscard]] KernelLabel label(const ProductWork& work) const override;

 private:
  // Time of reading and of arithmetic.
  struct Parts {
    double reading;
    double arithmetic;
  };
  [[nodiscard]] Parts parts(const ProductWork& work, double rows) const;

  const Hardware& hardware_;
  double most_rows_;  // of the kernel for few rows
  const CalibratedProduct& calibrated_;
};

// vLLM's Marlin, one matrix of 4-bit or 8-bit weights with 16-bit activations.
class MarlinProduct final : public Kernel<ProductWork> {
 public:
  MarlinProduct(const Hardware& hardware, const CalibratedProduct& calibrated) : hardware_(hardware), calibrated_(calibrated) {}
  [[nodiscard]] std::optional<double> seconds(const ProductWork& work) const override;
  [[nodiscard]] KernelError error(const ProductWork& work) const override;
  [[nodiscard]] KernelLabel label(const ProductWork& work) const override;

 private:
  const Hardware& hardware_;
  const CalibratedProduct& calibrated_;  // for the share of the bandwidth at which weights are read
};

}  // namespace specsim::cost
