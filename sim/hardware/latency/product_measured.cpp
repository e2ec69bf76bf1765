// Matrix products by measured kernels (configs/kernels).
#include "sim/hardware/latency/product_kernels.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace specsim::cost {

namespace {

// Types of this many bits, the likeliest first.
std::vector<const char*> types_of(double bits) {
  if (bits >= 16.0) return {"bfloat16"};
  if (bits >= 8.0) return {"fp8", "sq", "int8_wo"};
  return {"int4_wo", "w4a16_mxfp4", "nvfp4"};
}

// Microseconds of the fit. If few rows were measured to cost much more than a few more rows, the time of the latter is used: the
// version dispatched a bad kernel (vLLM 0.24 on a B200 takes 1.9 times as long in fp8 over one row as over two). With the
// measured time, speculation would be credited with a gain that the next version removes.
double microseconds_without_dip(const KernelFit& fit, const Hardware& hardware, KernelShape x) {
  constexpr double kMuch = 1.25;
  const double own = fit.microseconds(hardware, x);
  double least = own;
  for (const double more : {2.0, 4.0, 8.0, 16.0}) {
    if (more <= x.rows) continue;
    x.rows = more;
    least = std::min(least, fit.microseconds(hardware, x));
  }
  return own > kMuch * least ? least : own;
}

// A default kernel gives each tile of rows and columns to one multiprocessor, a tuned one divides the inner dimension among those
// that are left over. So a default kernel is slower only where its tiles do not fill the GPU.
double untuned_times(const Hardware& hardware, const KernelShape& x) {
  constexpr double kTile = 128.0;
  const double tiles = std::ceil(x.rows / kTile) * std::ceil(x.outer / kTile);
  return 1.0 + (hardware.untuned_times - 1.0) * std::max(0.0, 1.0 - tiles / hardware.multiprocessors);
}

}  // namespace

const KernelFit* KernelLibrary::fit(KernelKind kind, const std::string& dtype, const std::string& kernel) const {
  return hardware_.kernels->nearest(kind, name_, dtype, kernel);
}

const KernelFit* KernelLibrary::fit_of(KernelKind kind, const WeightType& type) const {
  if (!type.name.empty()) return fit(kind, type.name == "float16" ? "bfloat16" : std::string(type.name));
  constexpr double kMostMeasured = 16.0;
  if (type.bits > kMostMeasured) return nullptr;
  for (const char* likely : types_of(type.bits))
    if (const KernelFit* found = fit(kind, likely)) return found;
  return nullptr;
}

KernelLabel KernelLibrary::label(const KernelFit& fit) const {
  std::string name = fmt::format("measured {} {}", kernel_kind_name(fit.kind), fit.dtype.name);
  if (!fit.kernel.empty()) name += " " + fit.kernel;
  const std::string of = fit.borrowed_from.empty() ? hardware_.kernels_name : fit.borrowed_from;
  return {std::move(name), fmt::format("{} of {}, {:g} rows", fit.engine, of, fit.rows)};
}

const KernelFit* MeasuredProduct::fit(const WeightType& type) const {
  if (type.bits < 16.0 && !narrow_) return nullptr;
  const KernelFit* const found = library_.fit_of(KernelKind::product, type);
  if (found == nullptr || !own_weight_only_ || found->engine == library_.name()) return found;
  return found->dtype.weight_bytes < 1.0 && found->dtype.activation_bytes >= kActivationBytes ? nullptr : found;
}

std::optional<double> MeasuredProduct::seconds(const ProductWork& work) const {
  if (work.groups != 1.0) return std::nullopt;
  const KernelFit* found = fit(work.type);
  if (found == nullptr) return std::nullopt;
  const Hardware& hardware = library_.hardware();
  KernelShape x;
  x.rows = std::ceil(work.rows);
  x.inner = work.inner;
  x.outer = work.outer;
  double us = microseconds_without_dip(*found, hardware, x);
  if (fused_quantisation_ && found->dtype.activation_bytes < kActivationBytes) {
    // Uses the larger of its own floor and a plain kernel's. The kernel that quantises the activations is excluded, because the
    // served model does not run it.
    const KernelFit* plain = library_.fit(KernelKind::product, "bfloat16");
    if (plain != nullptr && plain->engine == found->engine)
      us = std::max(0.5 * us, us - std::max(0.0, found->floor_us(hardware, x) - plain->floor_us(hardware, x)));
  }
  return kSecondsPerMicro * us * (work.type.bits < 16.0 ? untuned_times(hardware, x) : 1.0);
}

KernelError MeasuredProduct::error(const ProductWork& work) const {
  const Hardware& hardware = library_.hardware();
  return {fit(work.type)->spread, std::hypot(hardware.kernels_spread, work.type.bits < 16.0 ? hardware.untuned_spread : 0.0)};
}

KernelLabel MeasuredProduct::label(const ProductWork& work) const { return library_.label(*fit(work.type)); }

double MeasuredProduct::dip(const WeightType& type, double inner, double outer) const {
  const KernelFit* found = fit(type);
  if (found == nullptr) return 1.0;
  KernelShape x;
  x.inner = inner;
  x.outer = outer;
  const Hardware& hardware = library_.hardware();
  return found->microseconds(hardware, x) / microseconds_without_dip(*found, hardware, x);
}

}  // namespace specsim::cost
