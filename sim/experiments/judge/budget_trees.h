#pragma once

// Theory of trees that a drafter chooses at run time by its probabilities, for a budget of nodes, under verifiers of point
// masses.

#include "sim/experiments/judge/block_rounds.h"
#include "sim/experiments/judge/cell_theory.h"
#include "sim/rounds/theory/chosen_trees.h"

#include <functional>

namespace specsim::judge {

// The tree that is drafted in a state with these distributions.
using TreeInState = std::function<theory::ChosenTree(const theory::Automaton& distributions, int state)>;

// The theory of rounds with the trees of `tree`, by enumeration of every context that a round can start from.
Coverage enumerate_budget_trees(BlockRounds rounds, TreeInState tree);

// The value of the drafter's integer parameter `name` in this cell.
int whole_argument(const spec::Cell& cell, const char* name);

}  // namespace specsim::judge
