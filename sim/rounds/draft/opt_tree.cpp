#include "sim/foundation/base/token.h"
#include "sim/rounds/draft/candidates.h"
#include "sim/rounds/draft/tree_config.h"

#include <algorithm>
#include <numeric>

namespace specsim::draft {

namespace {

class OptTree final : public BlockDrafter {
 public:
  struct Params {
    int nodes = 50;
    double threshold = 0.5;
    int max_depth = 10;
  };
  explicit OptTree(const Params& params) : passes_(params.max_depth), threshold_(params.threshold) {
    shape_.siblings = tokens::Siblings::point_mass;
    shape_.draft_length = std::min(params.max_depth - 1, params.nodes);
    shape_.nodes = params.nodes;
    shape_.ranks = params.nodes;
    shape_.whole_vocabulary = true;
    shape_.ranks_model = true;
    shape_.counts_passes = true;
  }
  [[nodiscard]] const Shape& shape() const override { return shape_; }

  void choose(DrafterInput& input, Memory* /*memory*/, ChosenBlock& block) const override {
    const auto most = static_cast<std::size_t>(shape_.nodes);
    Candidates all;
    std::vector<int> layer = {0};
    double expected = 0.0;  // expected accepted drafts of the best tree of the layers so far
    for (int pass = 1;; ++pass) {
      input.prepare(all.block, layer);
      if (pass > 1) {
        // The pass that shows how little the last layer added has run by then; its own layer is not used.
        const double now = all.sum_of_best(most);
        if (!(now - expected > threshold_) || pass == passes_) break;
        expected = now;
      }
      layer = all.add(all.best_children(input, layer, most));
      if (layer.empty()) break;
    }
    all.best(most, block);
  }

  [[nodiscard]] BlockWork work(int nodes) const override {
    BlockWork work{std::vector<double>(static_cast<std::size_t>(passes_), static_cast<double>(shape_.nodes)), 1.0 + nodes};
    work.pass_rows.front() = 1.0;
    return work;
  }

 private:
  Shape shape_;
  int passes_;
  double threshold_;
};

}  // namespace

DrafterEntry opt_tree_drafter() {
  using P = OptTree::Params;
  static const config::Fields<P> fields = {
      {"nodes", &P::nodes, "tokens of the tree, and of each layer that is expanded", config::between(1, 256)},
      {"threshold", &P::threshold, "expected accepted drafts that another layer must add", config::between(0, 64)},
      {"max_depth", &P::max_depth, "maximum number of draft passes", config::between(2, kMaxDraftLength)},
  };
  return {{"opt_tree",
           "OPT-Tree grows the tree with the most expected tokens for a budget of nodes, and stops when another layer "
           "no longer pays",
           "Wang et al. (OPT-Tree), arXiv 2406.17276; Jikai0Wang/OPT-Tree, opt_classic/tree.py, commit 4f87f54", fields, "",
           "nodes: 2, max_depth: 3"},
          [](const config::Arguments& arguments, Diagnostics&) { return std::make_shared<OptTree>(fields.read(arguments)); },
          true};
}

}  // namespace specsim::draft
