// The theory's prediction for a cell, from its distributions and the description of its context process.
#pragma once

#include "sim/experiments/judge/facts.h"
#include "sim/experiments/spec/spec.h"
#include "sim/rounds/theory/round_distribution.h"

#include <optional>
#include <string>
#include <vector>

namespace specsim::judge {

struct Prediction {
  bool known = false;
  std::string missing;  // why it is not known, if there is more to report than a missing theory
  double alpha = 0.0;   // share of judged positions that are accepted
  double tokens_per_round = 0.0;
  double tokens_per_round_error = 0.0;  // standard deviation of the simulated mean, for the cell's number of rounds
  double theory_error = 0.0;            // the theory's own part of it, independent of the number of rounds
  std::optional<double> speedup;        // if a named form predicts it without tokens per round
  std::vector<theory::RoundDistribution> accepted_distribution;  // by stratum at the round's start; empty: not predicted
  std::vector<std::vector<double>> alpha_by_context;  // [context][depth], for verifiers that judge positions; else empty
};

// The `exact` theory of the cell, simulated with `work` rounds (requests: sequences).
Prediction predict_exact(const spec::Cell& cell, const DistributionFacts& facts, std::uint64_t work);
// The named closed form, with the error of the exact theory.
Prediction predict_named(const spec::Cell& cell, const DistributionFacts& facts, const Prediction& exact);

}  // namespace specsim::judge
