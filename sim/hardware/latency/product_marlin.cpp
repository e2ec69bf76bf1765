// Marlin: 4-bit and 8-bit weights unpacked to 16 bits before the tensor cores (vLLM csrc/quantization/marlin).
//
// Each tile of up to 64 rows unpacks all weights again, between the products of its tensor cores. The rate of unpacking and the
// fixed time were fitted to 368 products of vLLM's Marlin on an H200 (results/gpu/h200-sxm/kernels/products_w4a16.csv): median
// error 9 %, nine of ten within 21 %. The kernel issues mma.sync. On Hopper that instruction reaches 63 % of the data sheet's
// rate, which needs wgmma (arXiv 2402.13499, table 7); on Ampere and Ada it reaches all of it.
#include "sim/hardware/latency/product_kernels.h"

#include <algorithm>
#include <cmath>

namespace specsim::cost {

namespace {

constexpr double kMarlinUnpacked = 52e9;   // weights per second and multiprocessor
constexpr double kMarlinLegacyMma = 0.63;  // assumed of Blackwell in data centres too, which has another instruction
constexpr double kMarlinHopper = 9.0;
constexpr double kMarlinConsumerBlackwell = 12.0;  // runs mma.sync at its full rate
constexpr double kMarlinNarrowTile = 8.0;          // rows of the smallest tile
constexpr double kMarlinTileStep = 16.0;           // rows by which tiles grow from there
constexpr double kMarlinWidestTile = 64.0;
constexpr double kMarlinFixedUs = 2.6;  // besides a plain kernel's fixed time: the reduction between blocks
constexpr double kMarlinSpread = 0.12;

double padded(double rows) {
  const double step = rows <= kMarlinNarrowTile   ? kMarlinNarrowTile
                      : rows <= kMarlinWidestTile ? kMarlinTileStep
                                                  : kMarlinWidestTile;
  return step * std::ceil(rows / step);
}

}  // namespace

std::optional<double> MarlinProduct::seconds(const ProductWork& work) const {
  if (work.groups != 1.0 || work.type.bits >= 16.0 || !of_weights_alone(work.type)) return std::nullopt;
  const Calibration& calibration = hardware_.calibration;
  const double rows = std::ceil(work.rows);
  const double bytes = work.inner * work.outer * calibrated_.bytes_as_read(work.type.bits, true) +
                       rows * kActivationBytes * (work.inner + work.outer);
  const double reading = bytes / (hardware_.bandwidth * calibration.memory_efficiency);
  const bool legacy = hardware_.compute_capability >= kMarlinHopper && hardware_.compute_capability < kMarlinConsumerBlackwell;
  const double peak = hardware_.flops * (legacy ? kMarlinLegacyMma : 1.0);
  const double unpacking =
      std::ceil(rows / kMarlinWidestTile) * work.inner * work.outer / (kMarlinUnpacked * hardware_.multiprocessors);
  const double arithmetic = 2.0 * padded(rows) * work.inner * work.outer / peak + unpacking;
  const double power = calibration.overlap_power;
  return std::pow(std::pow(reading, power) + std::pow(arithmetic, power), 1.0 / power) +
         kSecondsPerMicro * (calibration.kernel_us + kMarlinFixedUs);
}

KernelError MarlinProduct::error(const ProductWork& /*work*/) const { return {kMarlinSpread, kWeightOnlySpread}; }

KernelLabel MarlinProduct::label(const ProductWork& /*work*/) const { return {"Marlin", "fit on an H200, 368 rows"}; }

}  // namespace specsim::cost
