#include "sim/foundation/base/token.h"
#include "sim/rounds/draft/rank_tree.h"
#include "sim/rounds/draft/tree_config.h"
#include "sim/rounds/draft/tree_drafter.h"

#include <fmt/format.h>

#include <algorithm>

namespace specsim::draft {

DrafterEntry tree_ranked_drafter() {
  struct P {
    std::vector<std::vector<double>> acceptance;
    int nodes = 0;
    std::optional<std::size_t> depth;
    tokens::Siblings siblings = tokens::Siblings::independent;
  };
  static const config::Fields<P> fields = {
      {"acceptance", &P::acceptance,
       "[[rank 1, rank 2, ...] at depth 1, ...]: P(this child is the accepted one), given that its parent is",
       config::between(0, 1), config::required},
      {"nodes", &P::nodes, "maximum number of drafted nodes; fewer if the table has no more", config::between(1, kMaxNodes),
       config::required},
      {"depth", &P::depth, "maximum number of levels, one draft pass each; default: as many as the table has",
       config::between(1, kMaxDraftLength)},
      siblings_field(&P::siblings),
  };
  return {{"tree_ranked", "the best tree for a measured table of acceptance by depth and rank",
           "Cai et al. (Medusa), arXiv 2401.10774, section 2.3.3", fields, "", "acceptance: [[0.5, 0.2], [0.4]], nodes: 3"},
          [](const config::Arguments& arguments, Diagnostics& diagnostics) {
            const P params = fields.read(arguments);
            const auto& acceptance = params.acceptance;
            if (const std::string mistake = acceptance_mistake(acceptance); !mistake.empty()) {
              diagnostics.add(arguments.where("acceptance"), "acceptance " + mistake);
              return Draft();
            }
            std::vector<std::vector<double>> rows = acceptance;
            if (params.depth) rows.resize(std::min(rows.size(), *params.depth));
            tokens::Tree tree =
                rank_tree(rows, params.nodes, params.siblings == tokens::Siblings::point_mass ? Ranks::any : Ranks::first);
            return Draft(std::make_shared<TreeDrafter>(std::move(tree), params.siblings));
          },
          true};
}

}  // namespace specsim::draft
