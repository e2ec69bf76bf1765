// An experiment as typed values, for a command that makes one without a config. Its config follows from them: what its hashes,
// its random numbers and its manifest go by, what --set changes, and what a user may have printed to start from.
#pragma once

#include "sim/experiments/spec/setting.h"
#include "sim/experiments/spec/spec.h"

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace specsim::spec {

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

struct ExperimentValues {
  std::string name;
  std::optional<std::int64_t> rounds;  // rounds of each cell; nullopt: the default
  PairValues pair;
  std::optional<PartValues> context;  // nullopt: the default, one distribution all along
  MethodValues method;
  PartValues cost;                    // the model of prices
  std::int64_t batch = 1;             // sequences decoded together
  std::int64_t context_length = 512;  // tokens cached by each
  // Axes of the sweep, in this order, each in place of the one value above; empty: none.
  std::vector<MethodValues> methods;
  std::vector<std::int64_t> batches;
  std::vector<std::int64_t> context_lengths;
};

// The experiment's cells, checked as those of its config are. `name` stands for the config's path in messages and manifests;
// `overrides` change single values, as they change those of a config. Every mistake goes to `diagnostics`.
Experiment make_experiment(const ExperimentValues& values, const std::string& name, const std::vector<Override>& overrides,
                           Diagnostics& diagnostics, Misfits misfits = Misfits::refused);

}  // namespace specsim::spec
