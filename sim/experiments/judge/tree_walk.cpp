#include "sim/experiments/judge/tree_walk.h"

#include "sim/experiments/judge/method.h"
#include "sim/foundation/base/index.h"
#include "sim/rounds/theory/lossy.h"
#include "sim/rounds/theory/multi_draft.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

namespace specsim::judge {

namespace {

constexpr double kMostDraws = 0x1p24;      // tokens visited when draws without replacement are enumerated
constexpr double kMostWalkSteps = 0x1p28;  // largest number of steps of a walk

class TreeWalk final : public CellTheory {
 public:
  TreeWalk(BlockRounds rounds, NodeTheory rule);
  std::vector<double> see(int context, int depth, const verify::PositionDistributions& distributions) override;
  [[nodiscard]] std::vector<double> after_block(const verify::PositionDistributions& distributions) const override {
    return admitting() != nullptr && admitting()->bonus ? admitting()->bonus(distributions) : std::vector<double>();
  }
  void sorted_by(int /*context*/, const theory::TokenClasses& classes) override { classes_ = classes; }
  [[nodiscard]] std::optional<theory::TokenMoments> tokens_of_round() const override;
  void finish() override {
    if (rounds_.shape->contexts == 0) return sample_fresh();
    answer_ = rounds_.theory_of([this](int draft_length) { return walked(draft_length); });
  }
  [[nodiscard]] RoundTheory answer(const spec::Cell& /*cell*/) const override { return answer_; }

 private:
  struct Level {  // the nodes of one depth of the tree
    int children = 0;
    int distributions = 0;  // the depth whose distributions they use
    theory::NodeMoves moves;
    theory::NodeTokens tokens;  // if sorts_tokens()
  };

  // The effect on the state of an outcome with these masses by token.
  void spread(int context, const std::vector<double>& mass, theory::StateMatrix& moves) const;
  [[nodiscard]] theory::RoundKernel walked(int draft_length) const;
  [[nodiscard]] const TokenwiseRule* admitting() const { return std::get_if<TokenwiseRule>(&rule_.otherwise); }
  // Whether see() can return the distribution of a judged token, independent of earlier judgements: for chains in identical
  // contexts.
  [[nodiscard]] bool tells_judged() const {
    return admitting() != nullptr && rounds_.is_chain() && rounds_.drafter->siblings == tokens::Siblings::independent &&
           !rounds_.by_context;
  }
  // Whether the emitted tokens of a round are gathered by class: for lossy rules, if rounds are identically distributed and
  // independent.
  [[nodiscard]] bool sorts_tokens() const {
    return !std::holds_alternative<ResidualRule>(rule_.otherwise) && !tells_judged() && !rounds_.by_context &&
           rounds_.shape->contexts > 0 && !has_policy(*rounds_.cell);
  }
  void sort_tokens(const verify::PositionDistributions& distributions, const std::vector<std::vector<double>>& accepted,
                   Level& level) const;
  void sample_fresh();

