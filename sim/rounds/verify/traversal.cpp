#include "sim/foundation/rng/address.h"
#include "sim/rounds/verify/verifier.h"

#include <algorithm>
#include <vector>

namespace specsim::verify {

namespace {

// A distribution (target - c draft)+ with exceptions: tokens rejected without replacement keep the weight that they had at that
// time.
struct ShrunkTarget {
  struct Kept {
    Token token = 0;
    double more = 0.0;  // its weight beyond that of the cut
  };
  math::Residual cut;
  std::vector<Kept> kept;

  [[nodiscard]] double weight(const math::RatioTable& distributions, Token x) const {
    double weight = std::max(distributions.target(x) - cut.c * distributions.draft(x), 0.0);
    for (const Kept& one : kept)
      if (one.token == x) weight += one.more;
    return weight;
  }
  [[nodiscard]] double mass() const {
    double sum = cut.mass;
    for (const Kept& one : kept) sum += one.more;
    return sum;
  }
  void raise(const math::RatioTable& distributions, double c) {
    std::vector<double> weights;
    for (const Kept& one : kept) weights.push_back(weight(distributions, one.token));
    cut = distributions.residual(c);
    for (std::size_t i = 0; i < kept.size(); ++i)
      kept[i].more = weights[i] - std::max(distributions.target(kept[i].token) - c * distributions.draft(kept[i].token), 0.0);
  }
};

class ShrunkPick final : public Pickable {
 public:
  ShrunkPick(const math::RatioTable& distributions, const ShrunkTarget& residual)
      : distributions_(distributions), residual_(residual) {}
  [[nodiscard]] Token pick(std::uint64_t bits) const override {
    double place = rng::to_unit(bits) * residual_.mass();
    for (const ShrunkTarget::Kept& one : residual_.kept) {
      if (place < one.more) return one.token;
      place -= one.more;
    }
    return residual_.cut.mass > 0.0 ? distributions_.pick(residual_.cut, std::min(place / residual_.cut.mass, kBelowOne))
                                    : residual_.kept.back().token;
  }

 private:
  static constexpr double kBelowOne = 1.0 - 0x1.0p-53;
  const math::RatioTable& distributions_;
  const ShrunkTarget& residual_;
};

// A node on the path under judgement.
struct Step {
  int node = 0;
  double stays = 1.0;     // the probability with which the path up to here may stay
  ShrunkTarget residual;  // the rest of the target's distribution after it
  int tried = 0;          // how many of its children have been judged
};

// Judges from the leaves up. The path to the first leaf is accepted as a whole with its own probability. If it is rejected, the
// leaf is removed, its parent's distribution and probability are updated, and the next leaf of the tree is judged. A node without
// remaining children is a leaf.
class TraversalRule final : public BlockRule {
 public:
  AcceptedPath verify(Block& block) const override {
    const tokens::Tree& tree = block.tree();
    std::vector<Step> path = {{0, 1.0, {math::Residual(), {}}, 0}};
    for (;;) {
      while (path.back().stays > 0.0 && path.back().tried < block.children(path.back().node)) {
        Step& above = path.back();
        const math::RatioTable& distributions = block.distributions(above.node);
        const int child = tree.nodes[static_cast<std::size_t>(above.node)].first_child + above.tried++;
        const Token x = block.token(child);
        const double mass = above.residual.mass();
        const double share = mass > 0.0 ? above.residual.weight(distributions, x) / mass : 0.0;
        const double stays = std::min(1.0, above.stays * share * block.remaining(child) / distributions.draft(x));
        path.push_back({child, stays, {math::Residual(), {}}, 0});
      }
      const Step& leaf = path.back();
      if (leaf.node == 0 || block.accept(leaf.node, {leaf.stays, 1.0})) {
        const math::RatioTable& distributions = block.distributions(leaf.node);
        if (!(leaf.residual.cut.c > 0.0) || !(leaf.residual.mass() > 0.0)) return {leaf.node, block.pick_target(leaf.node)};
        return {leaf.node, block.pick(leaf.node, ShrunkPick(distributions, leaf.residual))};
      }
      const int gone = leaf.node;
      path.pop_back();
      take_out(block, gone, path.back());
    }
  }

 private:
  // Updates `above` after its child `gone` is rejected: its distribution becomes (stays distribution - draft)+, normalised, and
  // `stays` is updated to match.
  static void take_out(Block& block, int gone, Step& above) {
    const math::RatioTable& distributions = block.distributions(above.node);
    const double before = above.residual.mass();
    if (!(before > 0.0)) return;
    above.residual.raise(distributions, above.residual.cut.c + before / (above.stays * block.remaining(gone)));
    if (block.siblings() == tokens::Siblings::without_replacement) above.residual.kept.push_back({block.token(gone), 0.0});
    if (above.node == 0) return;  // the text so far stays
    const double z = above.stays * above.residual.mass() / before;
    above.stays = z > 0.0 ? z / (z + 1.0 - above.stays) : 0.0;
  }
};

}  // namespace

VerifierEntry traversal_verifier() {
  return {{"traversal",
           "traversal verification judges paths of a tree jointly, from the leaves up",
           "Weng et al., arXiv 2505.12398",
           {}},
          true,
          {.trees = {tokens::Siblings::independent, tokens::Siblings::without_replacement}, .joint = true},
          {},
          [](const config::Arguments&) { return std::make_unique<TraversalRule>(); }};
}

}  // namespace specsim::verify
