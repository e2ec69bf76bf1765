// A server as a command's options describe it: a config with changes, or options alone.
#pragma once

#include "sim/answers/load/curve.h"
#include "sim/answers/load/experiment.h"
#include "sim/experiments/spec/context_rates.h"
#include "sim/experiments/spec/spec.h"

#include <optional>
#include <string>
#include <vector>

namespace specsim::load {

// The given options. Texts are YAML as in the config unless stated otherwise.
// Lengths of requests if neither options nor a config state them.
constexpr const char* kDefaultPrompt = "{lognormal: {mean: 512, cv: 1}}";
constexpr const char* kDefaultOutput = "{lognormal: {mean: 256, cv: 1}}";

struct ServeRequest {
  std::optional<std::string> config;    // path of a config; nullopt: options alone describe the server
  std::vector<spec::Override> changes;  // --set: these settings win, and an option that would replace one is rejected
  std::optional<std::string> seed;
  std::optional<std::string> hardware;
  std::optional<std::string> target;
  std::optional<std::string> draft;
  std::optional<std::string> draft_hardware;
  std::optional<std::string> draft_link_us;
  std::optional<std::string> tensor_parallel;
  std::optional<std::string> dtype;             // the target's data types, as in a model file
  std::optional<std::string> engine;            // engine that adds host and launch times
  std::optional<std::string> power_cap;         // watts of each GPU
  std::optional<std::string> dollars_per_hour;  // of each GPU
  std::optional<std::string> rate;
  std::optional<std::string> concurrency;
  std::optional<std::string> trace;
  std::optional<Load> sweep;  // the load that a sweep varies
  std::optional<std::string> requests;
  std::optional<std::string> warm_up;
  std::optional<std::string> prompt;
  std::optional<std::string> output;
  std::optional<std::string> policy;  // off, fixed:3, table:1-4=5,5-64=3, adaptive:ema_tiers, or {kind: NAME, ...}
  std::optional<double> alpha;
  std::optional<std::vector<double>> position_rates;
  std::vector<spec::ContextRates> rates_by_context;  // rising contexts; empty: none
  std::optional<std::string> method;
  std::optional<std::string> replicas;
  std::optional<std::string> routing;
  std::vector<std::string> slo;  // limits one by one: ttft=500, percentile=99; or a preset's name, which has a colon
};

// Throws BadInput with every error, including those already in `diagnostics`.
ServeExperiment read_request(const ServeRequest& request, Diagnostics& diagnostics);

}  // namespace specsim::load
