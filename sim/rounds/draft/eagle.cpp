#include "sim/foundation/base/token.h"
#include "sim/rounds/draft/tree_config.h"
#include "sim/rounds/draft/tree_drafter.h"

#include <algorithm>
#include <cmath>

namespace specsim::draft {

namespace {

class Eagle final : public TreeDrafter {
 public:
  struct Params {
    TreeShape shape;
    tokens::Siblings siblings = tokens::Siblings::independent;
    double sharpening = 0.5;
    double decay = 0.9;
  };
  Eagle(tokens::Tree tree, const Params& params)
      : TreeDrafter(std::move(tree), params.siblings), sharpening_(params.sharpening), decay_(params.decay) {
    shape_.distribution_depths = shape_.draft_length;
    shape_.alters = params.sharpening > 0.0;
  }
  void alter_distribution(int depth, double chance, std::span<const double> target, std::span<double> draft) const override {
    double share = sharpening_ * std::pow(decay_, depth);
    // A mixture with more than half of a target that is one token would always make that token the likeliest. So if tokens are
    // chosen, a share of the contexts has the target's distribution instead.
    const bool chosen = shape_.siblings == tokens::Siblings::point_mass;
    if (chosen && std::find(target.begin(), target.end(), 1.0) != target.end()) share = chance < share ? 1.0 : 0.0;
    for (std::size_t x = 0; x < draft.size(); ++x) draft[x] += share * (target[x] - draft[x]);
  }

 private:
  double sharpening_;
  double decay_;
};

}  // namespace

DrafterEntry eagle_drafter() {
  using P = Eagle::Params;
  static const config::Fields<P> fields = {
      {&P::shape, tree_shape_fields()},
      siblings_field(&P::siblings),
      {"sharpening", &P::sharpening, "share of the target's distribution in the draft's, at depth 0", config::between(0, 1)},
      {"decay", &P::decay,
       "factor of that share from one level to the next, because features are predicted from predicted "
       "features",
       config::between(0, 1)},
  };
  return {{"eagle", "EAGLE drafts with a one-layer head that reads the target's features and predicts the next ones",
           "Li et al. (EAGLE), arXiv 2401.15077", fields},
          [](const config::Arguments& arguments, Diagnostics& diagnostics) {
            const P params = fields.read(arguments);
            const std::optional<tokens::Tree> tree = tree_of(arguments, params.shape, params.siblings, diagnostics);
            if (!tree) return Draft();
            return Draft(std::make_shared<Eagle>(*tree, params));
          }};
}

}  // namespace specsim::draft
