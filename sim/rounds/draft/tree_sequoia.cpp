#include "sim/foundation/base/token.h"
#include "sim/rounds/draft/sequoia.h"
#include "sim/rounds/draft/tree_config.h"
#include "sim/rounds/draft/tree_drafter.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <numeric>

namespace specsim::draft {

namespace {

// The time of a target pass over this many tokens, interpolated linearly in the measurements and constant outside.
double verify_time(const std::vector<std::vector<double>>& table, double rows) {
  if (rows <= table.front()[0]) return table.front()[1];
  for (std::size_t i = 1; i < table.size(); ++i)
    if (rows <= table[i][0])
      return table[i - 1][1] + (table[i][1] - table[i - 1][1]) * (rows - table[i - 1][0]) / (table[i][0] - table[i - 1][0]);
  return table.back()[1];
}

}  // namespace

DrafterEntry tree_sequoia_drafter() {
  struct P {
    int budget = 0;
    int depth = 16;
    std::vector<double> acceptance;
    std::vector<std::vector<double>> verify_times;
    double draft_time = 0.0;
    tokens::Siblings siblings = tokens::Siblings::independent;
  };
  static const config::Fields<P> fields = {
      {"budget", &P::budget, "nodes drafted; the most, if a time table chooses the size", config::between(1, kMaxNodes),
       config::required},
      {"depth", &P::depth, "levels at most", config::between(1, kMaxDraftLength)},
      {"acceptance", &P::acceptance, "P(the sibling of rank 1, 2, ... is the accepted one), given its parent is; at most 64",
       config::between(0, 1), config::required},
      {"verify_times", &P::verify_times,
       "[[tokens, time], ...] of a target pass; with draft_time, the tree's size and depth are chosen too", config::at_least(0),
       config::optional},
      {"draft_time", &P::draft_time, "time of a draft pass, in the unit of verify_times", config::at_least(0), config::optional},
      siblings_field(&P::siblings),
  };
  return {
      {"tree_sequoia", "the best tree for a budget of nodes, given how often the draft's candidates of each rank are accepted",
       "Chen et al. (Sequoia), arXiv 2402.12374", fields},
      [](const config::Arguments& arguments, Diagnostics& diagnostics) {
        const P params = fields.read(arguments);
        const std::vector<double>& acceptance = params.acceptance;
        constexpr std::size_t kMostRanks = 64;
        if (acceptance.empty() || acceptance.size() > kMostRanks ||
            std::accumulate(acceptance.begin(), acceptance.end(), 0.0) > 1.0 + 1e-9) {
          diagnostics.add(arguments.where("acceptance"),
                          fmt::format("acceptance has {} entries that sum to {:g}, allowed: 1 to {} that sum to at most 1",
                                      acceptance.size(), std::accumulate(acceptance.begin(), acceptance.end(), 0.0), kMostRanks));
          return Draft();
        }
        const auto& times = params.verify_times;
        const bool timed = arguments.has("verify_times");
        if (timed != arguments.has("draft_time") ||
            !std::all_of(times.begin(), times.end(), [](const auto& row) { return row.size() == 2; }) ||
            !std::is_sorted(times.begin(), times.end(), [](const auto& a, const auto& b) { return a[0] <= b[0]; })) {
          diagnostics.add(arguments.where(timed ? "verify_times" : "draft_time"),
                          "the time table is incomplete, allowed: verify_times with increasing [tokens, time], and draft_time");
          return Draft();
        }
        const SequoiaProgramme programme(acceptance, params.budget, params.depth);
        int nodes = params.budget;
        int levels = params.depth;
        if (timed) {
          double least = std::numeric_limits<double>::infinity();
          for (int l = 1; l <= params.depth; ++l)
            for (int n = 1; n <= params.budget; ++n) {
              const double time = (l * params.draft_time + verify_time(times, n + 1.0)) / programme.tokens(n, l);
              if (programme.tokens(n, l) > 0.0 && time < least) {
                least = time;
                nodes = n;
                levels = l;
              }
            }
        } else if (!(programme.tokens(nodes, levels) > 0.0)) {
          diagnostics.add(
              arguments.where("budget"),
              fmt::format("no tree of {} nodes has {} levels and {} children a node, allowed: fewer nodes, more levels or "
                          "a longer acceptance",
                          nodes, levels, acceptance.size()));
          return Draft();
        }
        tokens::Tree tree = programme.tree(nodes, levels);
        return Draft(std::make_shared<TreeDrafter>(std::move(tree), params.siblings));
      },
      true};
}

}  // namespace specsim::draft
