#pragma once

// Theory of trees that are chosen at run time for a budget of nodes by the draft's probabilities, under the verifiers that take
// point masses.

#include "sim/experiments/judge/block_rounds.h"
#include "sim/experiments/judge/cell_theory.h"
#include "sim/rounds/theory/chosen_trees.h"

#include <functional>

namespace specsim::judge {

// The tree that is drafted in a state of these distributions.
using TreeInState = std::function<theory::ChosenTree(const theory::Automaton& distributions, int state)>;

// The theory of rounds whose tree `tree` gives, by enumeration of every context that a round can start from.
Coverage enumerate_budget_trees(BlockRounds rounds, TreeInState tree);

// The value of the drafter's parameter `name`, an integer, in this cell.
int whole_argument(const spec::Cell& cell, const char* name);

}  // namespace specsim::judge
