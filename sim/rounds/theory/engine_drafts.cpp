#include "sim/rounds/theory/engine_drafts.h"

#include "sim/foundation/base/index.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <unordered_map>
#include <utility>

namespace specsim::theory {
namespace {

using String = std::vector<int>;

String end_of(std::span<const int> text, std::size_t length) {
  return {text.end() - static_cast<std::ptrdiff_t>(length), text.end()};
}

// The strings that texts have added: each string, how often it was added, and when it was last added.
class StringCounts {
 public:
  struct Mark {
    int times = 0;
    int last = 0;
  };
  void add(std::span<const int> text, std::size_t depth) {
    for (std::size_t length = std::min(depth, text.size()); length > 0; --length) {
      ++clock_;
      const String string = end_of(text, length);
      for (std::size_t size = 1; size <= string.size(); ++size) {
        Mark& mark = marks_[{string.begin(), string.begin() + static_cast<std::ptrdiff_t>(size)}];
        ++mark.times;
        mark.last = clock_;
      }
    }
  }
  [[nodiscard]] bool has(const String& string) const { return marks_.contains(string); }
  // The strings that are one token longer.
  [[nodiscard]] std::vector<std::pair<String, Mark>> longer(const String& string) const {
    std::vector<std::pair<String, Mark>> all;
    for (auto at = marks_.upper_bound(string);
         at != marks_.end() && at->first.size() > string.size() && std::equal(string.begin(), string.end(), at->first.begin());
         ++at)
      if (at->first.size() == string.size() + 1) all.emplace_back(at->first, at->second);
    return all;
  }

 private:
  std::map<String, Mark> marks_;
  int clock_ = 0;
};

// The drafted paths, each a child of an earlier one; their number is limited.
class Drafted {
 public:
  explicit Drafted(int most) : most_(most) {}
  [[nodiscard]] bool full() const { return static_cast<int>(paths_.size()) >= most_; }
  void add(const String& path) {
    if (std::find(paths_.begin(), paths_.end(), path) == paths_.end()) paths_.push_back(path);
  }
  [[nodiscard]] const std::vector<String>& paths() const { return paths_; }

