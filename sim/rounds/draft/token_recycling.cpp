#include "sim/foundation/base/token.h"
#include "sim/rounds/draft/recycled.h"
#include "sim/rounds/draft/tree_config.h"

#include <algorithm>
#include <utility>

namespace specsim::draft {

namespace {

class TokenRecycling final : public BlockDrafter {
 public:
  struct Params {
    TreeShape shape;
    int kept = 8;
  };
  TokenRecycling(tokens::Tree tree, int kept) : tree_(std::move(tree)) {
    shape_.siblings = tokens::Siblings::point_mass;
    shape_.draft_length = tree_.height();
    shape_.nodes = tree_.drafted();
    shape_.target_ranks = kept;
    shape_.reads_text = true;
    shape_.looks_past_block = true;
  }
  [[nodiscard]] const Shape& shape() const override { return shape_; }
  [[nodiscard]] std::unique_ptr<Memory> start() const override { return std::make_unique<RecycledMemory>(); }

  void choose(DrafterInput& input, Memory* memory, ChosenBlock& block) const override {
    auto& own = static_cast<RecycledMemory&>(*memory);
    if (!input.text().empty()) recycled_tree(tree_, own, input.text().back(), block);
    recycle(input, block, own);
  }

  [[nodiscard]] BlockWork work(int nodes) const override { return {{}, 1.0 + nodes}; }

 private:
  Shape shape_;
  tokens::Tree tree_;
};

}  // namespace

DrafterEntry token_recycling_drafter() {
  using P = TokenRecycling::Params;
  static const config::Fields<P> fields = {
      {&P::shape, tree_shape_fields()},
      {"kept", &P::kept, "number of the target's likeliest followers that are kept for each token (output_id_topk)",
       config::between(1, 64)},
  };
  return {{"token_recycling",
           "reuses candidates that earlier target passes discarded: for each token, the likeliest followers seen last time",
           "Luo et al. (Token Recycling), arXiv 2408.08696; Luowaterbi/TokenRecycling, evaluation/inference_recycling.py, "
           "model/recycling/tree_template_.py, commit 1b4c05c",
           fields},
          [](const config::Arguments& arguments, Diagnostics& diagnostics) {
            const P params = fields.read(arguments);
            tokens::Tree tree;
            if (arguments.has("branching") || arguments.has("paths") || arguments.has("parents")) {
              const std::optional<tokens::Tree> given =
                  tree_of(arguments, params.shape, tokens::Siblings::point_mass, diagnostics);
              if (!given) return Draft();
              tree = *given;
            } else {
              tree = recycling_tree();
            }
            return Draft(std::make_shared<TokenRecycling>(std::move(tree), params.kept));
          }};
}

}  // namespace specsim::draft
