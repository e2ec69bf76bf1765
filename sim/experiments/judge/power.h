// The test of tokens per round, and the smallest error that it detects.
#pragma once

#include "sim/experiments/judge/prediction.h"
#include "sim/rounds/decode/counts.h"

#include <cstdint>

namespace specsim::judge {

// An error counts as detected if a test rejects it with this probability.
constexpr double kPower = 0.99;
// The errors that a cell must be able to detect: a leak of the draft's distribution into the output if the distributions differ
// enough (chi2(draft || target) >= .1), otherwise a relative error of tokens per round.
constexpr double kPowerChiSquared = 0.1;
constexpr double kPowerLeak = 0.01;
constexpr double kPowerError = 0.01;

// Two-sided exact p of `observed` in `n` trials of probability `share`.
double binomial_p(double observed, double n, double share);
// The smallest leak that the count of rare classes rejects with power kPower. The classes have probability `share` without a
// leak and `leaked` under the draft alone. Infinite if not even a leak of 1 is detected.
double rare_leak(double n, double share, double leaked, double level);

// The test of a cell's mean tokens per round. A mean of rare events is not normal. If rejections or acceptances are few, the
// test counts those of the first position exactly. If rounds are not identically distributed, or their distribution is not
// predicted, it uses bounds that hold for any distribution of that mean, spread and range.
class MeanTest {
 public:
  // Keeps a pointer to `prediction`, which must be known; counts.rounds > 0.
  MeanTest(const spec::Cell& cell, int strata, const Prediction& prediction, const decode::Counts& counts);
  [[nodiscard]] double z() const { return z_; }  // infinite if every round must have the same outcome and one did not
  [[nodiscard]] double p() const;                // two-sided

  // The smallest relative error of tokens per round, up or down, that the test at `level` would reject with power kPower if it
  // had `times` as many rounds. If only rare events at the first position are counted, the error is one that shifts the
  // acceptance of all positions by the same amount. Infinite if no error is detected. If theory is itself a mean over a sample
  // (fresh distributions), its own error is excluded, since more rounds would not reduce it.
  [[nodiscard]] double smallest_error(double level, double times = 1.0) const;
  // Approximate number of rounds that detect an error of `error`; NaN if no number does.
  [[nodiscard]] double rounds_for(double error, double level) const;

 private:
  enum class Kind { certain, normal, counted, bounded };
  [[nodiscard]] Kind kind(double times) const;
  [[nodiscard]] double counted_error(double level, double times) const;
  // Tokens per round relative to the prediction if each position had `shift` more acceptance.
  [[nodiscard]] double shifted(double shift) const;

  const Prediction* prediction_;
  double rounds_;
  double tries_ = 0.0;  // judged tokens
  double reached_;      // tokens judged at the first position
  double accepted_first_;
  double z_ = 0.0;
  double range_;  // the largest deviation of a sequence from its mean
  int draft_length_;
  bool certain_;  // every round must have the same outcome
  bool alike_;    // rounds share one known distribution
};

}  // namespace specsim::judge
