// Exact enumeration of rounds over a token tree: every drafted tree, every branch of the rule. It is independent of the
// simulator, like enumeration.h; enumerate_rounds turns the outcomes into the joint distribution of the output.
#pragma once

#include "sim/rounds/theory/automaton.h"
#include "sim/rounds/theory/multi_draft.h"
#include "sim/rounds/theory/trees.h"

#include <vector>

namespace specsim::theory {

enum class TreeRule {
  // From the root: the children of each node in turn, each rejection leaving (target - draft)+ (SpecInfer, Sequoia).
  recursive,
  // As above with min(1, target / (factor draft)) for all of a node's children (SpecTr); only for sampling with replacement.
  kseq,
  // From the leaves (Weng et al. 2025, arXiv 2505.12398): a leaf is accepted with its carry. Otherwise its parent's carry and
  // distribution shrink to the rest, and the next branch is tried. On a chain this is the block rule.
  traversal,
};

struct TreeRound {
  TreeRule rule = TreeRule::recursive;
  TreeSampling sampling = TreeSampling::with_replacement;
  TreeShape tree;  // siblings are drawn and judged in order of their index
};

// Outcomes of positive probability of one round begun in `state`, ordered by their tokens. At most 2^22 drafted trees:
// vocab^(tree.size() - 1).
[[nodiscard]] std::vector<RoundOutcome> tree_outcomes(const Automaton& automaton, const TreeRound& round, int state);

}  // namespace specsim::theory
