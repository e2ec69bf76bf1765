// Matrix products by the data sheet and the GPU's calibration.
#include "sim/hardware/latency/product_kernels.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace specsim::cost {

namespace {

// Share of a plain kernel's bandwidth that kernels reach which quantise activations too, with 8 bits and with fewer.
constexpr double kByteShare = 0.77;
constexpr double kNarrowShare = 0.62;

const Dtype* dtype_of(const WeightType& type) { return find_dtype(std::string(type.name)); }

}  // namespace

bool of_weights_alone(const WeightType& type) {
  const Dtype* const dtype = dtype_of(type);
  return dtype == nullptr ? type.bits < 8.0
                          : dtype->activation_bytes >= kActivationBytes && dtype->weight_bytes < kActivationBytes;
}

double WeightOnlyKernels::slowdown(double weight_bytes, double rows) const {
  constexpr double kDoublings = 6.0;
  return 1.0 + growth[weight_bytes < 1.0 ? 0 : 1] * std::min(kDoublings, std::log2(std::max(1.0, rows)));
}

double CalibratedProduct::bytes_as_read(double bits, bool weights_alone) const {
  const double usual = weights_alone ? weight_only_.shares[bits < 8.0 ? 0 : 1] : bits >= 8.0 ? kByteShare : kNarrowShare;
  return bits / 8.0 / (bits >= 16.0 ? 1.0 : efficiency_.value_or(usual));
}

std::optional<double> CalibratedProduct::seconds(const ProductWork& work) const {
  const Dtype* const dtype = dtype_of(work.type);
  const bool weights_alone = of_weights_alone(work.type);
  const double slowdown = weights_alone ? weight_only_.slowdown(work.type.bits / 8.0, work.rows) : 1.0;
  return slowdown * product_seconds(hardware_, work.rows, work.inner, work.outer, bytes_as_read(work.type.bits, weights_alone),
                                    work.groups, dtype == nullptr ? kActivationBytes : dtype->activation_bytes,
                                    dtype == nullptr ? 0.0 : peak_flops(hardware_, dtype->arithmetic), weights_alone);
}

KernelError CalibratedProduct::error(const ProductWork& work) const {
  const double spread = hardware_.calibration.spread;
  if (work.type.bits < 16.0) return {0.0, std::max(kWeightOnlySpread, spread)};  // misses all products alike
  return {spread, hardware_.fitted_on.empty() ? 0.0 : spread};
}

KernelLabel CalibratedProduct::label(const ProductWork& /*work*/) const {
  return {"data sheet", fmt::format("calibration of {}", hardware_.fitted_on.empty() ? hardware_.name : hardware_.fitted_on)};
}

}  // namespace specsim::cost
