// An experiment as typed values, for a command that makes one without a config. It becomes the cells that `run` makes of the
// config which to_config() writes.
#pragma once

#include "sim/config/value.h"
#include "sim/spec/spec.h"

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace specsim::spec {

// What a part's parameter is set to.
using Setting = std::variant<bool, std::int64_t, double, std::string, std::vector<double>, std::vector<std::vector<double>>>;

// A registered part and what its parameters are set to; those that are left out keep their defaults.
struct PartValues {
  std::string name;
  std::vector<std::pair<std::string, Setting>> settings;
};

// The distributions of target and draft.
struct PairValues {
  std::int64_t vocab = 2;
  PartValues target;
  PartValues draft;                // a family, or a transform of the target's distribution
  bool draft_from_target = false;  // it is such a transform
  // What both are sampled at; nullopt: 1, and nothing is written.
  std::optional<double> target_temperature = {};
  std::optional<double> draft_temperature = {};
};

struct MethodValues {
  PartValues drafter;
  std::optional<PartValues> verifier;  // nullopt: the default of `decode.verifier`
};

// A model as `cost.target` takes it: a name, the path of a file, or a map; for cost.draft also "none". Then what is changed of
// it.
struct ModelValues {
  config::Value model;
  std::vector<std::pair<std::string, config::Value>> changes;

  // A model by its name.
  static ModelValues named(const std::string& name) { return {config::scalar(name, {}), {}}; }
};
// As `cost.target` and `cost.draft` take it: `model` itself, or a map that names it as `preset` beside the changes.
config::Value to_config(const ModelValues& model);

// Passes as the cost model roofline prices them.
struct RooflineValues {
  config::Value hardware;  // as `cost.hardware` takes it: a name, the path of a file, or a map
  ModelValues target;
  ModelValues draft;
  std::optional<config::Value> engine;  // nullopt: the default
};

struct ExperimentValues {
  std::string name;
  std::optional<std::int64_t> rounds;  // of each cell; nullopt: the default
  PairValues pair;
  std::optional<PartValues> context;  // nullopt: the default, one distribution all along
  MethodValues method;
  RooflineValues cost;
  std::int64_t batch = 1;             // sequences decoded together
  std::int64_t context_length = 512;  // tokens cached by each
  // Axes of the sweep, in this order, each in place of the one value above; empty: none.
  std::vector<MethodValues> methods;
  std::vector<std::int64_t> batches;
  std::vector<std::int64_t> context_lengths;
};

// The config of the same experiment; what no option says stands at `where`, for messages.
config::Value to_config(const ExperimentValues& values, const Location& where = {});
// A list of numbers as a config has it, at the place that messages are to name.
config::Value to_config(const std::vector<std::int64_t>& numbers, const Location& where);

// The experiment's cells, checked as those of a config are. `name` stands for the config's path in messages and manifests;
// `overrides` change single values, as they change those of a config. Every mistake goes to `diagnostics`.
Experiment make_experiment(const ExperimentValues& values, const std::string& name, const std::vector<Override>& overrides,
                           Diagnostics& diagnostics, Misfits misfits = Misfits::refused);

}  // namespace specsim::spec
