#include "sim/experiments/judge/enumeration.h"

#include "sim/experiments/judge/method.h"
#include "sim/foundation/base/index.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace specsim::judge {

Enumeration::Enumeration(BlockRounds rounds) : rounds_(std::move(rounds)) {}

std::vector<double> Enumeration::see(int /*context*/, int depth, const verify::PositionDistributions& distributions) {
  if (depth == 0) targets_.emplace_back(distributions.target.begin(), distributions.target.end());
  drafts_.resize(std::max(drafts_.size(), index_of(depth) + 1));
  drafts_[index_of(depth)].emplace_back(distributions.drafted.begin(), distributions.drafted.end());
  return {};
}

theory::Automaton Enumeration::automaton(int context) const {
  const std::size_t first = index_of(std::max(context, 0));
  const std::size_t count = context < 0 ? targets_.size() : 1;
  theory::Automaton distributions;
  distributions.vocab = rounds_.cell->vocab;
  distributions.states = static_cast<int>(count);
  distributions.target.assign(targets_.begin() + static_cast<std::ptrdiff_t>(first),
                              targets_.begin() + static_cast<std::ptrdiff_t>(first + count));
  const std::size_t deep = drafts_.size() == 1 ? 1 : std::max(index_of(draft_length(*rounds_.cell)), drafts_.size());
  for (std::size_t d = 0; d < deep; ++d) {
    const auto& of_depth = drafts_[std::min(d, drafts_.size() - 1)];
    distributions.draft.emplace_back(of_depth.begin() + static_cast<std::ptrdiff_t>(first),
                                     of_depth.begin() + static_cast<std::ptrdiff_t>(first + count));
  }
  for (int c = 0; c < distributions.states; ++c)
    for (int x = 0; x < distributions.vocab; ++x)
      distributions.next.push_back(context < 0 && rounds_.next_context_known() ? rounds_.next(c, x) : c);
  return distributions;
}

theory::StateMatrix Enumeration::transition() const {
  if (rounds_.shape->kind == families::ContextShape::Kind::regimes) return rounds_.shape->transition;
  if (!rounds_.hidden()) return {};
  const auto contexts = index_of(rounds_.shape->contexts);
  return theory::StateMatrix(contexts * contexts, 1.0 / static_cast<double>(contexts));
}

theory::RoundKernel TreeEnumeration::round_kernel(int /*draft_length*/, int context, double& /*error*/) const {
  return tree_kernel(automaton(context));
}

RoundTheory TreeEnumeration::work_out() const {
  RoundTheory result;
  const int longest = draft_length(*rounds().cell);
  if (looks_ahead() && !transition().empty()) {
    theory::WindowRounds windows =
        theory::window_rounds(automaton(-1), transition(), rounds().start(), longest,
                              [&](const theory::Automaton& path) { return tree_kernel(path).distribution(0); });
    if (windows.by_state) result.distributions = std::move(*windows.by_state);
    if (rounds().shape->kind == families::ContextShape::Kind::iid_pool && windows.by_state) {
      result.distributions = {mean_of(result.distributions)};
    } else {
      result.sequence = [kernels = std::vector{std::move(windows.kernel)}, start = std::move(windows.start)](int count) {
        return theory::run_moments(kernels, nullptr, start, count);
      };
    }
    return result;
  }
  if (rounds().shape->kind == families::ContextShape::Kind::requests) {
    for (int context = 0; context < rounds().shape->contexts; ++context)
      result.distributions.push_back(round_kernel(longest, context, result.mean_error).distribution(0));
    return result;
  }
  double error = 0.0;
  result = rounds().theory_of([&](int draft_length) { return round_kernel(draft_length, -1, error); });
  result.mean_error = error;
  return result;
}

std::string why_not_kept(const BlockRounds& rounds) {
  if (std::string why = rounds.why_not(); !why.empty()) return why;
  if (rounds.shape->contexts == 0) return "theory covers fresh distributions only node by node, not jointly";
  if (rounds.lengths != nullptr && (!rounds.is_chain() || rounds.drafter->from_root))
    return "theory does not cover trees and guesses that a policy shortens under this verifier";
  if (static_cast<double>(rounds.cell->vocab) * rounds.shape->contexts * spec::plan_of(*rounds.cell).depths() > kMostTokens)
    return fmt::format("vocabulary {}, {} contexts: too many", rounds.cell->vocab, rounds.shape->contexts);
  return "";
}

double paths_of(const BlockRounds& rounds) {
  const double contexts = rounds.shape->contexts;
  return rounds.hidden() && !rounds.drafter->from_root ? std::pow(contexts, draft_length(*rounds.cell)) : contexts;
}

std::string why_not_windows(const BlockRounds& rounds) {
  const double paths = paths_of(rounds);
  return rounds.hidden() && paths * paths * rounds.shape->contexts > kMostTokens
             ? fmt::format("{} contexts, {} deep: too many", rounds.shape->contexts, draft_length(*rounds.cell))
             : "";
}

double steps_of(const BlockRounds& rounds) {
  return paths_of(rounds) * rounds.cell->vocab * (rounds.drafter->nodes + 1) *
         (rounds.hidden() ? draft_length(*rounds.cell) + 2 : rounds.shape->contexts);
}

std::string too_many_steps(const BlockRounds& rounds, double steps) {
  return steps <= kMostSteps ? ""
                             : fmt::format("vocabulary {}, {} nodes, {} contexts: too many", rounds.cell->vocab,
                                           rounds.drafter->nodes, rounds.shape->contexts);
}

}  // namespace specsim::judge
