// Trees that are chosen at run time for a budget of nodes, by the draft's own probabilities of their paths. Tokens that the draft
// cannot emit are left out; of equal paths the one that is met first is taken.
#pragma once

#include "sim/rounds/theory/chosen_trees.h"

namespace specsim::theory {

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

}  // namespace specsim::theory
