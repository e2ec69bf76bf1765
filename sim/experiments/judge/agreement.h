// Holds counts against theory: p-values, and the verdict that they add up to.
#pragma once

#include "sim/experiments/judge/power.h"
#include "sim/experiments/judge/prediction.h"
#include "sim/rounds/decode/counts.h"

#include <optional>
#include <string>
#include <vector>

namespace specsim::judge {

// Probability that a family of cells, all cells of one command, has a false alarm: one cell or more that disagrees by chance
// alone.
constexpr double kFamilyBudget = 1e-4;
// Tests of a cell: its output distribution, and its tokens per round and the distribution of its accepted tokens, each of these
// two by the exact theory and by the closed form that the config names.
constexpr int kChecksPerCell = 5;

// The level of each of `checks` independent tests with which all together give a false alarm with probability `budget` (Sidak).
double check_level(std::size_t checks, double budget = kFamilyBudget);

// G-test of observed counts against expected ones of the same total. Cells expected below 100 are pooled, and what is
// still below that joins its smallest neighbour. An observation where nothing is expected gives p = 0.
struct GTest {
  double g = 0.0;
  int degrees = 0;  // 0: nothing to test
  void add(const std::vector<double>& observed, const std::vector<double>& expected);
  [[nodiscard]] double p() const;  // 1 where there is nothing to test
  // Whether any outcome could have been rejected: there are degrees of freedom, or something must not happen at all.
  [[nodiscard]] bool tested() const { return degrees > 0 || forbids || impossible; }
  bool impossible = false;  // what must not happen was observed
  bool forbids = false;     // something must not happen
};

// Two-sided p of a normal deviate; infinite z gives 0.
double normal_p(double z);

struct Agreement {
  double z_tokens_per_round = 0.0;       // NaN: no theory
  double p_tokens_per_round = 1.0;       // two-sided; exact or a bound where events are rare; NaN: not tested
  double p_accepted_distribution = 1.0;  // NaN: not predicted, or so few rounds that all counts were pooled
  // A lossy verifier's output is held to the distribution that theory says it has. NaN: nothing to test, or none is known.
  double p_output_distribution = 1.0;
  // The power of p_output_distribution: the least share of emitted tokens that, drawn from the draft in place of the target,
  // would be rejected at `level` with probability .99. NaN: not stated, as of a lossy verifier.
  double smallest_leak = 0.0;
  double smallest_error = 0.0;  // the power of p_tokens_per_round, see MeanTest; NaN: not tested
};

// Tests a cell's counts: tokens per round and accepted tokens against the prediction, the output against its distribution. What
// cannot be tested is NaN, see Agreement. `level`: the level of a test by itself (check_level), for its power alone.
Agreement judge_cell(const spec::Cell& cell, const DistributionFacts& facts, const Prediction& prediction,
                     const decode::Counts& counts, double level);

// True if tokens per round or the distribution of accepted contradict the prediction.
bool contradicts(const Agreement& agreement, double level);

enum class Verdict { agree, disagree, refuted_as_expected, no_theory };
const char* to_text(Verdict verdict);
// `exact`: agreement with the exact theory, `named`: with the form that the config names (the same where it names none). A named
// form is refuted, or agreed with, only by a simulation that the exact theory does not contradict.
Verdict decide(const spec::Cell& cell, const Prediction& prediction, const Agreement& exact, const Agreement& named,
               double level);

// Why a cell could not have failed: the smallest mistake that its checks see is larger than is allowed.
struct Blindness {
  const char* of = "";    // what a mistake is, as of "leak of the draft's distribution"
  double smallest = 0.0;  // that is seen with power .99; NaN: none is
  double allowed = 0.0;
  double rounds = 0.0;  // that would do; NaN: not known, or there are none
};
// A lossless verifier of distributions that differ enough (kPowerChiSquared) must see a leak of kPowerLeak; any other cell with a
// prediction an error of tokens per round of kPowerError. nullopt: the cell could have failed, or has no prediction.
std::optional<Blindness> blindness(const spec::Cell& cell, const DistributionFacts& facts, const Prediction& prediction,
                                   const decode::Counts& counts, const Agreement& agreement, double level);

}  // namespace specsim::judge
