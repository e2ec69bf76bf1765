#include "sim/theory/chosen_trees.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <numeric>
#include <utility>

#include "sim/base/check.h"
#include "sim/base/index.h"

namespace specsim::theory {
namespace {

const std::vector<double>& draft_at(const Automaton& laws, int depth, int state) {
  return laws.draft[std::min(index_of(depth), laws.draft.size() - 1)][index_of(state)];
}

// The law's tokens, the likeliest first, the lowest id first among equals; at most `most` of them.
std::vector<int> likeliest(const std::vector<double>& law, std::size_t most) {
  std::vector<int> order(law.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return law[index_of(a)] > law[index_of(b)]; });
  order.resize(std::min(order.size(), most));
  return order;
}

// Where the states of a law `row` go with the target's token.
std::vector<double> moved(const Automaton& laws, const StateMatrix& transition, const std::vector<double>& row, int token) {
  std::vector<double> next(row.size(), 0.0);
  for (std::size_t s = 0; s < row.size(); ++s) {
    const double mass = row[s] == 0.0 ? 0.0 : row[s] * laws.target[s][index_of(token)];
    if (mass == 0.0) continue;
    if (transition.empty()) {
      next[index_of(laws.next[s * index_of(laws.vocab) + index_of(token)])] += mass;
    } else {
      for (std::size_t to = 0; to < row.size(); ++to) next[to] += mass * transition[s * row.size() + to];
    }
  }
  return next;
}

// ends(node, token, states): the round's law over its last accepted node, its final token, and the state after.
void walk(const Automaton& laws, const StateMatrix& transition, const ChosenTree& chosen, std::vector<double> start,
          const std::function<void(int, int, const std::vector<double>&)>& ends) {
  check_tree(chosen.tree);
  std::vector<std::vector<double>> reach(index_of(chosen.tree.size()));
  reach[0] = std::move(start);
  for (int node = 0; node < chosen.tree.size(); ++node) {
    std::vector<int> child_of(index_of(laws.vocab), 0);  // by token; 0: none
    for (int child = node + 1; child < chosen.tree.size(); ++child) {
      if (chosen.tree.parent[index_of(child)] != node) continue;
      int& own = child_of[index_of(chosen.tokens[index_of(child)])];
      SPECSIM_CHECK(own == 0, "nodes {} and {} are the same token", own, child);
      own = child;
    }
    for (int token = 0; token < laws.vocab; ++token) {
      std::vector<double> next = moved(laws, transition, reach[index_of(node)], token);
      if (const int child = child_of[index_of(token)]; child != 0) {
        reach[index_of(child)] = std::move(next);
      } else if (std::any_of(next.begin(), next.end(), [](double mass) { return mass > 0.0; })) {
        ends(node, token, next);
      }
    }
  }
}

// How many of the last tokens of text[0, end) are the text's last ones; at most `most`.
std::size_t shared_end(std::span<const int> text, std::size_t end, std::size_t most) {
  std::size_t length = 0;
  while (length < std::min(end, most) && text[end - 1 - length] == text[text.size() - 1 - length]) ++length;
  return length;
}

}  // namespace

ChosenTree guessed_tree(const Tree& shape, const Automaton& laws, int state) {
  ChosenTree chosen{shape, {-1}};
  const std::vector<int> depths = shape.depths();
  for (int node = 1; node < shape.size(); ++node) {
    const std::size_t rank = index_of(shape.rank[index_of(node)]);
    chosen.tokens.push_back(likeliest(draft_at(laws, depths[index_of(node)] - 1, state), rank + 1).at(rank));
  }
  return chosen;
}

ChosenTree dynamic_tree(const Automaton& laws, int state, int depth, int width, int nodes) {
  struct Candidate {
    int parent;  // among the candidates
    int rank;
    int token;
    int state;
    double probability;
  };
  std::vector<Candidate> candidates = {{-1, -1, -1, state, 1.0}};
  const auto likelier = [&](int a, int b) { return candidates[index_of(a)].probability > candidates[index_of(b)].probability; };
  std::vector<int> level = {0};
  for (int d = 0; d < depth; ++d) {
    std::stable_sort(level.begin(), level.end(), likelier);
    level.resize(std::min(level.size(), index_of(width)));
    std::sort(level.begin(), level.end());
    std::vector<int> below;
    for (const int parent : level) {
      const Candidate above = candidates[index_of(parent)];
      const std::vector<double>& law = draft_at(laws, d, above.state);
      int rank = 0;
      for (const int token : likeliest(law, index_of(width))) {
        if (law[index_of(token)] == 0.0) break;
        below.push_back(static_cast<int>(candidates.size()));
        candidates.push_back({parent, rank++, token, laws.next[index_of(above.state * laws.vocab + token)],
                              above.probability * law[index_of(token)]});
      }
    }
    level = std::move(below);
  }
  std::vector<int> kept(candidates.size() - 1);
  std::iota(kept.begin(), kept.end(), 1);
  std::stable_sort(kept.begin(), kept.end(), likelier);
  kept.resize(std::min(kept.size(), index_of(nodes)));
  std::sort(kept.begin(), kept.end());
  ChosenTree chosen;
  std::vector<int> index(candidates.size(), 0);
  for (const int candidate : kept) {
    const Candidate& own = candidates[index_of(candidate)];
    index[index_of(candidate)] = chosen.tree.add(index[index_of(own.parent)], own.rank);
    chosen.tokens.push_back(own.token);
  }
  return chosen;
}

