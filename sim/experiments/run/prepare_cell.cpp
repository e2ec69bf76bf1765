#include "sim/experiments/run/prepare_cell.h"

#include <fmt/format.h>

#include <algorithm>

namespace specsim::run {

namespace {

// Throws BadInput if a rule for one-hot targets meets another target.
void check_one_hot(const spec::Cell& cell, const verify::PositionDistributions& distributions) {
  if (cell.verifier().demands.one_hot_target && *std::max_element(distributions.target.begin(), distributions.target.end()) < 1.0)
    throw BadInput({"", 0, 0},
                   fmt::format("{}: verifier {} met a target that is not one-hot, allowed: pair.target_sampling: {{temperature: "
                               "0}}, or a one_hot target",
                               cell.experiment, cell.verifier().info.name));
}

}  // namespace

decode::Prepared prepare_cell(const spec::Cell& cell, Observer* observer, bool tables, const std::atomic<bool>* stop) {
  decode::DistributionObserver see;
  if (observer != nullptr || cell.verifier().demands.one_hot_target)
    see = [&](int context, int depth, const verify::PositionDistributions& distributions, const decode::OutputClasses& classes) {
      check_one_hot(cell, distributions);
      if (observer != nullptr) observer->see(context, depth, distributions, classes);
    };
  decode::Prepared prepared = decode::prepare(spec::plan_of(cell), see, tables, stop);
  if (observer != nullptr) observer->finish(prepared);
  return prepared;
}

}  // namespace specsim::run
