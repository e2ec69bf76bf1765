// All other rules: every tree, text or path of contexts there can be, out of all distributions.
#include "sim/base/index.h"
#include "sim/judge/block_rounds.h"
#include "sim/theory/block.h"
#include "sim/theory/chosen_trees.h"
#include "sim/theory/lossy.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace specsim::judge {

namespace {

using Kind = families::ContextShape::Kind;

constexpr double kMostRatios = 0x1p20;  // of target to draft along a path, to follow them all; beyond, they are put into cells
constexpr double kMostTokens = 0x1p24;  // of all pairs of distributions that are kept
constexpr double kMostTrees = 0x1p20;   // drafted, over all starts
constexpr double kMostSteps = 0x1p28;   // of a walk

class EnumeratedFacts final : public BlockFacts {
 public:
  explicit EnumeratedFacts(BlockRounds rounds) : rounds_(std::move(rounds)) {}
  std::vector<double> add(int context, int depth, const verify::PositionDistributions& distributions) override;
  [[nodiscard]] BlockTheory answer() const override;

 private:
  [[nodiscard]] theory::Automaton automaton(int context) const;
  [[nodiscard]] theory::StateMatrix transition() const;
  [[nodiscard]] theory::RoundKernel block_kernel(int draft_length, int context, double& error) const;
  [[nodiscard]] theory::RoundKernel tree_kernel(const theory::Automaton& own) const;
  [[nodiscard]] theory::RoundKernel enumerated(int draft_length, int context, double& error) const;

