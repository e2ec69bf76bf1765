#include "sim/rounds/theory/round_chain.h"

#include "sim/foundation/base/check.h"
#include "sim/foundation/base/index.h"
#include "sim/rounds/theory/state_matrices.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <numeric>
#include <utility>

namespace specsim::theory {
namespace {

// The moves of a node if none of these ranks is accepted.
StateMatrix rejection(const NodeMoves& moves, const std::vector<int>& ranks, std::size_t states, const StateMatrix& target) {
  StateMatrix accepted(states * states, 0.0);
  for (const int rank : ranks) {
    if (index_of(rank) >= moves.accept.size()) continue;
    for (std::size_t i = 0; i < accepted.size(); ++i) accepted[i] += moves.accept[index_of(rank)][i];
  }
  StateMatrix rest(states * states);
  for (std::size_t s = 0; s < states; ++s) {
    double none = 1.0;
    for (std::size_t next = 0; next < states; ++next) none -= accepted[s * states + next];
    for (std::size_t next = 0; next < states; ++next) {
      const std::size_t i = s * states + next;
      // Differences of equal masses may be slightly negative from rounding.
      rest[i] = std::max(0.0, moves.final_token.empty() ? target[i] - accepted[i] : none * moves.final_token[i]);
    }
  }
  return rest;
}

}  // namespace

RoundKernel::RoundKernel(int of_states, int draft_length)
    : states(of_states), moves(index_of(draft_length) + 1, StateMatrix(index_of(of_states) * index_of(of_states), 0.0)) {}

RoundDistribution RoundKernel::distribution(int state) const {
  RoundDistribution distribution;
  for (const StateMatrix& matrix : moves) {
    double sum = 0.0;
    for (int next = 0; next < states; ++next) sum += matrix[index_of(state * states + next)];
    distribution.accepted.push_back(sum);
  }
  return distribution;
}

RoundKernel walked_kernel(const TreeShape& tree, int states, const std::vector<NodeMoves>& by_depth, const StateMatrix& target) {
  check_tree(tree);
  SPECSIM_CHECK(!by_depth.empty() || tree.size() == 1, "no moves for {} nodes", tree.size());
  const std::size_t size = index_of(states);
  const std::vector<int> depths = tree.depths();
  const std::vector<std::vector<int>> children = tree.children();
  RoundKernel kernel(states, tree.depth());
  std::vector<StateMatrix> reach(index_of(tree.size()));
  reach[0].assign(size * size, 0.0);
  for (std::size_t s = 0; s < size; ++s) reach[0][s * size + s] = 1.0;
  for (int node = 0; node < tree.size(); ++node) {
    StateMatrix here = std::move(reach[index_of(node)]);
    const std::size_t depth = index_of(depths[index_of(node)]);
    if (children[index_of(node)].empty()) {
      add_product(here, target, size, kernel.moves[depth]);
      continue;
    }
    const NodeMoves& moves = by_depth[std::min(depth, by_depth.size() - 1)];
    std::vector<int> ranks;
    for (const int child : children[index_of(node)]) ranks.push_back(tree.rank[index_of(child)]);
    add_product(here, rejection(moves, ranks, size, target), size, kernel.moves[depth]);
    for (const int child : children[index_of(node)]) {
      const std::size_t rank = index_of(tree.rank[index_of(child)]);
      StateMatrix& below = reach[index_of(child)];
      below.assign(size * size, 0.0);
      if (rank >= moves.accept.size()) continue;
      StateMatrix going = moves.accept[rank];
      if (rank < moves.stop.size()) {
        for (std::size_t i = 0; i < going.size(); ++i) going[i] -= moves.stop[rank][i];
        StateMatrix stopped(size * size, 0.0);
        add_product(here, moves.stop[rank], size, stopped);
        add_product(stopped, target, size, kernel.moves[depth + 1]);
      }
      add_product(here, going, size, below);
    }
  }
  return kernel;
}

namespace {

using Window = std::vector<int>;  // the states of the next positions

// Fills a window up to `length` positions; states move by `transition` from the last one on. Calls f(window, probability).
void fill_window(const StateMatrix& transition, int states, std::size_t length, Window& window, int last, double probability,
                 const std::function<void(const Window&, double)>& f) {
  if (window.size() == length) return f(window, probability);
  for (int s = 0; s < states; ++s) {
    const double chance = transition[index_of(last * states + s)];
    if (chance == 0.0) continue;
    window.push_back(s);
    fill_window(transition, states, length, window, s, probability * chance, f);
    window.pop_back();
  }
}

// All windows of `length` positions, in order.
std::vector<Window> all_windows(int states, int length) {
  std::vector<Window> windows = {{}};
  for (int position = 0; position < length; ++position) {
    std::vector<Window> longer;
    for (const Window& window : windows)
      for (int s = 0; s < states; ++s) {
        longer.push_back(window);
        longer.back().push_back(s);
      }
    windows = std::move(longer);
  }
  return windows;
}

}  // namespace

WindowRounds window_rounds(const Automaton& distributions, const StateMatrix& transition, std::span<const double> start,
                           int draft_length, const RoundOfPath& round) {
  SPECSIM_CHECK(draft_length >= 1, "draft_length = {}", draft_length);
  const int states = distributions.states;
  const std::size_t length = index_of(draft_length);
  const std::vector<Window> windows = all_windows(states, draft_length);
  const int count = static_cast<int>(windows.size());
  const auto place = [&](const Window& window) {  // among all windows
    return std::accumulate(window.begin(), window.end(), 0, [&](int sum, int state) { return sum * states + state; });
  };

  Automaton path;
  path.vocab = distributions.vocab;
  path.states = draft_length + 2;
  for (int p = 0; p < path.states; ++p)
    path.next.insert(path.next.end(), index_of(distributions.vocab), std::min(p + 1, path.states - 1));
  path.target.assign(index_of(path.states), distributions.target.front());
  path.draft.assign(distributions.draft.size(),
                    std::vector<std::vector<double>>(index_of(path.states), distributions.draft.front().front()));
  std::vector<RoundDistribution> distribution;  // [window]
  for (const Window& window : windows) {
    for (std::size_t p = 0; p < length; ++p) {
      const std::size_t s = index_of(window[p]);
      path.target[p] = distributions.target[s];
      for (std::size_t d = 0; d < distributions.draft.size(); ++d) path.draft[d][p] = distributions.draft[d][s];
    }
    distribution.push_back(round(path));
    distribution.back().accepted.resize(length + 1, 0.0);
  }

  WindowRounds result{RoundKernel(count, draft_length), std::vector<double>(windows.size(), 0.0), std::nullopt};
  std::vector<RoundDistribution> by_state;
  for (int s = 0; s < states; ++s) {
    RoundDistribution& own = by_state.emplace_back();
    own.accepted.assign(length + 1, 0.0);
    Window first = {s};
    fill_window(transition, states, length, first, s, 1.0, [&](const Window& window, double probability) {
      const std::size_t at = index_of(place(window));
      result.start[at] += start[index_of(s)] * probability;
      for (std::size_t j = 0; j <= length; ++j) own.accepted[j] += probability * distribution[at].accepted[j];
    });
  }
  bool decided = true;  // P(accepted = j) depends on the states of the first j + 1 positions alone
  for (int at = 0; at < count; ++at) {
    const Window& window = windows[index_of(at)];
    for (int j = 0; j <= draft_length; ++j) {
      const double share = distribution[index_of(at)].accepted[index_of(j)];
      Window alike(window.begin(), window.begin() + std::min(j + 1, draft_length));  // the first window with this beginning
      alike.resize(length, 0);
      decided = decided && std::abs(share - distribution[index_of(place(alike))].accepted[index_of(j)]) < 1e-12;
      const auto to = [&](const Window& next, double probability) {
        result.kernel.at(j, at, place(next)) += share * probability;
      };
      // The next round starts after j + 1 positions, which may be one more than the window has.
      Window next(window.begin() + std::min(j + 1, draft_length), window.end());
      if (j < draft_length) {
        fill_window(transition, states, length, next, window.back(), 1.0, to);
      } else {
        for (int s = 0; s < states; ++s)
          fill_window(transition, states, length, next, s, transition[index_of(window.back() * states + s)], to);
      }
    }
  }
  if (decided) result.by_state = std::move(by_state);
  return result;
}

std::optional<RunMoments> run_moments(const std::vector<RoundKernel>& kernels, const LengthRule* policy,
                                      std::span<const double> start, int rounds) {
  constexpr std::size_t kMost = std::size_t{1} << 16U;
  // The sequences that share one memory, by state: their probability, and the mean tokens so far and mean square, weighted with
  // it.
  struct Held {
    std::vector<double> probability;
    std::vector<double> tokens;
    std::vector<double> squares;
  };
  const std::size_t states = start.size();
  const Held nothing{std::vector<double>(states, 0.0), std::vector<double>(states, 0.0), std::vector<double>(states, 0.0)};
  std::map<LengthMemory, Held> now;
  now[policy != nullptr ? policy->first : LengthMemory()] = {{start.begin(), start.end()}, nothing.tokens, nothing.squares};
  RunMoments moments;
  for (int round = 0; round < rounds; ++round) {
    std::map<LengthMemory, Held> then;
    for (const auto& [memory, held] : now) {
      const RoundKernel& kernel = policy != nullptr ? kernels[index_of(memory.length)] : kernels.front();
      SPECSIM_CHECK(index_of(kernel.states) == states, "{} states, start has {}", kernel.states, states);
      for (int j = 0; j <= kernel.draft_length(); ++j) {
        const LengthMemory after = policy != nullptr ? policy->next(memory, kernel.draft_length(), j) : memory;
        Held& to = then.try_emplace(after, nothing).first->second;
        const double emitted = j + 1.0;
        double share = 0.0;
        for (std::size_t s = 0; s < states; ++s) {
          if (held.probability[s] == 0.0) continue;
          const double tokens = held.tokens[s] + emitted * held.probability[s];
          const double squares = held.squares[s] + emitted * (2.0 * held.tokens[s] + emitted * held.probability[s]);
          for (std::size_t next = 0; next < states; ++next) {
            const double move = kernel.moves[index_of(j)][s * states + next];
            if (move == 0.0) continue;
            to.probability[next] += held.probability[s] * move;
            to.tokens[next] += tokens * move;
            to.squares[next] += squares * move;
            share += held.probability[s] * move;
          }
        }
        moments.accepted += share * j;
        moments.tries += share * std::min(j + 1, kernel.draft_length());
      }
    }
    if (then.size() > kMost) return std::nullopt;
    now = std::move(then);
  }
  double squares = 0.0;
  for (const auto& [memory, held] : now) {
    for (std::size_t s = 0; s < states; ++s) {
      moments.emitted += held.tokens[s];
      squares += held.squares[s];
    }
  }
  moments.variance = std::max(0.0, squares - moments.emitted * moments.emitted);
  return moments;
}

}  // namespace specsim::theory
