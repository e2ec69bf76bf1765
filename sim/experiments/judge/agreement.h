// Compares counts with theory: p-values, and the verdict that follows from them.
#pragma once

#include "sim/experiments/judge/power.h"
#include "sim/experiments/judge/prediction.h"
#include "sim/rounds/decode/counts.h"

#include <optional>
#include <string>
#include <vector>

namespace specsim::judge {

// Probability of a false alarm in a family of cells, all cells of one command: at least one cell disagrees by chance alone.
constexpr double kFamilyBudget = 1e-4;
// Tests per cell: the output distribution, and two tests of both tokens per round and the distribution of accepted tokens, one
// by the exact theory and one by the closed form that the config names.
constexpr int kChecksPerCell = 5;

// The level of each of `checks` independent tests at which all together give a false alarm with probability `budget` (Sidak).
double check_level(std::size_t checks, double budget = kFamilyBudget);

// G-test of observed counts against expected ones of the same total. Cells with expected counts below 100 are pooled; a pool
// still below that joins its smallest neighbour. An observation in a cell with expected count 0 gives p = 0.
struct GTest {
  double g = 0.0;
  int degrees = 0;  // 0: nothing to test
  void add(const std::vector<double>& observed, const std::vector<double>& expected);
  [[nodiscard]] double p() const;  // 1 if there is nothing to test
  // Whether some outcome would be rejected: there are degrees of freedom, or an impossible outcome exists.
  [[nodiscard]] bool tested() const { return degrees > 0 || forbids || impossible; }
  bool impossible = false;  // an impossible outcome was observed
  bool forbids = false;     // an impossible outcome exists
};

// Two-sided p of a normal deviate; infinite z gives 0.
double normal_p(double z);

struct Agreement {
  double z_tokens_per_round = 0.0;       // NaN: no theory
  double p_tokens_per_round = 1.0;       // two-sided; for rare events exact or a bound; NaN: not tested
  double p_accepted_distribution = 1.0;  // NaN: not predicted, or too few rounds, so that all counts were pooled
  // A lossy verifier's output is compared with the distribution that theory predicts. NaN: nothing to test, or no prediction.
  double p_output_distribution = 1.0;
  // The power of p_output_distribution: the smallest share of emitted tokens that, drawn from the draft instead of the target,
  // would be rejected at `level` with probability .99. NaN: not stated, for example for a lossy verifier.
  double smallest_leak = 0.0;
  double smallest_error = 0.0;  // the power of p_tokens_per_round, see MeanTest; NaN: not tested
};

// Tests a cell's counts: tokens per round and accepted tokens against the prediction, the output against its distribution.
// Figures that cannot be tested are NaN, see Agreement. `level`: the level of a single test (check_level), used only to state
// its power.
Agreement judge_cell(const spec::Cell& cell, const DistributionFacts& facts, const Prediction& prediction,
                     const decode::Counts& counts, double level);

// True if tokens per round or the distribution of accepted tokens contradict the prediction.
bool contradicts(const Agreement& agreement, double level);

enum class Verdict { agree, disagree, refuted_as_expected, no_theory };
const char* to_text(Verdict verdict);
// `exact`: agreement with the exact theory. `named`: agreement with the form that the config names (the same if it names none).
// A named form is refuted or confirmed only by a simulation that the exact theory does not contradict.
Verdict decide(const spec::Cell& cell, const Prediction& prediction, const Agreement& exact, const Agreement& named,
               double level);

// Why a cell is underpowered: the smallest error that its checks detect is larger than allowed.
struct Underpowered {
  const char* of = "";    // the kind of error, such as "leak of the draft's distribution"
  double smallest = 0.0;  // the smallest error detected with power .99; NaN: none is
  double allowed = 0.0;
  double rounds = 0.0;  // rounds that would suffice; NaN: unknown, or none would
};
// A lossless verifier of distributions that differ enough (kPowerChiSquared) must detect a leak of kPowerLeak. Any other cell
// with a prediction must detect an error of tokens per round of kPowerError. nullopt: the cell can do so, or has no prediction.
std::optional<Underpowered> underpowered(const spec::Cell& cell, const DistributionFacts& facts, const Prediction& prediction,
                                         const decode::Counts& counts, const Agreement& agreement, double level);

}  // namespace specsim::judge
