// An experiment file: its grid of cells.
#pragma once

#include "sim/experiments/spec/cell.h"
#include "sim/experiments/spec/setting.h"
#include "sim/foundation/config/value.h"
#include "sim/hardware/presets/presets.h"

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace specsim::spec {

// A config as text, in several forms.
struct ConfigText {
  std::string line;                             // all of it on one line, which parses to the same config: for manifests
  std::string canonical;                        // equal if the settings are equal, however they are written: for hashes
  std::string file;                             // the text of a YAML file, each value of its axes on a line
  std::map<std::string, std::string> sections;  // [top-level key]: its section, on one line
};

ConfigText text_of(const config::Value& config);

struct Experiment {
  std::string name;
  std::string file;
  ConfigText config;  // the config, with --set applied
  std::vector<std::string> axes;
  std::vector<Cell> cells;
  std::vector<std::string> left_out;  // a line per batch, with Misfits::left_out
};

// The treatment of cells whose models and caches do not fit the GPU's memory, while other cells fit.
enum class Misfits { refused, left_out };

// A change to a config: `value` replaces the value at `path`.
struct Override {
  std::string path;  // "sweep.PATH" sets the axis PATH
  config::Value value;
  Location where;  // the place of the path, for messages
};
// An override whose value is given as YAML. `shown` is its name in messages: "--set PATH". nullopt after reporting.
std::optional<Override> read_override(const std::string& path, const std::string& value, const std::string& shown,
                                      Diagnostics& diagnostics);
// An override with a known value. `where` is its place in messages.
Override override_setting(const std::string& path, const Setting& setting, const Location& where);
// A GPU, a model or an engine at `path`. nullopt after reporting.
std::optional<Override> override_preset(const std::string& path, const cost::PresetChoice& choice, Diagnostics& diagnostics);

// Reads and validates whole experiments, all cells included. Reports every error to `diagnostics`.
Experiment read_experiment(const std::string& path, const std::vector<Override>& overrides, Diagnostics& diagnostics,
                           Misfits misfits = Misfits::refused);
Experiment read_experiment_text(const std::string& yaml, const std::string& name, const std::vector<Override>& overrides,
                                Diagnostics& diagnostics);
Experiment read_experiment(config::Value config, const std::string& file, const std::vector<Override>& overrides,
                           Diagnostics& diagnostics, Misfits misfits = Misfits::refused);

}  // namespace specsim::spec
