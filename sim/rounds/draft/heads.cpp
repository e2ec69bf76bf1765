#include "sim/rounds/draft/heads.h"

#include "sim/foundation/base/token.h"
#include "sim/rounds/draft/rank_tree.h"

#include <fmt/format.h>

#include <numeric>
#include <utility>

namespace specsim::draft {

const config::Fields<HeadsTree>& heads_fields() {
  using P = HeadsTree;
  static const config::Fields<P> fields = {
      {&P::shape, tree_shape_fields()},
      {"accuracies", &P::accuracies,
       "[[rank 1, rank 2, ...] of head 1, ...]: P(this candidate is right); the best tree of `nodes` tokens is used",
       config::between(0, 1), config::optional},
      {"nodes", &P::nodes, "tokens of that tree", config::between(1, kMaxNodes), config::optional},
  };
  return fields;
}

std::optional<tokens::Tree> heads_tree(const config::Arguments& arguments, const std::string& drafter,
                                       const tokens::Tree* otherwise, Diagnostics& diagnostics) {
  const HeadsTree own = heads_fields().read(arguments);
  const bool shaped = arguments.has("branching") || arguments.has("paths") || arguments.has("parents");
  if (!arguments.has("accuracies") && !arguments.has("nodes")) {
    if (!shaped && otherwise != nullptr) return *otherwise;
    return tree_of(arguments, own.shape, tokens::Siblings::point_mass, diagnostics);
  }
  const auto& accuracies = own.accuracies;
  if (!arguments.has("accuracies") || !arguments.has("nodes") || shaped) {
    diagnostics.add(
        arguments.where(),
        fmt::format("{} has accuracies or nodes, allowed: both of them, and neither branching, paths nor parents", drafter));
    return std::nullopt;
  }
  if (accuracies.empty()) {
    diagnostics.add(arguments.where("accuracies"), "accuracies is empty, allowed: a list for each head");
    return std::nullopt;
  }
  for (std::size_t head = 0; head < accuracies.size(); ++head) {
    const double sum = std::accumulate(accuracies[head].begin(), accuracies[head].end(), 0.0);
    if (accuracies[head].empty() || sum > 1.0 + 1e-9 || accuracies.size() > kMaxDraftLength) {
      diagnostics.add(arguments.where("accuracies"),
                      fmt::format("accuracies of head {} of {} sum to {:g}, allowed: at most 1 each head, at most {} heads",
                                  head + 1, accuracies.size(), sum, kMaxDraftLength));
      return std::nullopt;
    }
  }
  return rank_tree(accuracies, own.nodes, Ranks::any);
}

}  // namespace specsim::draft
