#include "sim/theory/chosen_trees.h"

#include "sim/base/check.h"
#include "sim/base/index.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <numeric>
#include <utility>

namespace specsim::theory {
namespace {

const std::vector<double>& draft_at(const Automaton& distributions, int depth, int state) {
  return distributions.draft[std::min(index_of(depth), distributions.draft.size() - 1)][index_of(state)];
}

// The distribution's tokens, the likeliest first, the lowest id first among equals; at most `most` of them.
std::vector<int> likeliest(const std::vector<double>& distribution, std::size_t most) {
  std::vector<int> order(distribution.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](int a, int b) { return distribution[index_of(a)] > distribution[index_of(b)]; });
  order.resize(std::min(order.size(), most));
  return order;
}

// Where the states of a distribution `row` go with the target's token.
std::vector<double> moved(const Automaton& distributions, const StateMatrix& transition, const std::vector<double>& row,
                          int token) {
  std::vector<double> next(row.size(), 0.0);
  for (std::size_t s = 0; s < row.size(); ++s) {
    const double mass = row[s] == 0.0 ? 0.0 : row[s] * distributions.target[s][index_of(token)];
    if (mass == 0.0) continue;
    if (transition.empty()) {
      next[index_of(distributions.next[s * index_of(distributions.vocab) + index_of(token)])] += mass;
    } else {
      for (std::size_t to = 0; to < row.size(); ++to) next[to] += mass * transition[s * row.size() + to];
    }
  }
  return next;
}

// ends(node, token, states): the round's distribution over its last accepted node, its final token, and the state after.
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

// How many of the last tokens of text[0, end) are the text's last ones; at most `most`.
std::size_t shared_end(std::span<const int> text, std::size_t end, std::size_t most) {
  std::size_t length = 0;
  while (length < std::min(end, most) && text[end - 1 - length] == text[text.size() - 1 - length]) ++length;
  return length;
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
    const std::vector<double>& draft = draft_at(distributions, depths[index_of(node)] - 1, state);
    const std::vector<int> tokens = likeliest(draft, index_of(rank) + 1);
    if (parent == kLeftOut || index_of(rank) >= tokens.size() || draft[index_of(tokens.back())] == 0.0) continue;
    place[index_of(node)] = chosen.tree.add(parent, rank);
    chosen.tokens.push_back(tokens.back());
  }
  return chosen;
}

