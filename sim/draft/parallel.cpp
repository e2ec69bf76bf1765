#include "sim/base/token.h"
#include "sim/draft/tree_drafter.h"

namespace specsim::draft {

namespace {

class Parallel final : public TreeDrafter {
 public:
  explicit Parallel(int draft_length) : TreeDrafter(path_of(draft_length), tokens::Siblings::point_mass) {
    shape_.from_root = true;
  }
  [[nodiscard]] Work work(int nodes) const override { return {{static_cast<double>(nodes)}, 1.0 + nodes}; }
};

}  // namespace

DrafterEntry parallel_drafter() {
  return {{"parallel",
           "all positions of a chain in one draft pass, each guessed without the others",
           "Gloeckle et al. (multi-token prediction), arXiv 2404.19737",
           {{"draft_length", config::Type::integer, {}, "tokens drafted per round", config::between(1, kMaxDraftLength), {}}},
           "The argmax of the draft's distribution for each depth in the context before the block (context by_depth: one "
           "distribution for each position); one draft pass over draft_length tokens."},
          [](const config::Arguments& arguments, Diagnostics&) {
            const auto draft_length = static_cast<int>(arguments.integer("draft_length"));
            return Draft{{draft_length, false}, std::make_shared<Parallel>(draft_length)};
          }};
}

}  // namespace specsim::draft
