// EAGLE-2's tree, which grows where the draft is confident.
#include "sim/foundation/base/token.h"
#include "sim/rounds/draft/drafter.h"
#include "sim/rounds/draft/tree_config.h"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <numeric>

namespace specsim::draft {

namespace {

class DynamicTree final : public BlockDrafter {
 public:
  DynamicTree(int depth, int width, int nodes);
  [[nodiscard]] const Shape& shape() const override { return shape_; }
  void choose(DrafterInput& input, Memory* memory, ChosenBlock& block) const override;
  [[nodiscard]] BlockWork work(int nodes) const override;

 private:
  Shape shape_;
  std::size_t width_;
};

DynamicTree::DynamicTree(int depth, int width, int nodes) : width_(static_cast<std::size_t>(width)) {
  shape_.siblings = tokens::Siblings::point_mass;
  shape_.draft_length = depth;
  shape_.nodes = nodes;
  shape_.ranks = width;
  shape_.ranks_model = true;
}

void DynamicTree::choose(DrafterInput& input, Memory* /*memory*/, ChosenBlock& block) const {
  // All candidates: the children of the `width` likeliest nodes of each level.
  ChosenBlock candidates;
  std::vector<double> value = {1.0};  // the draft's probability of the path
  const auto likelier = [&](int a, int b) {
    const auto x = static_cast<std::size_t>(a);
    const auto y = static_cast<std::size_t>(b);
    return value[x] != value[y] ? value[x] > value[y] : a < b;
  };
  std::vector<int> level = {0};
  for (int depth = 0; depth < shape_.draft_length && !level.empty(); ++depth) {
    if (level.size() > width_) {
      std::partial_sort(level.begin(), level.begin() + static_cast<std::ptrdiff_t>(width_), level.end(), likelier);
      level.resize(width_);
      std::sort(level.begin(), level.end());
    }
    input.prepare(candidates, level);
    std::vector<int> below;
    for (const int parent : level) {
      const std::span<const Ranked> children = input.likeliest(candidates, parent);
      for (std::size_t rank = 0; rank < children.size(); ++rank) {
        if (!(children[rank].probability > 0.0)) break;
        below.push_back(candidates.add(parent, children[rank].token, static_cast<int>(rank)));
        value.push_back(value[static_cast<std::size_t>(parent)] * children[rank].probability);
      }
    }
    level = std::move(below);
  }
  // Keeps the likeliest candidates. No child is likelier than its parent, and in a tie the parent comes first.
  std::vector<int> kept(value.size() - 1);
  std::iota(kept.begin(), kept.end(), 1);
  const auto most = std::min(kept.size(), static_cast<std::size_t>(shape_.nodes));
  std::partial_sort(kept.begin(), kept.begin() + static_cast<std::ptrdiff_t>(most), kept.end(), likelier);
  kept.resize(most);
  std::sort(kept.begin(), kept.end());
  std::vector<int> index(value.size(), 0);
  for (const int node : kept) {
    const tokens::Tree::Node& own = candidates.tree.nodes[static_cast<std::size_t>(node)];
    index[static_cast<std::size_t>(node)] =
        block.add(index[static_cast<std::size_t>(own.parent)], candidates.tokens[static_cast<std::size_t>(node)], own.rank);
  }
}

BlockWork DynamicTree::work(int nodes) const {
  BlockWork work{std::vector<double>(static_cast<std::size_t>(shape_.draft_length), static_cast<double>(width_)), 1.0 + nodes};
  work.pass_rows.front() = 1.0;
  return work;
}

}  // namespace

DrafterEntry tree_dynamic_drafter() {
  struct P {
    int depth = 6;
    int width = 10;
    int nodes = 59;
  };
  static const config::Fields<P> fields = {
      {"depth", &P::depth, "levels, one draft pass each", config::between(1, kMaxDraftLength)},
      {"width", &P::width, "nodes of a level that are expanded, and children of each", config::between(1, 64)},
      {"nodes", &P::nodes, "nodes kept for verification, by the draft's probability of their path",
       config::between(1, kMaxNodes)},
  };
  return {
      {"tree_dynamic", "a tree that grows where the draft is confident: expand the likeliest nodes, keep the likeliest of all",
       "Li et al. (EAGLE-2), arXiv 2406.16858; SafeAILab/EAGLE, eagle/model/cnets.py (topK_genrate), commit cb7e084", fields},
      [](const config::Arguments& arguments, Diagnostics&) {
        const P params = fields.read(arguments);
        return std::make_shared<DynamicTree>(params.depth, params.width, params.nodes);
      },
      true};
}

DrafterEntry eagle3_drafter() {
  struct P {
    int depth = 8;
    int width = 10;
    int nodes = 59;
  };
  static const config::Fields<P> fields = {
      {"depth", &P::depth, "levels, one draft pass each; the program's depth of 7 does not count the first",
       config::between(1, kMaxDraftLength)},
      {"width", &P::width, "nodes of a level that are expanded, and children of each (top_k)", config::between(1, 64)},
      {"nodes", &P::nodes, "kept for verification; the program's total_token of 60 counts the text's last token",
       config::between(1, kMaxNodes)},
  };
  return {{"eagle3", "EAGLE-3 is a head on features of several target layers, trained on its own guesses",
           "Li et al. (EAGLE-3), arXiv 2503.01840; SafeAILab/EAGLE, eagle/model/ea_model.py (from_pretrained), "
           "eagle/model/cnets.py (topK_genrate)",
           fields},
          [](const config::Arguments& arguments, Diagnostics&) {
            const P params = fields.read(arguments);
            // A chain, so that policies can shorten it, as servers do.
            if (params.width == 1) return Draft(Chain{std::min(params.depth, params.nodes), true});
            return Draft(std::make_shared<DynamicTree>(params.depth, params.width, params.nodes));
          }};
}

}  // namespace specsim::draft
