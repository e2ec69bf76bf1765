// The tables that a cell decodes by.
#pragma once

#include "sim/experiments/spec/spec.h"

#include <atomic>

namespace specsim::run {

// Sees the distributions that cells decode by, while their tables are built.
class Observer {
 public:
  Observer() = default;
  Observer(const Observer&) = delete;
  Observer& operator=(const Observer&) = delete;
  virtual ~Observer() = default;
  // Every context at every depth of the block, each once and in order. `classes`: by which the context's tokens are counted.
  virtual void see(int context, int depth, const verify::PositionDistributions& distributions,
                   const decode::OutputClasses& classes) = 0;
  // Behind the last of them; `prepared` may have no tables.
  virtual void finish(const decode::Prepared& prepared) = 0;
};

// Draws a cell's distributions, shows them to `observer` where there is one, and builds their tables if `tables`. Throws BadInput
// for distributions that the cell's verifier cannot judge, decode::Interrupted once `stop` is set.
decode::Prepared prepare_cell(const spec::Cell& cell, Observer* observer, bool tables, const std::atomic<bool>* stop = nullptr);

}  // namespace specsim::run
