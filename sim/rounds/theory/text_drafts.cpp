// Drafts from the text so far: prompt lookup, suffix decoding and SAM decoding.
#include "sim/rounds/theory/chosen_trees.h"

#include "sim/foundation/base/index.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace specsim::theory {
namespace {

// How many of the last tokens of text[0, end) equal the text's last ones; at most `most`.
std::size_t shared_end(std::span<const int> text, std::size_t end, std::size_t most) {
  std::size_t length = 0;
  while (length < std::min(end, most) && text[end - 1 - length] == text[text.size() - 1 - length]) ++length;
  return length;
}

}  // namespace

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

// The children of a node in the order of the program's list of siblings (suffix_tree.cc, append and _increment_count). A new
// child is added at the list's end. A child whose count rises keeps its place if the child before it has a count larger by more
// than one. Otherwise it moves in front of the first child with the same count as the one before it.
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
    std::vector<std::size_t> places;  // possible places of the next token
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

// The program's tree, one token per node: every string of at most `depth` tokens of the sequences, its number of occurrences, and
// its continuations.
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

  // nullptr: the string does not occur, or is too long.
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

  // The child with the most common continuation; nullptr: none.
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

// The place after the first occurrence of the text's last `length` tokens in `sequence`.
std::optional<std::size_t> after_first(std::span<const int> sequence, std::span<const int> text, std::size_t length) {
  if (length > text.size()) return std::nullopt;
  const std::span<const int> end = text.last(length);
  const auto at = std::search(sequence.begin(), sequence.end(), end.begin(), end.end());
  if (at == sequence.end()) return std::nullopt;
  return static_cast<std::size_t>(at - sequence.begin()) + length;
}

std::size_t longest_end(std::span<const int> sequence, std::span<const int> text) {
  std::size_t length = 0;
  while (length < sequence.size() && after_first(sequence, text, length + 1)) ++length;
  return length;
}

std::vector<int> tokens_from(std::span<const int> sequence, std::size_t place, int most) {
  const std::span<const int> rest = sequence.subspan(place);
  const std::span<const int> taken = rest.first(std::min(rest.size(), index_of(most)));
  return {taken.begin(), taken.end()};
}

}  // namespace

TextDraft sam_draft(const SamDraft& rule) {
  return [rule](std::span<const int> text) -> std::vector<int> {
    if (text.empty()) return {};
    const std::span<const int> history = text.first(text.size() - 1);
    const std::size_t own = longest_end(history, text);
    std::size_t other = 0;
    std::span<const int> document;
    for (const std::vector<int>& one : rule.corpus) {
      const std::size_t length = longest_end(one, text);
      if (length > other) document = one;
      other = std::max(other, length);
    }
    const double beyond = static_cast<double>(other) - rule.bias;
    if (static_cast<double>(own) < rule.threshold && beyond < rule.threshold) return {};
    if (beyond > static_cast<double>(own)) return tokens_from(document, *after_first(document, text, other), rule.draft_length);
    std::size_t place = history.size();
    for (std::size_t length = own; length > 0; --length) {
      place = *after_first(history, text, length);
      if (history.size() - place > index_of(rule.draft_length)) break;
    }
    return tokens_from(history, place, rule.draft_length);
  };
}

}  // namespace specsim::theory
