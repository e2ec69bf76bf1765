// The overlap of target and draft at every context of a cell: the acceptance probability of a sampled draft, summed here
// independently of the theory.
#pragma once

#include "sim/experiments/run/runner.h"
#include "sim/experiments/spec/cell.h"

#include <algorithm>
#include <vector>

namespace specsim::tests {

class Overlaps final : public run::Observer {
 public:
  void see(int context, int depth, const verify::PositionDistributions& distributions, const decode::OutputClasses&) override {
    if (depth > 0) return;
    double sum = 0.0;
    for (std::size_t x = 0; x < distributions.target.size(); ++x)
      sum += std::min(distributions.target[x], distributions.drafted[x]);
    of_context.resize(static_cast<std::size_t>(context) + 1, 0.0);
    of_context.back() = sum;
  }
  void finish(const decode::Prepared&) override {}

  std::vector<double> of_context;  // at a block's first position
};

// sum of min(target, draft) at each context of the cell.
inline std::vector<double> overlaps_of(const spec::Cell& cell) {
  Overlaps overlaps;
  static_cast<void>(run::prepare_cell(cell, &overlaps, false));
  return overlaps.of_context;
}

}  // namespace specsim::tests
