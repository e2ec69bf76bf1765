#include "sim/verify/verifier.h"

#include <algorithm>
#include <array>

namespace specsim::verify {

namespace {

// p_i, the probability with which the draft's first i tokens may stay, is min(1, p_{i-1} target / draft). Tokens 1 .. i stay for
// the largest i that accepts with h_i: h = p at the end, Z / (Z + 1 - p_i) before it, Z the mass of (p_i target - draft)+ after
// token i. Asked from the end backwards, the first that accepts is the largest.
class BlockVerification final : public BlockRule {
 public:
  Verdict verify(Block& block) const override {
    std::array<double, kMaxDraftLength + 1> p;
    std::array<const math::RatioTable*, kMaxDraftLength + 1> laws_after;
    p[0] = 1.0;
    int last = 0;  // that may stay
    bool whole = true;
    while (whole && block.children(last) > 0) {
      const auto at = static_cast<std::size_t>(last);
      laws_after[at] = &block.laws(last);
      const Token x = block.token(last + 1);
      p[at + 1] = std::min(1.0, p[at] * laws_after[at]->target(x) / laws_after[at]->draft(x));
      whole = p[at + 1] > kNever;  // else neither it nor those behind it
      if (whole) ++last;
    }
    for (int node = last; node > 0; --node) {
      const double stays = p[static_cast<std::size_t>(node)];
      if (whole && node == last) {
        if (block.accept(node, {stays, 1.0})) return {node, block.pick_target(node)};
        continue;
      }
      const math::Cut cut = laws_after[static_cast<std::size_t>(node)]->cut(1.0 / stays);
      const double z = stays * cut.mass;
      if (block.accept(node, {z, z + 1.0 - stays})) return {node, block.pick_residual(node, cut)};
    }
    return {0, block.children(0) > 0 ? block.pick_residual(0, block.laws(0).cut(1.0)) : block.pick_target(0)};
  }

 private:
  static constexpr double kNever = 1e-300;  // 1 / p stays finite
};

}  // namespace

VerifierEntry block_verifier() {
  return {{"block",
           "block verification: all draft tokens judged jointly, the longest prefix that may stay does",
           "Sun et al., arXiv 2403.10444",
           {},
           "Lossless, and the best in expectation of all rules for one chain. With p_0 = 1 and p_i = min(1, p_{i-1} "
           "target(x_i)/draft(x_i)), tokens 1 .. i stay for the largest i that accepts with Z/(Z + 1 - p_i), Z = sum max(p_i "
           "target - "
           "draft, 0) after token i (with p_i for the last one); the final token comes from max(p_i target - draft, 0). Expected "
           "accepted = sum of E[p_i]. Positions are not judged one by one: there is no alpha."},
          true,
          {.joint = true},
          {},
          [](const config::Arguments&) { return std::make_unique<BlockVerification>(); }};
}

}  // namespace specsim::verify
