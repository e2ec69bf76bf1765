#include "sim/experiments/judge/block_enumeration.h"

#include "sim/experiments/judge/enumeration.h"
#include "sim/experiments/judge/method.h"
#include "sim/foundation/base/index.h"
#include "sim/rounds/theory/block.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace specsim::judge {

namespace {

// Up to this number, ratios of target to draft along a path are followed one by one; more are put into cells.
constexpr double kMostRatios = 0x1p20;

class BlockEnumeration final : public TreeEnumeration {
 public:
  BlockEnumeration(BlockRounds rounds, bool joint_ratio) : TreeEnumeration(std::move(rounds)), joint_ratio_(joint_ratio) {}

 private:
  // With joint_ratio, the ratio of the whole block decides how much of it is kept, so the accepted length depends on contexts
  // after it. Plain block verification looks no further than it accepts.
  [[nodiscard]] bool looks_ahead() const override { return joint_ratio_ && draft_length(*rounds().cell) > 0; }
  [[nodiscard]] theory::RoundKernel tree_kernel(const theory::Automaton& own) const override {
    theory::RoundKernel kernel(own.states, draft_length(*rounds().cell));
    kernel.moves = theory::joint_ratio_kernel(theory::block_context(own), kernel.draft_length());
    return kernel;
  }
  [[nodiscard]] theory::RoundKernel round_kernel(int draft_length, int context, double& error) const override;
  [[nodiscard]] std::optional<theory::TokenMoments> tokens_by_class(const theory::Automaton& own,
                                                                    const theory::TokenClasses& classes) const override {
    if (!joint_ratio_) return std::nullopt;
    return theory::joint_ratio_tokens(own, draft_length(*rounds().cell), classes);
  }

  bool joint_ratio_;
};

theory::RoundKernel BlockEnumeration::round_kernel(int draft_length, int context, double& error) const {
  const theory::Automaton distributions = automaton(context);
  const bool alike =
      context >= 0 || (!rounds().next_context_known() && rounds().shape->kind != families::ContextShape::Kind::regimes);
  if (!joint_ratio_ && alike && distributions.draft.size() == 1) {
    std::vector<theory::WeightedPair> pool;
    for (std::size_t c = 0; c < distributions.target.size(); ++c)
      pool.push_back({1.0, distributions.target[c], distributions.draft[0][c]});
    if (std::pow(static_cast<double>(rounds().cell->vocab) * distributions.states, draft_length) <= kMostRatios)
      return kernel_of(theory::block_distribution(theory::block_context(pool), draft_length));
    theory::RoundDistribution distribution;
    double reached = 1.0;
    double width = 0.0;
    for (const theory::Bracket& tail : theory::block_tails(pool, draft_length)) {
      const double middle = 0.5 * (tail.low + tail.high);
      distribution.accepted.push_back(reached - middle);
      width += 0.5 * (tail.high - tail.low);
      reached = middle;
    }
    distribution.accepted.push_back(reached);
    error = std::max(error, width);
    return kernel_of(distribution);
  }
  const theory::StateMatrix moves = context < 0 ? transition() : theory::StateMatrix();
  theory::BlockContext chain;
  chain.states = distributions.states;
  for (int d = 0; d <= draft_length; ++d) {
    auto& by_state = chain.branches.emplace_back();
    const auto& drafts = distributions.draft[std::min(index_of(d), distributions.draft.size() - 1)];
    for (std::size_t s = 0; s < distributions.target.size(); ++s) {
      auto& branches = by_state.emplace_back();
      for (std::size_t x = 0; x < index_of(distributions.vocab); ++x) {
        if (moves.empty()) {
          branches.push_back(
              {distributions.target[s][x], drafts[s][x], distributions.next[s * index_of(distributions.vocab) + x]});
          continue;
        }
        for (int next = 0; next < distributions.states; ++next) {
          const double chance = moves[s * index_of(distributions.states) + index_of(next)];
          if (chance > 0.0) branches.push_back({chance * distributions.target[s][x], chance * drafts[s][x], next});
        }
      }
    }
  }
  theory::RoundKernel kernel(distributions.states, draft_length);
  kernel.moves = joint_ratio_ ? theory::joint_ratio_kernel(chain, draft_length) : theory::block_kernel(chain, draft_length);
  return kernel;
}

std::string why_not_followed(const BlockRounds& rounds, bool joint_ratio) {
  if (rounds.stops != nullptr)
    return fmt::format("theory does not cover verifier {} with chains whose end depends on the drafted tokens",
                       verifier_name(*rounds.cell));
  if (std::string why = why_not_kept(rounds); !why.empty()) return why;
  if (joint_ratio) {
    if (std::string why = why_not_windows(rounds); !why.empty()) return why;
    if (rounds.hidden() && rounds.lengths != nullptr)
      return fmt::format(
          "theory does not cover verifier {} with chains that a policy shortens, in contexts that move by themselves",
          verifier_name(*rounds.cell));
  }
  const int length = draft_length(*rounds.cell);
  const int vocab = rounds.cell->vocab;
  const bool alike = !rounds.next_context_known() && rounds.shape->kind != families::ContextShape::Kind::regimes;
  const double ratios = std::pow(static_cast<double>(vocab) * (rounds.hidden() ? rounds.shape->contexts : 1), length);
  if ((spec::plan_of(*rounds.cell).depths() > 1 || !alike || joint_ratio) && ratios * rounds.shape->contexts > kMostRatios)
    return fmt::format("vocabulary {}, draft_length {}: too many ratios", vocab, length);
  return "";
}

}  // namespace

Coverage enumerate_block_verification(BlockRounds rounds, bool joint_ratio) {
  std::string why = why_not_followed(rounds, joint_ratio);
  if (!why.empty()) return {nullptr, std::move(why)};
  return {std::make_unique<BlockEnumeration>(std::move(rounds), joint_ratio), ""};
}

}  // namespace specsim::judge
