// Trees that are chosen at run time for a budget of nodes, by the draft's own probabilities of their paths. Tokens that the draft
// cannot emit are left out; ties go to the path that is found first.
#pragma once

#include "sim/rounds/theory/chosen_trees.h"

namespace specsim::theory {

// EAGLE-2 (Li et al. 2024, arXiv 2406.16858). Level by level, the `width` nodes with the largest draft probability get their
// `width` likeliest children. Of all nodes, the `nodes` with the largest probability are kept; ties go to the earlier node in
// breadth-first order.
[[nodiscard]] ChosenTree dynamic_tree(const Automaton& distributions, int state, int depth, int width, int nodes);

// OPT-Tree (Wang et al. 2024, arXiv 2406.17276). Layer d + 1 is the `nodes` likeliest children of layer d. E(d) is the sum of the
// `nodes` largest path probabilities of layers 0 .. d. Layers are used up to the first d with E(d) - E(d-1) <= threshold, or
// layers - 1. The tree is their `nodes` likeliest paths.
[[nodiscard]] ChosenTree opt_tree(const Automaton& distributions, int state, int nodes, double threshold, int layers);

// SpecExec (Svirschevski et al. 2024, arXiv 2406.02532), if each pass extends all open nodes: the `budget` paths with the largest
// product of draft probabilities and decay per token. They are at most `depth` long and use the `width` likeliest tokens after
// each node.
[[nodiscard]] ChosenTree likeliest_paths(const Automaton& distributions, int state, int budget, int depth, int width,
                                         double decay);

// Beam search (Recurrent Drafter, Zhang et al. 2024, arXiv 2403.09919): level by level the `beams` likeliest continuations of the
// previous level. The tree is the paths to the last level.
[[nodiscard]] ChosenTree beam_tree(const Automaton& distributions, int state, int beams, int depth);

// DDTree (Ringel and Romano 2026, arXiv 2604.12989): the `nodes` paths with the largest product of the draft's marginals at each
// depth. They are at most `positions` long and use the `width` likeliest tokens of each position (0: all). The marginal at a
// depth is the mean distribution over all continuations that the draft may make from the block's start. Each continuation follows
// only the `nodes` likeliest tokens of a state, and only if their share of the mean is above `least`. With row_time above 0, as
// many of the likeliest paths are used as maximise (1 + their sum) / (1 + draft_time + row_time their number) (CaDDTree, He et
// al. 2026, arXiv 2606.01813). `families`: the likeliest path without continuations gets all its `width` at once, and so on until
// there are `nodes` (JetSpec, Hu et al. 2026, arXiv 2606.18394, as in its code).
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