 private:
  int most_;
  std::vector<String> paths_;
};

String behind(const String& string, std::size_t length) {
  return {string.begin() + static_cast<std::ptrdiff_t>(length), string.end()};
}

void grow_by_age(const SglangNgram& rule, const StringCounts& counts, const String& end, Drafted& drafted) {
  const double step = static_cast<double>(rule.most_breadth - rule.least_breadth) / (rule.depth - 1);
  std::vector<std::pair<String, double>> level = {
      {end, (rule.depth - 1 - static_cast<int>(end.size())) * step + rule.least_breadth}};
  while (!level.empty()) {
    std::vector<std::pair<String, double>> next;
    for (const auto& [string, breadth] : level) {
      auto children = counts.longer(string);
      std::sort(children.begin(), children.end(), [](const auto& a, const auto& b) { return a.second.last > b.second.last; });
      const auto most = static_cast<std::size_t>(std::max(1, static_cast<int>(breadth)));
      for (std::size_t i = 0; i < std::min(most, children.size()); ++i) {
        if (drafted.full()) return;
        drafted.add(behind(children[i].first, end.size()));
        next.emplace_back(children[i].first, breadth - step);
      }
    }
    level = std::move(next);
  }
}

void grow_by_frequency(const SglangNgram& rule, const StringCounts& counts, const String& end, Drafted& drafted) {
  struct Open {
    String string;
    double share;
  };
  const auto below = [](const Open& a, const Open& b) { return a.share < b.share; };
  std::vector<Open> heap;  // ties are in the order of the program's heap, the standard library's
  const auto open_children = [&](const String& string, double share) {
    auto children = counts.longer(string);
    std::stable_sort(children.begin(), children.end(),
                     [](const auto& a, const auto& b) { return a.second.times > b.second.times; });
    children.resize(std::min(children.size(), index_of(rule.most_breadth)));
    double all = 0.0;
    for (const auto& child : children) all += child.second.times;
    for (const auto& child : children) {
      heap.push_back({child.first, child.second.times / all * share});
      std::push_heap(heap.begin(), heap.end(), below);
    }
  };
  open_children(end, 1.0);
  while (!heap.empty() && !drafted.full()) {
    std::pop_heap(heap.begin(), heap.end(), below);
    const Open one = std::move(heap.back());
    heap.pop_back();
    drafted.add(behind(one.string, end.size()));
    open_children(one.string, one.share);
  }
}

}  // namespace

HistoryDraft sglang_ngram_draft(const SglangNgram& rule) {
  return [rule](std::span<const int> text, std::span<const int> lengths) {
    StringCounts counts;
    for (const String& one : rule.past)
      for (std::size_t length = 1; length <= one.size(); ++length) counts.add(std::span(one).first(length), index_of(rule.depth));
    std::vector<bool> found;  // [length - 1]: whether this suffix of the round's text was found
    std::size_t before = 0;   // length of the text one round ago; 0: there was no text
    for (const int length : lengths) {
      const std::span<const int> now = text.first(index_of(length));
      if (before > 0) counts.add(text.first(before), index_of(rule.depth));
      std::vector<bool> here(std::min(now.size(), index_of(rule.depth)), false);
      const std::size_t emitted = before > 0 ? now.size() - before : now.size();
      for (std::size_t size = 1; size <= here.size(); ++size)
        here[size - 1] = counts.has(end_of(now, size)) && (size <= emitted || found[size - emitted - 1]);
      found = std::move(here);
      before = now.size();
    }
    Drafted drafted(rule.nodes);
    for (std::size_t size = found.size(); size > 0 && !drafted.full(); --size) {
      const String end = end_of(text, size);
      if (!found[size - 1] || counts.longer(end).empty()) continue;
      if (rule.by_frequency)
        grow_by_frequency(rule, counts, end, drafted);
      else
        grow_by_age(rule, counts, end, drafted);
    }
    return drafted.paths();
  };
}

TextDraft ngram_simple_draft(int draft_length, int size) {
  return [=](std::span<const int> text) -> std::vector<int> {
    const int length = static_cast<int>(text.size()) - 1;  // without the newest token
    if (length <= size + draft_length + 1) return {};
    const String end = end_of(text, index_of(size));
    const std::span<const int> older = text.first(index_of(length - 1));
    const auto last = std::find_end(older.begin() + 1, older.end(), end.begin(), end.end());
    if (last == older.end()) return {};
    const auto from = last - older.begin() + size;
    const auto copied = std::min<std::ptrdiff_t>(draft_length, length - from);
    if (copied < size) return {};
    return {text.begin() + from, text.begin() + from + copied};
  };
}

namespace {

// The polynomial modulo 2^22, the last token's factor 1.
std::uint32_t polynomial(std::span<const int> tokens) {
  constexpr std::uint32_t kModulus = 1U << 22U;
  constexpr auto kFactor = static_cast<std::uint32_t>(6364136223846793005ULL % kModulus);
  std::uint64_t sum = 0;
  for (const int token : tokens) sum = (sum * kFactor + static_cast<std::uint64_t>(token)) % kModulus;
  return static_cast<std::uint32_t>(sum);
}

// The rounds of ngram-mod in order; returns the last round's draft.
class ModRounds {
 public:
  explicit ModRounds(const NgramMod& rule) : rule_(&rule) {
    for (const String& one : rule.past) read(one, 0);
  }
  String draft(std::span<const int> text) {
    if (last_ > 0 || drafted_ > 0) learn(static_cast<int>(text.size()) - last_ - 1);
    if (!begun_) next_ = read(text, 0);
    begun_ = true;
    last_ = static_cast<int>(text.size());
    drafted_ = 0;
    const std::size_t n = index_of(rule_->n);
    if (text.size() < n + 1) return {};
    const std::span<const int> list = text.first(text.size() - 1);
    if (list.size() > next_ + 32) next_ = read(list, next_);
    String path = end_of(text, n);
    for (int i = 0; i < rule_->draft_length; ++i) {
      const auto hash = polynomial(std::span(path).last(n));
      const auto found = std::find_if(read_.rbegin(), read_.rend(), [&](const auto& one) { return one.first == hash; });
      if (found == read_.rend()) {
        if (i < rule_->least) return {};
        break;
      }
      path.push_back(found->second);
    }
    path = behind(path, n);
    drafted_ = static_cast<int>(path.size());
    return path;
  }

