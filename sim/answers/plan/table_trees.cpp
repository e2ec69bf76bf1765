#include "sim/answers/plan/table_trees.h"

#include "sim/answers/plan/built_in.h"
#include "sim/answers/plan/ranking.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>

namespace specsim::plan {

namespace {

// The largest number of levels and tokens of a tree; {0, 0}: another method.
using Size = std::pair<std::int64_t, std::int64_t>;

Size size_of(const spec::Cell& cell) {
  if (!cell.judges_blocks() || cell.block()->drafter.name() != "tree_ranked") return {0, 0};
  const config::Arguments& arguments = cell.block()->drafter.arguments;
  return {arguments.has("depth") ? arguments.integer("depth") : 0, arguments.integer("nodes")};
}

// Expected tokens per time; 0 if theory or a latency is missing.
double rate_of(const spec::Cell& cell) {
  const judge::Prediction exact = exact_on_table(cell);
  if (!exact.known || exact.accepted_distribution.empty() || !cell.cost_choice) return 0.0;
  return exact.tokens_per_round / cell.round_time(exact.accepted_distribution.front().accepted.back()).total();
}

}  // namespace

std::vector<spec::MethodValues> shallow_trees_that_pay(
    const spec::ExperimentValues& values, const std::vector<std::vector<double>>& acceptance,
    const std::function<spec::Experiment(const spec::ExperimentValues&)>& made) {
  const std::vector<spec::MethodValues> trees = shallow_trees(acceptance);
  if (trees.empty()) return {};
  spec::ExperimentValues all = values;
  all.methods.insert(all.methods.end(), trees.begin(), trees.end());
  const spec::Experiment experiment = made(all);
  struct Best {
    Size size;
    double rate = 0.0;
  };
  std::map<std::string, Best> best;  // by workload; cells are in the order of the methods, and of equal ones the first is kept
  for (const spec::Cell& cell : experiment.cells) {
    const double rate = rate_of(cell);
    constexpr double kRounding = 1e-9;
    Best& own = best[workload_of(cell)];
    if (rate > own.rate * (1.0 + kRounding)) own = {size_of(cell), rate};
  }
  std::vector<spec::MethodValues> paying;
  for (const spec::MethodValues& tree : trees) {
    Size size;
    for (const auto& [name, setting] : tree.drafter.settings) {
      if (name == "depth") size.first = std::get<std::int64_t>(setting);
      if (name == "nodes") size.second = std::get<std::int64_t>(setting);
    }
    if (std::any_of(best.begin(), best.end(), [&](const auto& one) { return one.second.size == size; })) paying.push_back(tree);
  }
  return paying;
}

}  // namespace specsim::plan