  BlockRounds rounds_;
  NodeTheory rule_;
  std::vector<Level> levels_;
  theory::TokenClasses classes_;  // the classes of the context passed to see()
  std::vector<double> behind_;    // the token after a leaf, by class, if sorts_tokens()
  theory::StateMatrix target_;    // the target's own token
  double alike_;                  // number of contexts to average over, if they are not states
  RoundTheory answer_;
};

TreeWalk::TreeWalk(BlockRounds rounds, NodeTheory rule)
    : rounds_(std::move(rounds)), rule_(std::move(rule)), levels_(rounds_.ranks.size()), alike_(rounds_.shape->contexts) {
  const spec::Cell& cell = *rounds_.cell;
  const std::size_t size = index_of(rounds_.states) * index_of(rounds_.states);
  target_.assign(size, 0.0);
  for (std::size_t d = 0; d < levels_.size(); ++d) {
    Level& level = levels_[d];
    level.children = rounds_.ranks[d];
    level.distributions = std::min(static_cast<int>(d), spec::plan_of(cell).depths() - 1);
    level.moves.accept.assign(index_of(level.children), theory::StateMatrix(size, 0.0));
    if (rounds_.stops != nullptr) level.moves.stop = level.moves.accept;
    if (admitting() != nullptr) level.moves.final_token.assign(size, 0.0);
  }
}

void TreeWalk::spread(int context, const std::vector<double>& mass, theory::StateMatrix& moves) const {
  const std::size_t states = index_of(rounds_.states);
  const std::size_t row = rounds_.by_context ? index_of(context) * states : 0;
  if (rounds_.next_context_known()) {
    for (std::size_t x = 0; x < mass.size(); ++x) moves[row + index_of(rounds_.next(context, static_cast<int>(x)))] += mass[x];
    return;
  }
  const double total = std::accumulate(mass.begin(), mass.end(), 0.0);
  if (rounds_.shape->kind == families::ContextShape::Kind::regimes) {
    for (std::size_t next = 0; next < states; ++next) moves[row + next] += total * rounds_.shape->transition[row + next];
  } else {
    moves[row + (rounds_.by_context ? index_of(context) : 0)] += rounds_.by_context ? total : total / alike_;
  }
}

void TreeWalk::sort_tokens(const verify::PositionDistributions& distributions, const std::vector<std::vector<double>>& accepted,
                           Level& level) const {
  const double share = 1.0 / alike_;
  const auto add = [&](std::span<const double> by_token, double weight, std::vector<double>& sum) {
    sum.resize(classes_.count, 0.0);
    for (std::size_t x = 0; x < by_token.size(); ++x) sum[classes_.class_of[x]] += share * weight * by_token[x];
  };
  theory::NodeTokens& tokens = level.tokens;
  tokens.accepted.resize(accepted.size());
  tokens.rejected.resize(accepted.size() + 1);
  double none = 1.0;
  for (std::size_t rank = 0; rank < accepted.size(); ++rank) {
    add(accepted[rank], 1.0, tokens.accepted[rank]);
    none -= std::accumulate(accepted[rank].begin(), accepted[rank].end(), 0.0);
    const int children = static_cast<int>(rank) + 1;
    if (const auto* const rejecting = std::get_if<RejectedMass>(&rule_.otherwise))
      add(rejecting->rejected(distributions, children), 1.0, tokens.rejected[rank + 1]);
    else
      add(admitting()->final_token(distributions), std::max(none, 0.0), tokens.rejected[rank + 1]);
  }
}

std::optional<theory::TokenMoments> TreeWalk::tokens_of_round() const {
  if (!sorts_tokens()) return std::nullopt;
  std::vector<theory::NodeTokens> by_depth;
  for (const Level& level : levels_) by_depth.push_back(level.tokens);
  return theory::walked_tokens(rounds_.tree, by_depth, behind_);
}

std::vector<double> TreeWalk::see(int context, int depth, const verify::PositionDistributions& distributions) {
  if (depth == 0) spread(context, {distributions.target.begin(), distributions.target.end()}, target_);
  const std::span<const double> looked_at = distributions.looked_at.empty() ? distributions.drafted : distributions.looked_at;
  double entropy = 0.0;
  for (const double share : looked_at) entropy -= share > 0.0 ? share * std::log(share) : 0.0;
  const bool sorts = sorts_tokens() && !classes_.class_of.empty();
  if (sorts && depth == 0) {
    const std::vector<double> bonus = after_block(distributions);
    const std::vector<double> behind =
        classes_.masses(bonus.empty() ? std::vector<double>(distributions.target.begin(), distributions.target.end()) : bonus);
    behind_.resize(classes_.count, 0.0);
    for (std::size_t k = 0; k < behind.size(); ++k) behind_[k] += behind[k] / alike_;
  }
  int known = -1;  // number of children that by_token was computed for
  std::vector<std::vector<double>> by_token;
  for (Level& level : levels_) {
    if (level.distributions != depth) continue;
    if (std::exchange(known, level.children) != level.children) by_token = rule_.accepted(distributions, level.children);
    if (sorts) sort_tokens(distributions, by_token, level);
    for (std::size_t rank = 0; rank < by_token.size(); ++rank) {
      spread(context, by_token[rank], level.moves.accept[rank]);
      if (rounds_.stops == nullptr) continue;
      std::vector<double> stopped = by_token[rank];
      for (std::size_t x = 0; x < stopped.size(); ++x)
        if (!rounds_.stops->stops(policy_arguments(*rounds_.cell), looked_at[x], entropy)) stopped[x] = 0.0;
      spread(context, stopped, level.moves.stop[rank]);
    }
    if (admitting() != nullptr) spread(context, admitting()->final_token(distributions), level.moves.final_token);
  }
  if (!tells_judged()) return {};
  return theory::emitted_distribution(theory::judge_accepting(admitting()->admits(distributions), distributions.drafted,
                                                              admitting()->final_token(distributions)));
}

theory::RoundKernel TreeWalk::walked(int draft_length) const {
  std::vector<theory::NodeMoves> by_depth;
  for (const Level& level : levels_) by_depth.push_back(level.moves);
  if (rule_.siblings_alike) return theory::walked_kernel(theory::chain_tree(draft_length), rounds_.states, by_depth, target_);
  // The tree down to this round's draft length; its nodes are ordered level by level.
  theory::TreeShape tree;
  const std::vector<int> depths = rounds_.tree.depths();
  for (int node = 1; node < rounds_.tree.size() && depths[index_of(node)] <= draft_length; ++node)
    tree.add(rounds_.tree.parent[index_of(node)], rounds_.tree.rank[index_of(node)]);
  return theory::walked_kernel(tree, rounds_.states, by_depth, target_);
}

// If every text position has its own distributions: the means over a sample of pairs, drawn at addresses that no simulation
// uses. Parts of the sample give the error of a round's mean.
void TreeWalk::sample_fresh() {
  constexpr std::size_t kParts = 16;
  constexpr double kMostOfPart = 1000.0;
  constexpr double kMostTokens = 3e8;
  const spec::Cell& cell = *rounds_.cell;
  const decode::PreparationPlan plan = spec::plan_of(cell);
  const decode::DistributionDrawer drawer(plan);
  const double tokens = static_cast<double>(kParts) * cell.vocab * rounds_.tree.size();
  const auto pairs = static_cast<std::uint64_t>(std::clamp(kMostTokens / tokens, 16.0, kMostOfPart));
  alike_ = static_cast<double>(pairs);
  std::vector<double> target;
  std::vector<double> model;
  std::vector<double> drafted;
  std::vector<double> looked_at;
  std::vector<double> means;
  std::vector<Level> sums;
  theory::StateMatrix sum_of_targets;
  const auto add = [](theory::StateMatrix& sum, const theory::StateMatrix& part) {
    sum.resize(part.size(), 0.0);
    for (std::size_t i = 0; i < part.size(); ++i) sum[i] += part[i] / static_cast<double>(kParts);
  };
  const std::vector<Level> empty = levels_;
  for (std::uint64_t part = 0; part < kParts; ++part) {
    levels_ = empty;
    target_.assign(1, 0.0);
    for (std::uint64_t i = 0; i < pairs; ++i) {
      const std::uint64_t context = (std::uint64_t{1} << 63) + part * pairs + i;
      drawer.target(0, context, target);
      for (int depth = 0; depth < plan.depths(); ++depth) {
        drawer.draft(0, context, static_cast<std::size_t>(depth), target, model, drafted);
        drawer.looked_at(0, context, static_cast<std::size_t>(depth), target, drafted, looked_at);
        static_cast<void>(see(0, depth, {target, drafted, model, looked_at}));
      }
    }
    means.push_back(walked(draft_length(cell)).distribution(0).mean_emitted());
    if (part == 0) sums = empty;
    add(sum_of_targets, target_);
    for (std::size_t d = 0; d < levels_.size(); ++d) {
      for (std::size_t rank = 0; rank < levels_[d].moves.accept.size(); ++rank)
        add(sums[d].moves.accept[rank], levels_[d].moves.accept[rank]);
      for (std::size_t rank = 0; rank < levels_[d].moves.stop.size(); ++rank)
        add(sums[d].moves.stop[rank], levels_[d].moves.stop[rank]);
      if (admitting() != nullptr) add(sums[d].moves.final_token, levels_[d].moves.final_token);
    }
  }
  levels_ = std::move(sums);
  target_ = std::move(sum_of_targets);
  answer_ = rounds_.theory_of([this](int draft_length) { return walked(draft_length); });
  const double mean = std::accumulate(means.begin(), means.end(), 0.0) / static_cast<double>(kParts);
  double squares = 0.0;
  for (const double one : means) squares += (one - mean) * (one - mean);
  answer_.mean_error = std::sqrt(squares / static_cast<double>(kParts * (kParts - 1)));
  constexpr double kRounding = 1e-9;
  answer_.estimated = answer_.mean_error > kRounding;
}

// Why this walk is impossible; "" if it is possible.
std::string why_not_walked(const BlockRounds& rounds) {
  if (rounds.guesses_ahead())
    return fmt::format("theory does not cover verifier {} with guesses from another context", verifier_name(*rounds.cell));
  if (std::string why = rounds.why_not(); !why.empty()) return why;
  if (rounds.shape->contexts == 0 && rounds.lengths != nullptr)
    return "theory does not cover fresh distributions whose rounds a policy shortens";
  const double steps = static_cast<double>(rounds.tree.size()) * std::pow(rounds.states, 3);
  if (rounds.states > 1 && steps > kMostWalkSteps)
    return fmt::format("{} contexts, {} nodes: too many", rounds.states, rounds.tree.size() - 1);
  if (rounds.drafter->siblings != tokens::Siblings::without_replacement) return "";
  const int vocab = rounds.cell->vocab;
  for (const int children : rounds.ranks) {
    double looked_at = std::max(1.0, static_cast<double>(rounds.shape->contexts)) * vocab;
    for (int k = 0; k < children; ++k) looked_at *= std::max(vocab - k, 1);
    if (looked_at > kMostDraws)
      return fmt::format("vocabulary {}, {} siblings without replacement: too many draws", vocab, children);
  }
  return "";
}

}  // namespace

TreeFigures figures_of(const BlockRounds& rounds) {
  TreeFigures figures;
  const tokens::Tree* const tree = blocks(*rounds.cell).tree();
  if (tree == nullptr) return figures;  // a drafter that chooses its block; the figures are then those of a chain
  const std::vector<tokens::Tree::Node>& nodes = tree->nodes;
  for (const tokens::Tree::Node& node : nodes) {
    const int ranks = node.depth < rounds.tree.depth() ? rounds.ranks[index_of(node.depth)] : 0;
    figures.even = figures.even && (node.children == 0 || node.children == ranks);
    figures.uniform = figures.uniform && node.children == ranks;
    for (int child = 0; child < node.children; ++child)
      figures.gap = figures.gap || nodes[index_of(node.first_child + child)].rank != child;
  }
  return figures;
}

Coverage walk(BlockRounds rounds, NodeTheory rule) {
  std::string why = why_not_walked(rounds);
  if (!why.empty()) return {nullptr, std::move(why)};
  return {std::make_unique<TreeWalk>(std::move(rounds), std::move(rule)), ""};
}

Coverage walk_drawn_chain(const spec::Cell& cell) {
  BlockRounds rounds(cell);
  for (int node = 0; node < cell.draft_length(); ++node) rounds.tree.add(node, 0);
  rounds.ranks.assign(index_of(cell.draft_length()), 1);
  return walk(std::move(rounds), {[](const verify::PositionDistributions& distributions, int children) {
                return theory::judge_recursive(distributions.target, distributions.drafted, children).by_token;
              }});
}

Coverage walk_admitting(BlockRounds rounds, const MassByToken& admits) {
  const auto residual = [](const verify::PositionDistributions& distributions) {
    return theory::residual_distribution(distributions.target, distributions.drafted);
  };
  return walk(std::move(rounds),
              {[admits](const verify::PositionDistributions& distributions, int /*children*/) {
                 return std::vector<std::vector<double>>{
                     theory::judge_accepting(admits(distributions), distributions.drafted, distributions.target).accepted};
               },
               TokenwiseRule{admits, residual}});
}

Coverage walk_first_admitted(BlockRounds rounds, const MassByToken& admits) {
  const theory::TreeSampling sampling = sampling_of(rounds.drafter->siblings);
  const auto target = [](const verify::PositionDistributions& distributions) {
    return std::vector<double>(distributions.target.begin(), distributions.target.end());
  };
  return walk(std::move(rounds), {[admits, sampling](const verify::PositionDistributions& distributions, int children) {
                                    return theory::first_accepted(admits(distributions), distributions.drafted, children,
                                                                  sampling);
                                  },
                                  TokenwiseRule{admits, target}});
}

}  // namespace specsim::judge
