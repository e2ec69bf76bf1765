#include "sim/draft/suffix_scores.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <span>
#include <utility>

namespace specsim::draft {

namespace {

// One occurrence of the end that is looked for.
struct Occurrence {
  const Token* begin = nullptr;  // its first token
  const Token* next = nullptr;   // the token behind it
  std::span<const Token> in;
};

// The commonest next token, and the commonest after it; the score is the sum of the paths' shares.
Continuation follow(const SuffixScores& own, std::vector<Occurrence> all, double most) {
  Continuation result;
  double share = 1.0;
  std::vector<Token> nexts;
  while (static_cast<double>(result.path.size()) < most) {
    nexts.clear();
    for (const Occurrence& one : all)
      if (one.next != one.in.data() + one.in.size()) nexts.push_back(*one.next);
    const std::optional<Followed> commonest = commonest_next(nexts);
    if (!commonest) break;
    share *= static_cast<double>(commonest->times) / static_cast<double>(all.size());
    if (share < own.least) break;
    const Token token = commonest->token;
    std::erase_if(all, [&](const Occurrence& one) { return one.next == one.in.data() + one.in.size() || *one.next != token; });
    for (Occurrence& one : all) ++one.next;
    result.path.push_back(token);
    result.score += share;
  }
  return result;
}

// The continuation of the highest score over all lengths of the pattern's end, the longest of equals.
Continuation best_of(const SuffixScores& own, const std::vector<std::span<const Token>>& corpus, std::span<const Token> pattern) {
  Continuation best;
  std::vector<Occurrence> all;
  for (std::size_t length = 1; length < pattern.size(); ++length) {
    const Token first = pattern[pattern.size() - length];
    if (length == 1) {
      for (const std::span<const Token> in : corpus)
        for (const Token& token : in)
          if (token == first) all.push_back({&token, &token + 1, in});
    } else {
      std::erase_if(all, [&](const Occurrence& one) { return one.begin == one.in.data() || *(one.begin - 1) != first; });
      for (Occurrence& one : all) --one.begin;
    }
    if (all.empty()) break;
    const double wanted = std::floor(static_cast<double>(length) * own.factor + own.offset + 1e-6);
    // The tree is as deep as what is looked for and what follows it together.
    const double most = std::min({wanted, static_cast<double>(own.draft_length), own.depth - static_cast<double>(length)});
    Continuation one = follow(own, all, most);
    if (one.score >= best.score) best = std::move(one);
  }
  return best;
}

}  // namespace

std::optional<Followed> commonest_next(std::span<const Token> nexts) {
  if (nexts.empty()) return std::nullopt;
  std::map<Token, std::size_t> counts;
  for (const Token token : nexts) ++counts[token];
  const auto less = [](const auto& a, const auto& b) { return a.second < b.second; };
  const auto top = std::max_element(counts.begin(), counts.end(), less);
  const std::size_t most = top->second;
  const auto equals = std::count_if(counts.begin(), counts.end(), [&](const auto& one) { return one.second == most; });
  if (equals == 1) return Followed{top->first, most};
  if (most == 1) return Followed{nexts.front(), 1};
  // Only among equals does the order matter in which they came to be.
  std::vector<std::vector<Token>> with(most + 1);  // [times seen]: tokens, in the order of the tree's children
  counts.clear();
  for (const Token token : nexts) {
    const std::size_t seen = counts[token]++;
    bool leads = false;
    if (seen > 0) {
      const auto at = std::find(with[seen].begin(), with[seen].end(), token);
      leads = at == with[seen].begin();
      with[seen].erase(at);
    }
    with[seen + 1].insert(leads ? with[seen + 1].begin() : with[seen + 1].end(), token);
  }
  return Followed{with[most].front(), most};
}

Continuation suffix_continuation(const Sight& sight, const SuffixScores& own) {
  const std::span<const Token> text = sight.text();
  const std::span<const Token> pattern = text.last(std::min(text.size(), static_cast<std::size_t>(own.depth)));
  Continuation best = best_of(own, {text}, pattern);
  std::vector<std::span<const Token>> responses(own.past.begin(), own.past.end());
  responses.push_back(text.subspan(std::min(sight.prompt_tokens(), text.size())));
  Continuation global = best_of(own, responses, pattern);
  return global.score > best.score ? global : best;
}

}  // namespace specsim::draft
