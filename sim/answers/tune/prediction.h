// What the simulator expects of benchmark runs, and how that depends on the server's factors.
#pragma once

#include "sim/answers/load/from_options.h"
#include "sim/answers/tune/runs.h"
#include "sim/hardware/latency/server_factors.h"

#include <array>
#include <atomic>
#include <functional>
#include <vector>

namespace specsim::tune {

using Logarithms = std::array<double, kMetrics>;  // [Metric]

// Of one run.
struct Prediction {
  Logarithms mean{};                                      // logarithms of the metrics' means
  std::array<cost::FactorVector, kMetrics> slope{};       // [Metric][Factor]: change of the logarithm per unit of the factor
  double batch = 1.0;                                     // mean number of requests in a step
  double seconds = 0.0;                                   // that the run takes
  double acceptance_error = 0.0;                          // standard deviation of the logarithm of tokens per round
};

// Rates by position for a run that states none: of the runs that state them, those with the most similar lengths. `error`: the
// standard deviation of the logarithm of tokens per round; 0 for a run that states its own.
struct Acceptance {
  std::vector<double> position_rates;
  double error = 0.0;
};
Acceptance acceptance_of(const Run& run, const std::vector<Run>& known);

// The run as an experiment: the server of `server` with the run's load, lengths, draft length and acceptance. Throws BadInput.
load::ServeExperiment experiment_of(const load::ServeRequest& server, const Run& run, const std::vector<double>& position_rates);

struct PredictOptions {
  double step = 0.5;  // by how many standard deviations of its prior each factor is changed for the slopes; 0: no slopes
  unsigned threads = 1;
  const std::atomic<bool>* stop = nullptr;
  std::function<void(double share)> progress;
};
// Simulates every run on a server with these factors, and again with each factor changed.
std::vector<Prediction> predict(const std::vector<load::ServeExperiment>& runs, const cost::ServerFactors& at,
                                const PredictOptions& options);

}  // namespace specsim::tune
