#include "sim/rounds/theory/chosen_trees.h"

#include "sim/foundation/base/check.h"
#include "sim/foundation/base/index.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <numeric>
#include <utility>

namespace specsim::theory {
namespace {

// Moves the state distribution `row` by the target's token.
std::vector<double> moved(const Automaton& distributions, const StateMatrix& transition, const std::vector<double>& row,
                          int token) {
  std::vector<double> next(row.size(), 0.0);
  for (std::size_t s = 0; s < row.size(); ++s) {
    const double mass = row[s] == 0.0 ? 0.0 : row[s] * distributions.target[s][index_of(token)];
    if (mass == 0.0) continue;
    if (transition.empty()) {
      next[index_of(distributions.after(static_cast<int>(s), token))] += mass;
    } else {
      for (std::size_t to = 0; to < row.size(); ++to) next[to] += mass * transition[s * row.size() + to];
    }
  }
  return next;
}

// Calls ends(node, token, states) with the round's distribution over its last accepted node, its final token, and the state after
// it.
void walk(const Automaton& distributions, const StateMatrix& transition, const ChosenTree& chosen, std::vector<double> start,
          const std::function<void(int, int, const std::vector<double>&)>& ends) {
  check_tree(chosen.tree);
  std::vector<std::vector<double>> reach(index_of(chosen.tree.size()));
  reach[0] = std::move(start);
  for (int node = 0; node < chosen.tree.size(); ++node) {
    std::vector<int> child_of(index_of(distributions.vocab), 0);  // [token]: the child; 0: none
    for (int child = node + 1; child < chosen.tree.size(); ++child) {
      if (chosen.tree.parent[index_of(child)] != node) continue;
      int& own = child_of[index_of(chosen.tokens[index_of(child)])];
      SPECSIM_CHECK(own == 0, "nodes {} and {} are the same token", own, child);
      own = child;
    }
    for (int token = 0; token < distributions.vocab; ++token) {
      std::vector<double> next = moved(distributions, transition, reach[index_of(node)], token);
      if (const int child = child_of[index_of(token)]; child != 0) {
        reach[index_of(child)] = std::move(next);
      } else if (std::any_of(next.begin(), next.end(), [](double mass) { return mass > 0.0; })) {
        ends(node, token, next);
      }
    }
  }
}

}  // namespace

ChosenTree guessed_tree(const TreeShape& shape, const Automaton& distributions, int state) {
  constexpr int kLeftOut = -1;
  ChosenTree chosen;
  const std::vector<int> depths = shape.depths();
  std::vector<int> place(index_of(shape.size()), kLeftOut);  // [node of the shape]: its place among the chosen ones
  place[0] = 0;
  for (int node = 1; node < shape.size(); ++node) {
    const int parent = place[index_of(shape.parent[index_of(node)])];
    const int rank = shape.rank[index_of(node)];
    const std::vector<double>& draft = distributions.draft_at(depths[index_of(node)] - 1, state);
    const std::vector<int> tokens = likeliest(draft, index_of(rank) + 1);
    if (parent == kLeftOut || index_of(rank) >= tokens.size() || draft[index_of(tokens.back())] == 0.0) continue;
    place[index_of(node)] = chosen.tree.add(parent, rank);
    chosen.tokens.push_back(tokens.back());
  }
  return chosen;
}

RoundKernel chosen_kernel(const Automaton& distributions, const StateMatrix& transition, int draft_length,
                          const std::function<ChosenTree(int state)>& tree_of) {
  RoundKernel kernel(distributions.states, draft_length);
  for (int s = 0; s < distributions.states; ++s) {
    const ChosenTree chosen = tree_of(s);
    const std::vector<int> depths = chosen.tree.depths();
    std::vector<double> start(index_of(distributions.states), 0.0);
    start[index_of(s)] = 1.0;
    walk(distributions, transition, chosen, std::move(start), [&](int node, int, const std::vector<double>& next) {
      for (int to = 0; to < distributions.states; ++to) kernel.at(depths[index_of(node)], s, to) += next[index_of(to)];
    });
  }
  return kernel;
}

namespace {

// Walks a sequence's rounds over every text. chosen_of(text, rounds) is the round's tree. If the drafter has a memory, `rounds`
// holds the length of the text before each round, including this one.
std::optional<RunMoments> over_texts(
    const Automaton& distributions, const StateMatrix& transition, std::span<const double> start, std::span<const int> prompt,
    int rounds, bool remembers, const std::function<ChosenTree(const std::vector<int>&, const std::vector<int>&)>& chosen_of) {
  constexpr std::size_t kMost = std::size_t{1} << 18U;
  // The distribution of text and state; the number of emitted tokens is the text's length.
  using Past = std::pair<std::vector<int>, std::vector<int>>;
  std::map<Past, std::vector<double>> now;
  now[{{prompt.begin(), prompt.end()}, {}}] = {start.begin(), start.end()};
  RunMoments moments;
  for (int round = 0; round < rounds; ++round) {
    std::map<Past, std::vector<double>> then;
    for (const auto& [past, states] : now) {
      const std::vector<int>& text = past.first;
      std::vector<int> starts = past.second;
      if (remembers) starts.push_back(static_cast<int>(text.size()));
      const ChosenTree chosen = chosen_of(text, starts);
      const std::vector<int> depths = chosen.tree.depths();
      std::vector<bool> has_children(depths.size(), false);
      for (std::size_t node = 1; node < depths.size(); ++node) has_children[index_of(chosen.tree.parent[node])] = true;
      walk(distributions, transition, chosen, states, [&](int node, int token, const std::vector<double>& next) {
        std::vector<int> longer = text;
        longer.resize(text.size() + index_of(depths[index_of(node)]), token);
        for (int at = node; at > 0; at = chosen.tree.parent[index_of(at)])
          longer[text.size() + index_of(depths[index_of(at)]) - 1] = chosen.tokens[index_of(at)];
        longer.push_back(token);
        std::vector<double>& to = then.try_emplace(Past(std::move(longer), starts), next.size(), 0.0).first->second;
        double share = 0.0;
        for (std::size_t s = 0; s < next.size(); ++s) {
          to[s] += next[s];
          share += next[s];
        }
        moments.accepted += share * depths[index_of(node)];
        moments.tries += share * (depths[index_of(node)] + (has_children[index_of(node)] ? 1 : 0));
      });
      if (then.size() > kMost) return std::nullopt;
    }
    now = std::move(then);
  }
  double squares = 0.0;
  for (const auto& [past, states] : now) {
    const auto tokens = static_cast<double>(past.first.size() - prompt.size());
    const double share = std::accumulate(states.begin(), states.end(), 0.0);
    moments.emitted += share * tokens;
    squares += share * tokens * tokens;
  }
  moments.variance = std::max(0.0, squares - moments.emitted * moments.emitted);
  return moments;
}

// The contents of Lookahead's window and pool, computed from the whole past.
class LookaheadPast {
 public:
  // first: the window's first tokens. text: including the prompt; rounds: its lengths before each round up to this one.
  LookaheadPast(const Automaton& distributions, int start, std::size_t prompt, const Lookahead& own, std::span<const int> first,
                std::span<const int> text, std::span<const int> rounds)
      : distributions_(&distributions), start_(start), prompt_(prompt), own_(own), first_(first), text_(text), rounds_(rounds) {}