  BlockRounds rounds_;
  std::vector<std::vector<double>> targets_;              // [context]
  std::vector<std::vector<std::vector<double>>> drafts_;  // [depth][context]
};

std::vector<double> EnumeratedFacts::add(int /*context*/, int depth, const verify::PositionDistributions& distributions) {
  if (depth == 0) targets_.emplace_back(distributions.target.begin(), distributions.target.end());
  drafts_.resize(std::max(drafts_.size(), index_of(depth) + 1));
  drafts_[index_of(depth)].emplace_back(distributions.drafted.begin(), distributions.drafted.end());
  return {};
}

// Of all contexts, or, with `context` >= 0, of that one as if there were no other.
theory::Automaton EnumeratedFacts::automaton(int context) const {
  const std::size_t first = index_of(std::max(context, 0));
  const std::size_t count = context < 0 ? targets_.size() : 1;
  theory::Automaton distributions;
  distributions.vocab = rounds_.cell->vocab;
  distributions.states = static_cast<int>(count);
  distributions.target.assign(targets_.begin() + static_cast<std::ptrdiff_t>(first),
                              targets_.begin() + static_cast<std::ptrdiff_t>(first + count));
  const std::size_t deep = drafts_.size() == 1 ? 1 : std::max(index_of(rounds_.cell->draft_length()), drafts_.size());
  for (std::size_t d = 0; d < deep; ++d) {
    const auto& of_depth = drafts_[std::min(d, drafts_.size() - 1)];
    distributions.draft.emplace_back(of_depth.begin() + static_cast<std::ptrdiff_t>(first),
                                     of_depth.begin() + static_cast<std::ptrdiff_t>(first + count));
  }
  for (int c = 0; c < distributions.states; ++c)
    for (int x = 0; x < distributions.vocab; ++x)
      distributions.next.push_back(context < 0 && rounds_.sure_next() ? rounds_.next(c, x) : c);
  return distributions;
}

// Of contexts that move whatever the tokens are; empty: they do not.
theory::StateMatrix EnumeratedFacts::transition() const {
  if (rounds_.shape->kind == Kind::regimes) return rounds_.shape->transition;
  const auto contexts = index_of(rounds_.shape->contexts);
  if (rounds_.shape->kind == Kind::iid_pool && contexts > 1)
    return theory::StateMatrix(contexts * contexts, 1.0 / static_cast<double>(contexts));
  return {};
}

theory::RoundKernel EnumeratedFacts::block_kernel(int draft_length, int context, double& error) const {
  const theory::Automaton distributions = automaton(context);
  const bool alike = context >= 0 || (!rounds_.sure_next() && rounds_.shape->kind != Kind::regimes);
  if (alike && distributions.draft.size() == 1) {
    std::vector<theory::WeightedPair> pool;
    for (std::size_t c = 0; c < distributions.target.size(); ++c)
      pool.push_back({1.0, distributions.target[c], distributions.draft[0][c]});
    if (std::pow(static_cast<double>(rounds_.cell->vocab) * distributions.states, draft_length) <= kMostRatios)
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
  kernel.moves = theory::block_kernel(chain, draft_length);
  return kernel;
}

// A round of `own` distributions, whose states go by the tokens.
theory::RoundKernel EnumeratedFacts::tree_kernel(const theory::Automaton& own) const {
  const int draft_length = rounds_.cell->draft_length();
  const theory::TreeSampling sampling = sampling_of(rounds_.drafter->siblings);
  if (rounds_.cell->block()->drafter->tree() == nullptr)
    return theory::chosen_kernel(own, {}, draft_length, [&](int state) {
      return theory::dynamic_tree(own, state, draft_length,
                                  static_cast<int>(rounds_.cell->block()->drafter.arguments.integer("width")),
                                  static_cast<int>(rounds_.cell->block()->drafter.arguments.integer("nodes")));
    });
  if (rounds_.cell->verifier().info.name == "typical")
    return theory::typical_kernel(own, rounds_.tree, sampling, rounds_.cell->verifier_arguments().number("epsilon"),
                                  rounds_.cell->verifier_arguments().number("delta"));
  theory::RoundKernel kernel(own.states, draft_length);
  for (int s = 0; s < own.states; ++s)
    for (const theory::RoundOutcome& outcome :
         theory::tree_outcomes(own, {theory::TreeRule::traversal, sampling, rounds_.tree}, s))
      kernel.at(static_cast<int>(outcome.emitted.size()) - 1, s, outcome.end_state) += outcome.probability;
  return kernel;
}

// Of contexts that go by tokens or not at all, or where a round looks no further than it accepts.
theory::RoundKernel EnumeratedFacts::enumerated(int draft_length, int context, double& error) const {
  if (rounds_.is_block()) return block_kernel(draft_length, context, error);
  const theory::Automaton distributions = automaton(context);
  if (rounds_.cell->verifier().info.name == "typical" && rounds_.drafter->from_root && context < 0 && !transition().empty())
    return theory::typical_guess_kernel(distributions, transition(), rounds_.tree,
                                        rounds_.cell->verifier_arguments().number("epsilon"),
                                        rounds_.cell->verifier_arguments().number("delta"));
  if (!rounds_.drafter->from_root || rounds_.cell->verifier().info.name == "typical") return tree_kernel(distributions);
  return theory::chosen_kernel(distributions, context < 0 ? transition() : theory::StateMatrix(), draft_length,
                               [&](int state) { return theory::guessed_tree(rounds_.tree, distributions, state); });
}

BlockTheory EnumeratedFacts::answer() const {
  BlockTheory result;
  const int longest = rounds_.cell->draft_length();
  if (rounds_.drafter->reads_text) {
    const config::Arguments& own = rounds_.cell->block()->drafter.arguments;
    const std::span<const Token> prompt = rounds_.cell->contexts->process->prompt();
    const std::vector<int> text(prompt.begin(), prompt.end());
    if (rounds_.cell->block()->drafter.name() == "lookahead") {
      const theory::Lookahead lookahead = {static_cast<int>(own.integer("window")), static_cast<int>(own.integer("ngram")),
                                           static_cast<int>(own.integer("guesses")), own.boolean("pool_from_text")};
      result.sequence = [distributions = automaton(-1), start = rounds_.start(), text, lookahead](int rounds) {
        return theory::lookahead_moments(distributions, start, text, lookahead, rounds);
      };
      return result;
    }
    const theory::TextDraft draft =
        rounds_.cell->block()->drafter.name() == "suffix"
            ? theory::suffix_draft(longest, static_cast<int>(own.integer("max_match")), own.number("factor"), own.number("least"))
            : theory::prompt_lookup_draft(longest, static_cast<int>(own.integer("max_ngram")),
                                          static_cast<int>(own.integer("min_ngram")));
    result.sequence = [distributions = automaton(-1), moves = transition(), start = rounds_.start(), draft, text](int rounds) {
      return theory::text_moments(distributions, moves, start, text, draft, rounds);
    };
    return result;
  }
  if (!rounds_.is_block() && !rounds_.drafter->from_root && !transition().empty()) {
    theory::WindowRounds rounds =
        theory::window_rounds(automaton(-1), transition(), rounds_.start(), longest,
                              [&](const theory::Automaton& path) { return tree_kernel(path).distribution(0); });
    if (rounds.by_state) result.distributions = std::move(*rounds.by_state);
    if (rounds_.shape->kind == Kind::iid_pool && rounds.by_state) {
      result.distributions = {mean_of(result.distributions)};
    } else {
      result.sequence = [kernels = std::vector{std::move(rounds.kernel)}, start = std::move(rounds.start)](int count) {
        return theory::run_moments(kernels, nullptr, start, count);
      };
    }
    return result;
  }
  if (rounds_.shape->kind == Kind::requests) {
    for (int context = 0; context < rounds_.shape->contexts; ++context)
      result.distributions.push_back(enumerated(longest, context, result.mean_error).distribution(0));
    return result;
  }
  double error = 0.0;
  result = rounds_.theory_of([&](int draft_length) { return enumerated(draft_length, -1, error); });
  result.mean_error = error;
  return result;
}

}  // namespace

std::string why_not_enumerated(const BlockRounds& rounds) {
  const std::string& rule = rounds.cell->verifier().info.name;
  const bool looks = rounds.cell->policy() != nullptr && rounds.cell->policy()->part->looks();
  const bool hidden = rounds.shape->contexts > 1 && (rounds.shape->kind == Kind::iid_pool || rounds.shape->kind == Kind::regimes);
  const int contexts = rounds.shape->contexts;
  const int length = rounds.cell->draft_length();
  const double vocab = rounds.cell->vocab;
  if (looks) return "block verification of chains that end by what was drafted is not worked out";
  if (rounds.shape->kind == Kind::requests && rounds.cell->policy() != nullptr && !rounds.cell->policy()->part->foresees())
    return "requests whose rounds a policy cuts to length are not worked out";
  if (vocab * contexts * spec::plan_of(*rounds.cell).depths() > kMostTokens)
    return fmt::format("vocabulary {}, {} contexts: too many", vocab, contexts);
  if (rounds.drafter->reads_text) {
    if (rounds.cell->block()->drafter.name() == "lookahead" && hidden)
      return "a window that looks at contexts that move by themselves is not worked out";
    if (hidden && static_cast<double>(contexts) * contexts > kMostTokens) return fmt::format("{} contexts: too many", contexts);
    return rounds.shape->kind == Kind::requests ? "requests that read their text are not worked out" : "";
  }
  // Contexts that a round can start from, or, where they move by themselves and a round looks ahead, windows of them.
  const double paths = hidden && !rounds.drafter->from_root ? std::pow(contexts, length) : contexts;
  if (hidden && !rounds.is_block() && paths * paths * contexts > kMostTokens)
    return fmt::format("{} contexts, {} deep: too many", contexts, length);
  if (rounds.is_block()) {
    const bool alike = !rounds.sure_next() && rounds.shape->kind != Kind::regimes;
    const double ratios = std::pow(vocab * (hidden ? contexts : 1), length);
    if (rounds.shape->kind == Kind::by_depth || spec::plan_of(*rounds.cell).depths() > 1 || !alike)
      if (ratios * contexts > kMostRatios) return fmt::format("vocabulary {}, draft_length {}: too many ratios", vocab, length);
    return "";
  }
  if (rule == "traversal") {
    if (std::pow(vocab, rounds.tree.size() - 1) * paths <= kMostTrees) return "";
    return fmt::format("vocabulary {}, {} nodes{}: too many trees", vocab, rounds.tree.size() - 1,
                       contexts > 1 ? fmt::format(", {} contexts", contexts) : "");
  }
  double steps = paths * vocab * (rounds.drafter->nodes + 1) * (hidden ? length + 2 : contexts);
  if (rule == "typical" && rounds.drafter->siblings == tokens::Siblings::without_replacement)
    for (const int children : rounds.ranks) steps = std::max(steps, paths * std::pow(vocab, children) * rounds.tree.size());
  if (rule == "typical" && rounds.drafter->from_root && hidden) steps = std::pow(contexts, length + 1) * rounds.drafter->nodes;
  const bool own_guesses = !rounds.drafter->from_root || hidden || contexts == 1 || rounds.shape->kind == Kind::requests;
  if ((rule == "typical" && own_guesses) || rounds.cell->block()->drafter->tree() == nullptr || rule == "tree_point_mass" ||
      rule == "greedy_tree")
    return steps <= kMostSteps
               ? ""
               : fmt::format("vocabulary {}, {} nodes, {} contexts: too many", vocab, rounds.drafter->nodes, contexts);
  return fmt::format("verifier {} with guesses of another context is not worked out", rule);
}

std::unique_ptr<BlockFacts> enumerated_facts(BlockRounds rounds) { return std::make_unique<EnumeratedFacts>(std::move(rounds)); }

}  // namespace specsim::judge
