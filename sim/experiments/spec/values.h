// An experiment as typed values, for a command that makes one without a config file. Its config is generated from them. Hashes,
// random numbers and manifests depend on that config, --set changes it, and a user can print it as a starting point.
#pragma once

#include "sim/experiments/spec/setting.h"
#include "sim/experiments/spec/spec.h"

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace specsim::spec {

// A registered part and the settings of its parameters; omitted ones keep their defaults.
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
  // The sampling of both; nullopt: temperature 1, and the config omits it.
  std::optional<double> target_temperature = {};
  std::optional<double> draft_temperature = {};
};

struct MethodValues {
  PartValues drafter;
  std::optional<PartValues> verifier;  // nullopt: the default of `decode.verifier`
};

struct ExperimentValues {
  std::string name;
  std::optional<std::int64_t> rounds;  // rounds per cell; nullopt: the default
  PairValues pair;
  std::optional<PartValues> context;  // nullopt: the default, the same distribution throughout
  MethodValues method;
  PartValues cost;                    // the cost model
  std::int64_t batch = 1;             // sequences decoded together
  std::int64_t context_length = 512;  // cached tokens per sequence
  // Axes of the sweep, in this order. Each replaces the single value above; empty: none.
  std::vector<MethodValues> methods;
  std::vector<std::int64_t> batches;
  std::vector<std::int64_t> context_lengths;
};

// The experiment's cells, checked like those of a config. `name` replaces the config's path in messages and manifests.
// `overrides` change single values, as in a config. Reports every error to `diagnostics`.
Experiment make_experiment(const ExperimentValues& values, const std::string& name, const std::vector<Override>& overrides,
                           Diagnostics& diagnostics, Misfits misfits = Misfits::refused);

}  // namespace specsim::spec
