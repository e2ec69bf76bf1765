// Chains drafted in one pass with a bias by the token before, or by all earlier tokens of the block, in contexts that move. The
// draft's distribution at a position then also depends on the context before the block. If contexts do not move, there is one
// distribution per depth, and the verifier's own theory applies.
#include "sim/experiments/judge/enumeration.h"
#include "sim/experiments/judge/method.h"
#include "sim/foundation/base/index.h"
#include "sim/rounds/theory/joined_drafts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace specsim::judge {

namespace {

constexpr double kMostCarries = 0x1p20;  // ratios of target to draft that are followed for block verification

class JoinedDrafts final : public CellTheory {
 public:
  explicit JoinedDrafts(BlockRounds rounds)
      : rounds_(std::move(rounds)),
        vocab_(index_of(rounds_.cell->vocab)),
        share_(drafter_arguments(*rounds_.cell).number(share_name(drafter_name(*rounds_.cell)))),
        candidates_(drafter_name(*rounds_.cell) == "dflash2"
                        ? static_cast<int>(drafter_arguments(*rounds_.cell).integer("candidates"))
                        : 0),
        path_(drafter_name(*rounds_.cell) == "domino"),
        argmax_(drafter_arguments(*rounds_.cell).text("selection") == "argmax"),
        temperature_(rounds_.cell->contexts->pair(0).draft_sampling().temperature) {}

  std::vector<double> see(int /*context*/, int depth, const verify::PositionDistributions& distributions) override {
    if (depth == 0) targets_.emplace_back(distributions.target.begin(), distributions.target.end());
    models_.resize(std::max(models_.size(), index_of(depth) + 1));
    models_[index_of(depth)].emplace_back(distributions.draft_model.begin(), distributions.draft_model.end());
    return {};
  }
  void finish() override {
    answer_ = rounds_.theory_of([this](int length) { return kernel(length); });
  }
  [[nodiscard]] RoundTheory answer(const spec::Cell& /*cell*/) const override { return answer_; }

 private:
  static const char* share_name(const std::string& drafter) {
    return drafter == "dspark" ? "markov_head" : drafter == "domino" ? "causal_head" : "selector";
  }
  // The state that the draft at a position sees, if the block started from `before` and the text is now in `state`. Either the
  // head sees the whole text; or, where a state is the last few tokens, it sees the newest token after those of `before`.
  [[nodiscard]] int seen(int before, int state) const {
    return !path_ && last_tokens() ? rounds_.next(before, state % rounds_.cell->vocab) : state;
  }
  [[nodiscard]] bool last_tokens() const {
    if (rounds_.cell->contexts->name != "markov") return false;
    for (int s = 0; s < rounds_.shape->contexts; ++s)
      for (int x = 0; x < rounds_.cell->vocab; ++x)
        if (rounds_.next(s, x) % rounds_.cell->vocab != x) return false;
    return true;
  }
  [[nodiscard]] theory::StateMatrix moves() const {
    if (rounds_.shape->kind == families::ContextShape::Kind::regimes) return rounds_.shape->transition;
    if (!rounds_.hidden()) return {};
    const auto contexts = index_of(rounds_.shape->contexts);
    return theory::StateMatrix(contexts * contexts, 1.0 / static_cast<double>(contexts));
  }
  [[nodiscard]] theory::JoinedBranches branches(int before, int length) const;
  [[nodiscard]] theory::RoundKernel kernel(int length) const;

