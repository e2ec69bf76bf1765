// How one server differs from the latency model's estimate of it: the factors that `specsim tune` learns from runs of the server.
// Their prior is the model's stated error.
#pragma once

#include "sim/foundation/config/value.h"

#include <array>
#include <cmath>
#include <cstddef>
#include <string>

namespace specsim::cost {

// A factor of GPU time, or of a request's host time, is a logarithm, 0 if the estimate is right. Other factors of host time are
// microseconds that are added.
enum class Factor : std::size_t {
  products,       // matrix products other than those of experts, and the small kernels between them
  arithmetic,     // extra factor of arithmetic on top of reading weights: passes over many rows
  experts,        // routed experts
  routing,        // each token of a pass after the first chooses experts like this many independent ones
  attention,      // attention over the cache
  verification,   // extra factor of attention of several tokens per sequence
  prefill,        // extra factor of the rows of prompts: products and attention
  communication,  // communication between the GPUs of one model
  speculation,    // all passes of a speculative round
  step,           // host time per step
  sequence,       // host time per step and sequence
  row,            // host time per row of a verification
  round,          // host time per speculative round
  draft_pass,     // host time per draft pass
  request         // host time per request before the engine's queue, a logarithm since it is positive
};
constexpr std::size_t kFactors = 15;

using FactorVector = std::array<double, kFactors>;

struct FactorInfo {
  const char* key;
  bool logarithm;  // of a time; else microseconds of host time that are added
  double error;    // standard deviation, before any run was seen
  const char* meaning;
};
// [Factor]
const std::array<FactorInfo, kFactors>& factor_infos();

struct ServerFactors {
  FactorVector values{};
  [[nodiscard]] double operator[](Factor factor) const { return values[static_cast<std::size_t>(factor)]; }
  [[nodiscard]] double& operator[](Factor factor) { return values[static_cast<std::size_t>(factor)]; }
  // The multiplier of a time: the exponential of the sum of these factors.
  template <class... Factors>
  [[nodiscard]] double times(Factors... factors) const {
    return std::exp((... + (*this)[factors]));
  }
  [[nodiscard]] double seconds(Factor factor) const { return 1e-6 * (*this)[factor]; }
  [[nodiscard]] bool neutral() const { return values == FactorVector{}; }
};

// The belief about a server's factors: a normal distribution.
struct FactorBelief {
  ServerFactors mean;
  std::array<FactorVector, kFactors> covariance{};  // [Factor][Factor]
};
// The prior. `kernel_errors`: standard deviations of the estimates of the kernels that run; they are added to those of
// factor_infos().
FactorBelief prior_belief(const ServerFactors& kernel_errors = {});
// Variance of the logarithm of a time or a ratio of times, given the derivative of its logarithm with respect to the factors.
double ratio_variance(const FactorBelief& belief, const FactorVector& slope);

// The error that no factor expresses: a Gaussian process over the settings of a server's steps, on logarithms of time.
struct StepSetting {
  double batch = 1.0;    // mean sequences in a step
  double prompt = 1.0;   // mean tokens of a prompt, or of a context
  int draft_length = 0;  // 0: without speculation
};
// Standard deviations of the discrepancies of a server's metrics. Estimated by likelihood over measured servers, as the widths of
// the factors (factor_infos()).
struct Discrepancies {
  double ttft;
  double tpot;  // and of every decoding time
  double throughput;
};
constexpr Discrepancies kDiscrepancies = {0.15, 0.022, 0.027};
constexpr Discrepancies kDiscrepanciesOfMixtures = {0.4, 0.05, 0.05};
// The correlation of the discrepancies of two settings.
double discrepancy_correlation(const StepSetting& a, const StepSetting& b);

// {factors: {products: 0.03, ...}, covariance: [[...], ...]}, as an engine's file states it. Reports errors.
FactorBelief read_belief(const config::Value& value, Diagnostics& diagnostics);
// The same as YAML, each line after `indent` spaces.
std::string belief_text(const FactorBelief& belief, int indent);

}  // namespace specsim::cost