 private:
  // Returns where the next reading begins.
  std::size_t read(std::span<const int> text, std::size_t from) {
    const std::size_t n = index_of(rule_->n);
    if (text.size() < n) return from;
    for (std::size_t at = from; at < text.size() - n; ++at) read_.emplace_back(polynomial(text.subspan(at, n)), text[at + n]);
    return text.size() - n;
  }
  void learn(int accepted) {
    if (drafted_ == 0) return;
    low_ = static_cast<double>(accepted) / drafted_ < 0.25 ? low_ + 1 : 0;
    if (low_ < 5) return;
    read_.clear();
    low_ = 0;
    next_ = 0;
  }

  const NgramMod* rule_;
  std::vector<std::pair<std::uint32_t, int>> read_;  // in reading order
  bool begun_ = false;
  std::size_t next_ = 0;
  int last_ = 0;
  int drafted_ = 0;
  int low_ = 0;
};

}  // namespace

HistoryDraft ngram_mod_draft(const NgramMod& rule) {
  return [rule](std::span<const int> text, std::span<const int> lengths) -> std::vector<String> {
    ModRounds rounds(rule);
    String path;
    for (const int length : lengths) path = rounds.draft(text.first(index_of(length)));
    return path.empty() ? std::vector<String>() : std::vector<String>{path};
  };
}

namespace {

// Counts how often each token follows the string in the pieces. It is a standard library table because ties follow its order.
std::unordered_map<int, int> followers(const std::vector<String>& pieces, const String& string) {
  std::unordered_map<int, int> table;
  for (const String& piece : pieces) {
    for (std::size_t at = string.size(); at < piece.size(); ++at)
      if (std::equal(string.begin(), string.end(), piece.begin() + static_cast<std::ptrdiff_t>(at - string.size())))
        ++table[piece[at]];
  }
  return table;
}

int sum_of(const std::unordered_map<int, int>& table) {
  int sum = 0;
  for (const auto& [token, times] : table) sum += times;
  return sum;
}

// -1: none.
int sure_token(const std::vector<String>& pieces, const String& text, const std::unordered_map<int, int>& usual, bool strict) {
  for (int n = std::min<int>(4, static_cast<int>(text.size())); n >= 1; --n) {
    const auto table = followers(pieces, end_of(text, index_of(n)));
    int best = -1;
    long score = 0;
    for (const auto& [token, times] : table) {
      const long own = times * (usual.contains(token) ? 100L * usual.at(token) : 1L);
      if (own > score) {
        best = token;
        score = own;
      }
    }
    const int seen = strict ? std::max(2, 5 - n) : (n <= 2 ? 2 : 1);
    const int percent = strict ? (n == 1 ? 75 : 66) : (n == 1 ? 66 : 50);
    if (best >= 0 && sum_of(table) >= seen && 100 * table.at(best) >= percent * sum_of(table)) return best;
  }
  return -1;
}

}  // namespace

HistoryDraft ngram_cache_draft(const NgramCache& rule) {
  return [rule](std::span<const int> text, std::span<const int> lengths) -> std::vector<String> {
    if (text.size() < 2) return {};
    std::vector<String> pieces;  // the text, in the pieces that rounds emitted
    int from = 0;
    for (const int length : lengths) {
      pieces.emplace_back(text.begin() + from, text.begin() + length);
      from = length;
    }
    String longer(text.begin(), text.end());
    while (longer.size() < text.size() + index_of(rule.draft_length)) {
      const auto usual = followers(rule.statistics, end_of(longer, 2));
      int next = sure_token(pieces, longer, usual, false);
      if (next < 0) next = sure_token(rule.past, longer, usual, true);
      if (next < 0 && sum_of(usual) >= 2) {
        int most = 0;
        for (const auto& [token, times] : usual) {
          if (times > most) next = token;
          most = std::max(most, times);
        }
        if (100 * most < 50 * sum_of(usual)) next = -1;
      }
      if (next < 0) break;
      longer.push_back(next);
    }
    const String path = behind(longer, text.size());
    return path.empty() ? std::vector<String>() : std::vector<String>{path};
  };
}

}  // namespace specsim::theory