  [[nodiscard]] std::vector<std::vector<int>> guesses() {
    const int round = static_cast<int>(rounds_.size()) - 1;
    const int full = own_.window > 0 ? own_.ngram - 2 : 0;  // the first round with a full window
    if (round < full || text_.empty()) return {};
    std::vector<std::vector<int>> pool;  // in the order of insertion
    std::size_t read = 0;
    for (int r = 0; r <= round; ++r) {
      const std::size_t length = index_of(rounds_[index_of(r)]);
      for (; own_.pool_from_text && read < length; ++read)
        if (read + 1 >= index_of(own_.ngram))
          pool.emplace_back(text_.begin() + static_cast<std::ptrdiff_t>(read + 1) - own_.ngram,
                            text_.begin() + static_cast<std::ptrdiff_t>(read + 1));
      if (r == round || r < full) continue;
      for (int column = length == 0 ? 1 : 0; column < own_.window; ++column) {
        std::vector<int>& ngram = pool.emplace_back();
        for (int level = 0; level < own_.ngram - 1; ++level) ngram.push_back(guess(r, level, column));
        ngram.push_back(output(r, column));
      }
    }
    std::vector<std::vector<int>> newest;
    for (auto ngram = pool.rbegin(); ngram != pool.rend() && newest.size() < index_of(own_.guesses); ++ngram)
      if (ngram->front() == text_.back() && std::find(newest.begin(), newest.end(), *ngram) == newest.end())
        newest.push_back(*ngram);
    return newest;
  }

