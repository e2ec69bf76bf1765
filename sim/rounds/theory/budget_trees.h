// Trees that are chosen at run time for a budget of nodes, by the draft's own probabilities of their paths. Tokens that the draft
// cannot emit are left out; of equal paths the one that is met first is taken.
#pragma once

#include "sim/rounds/theory/chosen_trees.h"

namespace specsim::theory {

// EAGLE-2 (Li et al. 2024, arXiv 2406.16858): level by level the `width` nodes of the largest draft probability get their
// `width` likeliest children, and of all nodes the `nodes` of the largest probability are kept; the earlier one in breadth-first
// order among equals.
[[nodiscard]] ChosenTree dynamic_tree(const Automaton& distributions, int state, int depth, int width, int nodes);

// OPT-Tree (Wang et al. 2024, arXiv 2406.17276): layer d + 1 is the `nodes` likeliest children of layer d, and E(d) the sum of
// the `nodes` largest path probabilities of layers 0 .. d. The tree is of the layers up to the first d with E(d) - E(d-1) <=
// threshold, or layers - 1: the `nodes` likeliest paths of these.
[[nodiscard]] ChosenTree opt_tree(const Automaton& distributions, int state, int nodes, double threshold, int layers);

// SpecExec (Svirschevski et al. 2024, arXiv 2406.02532) where a pass extends all open nodes: the `budget` paths of the largest
// product of draft probabilities and decay per token, at most `depth` long, of the `width` likeliest tokens after each node.
[[nodiscard]] ChosenTree likeliest_paths(const Automaton& distributions, int state, int budget, int depth, int width,
                                         double decay);

// Beam search (Recurrent Drafter, Zhang et al. 2024, arXiv 2403.09919): level by level the `beams` likeliest continuations of the
// level before; the paths to the last level.
[[nodiscard]] ChosenTree beam_tree(const Automaton& distributions, int state, int beams, int depth);

// DDTree (Ringel and Romano 2026, arXiv 2604.12989): the `nodes` paths of the largest product of the marginals that the draft has
// for each depth, at most `positions` long, of the `width` likeliest tokens of each (0: all). The marginal at a depth is the
// token's distribution there over all continuations that the draft may make of the block's start, of which each one follows the
// `nodes` likeliest tokens of a state alone, where these have more than `least` of the mean. With row_time above 0 as many paths,
// the heaviest first, as make (1 + their sum) / (1 + draft_time + row_time their number) largest (CaDDTree, He et al. 2026, arXiv
// 2606.01813). `families`: the heaviest path without continuations gets all its `width`, and so on until there are `nodes` (JetSpec,
// Hu et al. 2026, arXiv 2606.18394, as its code has it).
struct MarginalTree {
  int positions = 1;
  int nodes = 1;
  int width = 0;
  double draft_time = 0.0;
  double row_time = 0.0;
  bool families = false;
  double least = 1e-4;
};
[[nodiscard]] ChosenTree marginal_tree(const Automaton& distributions, int state, const MarginalTree& rule);

}  // namespace specsim::theory
