// How far the figures of cells whose distributions are random move from one draw of the distributions to the next: what the
// error of the simulated rounds leaves out.
#pragma once

#include "sim/experiments/judge/rows.h"
#include "sim/experiments/run/runner.h"

#include <vector>

namespace specsim::judge {

// Draws of the distributions that a spread comes from.
constexpr int kDraws = 8;

// One cell for each experiment whose distributions are random and drawn once for the run (a pool of contexts, not fresh ones):
// the fastest, or the first where nothing is priced. None of an experiment whose tables are too large to draw kDraws times.
std::vector<const spec::Cell*> cells_to_draw_again(const std::vector<Row>& rows);

// Simulates the cells with kDraws other seeds, each for an eighth of the rounds and 65,536 at most, on the options' threads.
// Takes `threads` and `stop` of the options; nothing where it was stopped.
std::vector<DrawSpread> draw_spreads(const std::vector<const spec::Cell*>& cells, const run::RunOptions& options);

}  // namespace specsim::judge
