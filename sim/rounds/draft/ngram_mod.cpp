#include "sim/rounds/draft/text_match.h"

#include <algorithm>
#include <cstdint>
#include <unordered_map>
#include <utility>

namespace specsim::draft {

namespace {

// One token per hash of n tokens, whatever these tokens are: the one that was written last.
class HashedTokens {
 public:
  explicit HashedTokens(std::size_t n) : n_(n) {}
  // Adds all places of the text from `first` on.
  void add(std::span<const Token> text, std::size_t first) {
    for (std::size_t at = first; at + n_ < text.size(); ++at) tokens_[slot(text.subspan(at, n_))] = text[at + n_];
  }
  // nullptr: no token was written there.
  [[nodiscard]] const Token* after(std::span<const Token> ngram) const {
    const auto found = tokens_.find(slot(ngram));
    return found == tokens_.end() ? nullptr : &found->second;
  }
  void clear() { tokens_.clear(); }

 private:
  [[nodiscard]] static std::uint32_t slot(std::span<const Token> ngram) {
    constexpr std::uint64_t kFactor = 6364136223846793005ULL;
    constexpr std::uint64_t kSlots = std::uint64_t{4} * 1024 * 1024;
    std::uint64_t hash = 0;
    for (const Token token : ngram) hash = hash * kFactor + token;
    return static_cast<std::uint32_t>(hash % kSlots);
  }
  std::size_t n_;
  std::unordered_map<std::uint32_t, Token> tokens_;
};

struct HashMemory final : BlockDrafter::Memory {
  explicit HashMemory(HashedTokens of_past) : hashed(std::move(of_past)) {}
  [[nodiscard]] std::unique_ptr<Memory> copy() const override { return std::make_unique<HashMemory>(*this); }
  HashedTokens hashed;
  bool begun = false;
  std::size_t next = 0;     // the first place that was not added yet
  std::size_t length = 0;   // tokens of the text at the last draft
  std::size_t drafted = 0;  // tokens then
  int poor = 0;             // drafts in a row of which less than a quarter was accepted
};

class NgramMod final : public TextDrafter {
 public:
  struct Params {
    int draft_length = 64;
    std::size_t n_match = 24;
    std::size_t n_min = 48;
    std::vector<std::vector<Token>> past;
  };
  explicit NgramMod(const Params& params)
      : TextDrafter(params.draft_length, params.draft_length), n_(params.n_match), least_(params.n_min), past_(n_) {
    for (const std::vector<Token>& text : params.past) past_.add(text, 0);
  }

  [[nodiscard]] std::unique_ptr<Memory> start() const override { return std::make_unique<HashMemory>(past_); }

  void update_memory(const DrafterInput& input, Memory* memory) const override {
    auto& kept = static_cast<HashMemory&>(*memory);
    const std::span<const Token> text = input.text();
    judge_last(kept, text.size());
    if (!std::exchange(kept.begun, true)) read(kept, text);  // the prompt
  }

  void choose(DrafterInput& input, Memory* memory, ChosenBlock& block) const override {
    update_memory(input, memory);
    auto& kept = static_cast<HashMemory&>(*memory);
    const std::span<const Token> text = input.text();
    kept.length = text.size();
    if (text.size() <= n_) return;
    // The program's list is the text without its newest token.
    const std::span<const Token> listed = text.first(text.size() - 1);
    constexpr std::size_t kChunk = 32;
    if (kept.next + kChunk < listed.size()) read(kept, listed);
    std::vector<Token> path(text.end() - static_cast<std::ptrdiff_t>(n_), text.end());
    while (path.size() < n_ + static_cast<std::size_t>(shape().draft_length)) {
      const Token* const next = kept.hashed.after(std::span(path).last(n_));
      if (next == nullptr) break;
      path.push_back(*next);
    }
    path.erase(path.begin(), path.begin() + static_cast<std::ptrdiff_t>(n_));
    if (path.empty() || path.size() < std::min(least_, static_cast<std::size_t>(shape().draft_length))) return;
    kept.drafted = path.size();
    add_paths(block, {path});
  }

 private:
  static constexpr int kPoorDrafts = 5;

  // Judges the last draft: everything is forgotten after five poor drafts in a row.
  static void judge_last(HashMemory& kept, std::size_t length) {
    const std::size_t drafted = std::exchange(kept.drafted, 0);
    if (drafted == 0 || length <= kept.length) return;
    const std::size_t accepted = std::min(drafted, length - kept.length - 1);
    kept.poor = 4 * accepted < drafted ? kept.poor + 1 : 0;
    if (kept.poor < kPoorDrafts) return;
    kept.hashed.clear();
    kept.poor = 0;
    kept.next = 0;
  }

  void read(HashMemory& kept, std::span<const Token> text) const {
    if (text.size() < n_) return;
    kept.hashed.add(text, kept.next);
    kept.next = text.size() - n_;
  }

  std::size_t n_;
  std::size_t least_;
  HashedTokens past_;
};

}  // namespace

DrafterEntry ngram_mod_drafter() {
  using P = NgramMod::Params;
  static const config::Fields<P> fields = {
      {"draft_length", &P::draft_length, "maximum number of tokens drafted (spec-ngram-mod-n-max)",
       config::between(1, kMaxDraftLength)},
      {"n_match", &P::n_match, "tokens that are hashed (spec-ngram-mod-n-match)", config::between(1, 256)},
      {"n_min", &P::n_min, "minimum number of tokens drafted; shorter drafts are dropped (spec-ngram-mod-n-min)",
       config::between(0, kMaxDraftLength)},
      {"past", &P::past, "texts of earlier requests, as tokens: all requests share one table", config::at_least(0),
       config::optional},
  };
  return {{"ngram_mod", "follows a hash table that maps each n tokens to the token that came next",
           "llama.cpp, --spec-type ngram-mod: ggml-org/llama.cpp, common/ngram-mod.cpp, commit 20a0483, common/speculative.cpp, "
           "commit 001d906, pull request 19164",
           fields, "", "draft_length: 4, n_match: 1, n_min: 1"},
          [](const config::Arguments& arguments, Diagnostics& diagnostics) {
            check_tokens(arguments, "past", diagnostics);
            return std::make_shared<NgramMod>(fields.read(arguments));
          },
          true};
}

}  // namespace specsim::draft
