// What theory says of rounds in which a rule judges a block: worked out from the distributions while they pass by.
#pragma once

#include "sim/spec/spec.h"
#include "sim/theory/round_distribution.h"
#include "sim/verify/position_rule.h"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace specsim::judge {

struct BlockTheory {
  std::string missing;  // why there is none; empty: there is
  // Of accepted, by stratum (DEFINITIONS: markov, regimes and requests have one for each context) at the round's start; empty:
  // not known, as a policy or the text decide as well.
  std::vector<theory::RoundDistribution> distributions;
  // So many rounds of one sequence; nullopt: too many to follow. Empty: rounds are independent of each other (requests: those of
  // one type).
  std::function<std::optional<theory::RunMoments>(int rounds)> sequence;
  double mean_error = 0.0;  // of a distribution's mean: half the width of a bracket, 0 where it is exact
};

class BlockFacts {
 public:
  BlockFacts() = default;
  BlockFacts(const BlockFacts&) = delete;
  BlockFacts& operator=(const BlockFacts&) = delete;
  virtual ~BlockFacts() = default;

  // The distributions of one context at one depth of the block. The distribution of a token that is emitted there, where the rule
  // is a lossy one of chains and contexts are alike; else empty.
  virtual std::vector<double> add(int context, int depth, const verify::PositionDistributions& distributions) = 0;
  // Once all distributions were added.
  [[nodiscard]] virtual BlockTheory answer() const = 0;
};

// Two ways: rules that walk down a tree of one shape need only the masses of a node's children (any vocabulary, block_walk.cpp);
// the others get all distributions and every tree, text or path of contexts enumerated (block_enumeration.cpp), within limits
// that `missing` names. Refers to the cell.
std::unique_ptr<BlockFacts> block_facts(const spec::Cell& cell);

}  // namespace specsim::judge
