#include "sim/rounds/draft/text_match.h"

#include <array>
#include <map>
#include <unordered_map>
#include <utility>

namespace specsim::draft {

namespace {

constexpr std::size_t kLongest = 4;       // most tokens of an n-gram
constexpr std::size_t kOfStatistics = 2;  // tokens of the static cache's n-grams

// How often each token followed. Ties go to the first token in the table's order, which is the standard library's, as in
// llama.cpp.
using Followers = std::unordered_map<std::int32_t, std::int64_t>;
using Counts = std::map<std::vector<Token>, Followers>;  // [n-gram]

// Counts all n-grams of these lengths in the tokens.
void count(Counts& counts, std::span<const Token> tokens, std::size_t shortest, std::size_t longest) {
  for (std::size_t n = shortest; n <= longest; ++n) {
    for (std::size_t at = 0; at + n < tokens.size(); ++at) {
      const std::span<const Token> ngram = tokens.subspan(at, n);
      ++counts[{ngram.begin(), ngram.end()}].emplace(static_cast<std::int32_t>(tokens[at + n]), 0).first->second;
    }
  }
}

// [n - 1]: the least count of an n-gram, and the least share of its token in percent.
struct Thresholds {
  std::array<std::int64_t, kLongest> seen;
  std::array<std::int64_t, kLongest> percent;
};
constexpr Thresholds kLax = {{2, 2, 1, 1}, {66, 50, 50, 50}};
constexpr Thresholds kStrict = {{4, 3, 2, 2}, {75, 66, 66, 66}};

struct CacheMemory final : BlockDrafter::Memory {
  [[nodiscard]] std::unique_ptr<Memory> copy() const override { return std::make_unique<CacheMemory>(*this); }
  Counts context;
  std::size_t read = 0;  // tokens of the text
};

class NgramCache final : public TextDrafter {
 public:
  struct Params {
    int draft_length = 8;
    std::vector<std::vector<Token>> statistics;
    std::vector<std::vector<Token>> past;
  };
  explicit NgramCache(const Params& params) : TextDrafter(params.draft_length, params.draft_length) {
    for (const std::vector<Token>& text : params.statistics) count(statistics_, text, kOfStatistics, kOfStatistics);
    for (const std::vector<Token>& text : params.past) count(past_, text, 1, kLongest);
  }

  [[nodiscard]] std::unique_ptr<Memory> start() const override { return std::make_unique<CacheMemory>(); }

  void choose(DrafterInput& input, Memory* memory, ChosenBlock& block) const override {
    auto& kept = static_cast<CacheMemory&>(*memory);
    const std::span<const Token> text = input.text();
    if (kept.read < text.size()) {
      // New tokens are counted by themselves: n-grams that begin in the part read before are not counted.
      count(kept.context, text.subspan(kept.read), 1, kLongest);
      kept.read = text.size();
    }
    if (text.size() < kOfStatistics) return;
    std::vector<Token> longer(text.begin(), text.end());
    while (longer.size() < text.size() + static_cast<std::size_t>(shape().draft_length)) {
      const std::int32_t next = token_after(kept.context, longer);
      if (next == kNone) break;
      longer.push_back(static_cast<Token>(next));
    }
    longer.erase(longer.begin(), longer.begin() + static_cast<std::ptrdiff_t>(text.size()));
    if (!longer.empty()) add_paths(block, {longer});
  }

 private:
  static constexpr std::int32_t kNone = -1;

  [[nodiscard]] std::int32_t token_after(const Counts& context, std::span<const Token> text) const {
    static const Followers kNothing;
    const std::span<const Token> end = text.last(kOfStatistics);
    const auto found = statistics_.find({end.begin(), end.end()});
    const Followers& usual = found == statistics_.end() ? kNothing : found->second;
    std::int32_t next = likely(context, text, usual, kLax);
    if (next == kNone) next = likely(past_, text, usual, kStrict);
    if (next == kNone) next = usual_token(usual);
    return next;
  }

  // Drafts after the longest n-gram that was seen often enough: the token with the largest product of its count after this n-gram
  // and its usual count.
  [[nodiscard]] static std::int32_t likely(const Counts& counts, std::span<const Token> text, const Followers& usual,
                                           const Thresholds& thresholds) {
    for (std::size_t n = std::min(kLongest, text.size()); n > 0; --n) {
      const std::span<const Token> end = text.last(n);
      const auto found = counts.find({end.begin(), end.end()});
      if (found == counts.end()) continue;
      std::int32_t best = kNone;
      std::int64_t times = 0;
      std::int64_t product = 0;
      std::int64_t all = 0;
      for (const auto& [token, here] : found->second) {
        const auto there = usual.find(token);
        const std::int64_t own = here * (there == usual.end() ? 1 : 100 * there->second);
        if (own > product) {
          best = token;
          times = here;
          product = own;
        }
        all += here;
      }
      if (all >= thresholds.seen[n - 1] && 100 * times >= thresholds.percent[n - 1] * all) return best;
    }
    return kNone;
  }

  [[nodiscard]] static std::int32_t usual_token(const Followers& usual) {
    std::int32_t best = kNone;
    std::int64_t most = 0;
    std::int64_t all = 0;
    for (const auto& [token, times] : usual) {
      if (times > most) best = token;
      most = std::max(most, times);
      all += times;
    }
    const bool sure = all >= kLax.seen[kOfStatistics - 1] && 100 * most >= kLax.percent[kOfStatistics - 1] * all;
    return sure ? best : kNone;
  }

  Counts statistics_;
  Counts past_;
};

}  // namespace

DrafterEntry ngram_cache_drafter() {
  using P = NgramCache::Params;
  static const config::Fields<P> fields = {
      {"draft_length", &P::draft_length, "tokens at most", config::between(1, kMaxDraftLength)},
      {"statistics", &P::statistics, "texts, as tokens, that the static cache counts pairs of tokens in (lookup-cache-static)",
       config::at_least(0), config::optional},
      {"past", &P::past, "texts of earlier requests, as tokens, that the dynamic cache counts in (lookup-cache-dynamic)",
       config::at_least(0), config::optional},
  };
  return {{"ngram_cache", "drafts token by token what followed the last four to one tokens often enough",
           "llama.cpp, --spec-type ngram-cache: ggml-org/llama.cpp, common/ngram-cache.cpp, commit 5c5f166, "
           "common/speculative.cpp, commit 001d906; pull request 5479",
           fields, "", "draft_length: 3"},
          [](const config::Arguments& arguments, Diagnostics& diagnostics) {
            check_tokens(arguments, "statistics", diagnostics);
            check_tokens(arguments, "past", diagnostics);
            return std::make_shared<NgramCache>(fields.read(arguments));
          },
          true};
}

}  // namespace specsim::draft
