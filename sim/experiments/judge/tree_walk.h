// Theory of verifiers that walk down a tree node by node. It depends only on the masses of a node's children, context by
// context, so it works for any vocabulary.
#pragma once

#include "sim/experiments/judge/block_rounds.h"

#include <functional>
#include <variant>
#include <vector>

namespace specsim::judge {

// Masses at a node: by token, or [rank][token] for so many children.
using MassByToken = std::function<std::vector<double>(const verify::PositionDistributions&)>;
using MassByRank = std::function<std::vector<std::vector<double>>(const verify::PositionDistributions&, int children)>;

// The token that follows at a node where no child is accepted.
// Lossless rules: the target's distribution less the accepted tokens.
struct ResidualRule {};
// Lossy rules that judge each drafted token separately.
struct TokenwiseRule {
  MassByToken admits;       // the acceptance of each drafted token
  MassByToken final_token;  // the distribution of the next token, independent of the draft
  MassByToken bonus = {};   // of the token after a fully accepted block; empty: the target's own sample
};
// Lossy rules whose next token depends on the rejected ones: [token], P(none of so many children is accepted, and this token
// follows).
struct RejectedMass {
  std::function<std::vector<double>(const verify::PositionDistributions&, int children)> rejected;
};

// The action of such a verifier at a node.
struct NodeTheory {
  MassByRank accepted;  // P(the child of that rank is the accepted one, and is that token)
  std::variant<ResidualRule, TokenwiseRule, RejectedMass> otherwise = ResidualRule{};
  // True: which sibling is accepted makes no difference, and accepted() puts all mass into [0][0].
  bool siblings_alike = false;
};

// Regularity of a tree's nodes.
struct TreeFigures {
  bool even = true;     // all nodes of a depth that have children have equally many
  bool uniform = true;  // all nodes of a depth above the last have equally many children
  bool gap = false;     // some node has a child of a higher rank but none of a lower one
};
TreeFigures figures_of(const BlockRounds& rounds);

// The theory of a drafter with the same tree in each round.
Coverage walk(BlockRounds rounds, NodeTheory rule);
// The theory of a drafter that chooses its block and draws it token by token, as a chain.
Coverage walk_drawn_chain(const spec::Cell& cell);
// The theory of a single child that is accepted with its own probability, `admits` by token, and followed by the target's
// residual.
Coverage walk_admitting(BlockRounds rounds, const MassByToken& admits);
// The theory of the first sibling that a rule admits, `admits` by token; if it admits none, the target's own sample follows.
Coverage walk_first_admitted(BlockRounds rounds, const MassByToken& admits);

}  // namespace specsim::judge
