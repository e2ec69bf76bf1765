// Products of quantised weights on GPUs where llama.cpp's CUDA kernels do not run.
#include "sim/hardware/latency/product_kernels.h"

#include <algorithm>
#include <cmath>

namespace specsim::cost {

namespace {

// Share of plain cores' arithmetic that these kernels reach: the geometric mean of six GPUs that ran Qwen3.8-27B or Gemma-4-31B
// with MTP over 3 to 5 rows (github.com/sudoingX/qwen38-mtp c7bc4153; llama.cpp pull request 23398). By GPU: M3 Ultra .055, M4
// .094, RX 7900 XTX .087 under Vulkan and .029 under ROCm, Radeon AI PRO R9700 .048, Strix Halo .067. CUDA's kernel has .09. The
// spread is the standard deviation of their logarithms.
constexpr double kShare = 0.06;
constexpr double kShareSpread = 0.45;
// Time just beyond the kernel's most rows, where a matrix kernel with wide tiles takes over, relative to the time at its most
// rows, and the spread of its logarithm: the geometric mean of public measurements. Vulkan takes 1.5, 2.1 and 7 times as long
// over 9 to 12 rows as over 8 (AMD's graphics in processors, Arc B70). Metal takes .6 of this estimate for 8 rows (M3 Max,
// llama.cpp issue 4624).
constexpr double kBeyond = 1.8;
constexpr double kBeyondSpread = 0.8;

}  // namespace

// A GPU without a compute capability is not known to run CUDA.
bool other_backend(const Engine& engine, const Hardware& hardware) {
  return engine.integer && hardware.compute_capability <= 0.0;
}

BackendProduct::Parts BackendProduct::parts(const ProductWork& work, double rows) const {
  ProductWork one = work;
  one.rows = 1.0;
  const double rate = kShare * hardware_.dp4a_flops.value_or(hardware_.flops);
  return {calibrated_.seconds(one).value_or(0.0), 2.0 * work.groups * work.inner * work.outer * rows / rate};
}

std::optional<double> BackendProduct::seconds(const ProductWork& work) const {
  if (work.type.bits >= 16.0) return std::nullopt;
  const double rows = std::ceil(work.rows);
  const Parts few = parts(work, std::min(rows, most_rows_));
  const double time = std::hypot(few.reading, few.arithmetic);
  return rows <= most_rows_ ? time : std::max(kBeyond * time, calibrated_.seconds(work).value_or(0.0));
}

KernelError BackendProduct::error(const ProductWork& work) const {
  const KernelError one = calibrated_.error(work);
  const double rows = std::ceil(work.rows);
  if (rows <= 1.0) return one;
  if (rows > most_rows_) return {one.shape, one.common, kBeyondSpread};
  const auto weight = [&](double n) {
    const Parts time = parts(work, n);
    return hypot_weight(time.arithmetic, time.reading);
  };
  return {one.shape, one.common, kShareSpread * (weight(rows) - weight(1.0))};
}

KernelLabel BackendProduct::label(const ProductWork& work) const {
  return {"product of another backend", calibrated_.label(work).source};
}

}  // namespace specsim::cost
