// Rules that walk down a tree node by node: the masses of a node's children, context by context, are all that counts.
#include "sim/base/index.h"
#include "sim/judge/block_rounds.h"
#include "sim/theory/bounds.h"
#include "sim/theory/judgement.h"
#include "sim/theory/lossy.h"
#include "sim/theory/multi_draft.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>
#include <utility>

namespace specsim::judge {

namespace {

using Kind = families::ContextShape::Kind;

constexpr double kMostDraws = 0x1p24;      // tokens looked at, to enumerate draws without replacement
constexpr double kMostWalkSteps = 0x1p28;  // of a walk

bool is_lossy_on_chains(const std::string& verifier) {
  return verifier == "typical" || verifier == "top_k_match" || verifier == "lenience";
}

// The rule's acceptance of each drafted token, of a lossy one.
std::vector<double> admits(const spec::Cell& cell, const verify::PositionDistributions& distributions) {
  const config::Arguments& own = cell.verifier_arguments();
  if (cell.verifier().info.name == "typical")
    return theory::typical_acceptance(distributions.target, own.number("epsilon"), own.number("delta"));
  if (cell.verifier().info.name == "top_k_match")
    return theory::top_k_acceptance(distributions.target, static_cast<int>(own.integer("k")));
  return theory::lenience_acceptance(distributions.target, distributions.drafted, own.number("lenience"));
}

// What it emits where nothing was accepted.
std::vector<double> final_distribution(const spec::Cell& cell, const verify::PositionDistributions& distributions) {
  if (cell.verifier().info.name == "lenience") return theory::residual_distribution(distributions.target, distributions.drafted);
  return {distributions.target.begin(), distributions.target.end()};
}

class WalkedFacts final : public BlockFacts {
 public:
  explicit WalkedFacts(BlockRounds rounds);
  std::vector<double> add(int context, int depth, const verify::PositionDistributions& distributions) override;
  [[nodiscard]] BlockTheory answer() const override {
    return rounds_.theory_of([this](int draft_length) { return walked(draft_length); });
  }

 private:
  struct Level {  // of the tree: the nodes of one depth
    int children = 0;
    int distributions = 0;  // which depth's
    theory::NodeMoves moves;
  };

  // [rank][token] of the children of a node: accepted; [rank][0] where tokens do not matter.
  [[nodiscard]] std::vector<std::vector<double>> accepted(int children, const verify::PositionDistributions& distributions) const;
  // What an outcome of these masses by token does to the state.
  void spread(int context, const std::vector<double>& mass, theory::StateMatrix& moves) const;
  [[nodiscard]] theory::RoundKernel walked(int draft_length) const;

