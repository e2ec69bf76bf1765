#include "sim/rng/address.h"
#include "sim/verify/verifier.h"

#include <algorithm>
#include <array>

namespace specsim::verify {

namespace {

// p_i, the probability with which the draft's first i tokens may stay, is min(1, p_{i-1} target / draft). Tokens 1 .. i stay for
// the largest i that accepts with h_i: h = p at the end, Z / (Z + 1 - p_i) before it, Z the mass of (p_i target - draft)+ after
// token i. Asked from the end backwards, the first that accepts is the largest.
class BlockVerification final : public ChainRule {
 public:
  AcceptedPath verify(Block& block) const override {
    std::array<double, kMaxDraftLength + 1> p;
    p[0] = 1.0;
    int last = 0;  // the last draft token that may stay
    bool whole = true;
    while (whole && block.children(last) > 0) {
      const auto at = static_cast<std::size_t>(last);
      p[at + 1] = grown(p[at], block.distributions(last), block.token(last + 1));
      whole = p[at + 1] > 0.0;  // otherwise neither this token nor one behind it may stay
      if (whole) ++last;
    }
    for (int node = last; node > 0; --node) {
      const double stays = p[static_cast<std::size_t>(node)];
      if (whole && node == last) {
        if (block.accept(node, {stays, 1.0})) return {node, block.pick_target(node)};
        continue;
      }
      const math::Residual cut = block.distributions(node).residual(1.0 / stays);
      if (block.accept(node, odds(stays, cut))) return {node, block.pick_residual(node, cut)};
    }
    return {0, block.children(0) > 0 ? block.pick_residual(0, block.distributions(0).residual(1.0)) : block.pick_target(0)};
  }

  void verify_lanes(ChainLanes& chains) const override {
    constexpr std::size_t kStride = ChainLanes::kStride;
    const std::size_t length = chains.draft_length();
    std::array<std::array<double, kStride>, kMaxDraftLength + 1> p;
    p[0].fill(1.0);
    for (std::size_t i = 0; i < length; ++i)
      for (std::uint32_t lane = 0; lane < chains.lanes; ++lane)
        p[i + 1][lane] = grown(p[i][lane], *chains.distributions[i], chains.tokens[i * kStride + lane]);
    std::array<std::uint32_t, kStride> open;     // lanes without a verdict, in any order
    std::array<std::uint32_t, kStride> unclear;  // those of them whose verdict at a node takes a look at the random bits
    std::uint32_t left = chains.lanes;
    for (std::uint32_t lane = 0; lane < left; ++lane) open[lane] = lane;
    for (std::size_t node = length; node > 0; --node) {
      // Where a prefix stays for certain it is taken, and one that cannot stay is not: no search for either.
      const math::Residual certain = node == length ? math::Residual() : chains.distributions[node]->residual(1.0);
      std::uint32_t still = 0;
      std::uint32_t count = 0;
      for (std::uint32_t i = 0; i < left; ++i) {
        const std::uint32_t lane = open[i];
        const double own = p[node][lane];
        const std::uint32_t none = !(own > 0.0) || (own == 1.0 && !(certain.mass > 0.0)) ? 1 : 0;
        chains.accepted[lane] = static_cast<std::uint32_t>(node);
        chains.final_distribution[lane] = certain;
        open[still] = lane;
        still += none;
        unclear[count] = lane;
        count += none == 0 && own < 1.0 ? 1 : 0;
      }
      for (std::uint32_t i = 0; i < count; ++i) {
        const std::uint32_t lane = unclear[i];
        const double own = p[node][lane];
        Odds chance = {own, 1.0};
        if (node < length) {
          const math::Residual cut = chains.distributions[node]->residual(1.0 / own);
          chains.final_distribution[lane] = cut;
          chance = odds(own, cut);
        }
        open[still] = lane;
        still += accepts(rng::to_unit(chains.random_bits[(node - 1) * kStride + lane]), chance) ? 0 : 1;
      }
      left = still;
    }
    const math::Residual none = length > 0 ? chains.distributions[0]->residual(1.0) : math::Residual();
    for (std::uint32_t i = 0; i < left; ++i) {
      chains.accepted[open[i]] = 0;
      chains.final_distribution[open[i]] = none;
    }
  }

 private:
  // What comes of a prefix that stays with `before` and grows by x, drawn from the draft. 0 below what 1 / p can be taken of.
  static double grown(double before, const math::RatioTable& distributions, Token x) {
    const double p = std::min(1.0, before * distributions.target(x) / distributions.draft(x));
    return p > 1e-300 ? p : 0.0;
  }
  static Odds odds(double stays, const math::Residual& cut) {
    const double z = stays * cut.mass;
    return {z, z + (1.0 - stays)};  // a prefix that stays for certain is taken for certain
  }
};

}  // namespace

VerifierEntry block_verifier() {
  return {{"block",
           "block verification: all draft tokens judged jointly, the longest prefix that may stay does",
           "Sun et al., arXiv 2403.10444",
           {},
           "Lossless, and the best in expectation of all rules for one chain. With p_0 = 1 and p_i = min(1, p_{i-1} "
           "target(x_i)/draft(x_i)), tokens 1 .. i stay for the largest i that accepts with Z/(Z + 1 - p_i), Z = sum max(p_i "
           "target - draft, 0) after token i (with p_i for the last one); the final token comes from max(p_i target - draft, 0). "
           "Expected accepted = sum of E[p_i]. Positions are not judged one by one: there is no alpha."},
          true,
          {.joint = true},
          {},
          [](const config::Arguments&) { return std::make_unique<BlockVerification>(); }};
}

}  // namespace specsim::verify