RoundKernel chosen_kernel(const Automaton& laws, const StateMatrix& transition, int draft_length,
                          const std::function<ChosenTree(int state)>& tree_of) {
  RoundKernel kernel(laws.states, draft_length);
  for (int s = 0; s < laws.states; ++s) {
    const ChosenTree chosen = tree_of(s);
    const std::vector<int> depths = chosen.tree.depths();
    std::vector<double> start(index_of(laws.states), 0.0);
    start[index_of(s)] = 1.0;
    walk(laws, transition, chosen, std::move(start), [&](int node, int, const std::vector<double>& next) {
      for (int to = 0; to < laws.states; ++to) kernel.at(depths[index_of(node)], s, to) += next[index_of(to)];
    });
  }
  return kernel;
}

TextDraft prompt_lookup_draft(int draft_length, int longest, int shortest) {
  return [=](std::span<const int> text) -> std::vector<int> {
    for (int length = longest; length >= shortest; --length) {
      for (std::size_t end = index_of(length); end < text.size(); ++end) {
        if (shared_end(text, end, index_of(length)) < index_of(length)) continue;
        const std::span<const int> after = text.subspan(end, std::min(index_of(draft_length), text.size() - end));
        return {after.begin(), after.end()};
      }
    }
    return {};
  };
}

TextDraft suffix_draft(int draft_length, int longest, double factor, double least) {
  return [=](std::span<const int> text) {
    std::size_t length = 0;
    for (std::size_t end = 1; end < text.size(); ++end) length = std::max(length, shared_end(text, end, index_of(longest)));
    std::vector<std::size_t> places;  // of the next token
    for (std::size_t end = 1; end < text.size() && length > 0; ++end) {
      if (shared_end(text, end, index_of(longest)) == length) places.push_back(end);
    }
    const double most = std::min(static_cast<double>(draft_length), factor * static_cast<double>(length));
    std::vector<int> path;
    double share = 1.0;
    while (static_cast<double>(path.size() + 1) <= most) {
      std::map<int, std::vector<std::size_t>> by_token;  // where each token stands next
      for (const std::size_t place : places) {
        if (place < text.size()) by_token[text[place]].push_back(place + 1);
      }
      const auto best = std::max_element(by_token.begin(), by_token.end(),
                                         [](const auto& a, const auto& b) { return a.second.size() < b.second.size(); });
      if (best == by_token.end()) break;
      share *= static_cast<double>(best->second.size()) / static_cast<double>(places.size());
      if (share < least) break;
      path.push_back(best->first);
      places = best->second;
    }
    return path;
  };
}

std::optional<RunMoments> text_moments(const Automaton& laws, const StateMatrix& transition, std::span<const double> start,
                                       std::span<const int> prompt, const TextDraft& draft, int rounds) {
  constexpr std::size_t most = std::size_t{1} << 18U;
  // The law of text and state; how much a sequence has emitted is its text's own length.
  std::map<std::vector<int>, std::vector<double>> now;
  now[{prompt.begin(), prompt.end()}] = {start.begin(), start.end()};
  RunMoments moments;
  for (int round = 0; round < rounds; ++round) {
    std::map<std::vector<int>, std::vector<double>> then;
    for (const auto& before : now) {
      const std::vector<int>& text = before.first;
      ChosenTree chosen;
      for (const int token : draft(text)) {
        chosen.tree.add(chosen.tree.size() - 1, 0);
        chosen.tokens.push_back(token);
      }
      walk(laws, transition, chosen, before.second, [&](int node, int token, const std::vector<double>& next) {
        std::vector<int> longer = text;
        longer.insert(longer.end(), chosen.tokens.begin() + 1, chosen.tokens.begin() + 1 + node);
        longer.push_back(token);
        std::vector<double>& to = then.try_emplace(std::move(longer), next.size(), 0.0).first->second;
        double share = 0.0;
        for (std::size_t s = 0; s < next.size(); ++s) {
          to[s] += next[s];
          share += next[s];
        }
        moments.accepted += share * node;
        moments.tries += share * std::min(node + 1, chosen.tree.size() - 1);
      });
      if (then.size() > most) return std::nullopt;
    }
    now = std::move(then);
  }
  double squares = 0.0;
  for (const auto& [text, states] : now) {
    const auto tokens = static_cast<double>(text.size() - prompt.size());
    const double share = std::accumulate(states.begin(), states.end(), 0.0);
    moments.emitted += share * tokens;
    squares += share * tokens * tokens;
  }
  moments.variance = std::max(0.0, squares - moments.emitted * moments.emitted);
  return moments;
}

}  // namespace specsim::theory
