// What theory says of a cell, from its distributions and the description of its context process.
#pragma once

#include "sim/decode/simulator.h"
#include "sim/judge/block_facts.h"
#include "sim/spec/spec.h"
#include "sim/theory/modulated.h"
#include "sim/theory/round_distribution.h"

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace specsim::judge {

// What theory needs to know of the distributions; gathered once per set of contexts.
struct DistributionFacts {
  std::vector<std::vector<double>> alpha;  // [context][depth]
  double mean_alpha_error = 0.0;  // fresh distributions: standard error of alpha[0][0], which is then a mean over sampled pairs
  double chi_squared = 0.0;  // chi2(draft || target), mean over contexts; infinite where the draft goes where the target cannot
  double kl = 0.0;           // KL(target || draft), mean over contexts
  std::optional<theory::Modulation> modulation;  // markov: moves between contexts by token
  BlockTheory block;                             // rules for blocks
  // Lossy rules, where there is theory of them and one stratum: the classes' masses of a token that is judged, [depth][class].
  std::vector<std::vector<double>> judged_mass;
  decode::Prepared classes;  // without tables
};

// Markov processes with more states than this get no theory: its matrices would be too large.
constexpr int kMaxTheoryStates = 512;

// Draws all distributions once; builds the tables into `tables` as well where it is given. `stop`: see decode::prepare().
DistributionFacts gather_facts(const spec::Cell& cell, const decode::PreparationPlan& plan, decode::Prepared* tables,
                               const std::atomic<bool>* stop = nullptr);

struct Prediction {
  bool known = false;
  std::string missing;  // why it is not, where more is to be said than that there is no theory
  double alpha = 0.0;   // try-weighted
  double tokens_per_round = 0.0;
  double tokens_per_round_error = 0.0;  // standard deviation of the simulated mean, for the cell's own number of rounds
  std::optional<double> speedup;        // where a named form predicts it without tokens per round
  std::vector<theory::RoundDistribution> accepted_distribution;  // by stratum at the round's start; empty: not predicted
};

// `exact` theory of the cell, simulated with `work` rounds (requests: sequences).
Prediction predict_exact(const spec::Cell& cell, const DistributionFacts& facts, std::uint64_t work);
// The named closed form, with the error of the exact one.
Prediction predict_named(const spec::Cell& cell, const DistributionFacts& facts, const Prediction& exact);

}  // namespace specsim::judge
