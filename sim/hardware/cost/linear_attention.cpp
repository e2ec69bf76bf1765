#include "sim/hardware/cost/linear_attention.h"

namespace specsim::cost {

double states_moved(double tokens, bool prompt) { return 1.0 + (prompt ? 1.0 : tokens); }

double states_seconds(const Engine& engine, const Hardware& hardware, const ModelShape& model, double states) {
  if (model.linear_value_heads == 0.0) return 0.0;
  constexpr double kCalibratedKernels = 4.0;  // kernels whose least times Calibration::elementwise_us adds up
  const Calibration& c = hardware.calibration;
  const double bytes = states * model.recurrent_bytes() / model.tensor_parallel;
  const double kernels = 1e-6 * model.linear_layers * c.elementwise_us * engine.linear_kernels / kCalibratedKernels;
  return bytes / (hardware.bandwidth * c.memory_efficiency) + kernels;
}

}  // namespace specsim::cost
