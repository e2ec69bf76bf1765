#include "sim/rounds/verify/block_verification.h"

#include "sim/foundation/rng/address.h"

#include <algorithm>
#include <array>

namespace specsim::verify {

namespace {

// p_i is the probability with which the draft's first i tokens may stay: min(1, p_{i-1} target / draft). Tokens 1 .. i stay for
// the largest i that accepts with h_i. At the end of the block h = p; before it h = Z / (Z + 1 - p_i), where Z is the mass of
// (p_i target - draft)+ after token i. Going backwards from the end, the first i that accepts is the largest.
class BlockVerification final : public ChainRule {
 public:
  explicit BlockVerification(WholeBlock whole) : by_joint_ratio_(whole == WholeBlock::by_joint_ratio) {}

  AcceptedPath verify(Block& block) const override {
    std::array<double, kMaxDraftLength + 1> p;
    p[0] = 1.0;
    double joint = 1.0;
    int last = 0;  // the last draft token that may stay
    bool whole = true;
    while (whole && block.children(last) > 0) {
      const auto at = static_cast<std::size_t>(last);
      const double ratio = block.distributions(last).ratio(block.token(last + 1));
      p[at + 1] = grown(p[at], ratio);
      joint *= ratio;
      whole = p[at + 1] > 0.0;  // otherwise neither this token nor a later one may stay
      if (whole) ++last;
    }
    for (int node = last; node > 0; --node) {
      const double stays = p[static_cast<std::size_t>(node)];
      if (whole && node == last) {
        if (block.accept(node, {by_joint_ratio_ ? std::min(1.0, joint) : stays, 1.0})) return {node, block.pick_target(node)};
        continue;
      }
      const math::Residual cut = block.distributions(node).residual(1.0 / stays);
      if (block.accept(node, odds(stays, cut.mass))) return {node, block.pick_residual(node, cut)};
    }
    return {0, block.children(0) > 0 ? block.pick_residual(0, block.distributions(0).residual(1.0)) : block.pick_target(0)};
  }

  void verify_lanes(ChainLanes& chains) const override {
    constexpr std::size_t kStride = ChainLanes::kStride;
    const std::size_t length = chains.draft_length();
    std::array<std::array<double, kStride>, kMaxDraftLength + 1> p;
    p[0].fill(1.0);
    std::array<double, kStride> ratio{};
    std::array<double, kStride> joint;
    joint.fill(1.0);
    for (std::size_t i = 0; i < length; ++i) {
      const math::RatioTable& distributions = *chains.distributions[i];
      const Token* const tokens = chains.tokens.data() + i * kStride;
      // All loads come first, then vector instructions for all lanes: the minima would be unpredictable branches otherwise.
      for (std::uint32_t lane = 0; lane < chains.lanes; ++lane) ratio[lane] = distributions.ratio(tokens[lane]);
      for (std::uint32_t lane = 0; lane < kStride; ++lane) p[i + 1][lane] = grown(p[i][lane], ratio[lane]);
      if (by_joint_ratio_)
        for (std::uint32_t lane = 0; lane < kStride; ++lane) joint[lane] = p[i + 1][lane] > 0.0 ? joint[lane] * ratio[lane] : 0.0;
    }
    // Lists of lanes, in any order: loops write them without a branch on the drawn values.
    std::array<std::uint32_t, kStride> open;   // without a verdict
    std::array<std::uint32_t, kStride> whole;  // lanes that keep a node's prefix with certainty
    std::array<std::uint32_t, kStride> taken;  // lanes that keep it otherwise
    std::array<std::uint32_t, kStride> close;  // lanes whose random bits lie between the bounds of their odds
    std::uint32_t left = chains.lanes;
    for (std::uint32_t lane = 0; lane < left; ++lane) open[lane] = lane;
    for (std::size_t node = length; node > 0; --node) {
      const math::RatioTable& distributions = *chains.distributions[node];
      const std::uint64_t* const random_bits = chains.random_bits.data() + (node - 1) * kStride;
      std::uint32_t still = 0;
      if (node == length) {
        for (std::uint32_t lane = 0; lane < left; ++lane) {
          const double whole_stays = by_joint_ratio_ ? std::min(1.0, joint[lane]) : p[node][lane];
          const bool stays = accepts(rng::to_unit(random_bits[lane]), {whole_stays, 1.0});
          chains.accepted[lane] = static_cast<std::uint32_t>(node);
          open[still] = lane;
          still += stays ? 0 : 1;
        }
        chains.final_distribution.fill(math::Residual());
        left = still;
        continue;
      }
      std::uint32_t whole_count = 0;
      std::uint32_t taken_count = 0;
      std::uint32_t close_count = 0;
      for (std::uint32_t i = 0; i < left; ++i) {
        const std::uint32_t lane = open[i];
        const double own = p[node][lane];
        const double u = rng::to_unit(random_bits[lane]);
        const math::MassBounds mass = distributions.mass_bounds(1.0 / own);
        const std::uint32_t may = accepts(u, odds(own, mass.most)) ? 1 : 0;
        const std::uint32_t must = accepts(u, odds(own, mass.least)) ? 1 : 0;
        const std::uint32_t certain = own == 1.0 ? 1 : 0;
        open[still] = lane;
        still += 1 - may;
        whole[whole_count] = lane;
        whole_count += must & certain;
        taken[taken_count] = lane;
        taken_count += must & (1 - certain);
        close[close_count] = lane;
        close_count += may & (1 - must);
      }
      for (std::uint32_t i = 0; i < close_count; ++i) {
        const std::uint32_t lane = close[i];
        const double own = p[node][lane];
        if (accepts(rng::to_unit(random_bits[lane]), odds(own, distributions.residual(1.0 / own).mass)))
          taken[taken_count++] = lane;
        else
          open[still++] = lane;
      }
      for (std::uint32_t i = 0; i < taken_count; ++i) {
        chains.accepted[taken[i]] = static_cast<std::uint32_t>(node);
        chains.final_distribution[taken[i]] = distributions.residual(1.0 / p[node][taken[i]]);
      }
      take_all(chains, whole.data(), whole_count, node);
      left = still;
    }
    take_all(chains, open.data(), left, 0);
  }

 private:
  // The carry of a prefix whose carry is `before`, after x drawn from the draft. 0 where 1 / p would overflow.
  static double grown(double before, double ratio) {
    const double p = std::min(1.0, before * ratio);
    return p > 1e-300 ? p : 0.0;
  }
  static Odds odds(double stays, double mass) {
    const double z = stays * mass;
    return {z, z + (1.0 - stays)};  // a prefix that stays with certainty is kept with certainty
  }
  // The lanes keep a prefix of this many tokens; c = 1 after it.
  static void take_all(ChainLanes& chains, const std::uint32_t* lanes, std::uint32_t count, std::size_t accepted) {
    const math::Residual rest = chains.draft_length() > 0 ? chains.distributions[accepted]->residual(1.0) : math::Residual();
    for (std::uint32_t i = 0; i < count; ++i) {
      chains.accepted[lanes[i]] = static_cast<std::uint32_t>(accepted);
      chains.final_distribution[lanes[i]] = rest;
    }
  }

  bool by_joint_ratio_;
};

}  // namespace

std::unique_ptr<BlockRule> block_verification(WholeBlock whole) { return std::make_unique<BlockVerification>(whole); }

}  // namespace specsim::verify
