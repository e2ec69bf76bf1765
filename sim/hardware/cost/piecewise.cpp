#include "sim/hardware/cost/piecewise.h"

#include <algorithm>

namespace specsim::cost {

double pieces_seconds(const Engine& engine, const Hardware& hardware, const ModelShape& model, double whole) {
  if (!verifies_in_pieces(engine, hardware.compute_capability, model.kv_bits)) return 0.0;
  const double linear = model.linear_layers;
  const double launches =
      1e-6 * (engine.piecewise_us_per_layer * (model.layers - linear) + engine.piecewise_us_per_linear_layer * linear);
  return std::max(1e-6 * engine.piecewise_gap_us * model.layers, launches - whole);
}

}  // namespace specsim::cost
