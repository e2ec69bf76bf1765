#include "sim/cost/sparse_attention.h"

#include <algorithm>
#include <cmath>

namespace specsim::cost {

namespace {

// Figures of one layer by ai-dynamo/aiconfigurator's measurements of whole attention layers over one new token (095f58a5, August
// 2026; H100, H200, B200). An indexer's layer beside the same layer that takes the picks of another (GLM-5.2, SGLang 0.5.14): 40
// us over 4,096 cached tokens of one sequence on each of the three, of which its two products take 11.
constexpr double kIndexerKernels = 11.0;
constexpr double kCalibratedKernels = 4.0;  // kernels whose least times Calibration::elementwise_us adds up
constexpr double kScoreBytes = 4.0;         // fp32
constexpr double kScorePasses = 2.0;        // written by the product with the keys, read by the selection

// Of the arithmetic in 8 bits: prompts of 16,384 and 32,768 tokens leave 21 ps (H200, vLLM 0.24) and 12 ps (B200) for each pair,
// of which the selection takes 3.
constexpr double kScoreShare = 0.5;

}  // namespace

double indexer_kernels_seconds(const Hardware& hardware, const ModelShape& model) {
  if (model.index_topk == 0.0) return 0.0;
  return 1e-6 * model.indexers() * hardware.calibration.elementwise_us * kIndexerKernels / kCalibratedKernels;
}

double index_seconds(const Engine& engine, const Hardware& hardware, const ModelShape& model, double sequences, double cached,
                     double tokens, double pairs) {
  if (model.index_topk == 0.0 || sequences == 0.0) return 0.0;
  const double rows = sequences * tokens;
  const double keys = sequences * (cached + tokens) * model.index_key_bytes();
  const double scores = rows * pairs * kScoreBytes * kScorePasses;
  const double reading = (keys + scores) / (hardware.bandwidth * hardware.calibration.memory_efficiency);
  const double narrow = peak_flops(hardware, Arithmetic::fp8);
  const double operations = 2.0 * model.index_heads * model.index_dim * rows * pairs;
  const double scoring = operations / (kScoreShare * (narrow > 0.0 ? narrow : hardware.flops));
  // One multiprocessor selects a row's best.
  const double turns = std::ceil(rows / std::max(1.0, hardware.multiprocessors));
  return model.indexers() * (std::max(reading, scoring) + 1e-9 * engine.selection_ns_per_key * turns * pairs);
}

}  // namespace specsim::cost
