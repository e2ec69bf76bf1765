// Theory of verifiers that walk down a tree node by node: the masses of a node's children, context by context, are all that
// counts, so any vocabulary will do.
#pragma once

#include "sim/experiments/judge/block_rounds.h"

#include <functional>
#include <variant>
#include <vector>

namespace specsim::judge {

// Masses at a node: by token, or [rank][token] of so many children.
using MassByToken = std::function<std::vector<double>(const verify::PositionDistributions&)>;
using MassByRank = std::function<std::vector<std::vector<double>>(const verify::PositionDistributions&, int children)>;

// What follows at a node where no child is accepted.
//
// Lossless rules: what the accepted tokens leave of the target's distribution.
struct TargetsRest {};
// Lossy rules that judge each drafted token by itself.
struct Admitting {
  MassByToken admits;       // the acceptance of each drafted token
  MassByToken final_token;  // the distribution of the token that follows, whatever was drafted
  MassByToken bonus = {};   // of the token behind a block that was accepted whole; empty: the target's own sample
};
// Lossy rules where the next token depends on what was rejected: [token], P(none of so many children is accepted, and it
// follows).
struct RejectedMass {
  std::function<std::vector<double>(const verify::PositionDistributions&, int children)> rejected;
};

// What such a verifier does at a node.
struct NodeTheory {
  MassByRank accepted;  // P(the child of that rank is the one that is accepted, and is that token)
  std::variant<TargetsRest, Admitting, RejectedMass> otherwise = TargetsRest{};
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
Coverage walk_admitting(BlockRounds rounds, MassByToken admits);
// The theory of the first sibling that a rule admits, `admits` by token, and of the target's own sample where it admits none.
Coverage walk_first_admitted(BlockRounds rounds, MassByToken admits);

}  // namespace specsim::judge
