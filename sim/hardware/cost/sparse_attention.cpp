#include "sim/hardware/cost/sparse_attention.h"

#include <algorithm>
#include <cmath>

namespace specsim::cost {

namespace {

// Figures of one layer by ai-dynamo/aiconfigurator's measurements of whole attention layers over one new token (095f58a5, August
// 2026; H100, H200, B200). An indexer's layer beside the same layer that takes the picks of another (GLM-5.2, SGLang 0.5.14): 40
// us over 4,096 cached tokens of one sequence on each of the three, of which its two products take 11.
constexpr double kIndexerKernels = 11.0;
// DeepSeek-V4's layer that picks, beside one that looks at all (the same source; SGLang 0.5.14 and vLLM 0.24, 1,024 tokens): 16
// to 28 us, of which products take 13. What compressors take beside their products is not seen.
constexpr double kPickingKernels = 4.0;
constexpr double kCalibratedKernels = 4.0;  // kernels whose least times Calibration::elementwise_us adds up
constexpr double kScoreBytes = 4.0;         // fp32
constexpr double kScorePasses = 2.0;        // written by the product with the keys, read by the selection

constexpr double kParts = 2.0;  // attention and feed-forward
// The two kernels of both parts over few rows take 21 to 32 us a layer, of 4,096 and 7,168 in width, on H100, H200, B200 and B300
// under SGLang 0.5.14, vLLM 0.24 and TensorRT-LLM 1.3.0rc20 (the same source).
constexpr double kHyperConnectionsUs = 25.0;

// Of the arithmetic in 8 bits: prompts of 16,384 and 32,768 tokens leave 21 ps (H200, vLLM 0.24) and 12 ps (B200) for each pair,
// of which the selection takes 3.
constexpr double kScoreShare = 0.5;

}  // namespace

double sparse_kernels_seconds(const Hardware& hardware, const ModelShape& model) {
  const double kernels = model.indexers() * (model.picked_layers > 0.0 ? kPickingKernels : kIndexerKernels);
  return 1e-6 * hardware.calibration.elementwise_us * kernels / kCalibratedKernels;
}

double hyper_connections_seconds(const Hardware& hardware, const ModelShape& model, double rows) {
  if (model.residual_streams <= 1.0) return 0.0;
  // Before a part its input is mixed of all streams; behind it all are mixed anew with its output.
  const double vectors = kParts * ((model.residual_streams + 1.0) + (2.0 * model.residual_streams + 1.0));
  return 1e-6 * kHyperConnectionsUs +
         rows * vectors * model.hidden * kActivationBytes / (hardware.bandwidth * hardware.calibration.memory_efficiency);
}

double index_seconds(const Engine& engine, const Hardware& hardware, const ModelShape& model, double sequences, double cached,
                     double tokens, double pairs) {
  if (model.index_topk == 0.0 || sequences == 0.0) return 0.0;
  const double rows = sequences * tokens;
  const double keys = sequences * (cached + tokens) * model.index_key_bytes();
  const double scored = pairs / model.index_entry_tokens();
  const double scores = rows * scored * kScoreBytes * kScorePasses;
  const double reading = (keys + scores) / (hardware.bandwidth * hardware.calibration.memory_efficiency);
  const double narrow = peak_flops(hardware, Arithmetic::fp8);
  const double operations = 2.0 * model.index_heads * model.index_dim * rows * scored;
  const double scoring = operations / (kScoreShare * (narrow > 0.0 ? narrow : hardware.flops));
  // One multiprocessor selects a row's best.
  const double turns = std::ceil(rows / std::max(1.0, hardware.multiprocessors));
  return model.indexers() * (std::max(reading, scoring) + 1e-9 * engine.selection_ns_per_key * turns * scored);
}

}  // namespace specsim::cost
