#include "sim/base/token.h"
#include "sim/draft/overlap_by_depth.h"
#include "sim/draft/tree_config.h"
#include "sim/draft/tree_dynamic.h"

#include <utility>
#include <vector>

namespace specsim::draft {

namespace {

class Eagle3 final : public DynamicTree {
 public:
  Eagle3(int depth, int width, int nodes, std::vector<double> acceptance)
      : DynamicTree(depth, width, nodes), acceptance_(std::move(acceptance)) {
    if (!acceptance_.empty()) shape_.distribution_depths = depth;
  }
  void alter_distribution(int depth, std::span<const double> target, std::span<double> draft) const override {
    if (!acceptance_.empty()) set_overlap(at_depth(acceptance_, depth), target, draft);
  }

 private:
  std::vector<double> acceptance_;
};

}  // namespace

DrafterEntry eagle3_drafter() {
  return {
      {"eagle3",
       "a head on features of several layers, trained on its own guesses: EAGLE-2's tree, with acceptance that hardly falls",
       "Li et al. (EAGLE-3), arXiv 2503.01840; SafeAILab/EAGLE, eagle/model/ea_model.py (from_pretrained), "
       "eagle/model/cnets.py (topK_genrate)",
       {{"depth",
         config::Type::integer,
         "8",
         "levels, one draft pass each; the program's depth of 7 does not count the first",
         config::between(1, kMaxDraftLength),
         {}},
        {"width",
         config::Type::integer,
         "10",
         "nodes of a level that are expanded, and children of each (top_k)",
         config::between(1, 64),
         {}},
        {"nodes",
         config::Type::integer,
         "59",
         "kept for verification; the program's total_token of 60 counts the text's last token",
         config::between(1, kMaxNodes),
         {}},
        acceptance_parameter()},
       "The tree is tree_dynamic's. With acceptance, the draft's distribution at each depth is moved towards the target (or away "
       "from it) until a drawn token would be accepted so often, n-alpha of the papers: EAGLE-3's is flat in depth where "
       "EAGLE's falls, since it is trained on its own guesses. Published rates by position can be given as they are: context "
       "acceptance_table, --acceptance eagle3-chat."},
      [](const config::Arguments& arguments, Diagnostics&) {
        const auto depth = static_cast<int>(arguments.integer("depth"));
        return std::make_shared<Eagle3>(depth, static_cast<int>(arguments.integer("width")),
                                        static_cast<int>(arguments.integer("nodes")),
                                        arguments.has("acceptance") ? arguments.numbers("acceptance") : std::vector<double>());
      }};
}

}  // namespace specsim::draft
