#include "sim/rounds/theory/round_chain.h"

#include "sim/foundation/base/check.h"
#include "sim/foundation/base/index.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <utility>

namespace specsim::theory {
namespace {

// out += left * right.
void add_product(const StateMatrix& left, const StateMatrix& right, std::size_t states, StateMatrix& out) {
  for (std::size_t s = 0; s < states; ++s) {
    for (std::size_t mid = 0; mid < states; ++mid) {
      const double weight = left[s * states + mid];
      if (weight == 0.0) continue;
      for (std::size_t next = 0; next < states; ++next) out[s * states + next] += weight * right[mid * states + next];
    }
  }
}

// What a node does when none of these ranks is accepted.
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
      // Differences of equal masses may come out below 0 by rounding.
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
  std::vector<std::vector<int>> children(index_of(tree.size()));
  for (int node = 1; node < tree.size(); ++node) children[index_of(tree.parent[index_of(node)])].push_back(node);
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

WindowRounds window_rounds(const Automaton& distributions, const StateMatrix& transition, std::span<const double> start,
                           int draft_length, const RoundOfPath& round) {
  SPECSIM_CHECK(draft_length >= 1, "draft_length = {}", draft_length);
  const int states = distributions.states;
  const std::size_t length = index_of(draft_length);
  int windows = 1;
  for (int i = 0; i < draft_length; ++i) windows *= states;
  // The first position is the lowest digit in base `states`.
  const auto state_at = [&](int window, int position) {
    for (int i = 0; i < position; ++i) window /= states;
    return window % states;
  };
  // Fills positions from `position` on, states moving by `transition`; f(window, probability).
  const std::function<void(std::size_t, int, int, int, double, const std::function<void(int, double)>&)> fill =
      [&](std::size_t position, int stride, int window, int last, double probability, const std::function<void(int, double)>& f) {
        if (position == length) {
          f(window, probability);
          return;
        }
        for (int s = 0; s < states; ++s) {
          const double chance = transition[index_of(last * states + s)];
          if (chance > 0.0) fill(position + 1, stride * states, window + s * stride, s, probability * chance, f);
        }
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
  for (int window = 0; window < windows; ++window) {
    for (int p = 0; p < draft_length; ++p) {
      const std::size_t s = index_of(state_at(window, p));
      path.target[index_of(p)] = distributions.target[s];
      for (std::size_t d = 0; d < distributions.draft.size(); ++d) path.draft[d][index_of(p)] = distributions.draft[d][s];
    }
    distribution.push_back(round(path));
    distribution.back().accepted.resize(length + 1, 0.0);
  }

  WindowRounds result{RoundKernel(windows, draft_length), std::vector<double>(index_of(windows), 0.0), std::nullopt};
  for (int s = 0; s < states; ++s)
    fill(1, states, s, s, start[index_of(s)],
         [&](int window, double probability) { result.start[index_of(window)] += probability; });
  bool decided = true;  // P(accepted = j) goes by the states of the first j + 1 positions alone
  for (int window = 0; window < windows; ++window) {
    const int last = state_at(window, draft_length - 1);
    int seen = 1;  // windows that agree with this one in the first j + 1 positions are equal modulo this
    for (int j = 0; j <= draft_length; ++j) {
      if (j < draft_length) seen *= states;
      const double share = distribution[index_of(window)].accepted[index_of(j)];
      decided = decided && std::abs(share - distribution[index_of(window % seen)].accepted[index_of(j)]) < 1e-12;
      const auto to = [&](int next, double probability) { result.kernel.at(j, window, next) += share * probability; };
      const int kept = draft_length - 1 - j;  // positions that were in this window
      int rest = window;
      for (int i = 0; i <= j && i < draft_length; ++i) rest /= states;
      int stride = 1;
      for (int i = 0; i < kept; ++i) stride *= states;
      if (kept >= 0) {
        fill(index_of(kept), stride, rest, last, 1.0, to);
      } else {  // the position behind the window is gone too
        for (int s = 0; s < states; ++s) fill(0, 1, 0, s, transition[index_of(last * states + s)], to);
      }
    }
  }
  if (!decided) return result;
  result.by_state.emplace();
  for (int s = 0; s < states; ++s) {
    RoundDistribution& own = result.by_state->emplace_back();
    own.accepted.assign(length + 1, 0.0);
    fill(1, states, s, s, 1.0, [&](int window, double probability) {
      for (std::size_t j = 0; j <= length; ++j) own.accepted[j] += probability * distribution[index_of(window)].accepted[j];
    });
  }
  return result;
}

std::optional<RunMoments> run_moments(const std::vector<RoundKernel>& kernels, const LengthRule* policy,
                                      std::span<const double> start, int rounds) {
  constexpr std::size_t kMost = std::size_t{1} << 16U;
  // The sequences that share one memory, by state: their probability, and, weighted with it, the tokens so far and their square.
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
