// Theory of verifiers that walk down a tree node by node: the masses of a node's children, context by context, are all that
// counts, so any vocabulary will do.
#pragma once

#include "sim/experiments/judge/block_rounds.h"

namespace specsim::judge {

// What such a verifier does at a node.
struct NodeTheory {
  // [rank][token]: P(the child of that rank is the one that is accepted, and is that token).
  std::function<std::vector<std::vector<double>>(const verify::PositionDistributions&, int children)> accepted;
  // Lossy verifiers: the acceptance of each drafted token, and what is emitted where nothing was accepted.
  std::function<std::vector<double>(const verify::PositionDistributions&)> admits = {};
  std::function<std::vector<double>(const verify::PositionDistributions&)> final_token = {};
  // What is emitted behind a block that was accepted whole, where that is not the target's own sample.
  std::function<std::vector<double>(const verify::PositionDistributions&)> bonus = {};
  // The token after a rejection by mass, P(none of so many children is accepted, and this token follows), where it is not
  // final_token whatever was drafted. [token]
  std::function<std::vector<double>(const verify::PositionDistributions&, int children)> rejected = {};
  // True: it makes no difference which of its siblings is accepted, and accepted() puts everything into [0][0].
  bool siblings_alike = false;
};

// How alike the nodes of a tree are.
struct TreeFigures {
  bool even = true;     // all nodes of a depth that have children have as many
  bool uniform = true;  // every node above the last level has as many as the others of its depth
  bool gap = false;     // some node has a child of a higher rank but none of a lower one
};
TreeFigures figures_of(const BlockRounds& rounds);

// The theory of a drafter whose tree is the same in each round.
Coverage walk(BlockRounds rounds, NodeTheory rule);
// The theory of an only child that is accepted with a chance of its own, `admits` by token, and followed by the target's
// residual.
Coverage walk_admitting(BlockRounds rounds, std::function<std::vector<double>(const verify::PositionDistributions&)> admits);
// The theory of the first sibling that a rule admits, `admits` by token, and of the target's own sample where it admits none.
Coverage walk_first_admitted(BlockRounds rounds, std::function<std::vector<double>(const verify::PositionDistributions&)> admits);

}  // namespace specsim::judge
