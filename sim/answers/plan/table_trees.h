// The trees of an acceptance table that pay, by theory: expected tokens (a sum over a tree's nodes) over the time of a round.
#pragma once

#include "sim/experiments/spec/spec.h"
#include "sim/experiments/spec/values.h"

#include <functional>
#include <vector>

namespace specsim::plan {

// Of the best trees with fewer levels than the table (shallow_trees), which need fewer passes of the draft: those that are
// faster than every method of `values` and all other trees at some workload. `made`: the experiment of such values.
std::vector<spec::MethodValues> shallow_trees_that_pay(
    const spec::ExperimentValues& values, const std::vector<std::vector<double>>& acceptance,
    const std::function<spec::Experiment(const spec::ExperimentValues&)>& made);

}  // namespace specsim::plan
