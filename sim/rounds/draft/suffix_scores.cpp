#include "sim/rounds/draft/suffix_scores.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <span>
#include <utility>

namespace specsim::draft {

namespace {

// One occurrence of the suffix, within a text that spans `front` to `back`.
struct Occurrence {
  const Token* begin = nullptr;  // its first token
  const Token* next = nullptr;   // the token after it
  const Token* front = nullptr;
  const Token* back = nullptr;
};

// Follows the most common next token, and the most common one after it; the score is the sum of the path's shares.
Continuation follow(const SuffixScores& own, const std::vector<Occurrence>& all, double most) {
  struct Place {
    const Token* next = nullptr;
    const Token* back = nullptr;
  };
  Continuation result;
  if (!(most > 0.0)) return result;
  std::vector<Place> places;  // places that the path so far passes through
  places.reserve(all.size());
  for (const Occurrence& one : all) places.push_back({one.next, one.back});
  std::vector<Token> nexts;
  nexts.reserve(all.size());
  double share = 1.0;
  while (static_cast<double>(result.path.size()) < most) {
    nexts.clear();
    for (const Place& place : places)
      if (place.next != place.back) nexts.push_back(*place.next);
    const std::optional<NextToken> commonest = commonest_next(nexts);
    if (!commonest) break;
    share *= static_cast<double>(commonest->times) / static_cast<double>(places.size());
    if (share < own.least) break;
    const Token token = commonest->token;
    std::erase_if(places, [&](const Place& place) { return place.next == place.back || *place.next != token; });
    for (Place& place : places) ++place.next;
    result.path.push_back(token);
    result.score += share;
  }
  return result;
}

// The continuation with the highest score over all suffix lengths; ties: the longest suffix.
Continuation best_of(const SuffixScores& own, const std::vector<std::span<const Token>>& corpus, std::span<const Token> pattern) {
  Continuation best;
  std::vector<Occurrence> all;
  for (std::size_t length = 1; length < pattern.size(); ++length) {
    const Token first = pattern[pattern.size() - length];
    if (length == 1) {
      for (const std::span<const Token> in : corpus)
        for (const Token& token : in)
          if (token == first) all.push_back({&token, &token + 1, in.data(), in.data() + in.size()});
    } else {
      std::erase_if(all, [&](const Occurrence& one) { return one.begin == one.front || *(one.begin - 1) != first; });
      for (Occurrence& one : all) --one.begin;
    }
    if (all.empty()) break;
    const double wanted = std::floor(static_cast<double>(length) * own.factor + own.offset + 1e-6);
    // The tree's depth limits the suffix and its continuation together.
    const double most = std::min({wanted, static_cast<double>(own.draft_length), own.depth - static_cast<double>(length)});
    Continuation one = follow(own, all, most);
    if (one.score >= best.score) best = std::move(one);
  }
  return best;
}

}  // namespace

std::optional<NextToken> commonest_next(std::span<const Token> nexts) {
  if (nexts.empty()) return std::nullopt;
  if (nexts.size() == 1) return NextToken{nexts.front(), 1};
  std::vector<Token> sorted(nexts.begin(), nexts.end());
  std::sort(sorted.begin(), sorted.end());
  Token top = 0;
  std::size_t most = 0;
  int equals = 0;  // tokens with the same count as the most common one
  for (auto same = sorted.begin(); same != sorted.end();) {
    const auto end = std::find_if(same, sorted.end(), [&](Token token) { return token != *same; });
    const auto times = static_cast<std::size_t>(end - same);
    equals = times > most ? 1 : equals + (times == most ? 1 : 0);
    if (times > most) top = *same;
    most = std::max(most, times);
    same = end;
  }
  if (equals == 1) return NextToken{top, most};
  if (most == 1) return NextToken{nexts.front(), 1};
  // The order of insertion matters only among ties.
  std::vector<std::vector<Token>> with(most + 1);  // [times seen]: tokens, in the order of the tree's children
  std::map<Token, std::size_t> counts;
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
  return NextToken{with[most].front(), most};
}

Continuation suffix_continuation(const DrafterInput& input, const SuffixScores& own) {
  const std::span<const Token> text = input.text();
  const std::span<const Token> pattern = text.last(std::min(text.size(), static_cast<std::size_t>(own.depth)));
  Continuation best = best_of(own, {text}, pattern);
  std::vector<std::span<const Token>> responses(own.past.begin(), own.past.end());
  responses.push_back(text.subspan(std::min(input.prompt_tokens(), text.size())));
  Continuation global = best_of(own, responses, pattern);
  return global.score > best.score ? global : best;
}

}  // namespace specsim::draft
