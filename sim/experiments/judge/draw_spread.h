// The variation of results between draws of random distributions. The standard error of the simulated rounds omits it.
#pragma once

#include "sim/experiments/judge/rows.h"
#include "sim/experiments/run/runner.h"

#include <vector>

namespace specsim::judge {

// Draws of the distributions from which a spread is estimated.
constexpr int kDraws = 8;

// One cell per experiment whose distributions are random and drawn once per run (a pool of contexts, not fresh ones): the
// fastest, or the first if the config has no cost. Omits experiments whose tables are too large to draw kDraws times.
std::vector<const spec::Cell*> cells_to_draw_again(const std::vector<Row>& rows);

// Simulates the cells with kDraws other seeds, each for an eighth of the rounds (at most 65,536), on the options' threads. Uses
// `threads` and `stop` of the options. Empty if it was stopped.
std::vector<DrawSpread> draw_spreads(const std::vector<const spec::Cell*>& cells, const run::RunOptions& options);

}  // namespace specsim::judge
