#include "sim/experiment/block_facts.h"

#include "sim/theory/bounds.h"
#include "sim/theory/chosen_trees.h"
#include "sim/theory/judgement.h"
#include "sim/theory/lossy.h"
#include "sim/theory/multi_draft.h"
#include "sim/theory/tree_enumeration.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>
#include <utility>

namespace specsim::experiment {

namespace {

using Kind = families::ContextShape::Kind;

constexpr double kMostDraws = 0x1p24;   // tokens looked at, to enumerate draws without replacement
constexpr double kMostRatios = 0x1p20;  // of target to draft along a path, to follow them all; beyond, they are put into cells
constexpr double kMostTokens = 0x1p24;  // of all pairs of laws that are kept
constexpr double kMostTrees = 0x1p20;   // drafted, over all starts
constexpr double kMostSteps = 0x1p28;   // of a walk

std::size_t index_of(int value) { return static_cast<std::size_t>(value); }

bool is_lossy_on_chains(const std::string& verifier) {
  return verifier == "typical" || verifier == "top_k_match" || verifier == "lenience";
}

theory::TreeSampling sampling_of(draft::Siblings siblings) {
  return siblings == draft::Siblings::independent           ? theory::TreeSampling::with_replacement
         : siblings == draft::Siblings::without_replacement ? theory::TreeSampling::without_replacement
                                                            : theory::TreeSampling::top;
}

theory::RoundKernel kernel_of(const theory::RoundLaw& law) {
  theory::RoundKernel kernel(1, law.draft_length());
  for (int j = 0; j <= law.draft_length(); ++j) kernel.at(j, 0, 0) = law.accepted[index_of(j)];
  return kernel;
}

theory::RoundLaw mean_of(const std::vector<theory::RoundLaw>& laws) {
  theory::RoundLaw mean{std::vector<double>(laws.front().accepted.size(), 0.0)};
  for (const theory::RoundLaw& law : laws)
    for (std::size_t j = 0; j < law.accepted.size(); ++j) mean.accepted[j] += law.accepted[j] / static_cast<double>(laws.size());
  return mean;
}

// The rule's acceptance of each drafted token, of a lossy one.
std::vector<double> admits(const Cell& cell, const verify::PositionLaws& laws) {
  const config::Arguments& own = cell.verifier_arguments;
  if (cell.verifier == "typical") return theory::typical_acceptance(laws.target, own.number("epsilon"), own.number("delta"));
  if (cell.verifier == "top_k_match") return theory::top_k_acceptance(laws.target, static_cast<int>(own.integer("k")));
  return theory::lenience_acceptance(laws.target, laws.drafted, own.number("lenience"));
}

// What it emits where nothing was accepted.
std::vector<double> final_law(const Cell& cell, const verify::PositionLaws& laws) {
  if (cell.verifier == "lenience") return theory::residual_law(laws.target, laws.drafted);
  return {laws.target.begin(), laws.target.end()};
}

}  // namespace

BlockFacts::BlockFacts(const Cell& cell)
    : cell_(&cell),
      shape_(&cell.contexts->process->shape()),
      drafter_(&cell.drafter->shape()),
      by_context_(shape_->kind == Kind::markov || shape_->kind == Kind::regimes || shape_->kind == Kind::requests),
      states_(by_context_ ? shape_->contexts : 1) {
  if (const draft::Tree* tree = cell.drafter->tree()) {
    for (auto node = tree->nodes.begin() + 1; node != tree->nodes.end(); ++node) tree_.add(node->parent, node->rank);
    levels_.resize(index_of(tree->height()));
    for (int d = 0; d < tree->height(); ++d) levels_[index_of(d)].laws = std::min(d, plan_of(cell).depths() - 1);
    for (std::size_t i = 0; i < tree->nodes.size(); ++i) {
      const draft::Tree::Node& node = tree->nodes[i];
      for (int child = 0; child < node.children; ++child) {
        int& ranks = levels_[index_of(node.depth)].children;
        ranks = std::max(ranks, tree->nodes[index_of(node.first_child + child)].rank + 1);
      }
    }
  }
  const bool enumerates = tree_.size() != cell.drafter->shape().nodes + 1 || cell.verifier == "block" ||
                          cell.verifier == "traversal" || (drafter_->from_root && shape_->contexts > 1) ||
                          (cell.verifier == "typical" && tree_.size() > tree_.depth() + 1);
  walks_ = !enumerates;
  missing_ = shape_->kind == Kind::trace ? "recorded laws: rounds of blocks are not followed through a text"
             : enumerates                ? why_not_enumerated()
                                         : why_not_walked();
  if (!missing_.empty() || enumerates) return;
  const std::size_t size = index_of(states_) * index_of(states_);
  target_.assign(size, 0.0);
  for (Level& level : levels_) {
    level.moves.accept.assign(index_of(level.children), theory::StateMatrix(size, 0.0));
    if (cell.policy != nullptr && cell.policy->looks()) level.moves.stop = level.moves.accept;
    if (!cell.lossless) level.moves.final_token.assign(size, 0.0);
  }
}

// Traversal of a chain is block verification.
bool BlockFacts::is_block() const {
  return cell_->verifier == "block" || (cell_->verifier == "traversal" && tree_.size() == tree_.depth() + 1);
}

std::string BlockFacts::why_not_walked() const {
  static const std::set<std::string> judged = {
      "token",    "multi_draft_recursive", "without_replacement", "kseq", "typical", "optimal_transport", "tree_point_mass",
      "lenience", "greedy_tree",           "top_k_match"};
  const std::string& rule = cell_->verifier;
  if (judged.count(rule) == 0) return fmt::format("verifier {} has no theory of its own", rule);
  if (shape_->kind == Kind::requests && cell_->policy != nullptr && !cell_->policy->foresees())
    return "requests whose rounds a policy cuts to length are not worked out";
  const double steps = static_cast<double>(tree_.size()) * std::pow(states_, 3);
  if (states_ > 1 && steps > kMostSteps) return fmt::format("{} contexts, {} nodes: too many", states_, tree_.size() - 1);
  bool even = true;     // as many children at every node of a depth that has any
  bool uniform = true;  // and every node above the last level has them
  bool gap = false;     // a rank is left out
  const std::vector<draft::Tree::Node>& nodes = cell_->drafter->tree()->nodes;
  for (const draft::Tree::Node& node : nodes) {
    const int ranks = node.depth < tree_.depth() ? levels_[index_of(node.depth)].children : 0;
    even = even && (node.children == 0 || node.children == ranks);
    uniform = uniform && node.children == ranks;
    for (int child = 0; child < node.children; ++child) gap = gap || nodes[index_of(node.first_child + child)].rank != child;
  }
  if (rule == "kseq" && !even) return "its factor goes by the number of siblings, and nodes of one depth differ in it";
  if (rule == "optimal_transport" && !uniform)
    return "which of its siblings is accepted is up to which of the best couplings it has";
  if (rule == "optimal_transport" && shape_->kind == Kind::markov)
    return "which token is accepted is up to which of the best couplings it has, and contexts go by the token";
  if (rule == "top_k_match" && gap) return "the tree leaves out ranks";
  const bool draws = drafter_->siblings == draft::Siblings::without_replacement;
  for (const Level& level : levels_) {
    double looked_at = static_cast<double>(shape_->contexts) * cell_->vocab;
    for (int k = 0; k < level.children; ++k) looked_at *= std::max(cell_->vocab - k, 1);
    if (draws && looked_at > kMostDraws)
      return fmt::format("vocabulary {}, {} siblings without replacement: too many draws", cell_->vocab, level.children);
  }
  return "";
}

std::string BlockFacts::why_not_enumerated() const {
  const std::string& rule = cell_->verifier;
  const bool looks = cell_->policy != nullptr && cell_->policy->looks();
  const bool hidden = shape_->contexts > 1 && (shape_->kind == Kind::iid_pool || shape_->kind == Kind::regimes);
  const int contexts = shape_->contexts;
  const int length = cell_->chain.draft_length;
  const double vocab = cell_->vocab;
  if (looks) return "block verification of chains that end by what was drafted is not worked out";
  if (shape_->kind == Kind::requests && cell_->policy != nullptr && !cell_->policy->foresees())
    return "requests whose rounds a policy cuts to length are not worked out";
  if (vocab * contexts * plan_of(*cell_).depths() > kMostTokens)
    return fmt::format("vocabulary {}, {} contexts: too many", vocab, contexts);
  if (drafter_->reads_text) {
    if (cell_->drafter_kind == "lookahead" && hidden)
      return "a window that looks at contexts that move by themselves is not worked out";
    return shape_->kind == Kind::requests ? "requests that read their text are not worked out" : "";
  }
  // Contexts that a round can start from, or, where they move by themselves and a round looks ahead, windows of them.
  const double paths = hidden && !drafter_->from_root ? std::pow(contexts, length) : contexts;
  if (hidden && !is_block() && paths * paths * contexts > kMostTokens)
    return fmt::format("{} contexts, {} deep: too many", contexts, length);
  if (is_block()) {
    const bool alike = shape_->kind != Kind::markov && shape_->kind != Kind::regimes;
    const double ratios = std::pow(vocab * (hidden ? contexts : 1), length);
    if (shape_->kind == Kind::by_depth || plan_of(*cell_).depths() > 1 || !alike)
      if (ratios * contexts > kMostRatios) return fmt::format("vocabulary {}, draft_length {}: too many ratios", vocab, length);
    return "";
  }
  if (rule == "traversal") {
    if (std::pow(vocab, tree_.size() - 1) * paths <= kMostTrees) return "";
    return fmt::format("vocabulary {}, {} nodes{}: too many trees", vocab, tree_.size() - 1,
                       contexts > 1 ? fmt::format(", {} contexts", contexts) : "");
  }
  double steps = paths * vocab * (drafter_->nodes + 1) * (hidden ? length + 2 : contexts);
  if (rule == "typical" && drafter_->siblings == draft::Siblings::without_replacement)
    for (const Level& level : levels_) steps = std::max(steps, paths * std::pow(vocab, level.children) * tree_.size());
  if (rule == "typical" && drafter_->from_root && hidden) steps = std::pow(contexts, length + 1) * drafter_->nodes;
  const bool own_guesses = !drafter_->from_root || hidden || contexts == 1 || shape_->kind == Kind::requests;
  if ((rule == "typical" && own_guesses) || cell_->drafter->tree() == nullptr || rule == "tree_point_mass" ||
      rule == "greedy_tree")
    return steps <= kMostSteps ? ""
                               : fmt::format("vocabulary {}, {} nodes, {} contexts: too many", vocab, drafter_->nodes, contexts);
  return fmt::format("verifier {} with guesses of another context is not worked out", rule);
}

std::vector<std::vector<double>> BlockFacts::accepted(int children, const verify::PositionLaws& laws) const {
  const std::string& rule = cell_->verifier;
  if (is_lossy_on_chains(rule)) {
    if (rule == "lenience") return {theory::judge_accepting(admits(*cell_, laws), laws.drafted, laws.target).accepted};
    return theory::first_accepted(admits(*cell_, laws), laws.drafted, children, sampling_of(drafter_->siblings));
  }
  if (rule == "kseq") return theory::judge_kseq(laws.target, laws.drafted, children).by_token;
  if (rule == "optimal_transport") {  // its siblings all lead to the same
    std::vector<std::vector<double>> by_rank(index_of(children), {0.0});
    by_rank[0][0] = theory::optimal_acceptance(laws.target, laws.drafted, children);
    return by_rank;
  }
  switch (drafter_->siblings) {
    case draft::Siblings::independent:
      if (rule == "token" || rule == "multi_draft_recursive")
        return theory::judge_recursive(laws.target, laws.drafted, children).by_token;
      return theory::judge_matching(laws.target, laws.drafted, children).by_token;
    case draft::Siblings::without_replacement:
      return theory::judge_without_replacement(laws.target, laws.drafted, children).by_token;
    case draft::Siblings::point_mass:
      break;
  }
  return theory::judge_top_ranked(laws.target, laws.drafted, children).by_token;
}

void BlockFacts::spread(int context, const std::vector<double>& mass, theory::StateMatrix& moves) const {
  const std::size_t states = index_of(states_);
  const std::size_t row = by_context_ ? index_of(context) * states : 0;
  if (shape_->kind == Kind::markov) {
    const families::ContextProcess& process = *cell_->contexts->process;
    for (std::size_t x = 0; x < mass.size(); ++x)
      moves[row + process.next(static_cast<std::uint32_t>(context), static_cast<Token>(x))] += mass[x];
    return;
  }
  const double total = std::accumulate(mass.begin(), mass.end(), 0.0);
  if (shape_->kind == Kind::regimes) {
    for (std::size_t next = 0; next < states; ++next) moves[row + next] += total * shape_->transition[row + next];
  } else {
    moves[row + (by_context_ ? index_of(context) : 0)] += by_context_ ? total : total / shape_->contexts;
  }
}

std::vector<double> BlockFacts::add(int context, int depth, const verify::PositionLaws& laws) {
  if (!missing_.empty()) return {};
  const std::vector<double> target(laws.target.begin(), laws.target.end());
  if (!walks_) {
    if (depth == 0) targets_.push_back(target);
    drafts_.resize(std::max(drafts_.size(), index_of(depth) + 1));
    drafts_[index_of(depth)].emplace_back(laws.drafted.begin(), laws.drafted.end());
    return {};
  }
  if (depth == 0) spread(context, target, target_);
  const draft::LengthPolicy* policy = cell_->policy != nullptr && cell_->policy->looks() ? cell_->policy.get() : nullptr;
  double entropy = 0.0;
  for (const double share : laws.drafted) entropy -= share > 0.0 ? share * std::log(share) : 0.0;
  int known = -1;  // children that by_token is of
  std::vector<std::vector<double>> by_token;
  for (Level& level : levels_) {
    if (level.laws != depth) continue;
    if (std::exchange(known, level.children) != level.children) by_token = accepted(level.children, laws);
    for (std::size_t rank = 0; rank < by_token.size(); ++rank) {
      spread(context, by_token[rank], level.moves.accept[rank]);
      if (policy == nullptr) continue;
      std::vector<double> stopped = by_token[rank];
      for (std::size_t x = 0; x < stopped.size(); ++x)
        if (cell_->policy_kind == "confidence" ? laws.drafted[x] >= cell_->policy_arguments.number("least")
                                               : entropy <= cell_->policy_arguments.number("most"))
          stopped[x] = 0.0;
      spread(context, stopped, level.moves.stop[rank]);
    }
    if (!cell_->lossless) spread(context, final_law(*cell_, laws), level.moves.final_token);
  }
  const bool chain = tree_.size() == tree_.depth() + 1 && drafter_->siblings == draft::Siblings::independent;
  if (cell_->lossless || !chain || by_context_) return {};
  return theory::emitted_law(theory::judge_accepting(admits(*cell_, laws), laws.drafted, final_law(*cell_, laws)));
}

theory::RoundKernel BlockFacts::walked(int draft_length) const {
  std::vector<theory::NodeMoves> by_depth;
  for (const Level& level : levels_) by_depth.push_back(level.moves);
  const bool whole = draft_length == tree_.depth() && cell_->verifier != "optimal_transport";
  return theory::walked_kernel(whole ? tree_ : theory::chain_tree(draft_length), states_, by_depth, target_);
}

// Of all contexts, or, with `context` >= 0, of that one as if there were no other.
theory::Automaton BlockFacts::automaton(int context) const {
  const std::size_t first = index_of(std::max(context, 0));
  const std::size_t count = context < 0 ? targets_.size() : 1;
  theory::Automaton laws;
  laws.vocab = cell_->vocab;
  laws.states = static_cast<int>(count);
  laws.target.assign(targets_.begin() + static_cast<std::ptrdiff_t>(first),
                     targets_.begin() + static_cast<std::ptrdiff_t>(first + count));
  const std::size_t deep = drafts_.size() == 1 ? 1 : std::max(index_of(cell_->chain.draft_length), drafts_.size());
  for (std::size_t d = 0; d < deep; ++d) {
    const auto& of_depth = drafts_[std::min(d, drafts_.size() - 1)];
    laws.draft.emplace_back(of_depth.begin() + static_cast<std::ptrdiff_t>(first),
                            of_depth.begin() + static_cast<std::ptrdiff_t>(first + count));
  }
  const families::ContextProcess& process = *cell_->contexts->process;
  for (std::size_t c = 0; c < count; ++c)
    for (int x = 0; x < cell_->vocab; ++x)
      laws.next.push_back(shape_->kind == Kind::markov
                              ? static_cast<int>(process.next(static_cast<std::uint32_t>(c), static_cast<Token>(x)))
                              : static_cast<int>(c));
  return laws;
}

// Of contexts that move whatever the tokens are; empty: they do not.
theory::StateMatrix BlockFacts::transition() const {
  if (shape_->kind == Kind::regimes) return shape_->transition;
  const auto contexts = index_of(shape_->contexts);
  if (shape_->kind == Kind::iid_pool && contexts > 1)
    return theory::StateMatrix(contexts * contexts, 1.0 / static_cast<double>(contexts));
  return {};
}

theory::RoundKernel BlockFacts::block_kernel(int draft_length, int context, double& error) const {
  const theory::Automaton laws = automaton(context);
  const theory::StateMatrix moves = context < 0 ? transition() : theory::StateMatrix();
  const bool alike = context >= 0 || (shape_->kind != Kind::markov && shape_->kind != Kind::regimes);
  if (alike && laws.draft.size() == 1) {
    std::vector<theory::WeightedPair> pool;
    for (std::size_t c = 0; c < laws.target.size(); ++c) pool.push_back({1.0, laws.target[c], laws.draft[0][c]});
    if (std::pow(static_cast<double>(cell_->vocab) * laws.states, draft_length) <= kMostRatios)
      return kernel_of(theory::block_law(theory::block_context(pool), draft_length));
    theory::RoundLaw law;
    double reached = 1.0;
    double width = 0.0;
    for (const theory::Bracket& tail : theory::block_tails(pool, draft_length)) {
      const double middle = 0.5 * (tail.low + tail.high);
      law.accepted.push_back(reached - middle);
      width += 0.5 * (tail.high - tail.low);
      reached = middle;
    }
    law.accepted.push_back(reached);
    error = std::max(error, width);
    return kernel_of(law);
  }
  theory::BlockContext chain;
  chain.states = laws.states;
  for (int d = 0; d <= draft_length; ++d) {
    auto& by_state = chain.branches.emplace_back();
    const auto& drafts = laws.draft[std::min(index_of(d), laws.draft.size() - 1)];
    for (std::size_t s = 0; s < laws.target.size(); ++s) {
      auto& branches = by_state.emplace_back();
      for (std::size_t x = 0; x < index_of(laws.vocab); ++x) {
        if (moves.empty()) {
          branches.push_back({laws.target[s][x], drafts[s][x], laws.next[s * index_of(laws.vocab) + x]});
          continue;
        }
        for (int next = 0; next < laws.states; ++next) {
          const double chance = moves[s * index_of(laws.states) + index_of(next)];
          if (chance > 0.0) branches.push_back({chance * laws.target[s][x], chance * drafts[s][x], next});
        }
      }
    }
  }
  theory::RoundKernel kernel(laws.states, draft_length);
  kernel.moves = theory::block_kernel(chain, draft_length);
  return kernel;
}

// A round of `own` laws, whose states go by the tokens.
theory::RoundKernel BlockFacts::tree_kernel(const theory::Automaton& own) const {
  const int draft_length = cell_->chain.draft_length;
  const theory::TreeSampling sampling = sampling_of(drafter_->siblings);
  if (cell_->drafter->tree() == nullptr)
    return theory::chosen_kernel(own, {}, draft_length, [&](int state) {
      return theory::dynamic_tree(own, state, draft_length, static_cast<int>(cell_->drafter_arguments.integer("width")),
                                  static_cast<int>(cell_->drafter_arguments.integer("nodes")));
    });
  if (cell_->verifier == "typical")
    return theory::typical_kernel(own, tree_, sampling, cell_->verifier_arguments.number("epsilon"),
                                  cell_->verifier_arguments.number("delta"));
  theory::RoundKernel kernel(own.states, draft_length);
  for (int s = 0; s < own.states; ++s)
    for (const theory::RoundOutcome& outcome : theory::tree_outcomes(own, {theory::TreeRule::traversal, sampling, tree_}, s))
      kernel.at(static_cast<int>(outcome.emitted.size()) - 1, s, outcome.end_state) += outcome.probability;
  return kernel;
}

// Of contexts that go by tokens or not at all, or where a round looks no further than it accepts.
theory::RoundKernel BlockFacts::enumerated(int draft_length, int context, double& error) const {
  if (is_block()) return block_kernel(draft_length, context, error);
  const theory::Automaton laws = automaton(context);
  if (cell_->verifier == "typical" && drafter_->from_root && context < 0 && !transition().empty())
    return theory::typical_guess_kernel(laws, transition(), tree_, cell_->verifier_arguments.number("epsilon"),
                                        cell_->verifier_arguments.number("delta"));
  if (!drafter_->from_root || cell_->verifier == "typical") return tree_kernel(laws);
  return theory::chosen_kernel(laws, context < 0 ? transition() : theory::StateMatrix(), draft_length,
                               [&](int state) { return theory::guessed_tree(tree_, laws, state); });
}

std::optional<theory::LengthRule> BlockFacts::length_rule() const {
  const config::Arguments& own = cell_->policy_arguments;
  if (cell_->policy_kind == "additive")
    return theory::additive_rule(static_cast<int>(own.integer("first")), static_cast<int>(own.integer("up")),
                                 static_cast<int>(own.integer("down")), cell_->chain.draft_length);
  if (cell_->policy_kind == "ema_tiers") {
    std::vector<int> tiers;
    for (const double tier : own.numbers("tiers")) tiers.push_back(static_cast<int>(tier));
    return theory::ema_tiers_rule(std::move(tiers), own.number("weight"), own.number("up"), own.number("down"));
  }
  if (cell_->policy_kind == "goodput")
    return theory::goodput_rule(own.number("first_alpha"), own.number("weight"), cell_->policy_times);
  return std::nullopt;  // the oracle drafts what is accepted: its rounds go as without a policy
}

BlockTheory BlockFacts::answer() const {
  BlockTheory result;
  result.missing = missing_;
  if (!missing_.empty()) return result;
  const int longest = cell_->chain.draft_length;
  std::vector<double> start = shape_->start;
  if (start.empty()) {
    start.assign(index_of(shape_->contexts), 0.0);
    start[0] = 1.0;
  }
  if (shape_->kind == Kind::iid_pool) start.assign(start.size(), 1.0 / static_cast<double>(start.size()));
  if (drafter_->reads_text) {
    const config::Arguments& own = cell_->drafter_arguments;
    const std::span<const Token> prompt = cell_->contexts->process->prompt();
    const std::vector<int> text(prompt.begin(), prompt.end());
    if (cell_->drafter_kind == "lookahead") {
      const theory::Lookahead lookahead = {static_cast<int>(own.integer("window")), static_cast<int>(own.integer("ngram")),
                                           static_cast<int>(own.integer("guesses")), own.boolean("pool_from_text")};
      result.sequence = [laws = automaton(-1), start, text, lookahead](int rounds) {
        return theory::lookahead_moments(laws, start, text, lookahead, rounds);
      };
      return result;
    }
    const theory::TextDraft draft =
        cell_->drafter_kind == "suffix"
            ? theory::suffix_draft(longest, static_cast<int>(own.integer("max_match")), own.number("factor"), own.number("least"))
            : theory::prompt_lookup_draft(longest, static_cast<int>(own.integer("max_ngram")),
                                          static_cast<int>(own.integer("min_ngram")));
    result.sequence = [laws = automaton(-1), moves = transition(), start, draft, text](int rounds) {
      return theory::text_moments(laws, moves, start, text, draft, rounds);
    };
    return result;
  }
  if (!walks_ && !is_block() && !drafter_->from_root && !transition().empty()) {
    theory::WindowRounds rounds = theory::window_rounds(automaton(-1), transition(), start, longest,
                                                        [&](const theory::Automaton& path) { return tree_kernel(path).law(0); });
    if (rounds.by_state) result.laws = std::move(*rounds.by_state);
    if (shape_->kind == Kind::iid_pool && rounds.by_state) {
      result.laws = {mean_of(result.laws)};
    } else {
      result.sequence = [kernels = std::vector{std::move(rounds.kernel)}, start = std::move(rounds.start)](int count) {
        return theory::run_moments(kernels, nullptr, start, count);
      };
    }
    return result;
  }
  const std::optional<theory::LengthRule> lengths = length_rule();
  std::vector<theory::RoundKernel> kernels;
  for (int length = lengths ? 0 : longest; length <= longest; ++length) {
    if (shape_->kind == Kind::requests && !walks_) {
      for (int context = 0; context < shape_->contexts; ++context)
        result.laws.push_back(enumerated(length, context, result.mean_error).law(0));
      return result;
    }
    kernels.push_back(walks_ ? walked(length) : enumerated(length, -1, result.mean_error));
    theory::RoundKernel& kernel = kernels.back();
    if (!by_context_ && kernel.states > 1) {  // an iid pool's rounds are alike
      std::vector<theory::RoundLaw> laws;
      for (int s = 0; s < kernel.states; ++s) laws.push_back(kernel.law(s));
      kernel = kernel_of(mean_of(laws));
    }
  }
  if (!by_context_) start = {1.0};
  if (!lengths)
    for (int s = 0; s < states_; ++s) result.laws.push_back(kernels[0].law(s));
  if (lengths || shape_->kind == Kind::markov || shape_->kind == Kind::regimes)
    result.sequence = [kernels = std::move(kernels), lengths, start](int rounds) {
      return theory::run_moments(kernels, lengths ? &*lengths : nullptr, start, rounds);
    };
  return result;
}

}  // namespace specsim::experiment
