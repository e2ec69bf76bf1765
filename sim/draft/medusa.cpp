#include "sim/base/token.h"
#include "sim/draft/rank_tree.h"
#include "sim/draft/tree_config.h"
#include "sim/draft/tree_drafter.h"

#include <fmt/format.h>

#include <numeric>

namespace specsim::draft {

namespace {

// Heads on the target itself: every position is guessed from the text before the block.
class Heads final : public TreeDrafter {
 public:
  explicit Heads(tokens::Tree tree) : TreeDrafter(std::move(tree), tokens::Siblings::point_mass) { shape_.from_root = true; }
  // All heads run once, beside the target: the cost section's draft model is the heads together.
  [[nodiscard]] Work work(int nodes) const override { return {{1.0}, 1.0 + nodes}; }
};

}  // namespace

DrafterEntry medusa_drafter() {
  return {{"medusa", "heads that guess each position on their own, from the text before the block",
           "Cai et al. (Medusa), arXiv 2401.10774",
           shape_parameters(
               {{"accuracies",
                 config::Type::number_table,
                 "",
                 "[[rank 1, rank 2, ...] of head 1, ...]: P(this candidate is right); with nodes, the tree is the best for them",
                 config::between(0, 1),
                 {}},
                {"nodes", config::Type::integer, "", "of that tree", config::between(1, kMaxNodes), {}}}),
           "Children at depth d are the likeliest tokens of the draft's distribution for depth d in the context before the block "
           "(context by_depth: one distribution for each head), the same under every parent. No sequential cost: the heads "
           "together are one pass of the cost section's draft model."},
          [](const config::Arguments& arguments, Diagnostics& diagnostics) {
            tokens::Tree tree;
            if (arguments.has("accuracies") || arguments.has("nodes")) {
              const auto& accuracies = arguments.table("accuracies");
              if (!arguments.has("accuracies") || !arguments.has("nodes") || arguments.has("branching") ||
                  arguments.has("paths") || arguments.has("parents")) {
                diagnostics.add(
                    arguments.where(),
                    "medusa has accuracies or nodes, allowed: both of them, and neither branching, paths nor parents");
                return Draft();
              }
              if (accuracies.empty()) {
                diagnostics.add(arguments.where("accuracies"), "accuracies is empty, allowed: a list for each head");
                return Draft();
              }
              for (std::size_t head = 0; head < accuracies.size(); ++head) {
                const double sum = std::accumulate(accuracies[head].begin(), accuracies[head].end(), 0.0);
                if (accuracies[head].empty() || sum > 1.0 + 1e-9 || accuracies.size() > kMaxDraftLength) {
                  diagnostics.add(
                      arguments.where("accuracies"),
                      fmt::format("accuracies of head {} of {} sum to {:g}, allowed: at most 1 each head, at most {} heads",
                                  head + 1, accuracies.size(), sum, kMaxDraftLength));
                  return Draft();
                }
              }
              tree = rank_tree(accuracies, static_cast<int>(arguments.integer("nodes")));
            } else {
              const std::optional<tokens::Tree> given = tree_of(arguments, tokens::Siblings::point_mass, diagnostics);
              if (!given) return Draft();
              tree = *given;
            }
            const int height = tree.height();
            return Draft{{height, false}, std::make_shared<Heads>(std::move(tree))};
          }};
}

}  // namespace specsim::draft