 private:
  // The token of a level in a column at the start of round r. While the window fills, each round shifts its contents by one
  // column against the text. When it is full, each level replaces the one below.
  int guess(int r, int level, int column) {
    if (level == 0 && column == 0) return text_[index_of(rounds_[index_of(r)]) - 1];
    if (r <= own_.ngram - 2) return level == 0 ? first_[index_of(r + column - 1)] : output(level - 1, column + 1 + r - level);
    return level == own_.ngram - 2 ? output(r - 1, column) : guess(r - 1, level + 1, column);
  }
  // The target's argmax after column `column` of the highest level in round r.
  int output(int r, int column) {
    const auto [at, fresh] = outputs_.try_emplace({r, column}, 0);
    if (!fresh) return at->second;
    int state = start_;
    const auto read = [&](int token) { state = distributions_->after(state, token); };
    for (std::size_t i = prompt_; i < index_of(rounds_[index_of(r)]); ++i) read(text_[i]);
    for (int i = 1; i <= column; ++i) read(guess(r, 0, i));
    for (int level = 1; level <= std::min(r, own_.ngram - 2); ++level) read(guess(r, level, column));
    return outputs_[{r, column}] = likeliest(distributions_->target[index_of(state)], 1)[0];
  }

  const Automaton* distributions_;
  int start_;
  std::size_t prompt_;
  Lookahead own_;
  std::span<const int> first_;
  std::span<const int> text_;
  std::span<const int> rounds_;
  std::map<std::pair<int, int>, int> outputs_;
};

ChosenTree tree_of_paths(const std::vector<std::vector<int>>& paths) {
  ChosenTree chosen;
  std::map<std::vector<int>, int> node_of = {{{}, 0}};  // [path]
  for (const std::vector<int>& path : paths) {
    std::vector<int> way;
    for (const int token : path) {
      const int parent = node_of.at(way);
      way.push_back(token);
      if (!node_of.try_emplace(way, chosen.tree.size()).second) continue;
      chosen.tree.add(parent, token);
      chosen.tokens.push_back(token);
    }
  }
  return chosen;
}

}  // namespace

std::optional<RunMoments> text_moments(const Automaton& distributions, const StateMatrix& transition,
                                       std::span<const double> start, std::span<const int> prompt, const TextDraft& draft,
                                       int rounds) {
  return over_texts(distributions, transition, start, prompt, rounds, false,
                    [&](const std::vector<int>& text, const std::vector<int>&) { return tree_of_paths({draft(text)}); });
}

std::optional<RunMoments> history_moments(const Automaton& distributions, const StateMatrix& transition,
                                          std::span<const double> start, std::span<const int> prompt, const HistoryDraft& draft,
                                          int rounds) {
  return over_texts(
      distributions, transition, start, prompt, rounds, true,
      [&](const std::vector<int>& text, const std::vector<int>& lengths) { return tree_of_paths(draft(text, lengths)); });
}

std::optional<RunMoments> lookahead_moments(const Automaton& distributions, std::span<const double> start,
                                            std::span<const int> prompt, const Lookahead& lookahead, int rounds) {
  constexpr double kMost = 1 << 12;
  const std::size_t choices = prompt.empty() ? index_of(distributions.vocab) : prompt.size();
  const std::size_t places = lookahead.window > 0 ? index_of(lookahead.window + lookahead.ngram - 3) : 0;
  if (std::pow(static_cast<double>(choices), static_cast<double>(places)) > kMost) return std::nullopt;
  RunMoments all;
  double squares = 0.0;
  double windows = 0.0;
  std::vector<std::size_t> choice(places, 0);
  bool more = true;
  while (more) {
    std::vector<int> first;
    for (const std::size_t one : choice) first.push_back(prompt.empty() ? static_cast<int>(one) : prompt[one]);
    for (int state = 0; state < distributions.states; ++state) {
      const double share = start[index_of(state)];
      if (share == 0.0) continue;
      std::vector<double> here(start.size(), 0.0);
      here[index_of(state)] = 1.0;
      const auto moments = over_texts(
          distributions, {}, here, prompt, rounds, true, [&](const std::vector<int>& text, const std::vector<int>& starts) {
            std::vector<std::vector<int>> paths =
                LookaheadPast(distributions, state, prompt.size(), lookahead, first, text, starts).guesses();
            for (std::vector<int>& path : paths) path.erase(path.begin());
            return tree_of_paths(paths);
          });
      if (!moments) return std::nullopt;
      all.emitted += share * moments->emitted;
      all.accepted += share * moments->accepted;
      all.tries += share * moments->tries;
      squares += share * (moments->variance + moments->emitted * moments->emitted);
    }
    windows += 1.0;
    more = false;
    for (std::size_t i = 0; i < places && !more; ++i) {
      choice[i] = (choice[i] + 1) % choices;
      more = choice[i] != 0;
    }
  }
  all.emitted /= windows;
  all.accepted /= windows;
  all.tries /= windows;
  all.variance = std::max(0.0, squares / windows - all.emitted * all.emitted);
  return all;
}

}  // namespace specsim::theory