  BlockRounds rounds_;
  std::size_t vocab_;
  double share_;
  int candidates_;  // 0: all
  bool path_;       // the head sees all earlier tokens of the block
  bool argmax_;
  double temperature_;
  std::vector<std::vector<double>> targets_;              // [context]
  std::vector<std::vector<std::vector<double>>> models_;  // [depth][context]
  RoundTheory answer_;
};

theory::JoinedBranches JoinedDrafts::branches(int before, int length) const {
  const theory::StateMatrix hidden = moves();
  const std::string& verifier = verifier_name(*rounds_.cell);
  const bool overlaps = verifier == "token" || verifier == "multi_draft_recursive";
  const std::size_t states = targets_.size();
  theory::JoinedBranches all;
  for (int depth = 0; depth <= length; ++depth) {
    const auto& models = models_[std::min(index_of(depth), models_.size() - 1)];
    auto& by_state = all.emplace_back();
    for (std::size_t s = 0; s < states; ++s) {
      const std::size_t known = depth == 0 ? s : index_of(seen(before, static_cast<int>(s)));
      const std::vector<double>& base = depth == 0 ? models[s] : models[index_of(before)];
      // The first position's draft depends on no pair of neighbours.
      const int candidates = depth == 0 ? 0 : candidates_;
      const std::vector<double> draft =
          theory::biased_distribution(base, models[known], share_, argmax_ ? 0.0 : temperature_, candidates);
      const bool sure = std::find(draft.begin(), draft.end(), 1.0) != draft.end();
      const std::vector<double> looked_at =
          sure ? theory::biased_distribution(base, models[known], share_, 1.0, candidates) : draft;
      double entropy = 0.0;
      for (const double p : looked_at) entropy -= p > 0.0 ? p * std::log(p) : 0.0;
      auto& outcomes = by_state.emplace_back();
      for (std::size_t x = 0; x < vocab_; ++x) {
        const double target = targets_[s][x];
        const double kept = overlaps ? std::min(target, draft[x]) : target * draft[x];
        const bool ends =
            rounds_.stops != nullptr && rounds_.stops->stops(policy_arguments(*rounds_.cell), looked_at[x], entropy);
        const auto add = [&](double chance, int next) {
          outcomes.push_back({{chance * target, chance * draft[x], next}, chance * kept, ends});
        };
        if (hidden.empty()) {
          add(1.0, rounds_.next(static_cast<int>(s), static_cast<int>(x)));
          continue;
        }
        for (std::size_t next = 0; next < states; ++next)
          if (hidden[s * states + next] > 0.0) add(hidden[s * states + next], static_cast<int>(next));
      }
    }
  }
  return all;
}

theory::RoundKernel JoinedDrafts::kernel(int length) const {
  const int states = static_cast<int>(targets_.size());
  theory::RoundKernel kernel(states, length);
  for (int before = 0; before < states; ++before) {
    const theory::JoinedBranches all = branches(before, length);
    std::vector<std::vector<double>> row;
    if (verifier_name(*rounds_.cell) == "block") {
      theory::BlockContext chain;
      chain.states = states;
      for (const auto& by_state : all) {
        auto& own = chain.branches.emplace_back();
        for (const auto& outcomes : by_state) {
          auto& branches = own.emplace_back();
          for (const theory::JoinedBranch& outcome : outcomes) branches.push_back(outcome.branch);
        }
      }
      for (const std::vector<double>& of_accepted : theory::block_kernel(chain, length))
        row.emplace_back(of_accepted.begin() + std::ptrdiff_t{before} * states,
                         of_accepted.begin() + std::ptrdiff_t{before + 1} * states);
    } else {
      row = theory::joined_row(all, length, before);
    }
    for (int accepted = 0; accepted <= length; ++accepted)
      for (int next = 0; next < states; ++next) kernel.at(accepted, before, next) = row[index_of(accepted)][index_of(next)];
  }
  return kernel;
}

Coverage cover_joined(const spec::Cell& cell) {
  BlockRounds rounds(cell);
  if (std::string why = why_not_kept(rounds); !why.empty()) return {nullptr, std::move(why)};
  const math::Sampling& sampling = cell.contexts->pair(0).draft_sampling();
  if (sampling.top_k > 0 || sampling.top_p < 1.0 || sampling.min_p > 0.0)
    return {nullptr, "theory does not cover drafts that are reduced to their likeliest tokens after a bias"};
  const double contexts = rounds.shape->contexts;
  const double outcomes = static_cast<double>(cell.vocab) * (rounds.hidden() ? contexts : 1.0);
  const bool joint = verifier_name(cell) == "block";
  if (joint && rounds.stops != nullptr)
    return {nullptr, "theory does not cover verifier block with chains whose end depends on the drafted tokens"};
  if ((joint && std::pow(outcomes, draft_length(cell)) * contexts * contexts > kMostCarries) ||
      outcomes * (draft_length(cell) + 1) * contexts * contexts > kMostSteps)
    return {nullptr, fmt::format("vocabulary {}, draft_length {}, {} contexts in all pairs: too many", cell.vocab,
                                 draft_length(cell), contexts)};
  return {std::make_unique<JoinedDrafts>(std::move(rounds)), ""};
}

}  // namespace

TheoryEntry dspark_theory() {
  return {{"dspark",
           "rounds by the context before the block, along drafts whose logits the token before biases",
           "Cheng et al. (DSpark), arXiv 2607.05147; Huang et al. (Domino), arXiv 2605.29707; Leviathan et al., arXiv "
           "2211.17192; Sun et al., arXiv 2403.10444",
           {},
           ""},
          {"token", "multi_draft_recursive", "block", "sample_match", "tree_point_mass"},
          {"dspark", "dflash2", "domino"},
          cover_joined};
}

}  // namespace specsim::judge
