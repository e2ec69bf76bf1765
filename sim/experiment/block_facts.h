// What theory says of a round in which a rule judges a block: worked out from the laws while they pass by.
#pragma once

#include "sim/experiment/spec.h"
#include "sim/theory/block.h"
#include "sim/theory/round_law.h"
#include "sim/theory/trees.h"
#include "sim/verify/position_rule.h"

#include <optional>
#include <vector>

namespace specsim::experiment {

// Covered: blocks of one shape whose rounds are independent of each other (contexts fixed, of an iid pool, or by depth), drafted
// whole; `block` on chains, the rules that judge a node's children by rank on trees, lossy rules on chains.
class BlockFacts {
 public:
  explicit BlockFacts(const Cell& cell);

  // The laws of one context at one depth of the block. The law of a token that is emitted there, where the rule is lossy; else
  // empty.
  std::vector<double> add(int depth, const verify::PositionLaws& laws);

  struct Answer {
    theory::RoundLaw law;
    double mean_error = 0.0;  // of its mean: half the width of a bracket, 0 where it is exact
  };
  // Once all laws were added; nullopt: there is no theory of the cell.
  [[nodiscard]] std::optional<Answer> answer() const;

 private:
  // Of the children of a node at a depth: P(the child of that rank is the accepted one); empty: not known.
  [[nodiscard]] std::vector<double> by_rank(int children, const verify::PositionLaws& laws) const;
  [[nodiscard]] std::optional<Answer> block_answer() const;

  const Cell* cell_;
  bool covered_ = false;
  double contexts_ = 1.0;
  std::vector<int> children_;                // [depth of the parent]: so many ranks are asked for
  theory::RankAcceptance acceptance_;        // of them, mean over contexts
  std::vector<theory::WeightedPair> pairs_;  // `block`: in the order in which they came
};

}  // namespace specsim::experiment