ChosenTree dynamic_tree(const Automaton& distributions, int state, int depth, int width, int nodes) {
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
      const std::vector<double>& distribution = draft_at(distributions, d, above.state);
      int rank = 0;
      for (const int token : likeliest(distribution, index_of(width))) {
        if (distribution[index_of(token)] == 0.0) break;
        below.push_back(static_cast<int>(candidates.size()));
        candidates.push_back({parent, rank++, token, distributions.next[index_of(above.state * distributions.vocab + token)],
                              above.probability * distribution[index_of(token)]});
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

namespace {

// The children of a node in the order of the program's list of siblings (suffix_tree.cc, append and _increment_count): a new
// child goes to the list's end. A child whose count rises stays where it is if the one before it has a count larger by more than
// one; else it goes in front of the first child that has the same count as the one before it.
class Siblings {
 public:
  struct Child {
    int token = 0;
    int count = 0;
    int node = 0;
  };
  // Counts the token; returns its child.
  Child& append(int token) {
    std::size_t at = 0;
    while (at < list_.size() && list_[at].token != token) ++at;
    if (at == list_.size()) {
      list_.push_back({token, 1, 0});
      return list_.back();
    }
    if (at > 0 && list_[at - 1].count <= list_[at].count + 1) {
      std::size_t front = at - 1;
      while (front > 0 && list_[front - 1].count == list_[at - 1].count) --front;
      for (; at > front; --at) std::swap(list_[at], list_[at - 1]);
    }
    ++list_[at].count;
    return list_[at];
  }
  [[nodiscard]] const std::vector<Child>& list() const { return list_; }

 private:
  std::vector<Child> list_;
};

}  // namespace

TextDraft suffix_draft(int draft_length, int longest, double factor, double least) {
  return [=](std::span<const int> text) {
    std::size_t length = 0;
    for (std::size_t end = 1; end < text.size(); ++end) length = std::max(length, shared_end(text, end, index_of(longest)));
    std::vector<std::size_t> places;  // where the next token may stand
    for (std::size_t end = 1; end < text.size() && length > 0; ++end) {
      if (shared_end(text, end, index_of(longest)) == length) places.push_back(end);
    }
    const double most = std::min(static_cast<double>(draft_length), factor * static_cast<double>(length));
    std::vector<int> path;
    double share = 1.0;
    while (static_cast<double>(path.size() + 1) <= most) {
      Siblings after;
      for (const std::size_t place : places) {
        if (place < text.size()) after.append(text[place]);
      }
      if (after.list().empty()) break;
      const int best = after.list().front().token;
      share *= static_cast<double>(after.list().front().count) / static_cast<double>(places.size());
      if (share < least) break;
      path.push_back(best);
      std::vector<std::size_t> behind;
      for (const std::size_t place : places) {
        if (place < text.size() && text[place] == best) behind.push_back(place + 1);
      }
      places = std::move(behind);
    }
    return path;
  };
}

namespace {

// The program's tree, a token a node: every string of at most `depth` tokens of the sequences, how often it stands there, and
// what goes on from it.
class TextTree {
 public:
  explicit TextTree(std::size_t depth) : depth_(depth) {}

  void add(const std::vector<int>& sequence) {
    std::vector<std::size_t> active;  // the nodes of the strings that end here, the longest first
    for (const int token : sequence) {
      active.push_back(0);
      if (active.size() > depth_) active.erase(active.begin());
      for (std::size_t& at : active) {
        Siblings::Child& child = nodes_[at].append(token);
        if (child.node == 0) {
          child.node = static_cast<int>(nodes_.size());
          at = nodes_.size();
          nodes_.emplace_back();
        } else {
          at = index_of(child.node);
        }
      }
    }
  }

  // nullptr: the string stands nowhere, or is too long.
  [[nodiscard]] const Siblings::Child* find(std::span<const int> string) const {
    const Siblings::Child* found = nullptr;
    std::size_t at = 0;
    for (const int token : string) {
      const auto& list = nodes_[at].list();
      const auto child = std::find_if(list.begin(), list.end(), [&](const Siblings::Child& own) { return own.token == token; });
      if (child == list.end()) return nullptr;
      found = &*child;
      at = index_of(child->node);
    }
    return found;
  }

  // Where the commonest way on leads; nullptr: nowhere.
  [[nodiscard]] const Siblings::Child* head(const Siblings::Child& from) const {
    const auto& list = nodes_[index_of(from.node)].list();
    return list.empty() ? nullptr : &list.front();
  }

 private:
  std::size_t depth_;
  std::vector<Siblings> nodes_ = std::vector<Siblings>(1);
};

}  // namespace

TextDraft suffix_scores_draft(const SuffixScores& rule) {
  return [rule](std::span<const int> text) {
    std::vector<int> best;
    double best_sum = 0.0;
    const std::vector<int> all(text.begin(), text.end());
    std::vector<std::vector<int>> responses = rule.past;
    responses.emplace_back(all.begin() + static_cast<std::ptrdiff_t>(std::min(rule.prompt, all.size())), all.end());
    bool first = true;
    for (const auto& sequences : {std::vector<std::vector<int>>{all}, responses}) {
      TextTree tree(index_of(rule.depth));
      for (const std::vector<int>& sequence : sequences) tree.add(sequence);
      std::vector<int> path;
      double sum = 0.0;
      for (std::size_t end = 1; end < std::min(all.size(), index_of(rule.depth)); ++end) {
        const Siblings::Child* at = tree.find(text.last(end));
        if (at == nullptr) break;
        const int most =
            std::min(rule.draft_length, static_cast<int>(static_cast<double>(end) * rule.factor + rule.offset + 1e-6));
        std::vector<int> own;
        double own_sum = 0.0;
        double share = 1.0;
        while (static_cast<int>(own.size()) < most) {
          const Siblings::Child* const next = tree.head(*at);
          if (next == nullptr) break;
          share *= static_cast<double>(next->count) / static_cast<double>(at->count);
          if (share < rule.least) break;
          own.push_back(next->token);
          own_sum += share;
          at = next;
        }
        if (own_sum >= sum) {
          sum = own_sum;
          path = std::move(own);
        }
      }
      if (first || sum > best_sum) {
        best = std::move(path);
        best_sum = sum;
      }
      first = false;
    }
    return best;
  };
}

namespace {

// A sequence's rounds over every text; chosen_of(text, rounds): the round's tree, where `rounds` holds, if the drafter remembers,
// how long the text was before each round, this one included.
std::optional<RunMoments> over_texts(
    const Automaton& distributions, const StateMatrix& transition, std::span<const double> start, std::span<const int> prompt,
    int rounds, bool remembers, const std::function<ChosenTree(const std::vector<int>&, const std::vector<int>&)>& chosen_of) {
  constexpr std::size_t kMost = std::size_t{1} << 18U;
  // The distribution of text and state; how much a sequence has emitted is its text's own length.
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

// What Lookahead's window and pool hold, told from the whole past.
class LookaheadPast {
 public:
  // first: the window's first tokens. text: with the prompt; rounds: its lengths before each round up to this one.
  LookaheadPast(const Automaton& distributions, int start, std::size_t prompt, const Lookahead& own, std::span<const int> first,
                std::span<const int> text, std::span<const int> rounds)
      : distributions_(&distributions), start_(start), prompt_(prompt), own_(own), first_(first), text_(text), rounds_(rounds) {}

  [[nodiscard]] std::vector<std::vector<int>> guesses() {
    const int round = static_cast<int>(rounds_.size()) - 1;
    const int full = own_.window > 0 ? own_.ngram - 2 : 0;  // the round from which the window is full
    if (round < full || text_.empty()) return {};
    std::vector<std::vector<int>> pool;  // in the order in which they came
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
  // The token of a level in a column as round r begins. Filling, each round shifts what there is by a column against the text;
  // full, a level takes the place of the one below.
  int guess(int r, int level, int column) {
    if (level == 0 && column == 0) return text_[index_of(rounds_[index_of(r)]) - 1];
    if (r <= own_.ngram - 2) return level == 0 ? first_[index_of(r + column - 1)] : output(level - 1, column + 1 + r - level);
    return level == own_.ngram - 2 ? output(r - 1, column) : guess(r - 1, level + 1, column);
  }
  // The target's argmax after column `column` of the highest level in round r.
  int output(int r, int column) {
    const auto [at, fresh] = outputs_.try_emplace({r, column}, 0);
    if (!fresh) return at->second;
    std::size_t state = index_of(start_);
    const auto read = [&](int token) {
      state = index_of(distributions_->next[state * index_of(distributions_->vocab) + index_of(token)]);
    };
    for (std::size_t i = prompt_; i < index_of(rounds_[index_of(r)]); ++i) read(text_[i]);
    for (int i = 1; i <= column; ++i) read(guess(r, 0, i));
    for (int level = 1; level <= std::min(r, own_.ngram - 2); ++level) read(guess(r, level, column));
    return outputs_[{r, column}] = likeliest(distributions_->target[state], 1)[0];
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
