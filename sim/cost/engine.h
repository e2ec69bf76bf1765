// What an inference engine adds to the GPU's own work: host time, launches, padding. One file of configs/engines each.
#pragma once

#include "sim/config/arguments.h"

#include <string>
#include <vector>

namespace specsim::cost {

// Microseconds where a name ends in _us.
struct Engine {
  std::string name;  // as the config calls it
  std::string source;
  bool graphs = false;             // passes are captured; rows are padded up to the next captured number
  double largest_graph = 0.0;      // rows of the largest captured pass
  double host_us = 0.0;            // of every target pass, with the GPU idle
  double host_us_per_layer = 0.0;  // a pass that no graph was captured for takes at least this times its layers: launches run
                                   // ahead of the GPU, so that the host's time is a floor, not a term
  double draft_floor_us = 0.0;     // a draft pass takes at least this
  double draft_us = 0.0;           // of every draft pass, with the GPU idle: its inputs are prepared anew
  double round_us = 0.0;           // of a speculative round beyond its passes
};

// The figures that a cost model may replace by their names in the config.
struct EngineFigure {
  const char* key;
  double Engine::*figure;
  const char* summary;
};
const std::vector<EngineFigure>& engine_figures();

const std::vector<config::Parameter>& engine_parameters();
// Files of configs/engines.
std::vector<std::string> engine_names();
// `spec` as resolve_preset takes it. Reports what is wrong; the engine is then not to be used.
Engine read_engine(const config::Value& spec, Diagnostics& diagnostics);

}  // namespace specsim::cost
