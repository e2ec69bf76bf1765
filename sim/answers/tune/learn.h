// Learns a server's factors from its runs: Bayesian regression on the logarithms of the measurements, linear around the
// posterior mean.
//
// Measured logarithm = simulated logarithm(factors) + discrepancy + noise. The factors are normal, as their prior states. The
// discrepancy is the part that no factor can express: a Gaussian process over load, lengths and draft length (Kennedy and
// O'Hagan 2001). The noise is Student's t, as a normal of unknown variance per run, so that one bad run does not spoil the
// others (Lange, Little and Taylor 1989). TTFT has a variance of its own: clients that send at the same moments change it alone.
// docs/verification.md states the equations.
#pragma once

#include "sim/answers/load/from_options.h"
#include "sim/answers/tune/runs.h"
#include "sim/hardware/latency/server_factors.h"

#include <array>
#include <atomic>
#include <cstddef>
#include <functional>
#include <optional>
#include <vector>

namespace specsim::tune {

// The simulator's predictions for benchmark runs, and their dependence on the server's factors.

using Logarithms = std::array<double, kMetrics>;  // [Metric]

// The prediction for one run.
struct Prediction {
  Logarithms mean{};                                 // logarithms of the metrics' means
  std::array<cost::FactorVector, kMetrics> slope{};  // [Metric][Factor]: change of the logarithm per unit of the factor
  double batch = 1.0;                                // mean number of requests in a step
  double prompt_tokens = 1.0;                        // mean per request
  double seconds = 0.0;                              // duration of the run
  Logarithms sampling{};                             // standard deviations of the logarithms over other draws of the requests
  Logarithms discrepancy{};                          // standard deviations of the logarithms that no factor expresses
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
  // The same requests with other output lengths of the same mean, where a file states only the mean and the last requests of the
  // run take a large part of its time: the throughput depends on the longest ones.
  std::vector<arrivals::RequestTrace> other_lengths;
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

cost::StepSetting setting_of(const Run& run, const Prediction& prediction);

struct Evidence {
  Run run;
  cost::StepSetting setting;
  Prediction prediction;
  Acceptance acceptance;
  std::array<std::optional<double>, kMetrics> measured;  // [Metric]: logarithms
};

// How well a run agrees with the others.
struct Fit {
  std::array<double, kMetrics> residual{};  // [Metric]: measured less expected, logarithms; NaN if not measured
  // Of TPOT and throughput, and of TTFT; below .3: it disagrees with the other runs, and has little influence.
  double weight = 1.0;
  double ttft_weight = 1.0;
};

struct LearnedFactors {
  cost::FactorBelief belief;
  std::vector<Fit> fits;  // [run]
  struct Expected {
    std::array<double, kMetrics> mean{};   // [Metric]: of the logarithm
    std::array<double, kMetrics> error{};  // [Metric]: its standard deviation
  };
  std::vector<Expected> expected;  // [run of `others`]
  // Covariance of the expected logarithms, without measurement noise: [row][row], with row = run * kMetrics + metric.
  std::vector<std::vector<double>> covariance;
};

// Standard deviation of the logarithm of a metric between repetitions of a run.
double noise_of(Metric metric);

// `at`: the factors around which runs and `others` were simulated.
LearnedFactors learn(const cost::FactorBelief& prior, const std::vector<Evidence>& evidence, const std::vector<Evidence>& others,
                     const cost::ServerFactors& at);

}  // namespace specsim::tune
