// How tokens per round are tested, and how small a mistake of them the test would have shown.
#pragma once

#include "sim/experiments/judge/prediction.h"
#include "sim/rounds/decode/counts.h"

#include <cstdint>

namespace specsim::judge {

// A mistake counts as seen where a test rejects it with this probability.
constexpr double kPower = 0.99;
// What a cell must be able to see: a leak of the draft's distribution into the output where the distributions differ enough
// (chi2(draft || target) >= .1), else a relative error of tokens per round.
constexpr double kPowerChiSquared = 0.1;
constexpr double kPowerLeak = 0.01;
constexpr double kPowerError = 0.01;

// Two-sided p of `observed` in `n` trials of probability `share`, exact.
double binomial_p(double observed, double n, double share);
// The smallest leak that the count of rare classes rejects with power kPower: it has probability `share` each without a
// leak and `leaked` under the draft alone. Infinite where even a leak of 1 is not seen.
double rare_leak(double n, double share, double leaked, double level);

// The test of a cell's mean tokens per round. A mean of rare events is not normal: where rejections or acceptances are few, the
// first position's are counted exactly, or, where rounds are not alike or no distribution is claimed, only what holds for any
// distribution of that mean, spread and range is used.
class MeanTest {
 public:
  // Keeps a pointer to `prediction`, which must be known; counts.rounds > 0.
  MeanTest(const spec::Cell& cell, int strata, const Prediction& prediction, const decode::Counts& counts);
  [[nodiscard]] double z() const { return z_; }  // infinite where every round must come out alike and did not
  [[nodiscard]] double p() const;                // two-sided

  // The smallest relative error of tokens per round, up or down, that the test at `level` rejects with power kPower, had it
  // `times` as many rounds. Where rare events are counted at the first position alone, of a mistake that shifts the acceptance
  // of all positions alike. Infinite where no error is seen. Where theory is itself a mean over a sample (fresh distributions)
  // its own error is not counted: more rounds would not help.
  [[nodiscard]] double smallest_error(double level, double times = 1.0) const;
  // Rounds that see an error of `error`, about; NaN where no number does.
  [[nodiscard]] double rounds_for(double error, double level) const;

 private:
  enum class Kind { certain, normal, counted, bounded };
  [[nodiscard]] Kind kind(double times) const;
  [[nodiscard]] double counted_error(double level, double times) const;
  // tokens per round, relative to the prediction's, had each position `shift` more acceptance.
  [[nodiscard]] double shifted(double shift) const;

  const Prediction* prediction_;
  double rounds_;
  double tries_ = 0.0;  // tokens that were judged
  double reached_;      // tokens that were judged at the first position
  double accepted_first_;
  double z_ = 0.0;
  double range_;  // what a sequence may be off its mean
  int draft_length_;
  bool certain_;  // every round must come out alike
  bool alike_;    // the rounds' distribution is one and known
};

}  // namespace specsim::judge
