#include "sim/experiment/block_facts.h"

#include "sim/math/series.h"
#include "sim/theory/judgement.h"
#include "sim/theory/lossy.h"
#include "sim/theory/multi_draft.h"

#include <algorithm>
#include <cmath>

namespace specsim::experiment {

namespace {

using Kind = families::ContextShape::Kind;

constexpr double kMostDraws = 0x1p24;   // tokens looked at, to enumerate draws without replacement
constexpr double kMostRatios = 0x1p20;  // of target to draft along a path, to follow them all; beyond, they are put into cells
constexpr double kMostTokens = 0x1p24;  // of all pairs of laws that are kept

// A rule that judges one child: what it accepts, and what it emits instead.
theory::Judgement judge_lossy(const Cell& cell, const verify::PositionLaws& laws) {
  const config::Arguments& own = cell.verifier_arguments;
  if (cell.verifier == "typical")
    return theory::judge_accepting(theory::typical_acceptance(laws.target, own.number("epsilon"), own.number("delta")),
                                   laws.drafted, laws.target);
  if (cell.verifier == "top_k_match")
    return theory::judge_accepting(theory::top_k_acceptance(laws.target, static_cast<int>(own.integer("k"))), laws.drafted,
                                   laws.target);
  // After a rejection `lenience` resamples as the token rule does.
  return theory::judge_accepting(theory::lenience_acceptance(laws.target, laws.drafted, own.number("lenience")), laws.drafted,
                                 theory::lenience_residual(laws.target, laws.drafted, 1.0));
}

bool is_lossy_on_chains(const std::string& verifier) {
  return verifier == "typical" || verifier == "top_k_match" || verifier == "lenience";
}

}  // namespace

BlockFacts::BlockFacts(const Cell& cell) : cell_(&cell) {
  const families::ContextShape& shape = cell.contexts->process->shape();
  const draft::Tree* tree = cell.drafter->tree();
  contexts_ = static_cast<double>(shape.contexts);
  const bool alike = shape.kind == Kind::fixed || shape.kind == Kind::iid_pool || shape.kind == Kind::by_depth;
  if (!alike || tree == nullptr || cell.policy != nullptr) return;
  if (cell.drafter->shape().from_root && shape.contexts > 1) return;  // guesses and targets are of different contexts
  covered_ = true;
  children_.assign(static_cast<std::size_t>(tree->height()), 0);
  bool even = true;  // as many children at every node of a depth that has any
  bool chain = true;
  for (std::size_t i = 0; i < tree->nodes.size(); ++i) {
    const draft::Tree::Node& node = tree->nodes[i];
    if (node.children == 0) continue;
    int& ranks = children_[static_cast<std::size_t>(node.depth)];
    even = even && (ranks == 0 || ranks == node.children);
    chain = chain && node.children == 1;
    ranks = std::max(ranks, node.children);
    for (int child = 0; child < node.children; ++child)
      ranks = std::max(ranks, tree->nodes[static_cast<std::size_t>(node.first_child + child)].rank + 1);
  }
  if (cell.verifier == "kseq") covered_ = even;  // its factor goes by the number of siblings
  if (is_lossy_on_chains(cell.verifier)) covered_ = chain && cell.drafter->shape().siblings == draft::Siblings::independent;
  if (cell.verifier == "block") covered_ = static_cast<double>(cell.vocab) * contexts_ * shape.depths <= kMostTokens;
  for (const int ranks : children_) acceptance_.emplace_back(static_cast<std::size_t>(ranks), 0.0);
}

std::vector<double> BlockFacts::by_rank(int children, const verify::PositionLaws& laws) const {
  const std::string& rule = cell_->verifier;
  const draft::Siblings siblings = cell_->drafter->shape().siblings;
  if (rule == "kseq") return theory::judge_kseq(laws.target, laws.drafted, children).by_rank;
  if (rule == "tree_point_mass" && siblings == draft::Siblings::independent)  // a drawn chain, kept while it matches
    return {theory::judge("sample_match", laws.target, laws.drafted, laws.draft_model).alpha()};
  if (rule != "multi_draft_recursive" && rule != "without_replacement" && rule != "tree_point_mass" && rule != "greedy_tree")
    return {};
  switch (siblings) {
    case draft::Siblings::independent:
      return theory::judge_recursive(laws.target, laws.drafted, children).by_rank;
    case draft::Siblings::without_replacement: {
      double looked_at = contexts_ * cell_->vocab;
      for (int k = 0; k < children; ++k) looked_at *= std::max(cell_->vocab - k, 1);
      if (looked_at > kMostDraws) return {};
      return theory::judge_without_replacement(laws.target, laws.drafted, children).by_rank;
    }
    case draft::Siblings::point_mass:
      break;
  }
  return theory::judge_top_ranked(laws.target, laws.drafted, children).by_rank;
}

std::vector<double> BlockFacts::add(int depth, const verify::PositionLaws& laws) {
  if (!covered_) return {};
  if (cell_->verifier == "block") {
    pairs_.push_back({1.0, {laws.target.begin(), laws.target.end()}, {laws.drafted.begin(), laws.drafted.end()}});
    return {};
  }
  std::vector<double> emitted;
  std::vector<double> lossy_rate;
  if (is_lossy_on_chains(cell_->verifier)) {
    const theory::Judgement judgement = judge_lossy(*cell_, laws);
    emitted = theory::emitted_law(judgement);
    lossy_rate = {judgement.alpha()};
  }
  // The last draft law holds at every depth beyond it.
  const int laws_deep = plan_of(*cell_).depths();
  for (std::size_t d = 0; d < children_.size(); ++d) {
    if (std::min(static_cast<int>(d), laws_deep - 1) != depth) continue;
    const std::vector<double> rates = emitted.empty() ? by_rank(children_[d], laws) : lossy_rate;
    covered_ = covered_ && !rates.empty();
    for (std::size_t rank = 0; rank < rates.size(); ++rank) acceptance_[d][rank] += rates[rank] / contexts_;
  }
  return emitted;
}

std::optional<BlockFacts::Answer> BlockFacts::block_answer() const {
  const int draft_length = cell_->chain.draft_length;
  const bool by_depth = cell_->contexts->process->shape().kind == Kind::by_depth || plan_of(*cell_).depths() > 1;
  const double ratios = std::pow(static_cast<double>(cell_->vocab) * contexts_, draft_length);
  if (by_depth) {
    if (ratios > kMostRatios) return std::nullopt;
    theory::BlockContext context;
    for (int d = 0; d <= draft_length; ++d) {
      const theory::WeightedPair& pair = pairs_[std::min(static_cast<std::size_t>(d), pairs_.size() - 1)];
      context.branches.push_back(theory::block_context(std::span(&pair, 1)).branches[0]);
    }
    return Answer{theory::block_law(context, draft_length), 0.0};
  }
  if (ratios <= kMostRatios) return Answer{theory::block_law(theory::block_context(pairs_), draft_length), 0.0};
  Answer answer;
  double reached = 1.0;
  for (const theory::Bracket& tail : theory::block_tails(pairs_, draft_length)) {
    const double middle = 0.5 * (tail.low + tail.high);
    answer.law.accepted.push_back(reached - middle);
    answer.mean_error += 0.5 * (tail.high - tail.low);
    reached = middle;
  }
  answer.law.accepted.push_back(reached);
  return answer;
}

std::optional<BlockFacts::Answer> BlockFacts::answer() const {
  if (!covered_) return std::nullopt;
  if (cell_->verifier == "block") return block_answer();
  theory::Tree tree;
  const std::vector<draft::Tree::Node>& nodes = cell_->drafter->tree()->nodes;
  for (auto node = nodes.begin() + 1; node != nodes.end(); ++node) tree.add(node->parent, node->rank);
  if (tree.depth() == 0) return Answer{theory::RoundLaw{{1.0}}, 0.0};
  return Answer{theory::tree_law(tree, acceptance_), 0.0};
}

}  // namespace specsim::experiment
