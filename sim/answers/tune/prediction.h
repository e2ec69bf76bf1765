// The simulator's predictions for benchmark runs, and their dependence on the server's factors.
#pragma once

#include "sim/answers/load/from_options.h"
#include "sim/answers/tune/runs.h"
#include "sim/hardware/latency/server_factors.h"

#include <array>
#include <atomic>
#include <functional>
#include <optional>
#include <vector>

namespace specsim::tune {

using Logarithms = std::array<double, kMetrics>;  // [Metric]

// The prediction for one run.
struct Prediction {
  Logarithms mean{};                                 // logarithms of the metrics' means
  std::array<cost::FactorVector, kMetrics> slope{};  // [Metric][Factor]: change of the logarithm per unit of the factor
  double batch = 1.0;                                // mean number of requests in a step
  double prompt_tokens = 1.0;                        // mean per request
  double seconds = 0.0;                              // duration of the run
  Logarithms sampling{};     // standard deviations of the logarithms over other draws of the same requests
  Logarithms discrepancy{};  // standard deviations of the logarithms that no factor expresses
};

// Rates by position. If a run states none, they come from the run with the most similar lengths among those that do. `error`:
// the standard deviation of the logarithm of tokens per round; 0 for a run that states its own. `source`: the run of `known`
// that they come from; nullopt: assumed. Runs with the same source have the same error.
struct Acceptance {
  std::vector<double> position_rates;
  double error = 0.0;
  std::optional<std::size_t> source;
};
// Whether the lengths of two runs are about equal.
bool alike(const Run& a, const Run& b);
Acceptance acceptance_of(const Run& run, const std::vector<Run>& known);

struct Benchmark {
  load::ServeExperiment experiment;
  arrivals::RequestTrace requests;
};
// The run as a simulation: the server of `server` with the run's load, lengths, draft length and acceptance. The requests have
// exactly the stated mean lengths. Throws BadInput.
Benchmark benchmark_of(const load::ServeRequest& server, const Run& run, const std::vector<double>& position_rates);

struct PredictOptions {
  double step = 0.5;  // change of each factor for the slopes, in standard deviations of its prior; 0: no slopes
  unsigned threads = 1;
  const std::atomic<bool>* stop = nullptr;
  std::function<void(double share)> progress;
};
// Simulates every run on a server with these factors, and again with each factor changed.
std::vector<Prediction> predict(const std::vector<Benchmark>& runs, const cost::ServerFactors& at, const PredictOptions& options);

}  // namespace specsim::tune