  BlockRounds rounds_;
  std::vector<Level> levels_;
  theory::StateMatrix target_;  // the target's own token
};

WalkedFacts::WalkedFacts(BlockRounds rounds) : rounds_(std::move(rounds)), levels_(rounds_.ranks.size()) {
  const spec::Cell& cell = *rounds_.cell;
  const std::size_t size = index_of(rounds_.states) * index_of(rounds_.states);
  target_.assign(size, 0.0);
  for (std::size_t d = 0; d < levels_.size(); ++d) {
    Level& level = levels_[d];
    level.children = rounds_.ranks[d];
    level.distributions = std::min(static_cast<int>(d), spec::plan_of(cell).depths() - 1);
    level.moves.accept.assign(index_of(level.children), theory::StateMatrix(size, 0.0));
    if (cell.policy() != nullptr && cell.policy()->part->looks()) level.moves.stop = level.moves.accept;
    if (!cell.lossless()) level.moves.final_token.assign(size, 0.0);
  }
}

std::vector<std::vector<double>> WalkedFacts::accepted(int children, const verify::PositionDistributions& distributions) const {
  const std::string& rule = rounds_.cell->verifier().info.name;
  if (is_lossy_on_chains(rule)) {
    if (rule == "lenience")
      return {
          theory::judge_accepting(admits(*rounds_.cell, distributions), distributions.drafted, distributions.target).accepted};
    return theory::first_accepted(admits(*rounds_.cell, distributions), distributions.drafted, children,
                                  sampling_of(rounds_.drafter->siblings));
  }
  if (rule == "kseq") return theory::judge_kseq(distributions.target, distributions.drafted, children).by_token;
  if (rule == "optimal_transport") {  // its siblings all lead to the same
    std::vector<std::vector<double>> by_rank(index_of(children), {0.0});
    by_rank[0][0] = theory::optimal_acceptance(distributions.target, distributions.drafted, children);
    return by_rank;
  }
  switch (rounds_.drafter->siblings) {
    case tokens::Siblings::independent:
      if (rule == "token" || rule == "multi_draft_recursive")
        return theory::judge_recursive(distributions.target, distributions.drafted, children).by_token;
      return theory::judge_matching(distributions.target, distributions.drafted, children).by_token;
    case tokens::Siblings::without_replacement:
      return theory::judge_without_replacement(distributions.target, distributions.drafted, children).by_token;
    case tokens::Siblings::point_mass:
      break;
  }
  return theory::judge_top_ranked(distributions.target, distributions.drafted, children).by_token;
}

void WalkedFacts::spread(int context, const std::vector<double>& mass, theory::StateMatrix& moves) const {
  const std::size_t states = index_of(rounds_.states);
  const std::size_t row = rounds_.by_context ? index_of(context) * states : 0;
  if (rounds_.sure_next()) {
    for (std::size_t x = 0; x < mass.size(); ++x) moves[row + index_of(rounds_.next(context, static_cast<int>(x)))] += mass[x];
    return;
  }
  const double total = std::accumulate(mass.begin(), mass.end(), 0.0);
  if (rounds_.shape->kind == Kind::regimes) {
    for (std::size_t next = 0; next < states; ++next) moves[row + next] += total * rounds_.shape->transition[row + next];
  } else {
    moves[row + (rounds_.by_context ? index_of(context) : 0)] += rounds_.by_context ? total : total / rounds_.shape->contexts;
  }
}

std::vector<double> WalkedFacts::add(int context, int depth, const verify::PositionDistributions& distributions) {
  if (depth == 0) spread(context, {distributions.target.begin(), distributions.target.end()}, target_);
  const draft::LengthPolicy* policy =
      rounds_.cell->policy() != nullptr && rounds_.cell->policy()->part->looks() ? rounds_.cell->policy()->part.get() : nullptr;
  double entropy = 0.0;
  for (const double share : distributions.drafted) entropy -= share > 0.0 ? share * std::log(share) : 0.0;
  int known = -1;  // children that by_token is of
  std::vector<std::vector<double>> by_token;
  for (Level& level : levels_) {
    if (level.distributions != depth) continue;
    if (std::exchange(known, level.children) != level.children) by_token = accepted(level.children, distributions);
    for (std::size_t rank = 0; rank < by_token.size(); ++rank) {
      spread(context, by_token[rank], level.moves.accept[rank]);
      if (policy == nullptr) continue;
      std::vector<double> stopped = by_token[rank];
      for (std::size_t x = 0; x < stopped.size(); ++x)
        if (rounds_.cell->policy()->name() == "confidence"
                ? distributions.drafted[x] >= rounds_.cell->policy()->arguments.number("least")
                : entropy <= rounds_.cell->policy()->arguments.number("most"))
          stopped[x] = 0.0;
      spread(context, stopped, level.moves.stop[rank]);
    }
    if (!rounds_.cell->lossless()) spread(context, final_distribution(*rounds_.cell, distributions), level.moves.final_token);
  }
  const bool chain =
      rounds_.tree.size() == rounds_.tree.depth() + 1 && rounds_.drafter->siblings == tokens::Siblings::independent;
  if (rounds_.cell->lossless() || !chain || rounds_.by_context) return {};
  return theory::emitted_distribution(theory::judge_accepting(admits(*rounds_.cell, distributions), distributions.drafted,
                                                              final_distribution(*rounds_.cell, distributions)));
}

theory::RoundKernel WalkedFacts::walked(int draft_length) const {
  std::vector<theory::NodeMoves> by_depth;
  for (const Level& level : levels_) by_depth.push_back(level.moves);
  const bool whole = draft_length == rounds_.tree.depth() && rounds_.cell->verifier().info.name != "optimal_transport";
  return theory::walked_kernel(whole ? rounds_.tree : theory::chain_tree(draft_length), rounds_.states, by_depth, target_);
}

}  // namespace

std::string why_not_walked(const BlockRounds& rounds) {
  static const std::set<std::string> judged = {
      "token",    "multi_draft_recursive", "without_replacement", "kseq", "typical", "optimal_transport", "tree_point_mass",
      "lenience", "greedy_tree",           "top_k_match"};
  const std::string& rule = rounds.cell->verifier().info.name;
  if (judged.count(rule) == 0) return fmt::format("verifier {} has no theory of its own", rule);
  if (rounds.shape->kind == Kind::requests && rounds.cell->policy() != nullptr && !rounds.cell->policy()->part->foresees())
    return "requests whose rounds a policy cuts to length are not worked out";
  const double steps = static_cast<double>(rounds.tree.size()) * std::pow(rounds.states, 3);
  if (rounds.states > 1 && steps > kMostWalkSteps)
    return fmt::format("{} contexts, {} nodes: too many", rounds.states, rounds.tree.size() - 1);
  bool even = true;     // as many children at every node of a depth that has any
  bool uniform = true;  // and every node above the last level has them
  bool gap = false;     // a rank is left out
  const std::vector<tokens::Tree::Node>& nodes = rounds.cell->block()->drafter->tree()->nodes;
  for (const tokens::Tree::Node& node : nodes) {
    const int ranks = node.depth < rounds.tree.depth() ? rounds.ranks[index_of(node.depth)] : 0;
    even = even && (node.children == 0 || node.children == ranks);
    uniform = uniform && node.children == ranks;
    for (int child = 0; child < node.children; ++child) gap = gap || nodes[index_of(node.first_child + child)].rank != child;
  }
  if (rule == "kseq" && !even) return "its factor goes by the number of siblings, and nodes of one depth differ in it";
  if (rule == "optimal_transport" && !uniform)
    return "which of its siblings is accepted is up to which of the best couplings it has";
  if (rule == "optimal_transport" && rounds.shape->kind == Kind::markov)
    return "which token is accepted is up to which of the best couplings it has, and contexts go by the token";
  if (rule == "top_k_match" && gap) return "the tree leaves out ranks";
  const bool draws = rounds.drafter->siblings == tokens::Siblings::without_replacement;
  for (const int children : rounds.ranks) {
    double looked_at = static_cast<double>(rounds.shape->contexts) * rounds.cell->vocab;
    for (int k = 0; k < children; ++k) looked_at *= std::max(rounds.cell->vocab - k, 1);
    if (draws && looked_at > kMostDraws)
      return fmt::format("vocabulary {}, {} siblings without replacement: too many draws", rounds.cell->vocab, children);
  }
  return "";
}

std::unique_ptr<BlockFacts> walked_facts(BlockRounds rounds) { return std::make_unique<WalkedFacts>(std::move(rounds)); }

}  // namespace specsim::judge
