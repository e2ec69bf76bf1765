// The tables that a cell decodes with.
#pragma once

#include "sim/experiments/spec/spec.h"

#include <atomic>

namespace specsim::run {

// Receives the distributions of cells while their tables are built.
class Observer {
 public:
  Observer() = default;
  Observer(const Observer&) = delete;
  Observer& operator=(const Observer&) = delete;
  virtual ~Observer() = default;
  // Called once for every context and depth of the block, in order. `classes`: the classes in which the context's tokens are
  // counted.
  virtual void see(int context, int depth, const verify::PositionDistributions& distributions,
                   const decode::OutputClasses& classes) = 0;
  // Called after the last of them; `prepared` may have no tables.
  virtual void finish(const decode::Prepared& prepared) = 0;
};

// Draws a cell's distributions, passes them to `observer` if there is one, and builds their tables if `tables`. Throws BadInput
// for distributions that the cell's verifier cannot judge, decode::Interrupted once `stop` is set.
decode::Prepared prepare_cell(const spec::Cell& cell, Observer* observer, bool tables, const std::atomic<bool>* stop = nullptr);

}  // namespace specsim::run
