// An experiment file: its grid of cells.
#pragma once

#include "sim/config/value.h"
#include "sim/spec/cell.h"

#include <optional>
#include <string>
#include <vector>

namespace specsim::spec {

struct Experiment {
  std::string name;
  std::string file;
  config::Value config;  // with --set applied
  std::vector<std::string> axes;
  std::vector<Cell> cells;
  std::vector<std::string> left_out;  // a line for each batch with Misfits::left_out
};

// What becomes of cells whose models and caches the GPU's memory cannot hold, while other cells fit.
enum class Misfits { refused, left_out };

// A change to a config: `value` in place of what stands at `path`.
struct Override {
  std::string path;  // "sweep.PATH" sets the axis PATH
  config::Value value;
  Location where;  // of the path, for messages
};
// One whose value is given as YAML; `shown` stands for it in messages: "--set PATH". nullopt after reporting.
std::optional<Override> read_override(const std::string& path, const std::string& value, const std::string& shown,
                                      Diagnostics& diagnostics);

// Reads and validates whole experiments, all cells included; every mistake goes to `diagnostics`.
Experiment read_experiment(const std::string& path, const std::vector<Override>& overrides, Diagnostics& diagnostics,
                           Misfits misfits = Misfits::refused);
Experiment read_experiment(config::Value config, const std::string& file, const std::vector<Override>& overrides,
                           Diagnostics& diagnostics, Misfits misfits = Misfits::refused);

// A config in YAML, each value of its axes on a line.
std::string config_text(const config::Value& config);

}  // namespace specsim::spec
