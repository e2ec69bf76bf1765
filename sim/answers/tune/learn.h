// Learns a server's factors from its runs: Bayesian regression on the logarithms of the measurements, linear around the
// posterior mean.
//
// Measured logarithm = simulated logarithm(factors) + discrepancy + noise. The factors are normal, as their prior states. The
// discrepancy is the part that no factor can express: a Gaussian process over load, lengths and draft length (Kennedy and
// O'Hagan 2001). The noise is Student's t, as a normal of unknown variance per run, so that one bad run does not spoil the
// others (Lange, Little and Taylor 1989). TTFT has a variance of its own: clients that send at the same moments change it alone.
// docs/verification.md states the equations.
#pragma once

#include "sim/answers/tune/prediction.h"

#include <array>
#include <cstddef>
#include <optional>
#include <vector>

namespace specsim::tune {

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
