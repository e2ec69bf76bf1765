#include "sim/rounds/draft/text_match.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

namespace specsim::draft {

namespace {

// n-grams by their first token; of each first token the newest `guesses` different ones.
class Pool {
 public:
  Pool(std::size_t tail, std::size_t guesses) : tail_(tail), guesses_(guesses) {}

  // `ngram`: 1 + tail tokens.
  void add(std::span<const Token> ngram) {
    std::vector<Token>& known = tails_[ngram[0]];
    const std::span<const Token> tail = ngram.subspan(1);
    auto old = known.begin();
    while (old != known.end() && !std::equal(tail.begin(), tail.end(), old)) old += width();
    if (old == known.end() && known.size() == guesses_ * tail_) old = known.begin();
    if (old != known.end()) known.erase(old, old + width());
    known.insert(known.end(), tail.begin(), tail.end());
  }

  // The n-grams after `first`, the newest first.
  [[nodiscard]] std::vector<std::vector<Token>> after(Token first) const {
    std::vector<std::vector<Token>> paths;
    const auto found = tails_.find(first);
    if (found != tails_.end())
      for (auto end = found->second.end(); end != found->second.begin(); end -= width()) paths.emplace_back(end - width(), end);
    return paths;
  }

 private:
  [[nodiscard]] std::ptrdiff_t width() const { return static_cast<std::ptrdiff_t>(tail_); }
  std::size_t tail_;
  std::size_t guesses_;
  std::unordered_map<Token, std::vector<Token>> tails_;  // oldest first, concatenated
};

struct LookaheadMemory final : BlockDrafter::Memory {
  explicit LookaheadMemory(Pool empty) : pool(std::move(empty)) {}
  [[nodiscard]] std::unique_ptr<Memory> copy() const override { return std::make_unique<LookaheadMemory>(*this); }
  Pool pool;
  std::size_t read = 0;  // tokens of the text that have been added to the pool
  // levels[l][i]: a guess of the token l + i places after the text's last one. Column 0 of level 0 is that last token itself and
  // is not stored: levels[0][i] belongs to column i + 1.
  std::vector<std::vector<Token>> levels;
};

class Lookahead final : public TextDrafter {
 public:
  struct Params {
    std::size_t window = 15;
    std::size_t ngram = 5;
    std::size_t guesses = 15;
    bool pool_from_text = true;
  };
  explicit Lookahead(const Params& params)
      : TextDrafter(static_cast<int>(params.ngram) - 1, static_cast<int>(params.guesses * (params.ngram - 1))), params_(params) {
    shape_.looks_past_block = true;
  }

  [[nodiscard]] std::unique_ptr<Memory> start() const override {
    return std::make_unique<LookaheadMemory>(Pool(params_.ngram - 1, params_.guesses));
  }

  void choose(DrafterInput& input, Memory* memory, ChosenBlock& block) const override {
    auto& own = static_cast<LookaheadMemory&>(*memory);
    const std::span<const Token> text = input.text();
    for (; params_.pool_from_text && own.read < text.size(); ++own.read)
      if (own.read + 1 >= params_.ngram) own.pool.add(text.subspan(own.read + 1 - params_.ngram, params_.ngram));
    if (params_.window > 0 && own.levels.empty()) {
      std::vector<Token>& first =
          own.levels.emplace_back(params_.window + params_.ngram - 3);  // each round loses one until the window is full
      for (std::size_t i = 0; i < first.size(); ++i) first[i] = input.random_token(static_cast<std::uint32_t>(i));
    }
    const bool full = params_.window == 0 || own.levels.size() == params_.ngram - 1;
    if (full && !text.empty()) add_paths(block, own.pool.after(text.back()));
    if (params_.window > 0) advance(input, own);
  }

  // The window passes through the target together with the guesses; the text's last token is a row too.
  [[nodiscard]] BlockWork work(int nodes) const override {
    return {{}, nodes + std::max(1.0, static_cast<double>(params_.window) * shape().draft_length)};
  }

 private:
  // The target's pass over the window: it gives the token after each column of the last level, which has seen level 0 up to the
  // column and the other levels in the column. A full window adds its columns to the pool; level 1 then replaces level 0.
  void advance(DrafterInput& input, LookaheadMemory& own) const {
    std::vector<std::vector<Token>>& levels = own.levels;
    const bool full = levels.size() == params_.ngram - 1;
    const std::span<const Token> text = input.text();
    const std::size_t columns = levels[0].size() + 1;
    std::vector<DrafterInput::Prefix> prefixes;
    DrafterInput::Prefix row = input.end_of_text();
    for (std::size_t i = 0; i < columns; ++i) {
      if (i > 0) row = input.after(row, levels[0][i - 1]);
      DrafterInput::Prefix& prefix = prefixes.emplace_back(row);
      for (std::size_t l = 1; l < levels.size(); ++l) prefix = input.after(prefix, levels[l][i]);
    }
    std::vector<Token> next = input.target_argmax(prefixes);
    std::vector<Token> ngram;
    for (std::size_t i = full && text.empty() ? 1 : 0; full && i < columns; ++i) {
      ngram.assign(1, i == 0 ? text.back() : levels[0][i - 1]);
      for (std::size_t l = 1; l < levels.size(); ++l) ngram.push_back(levels[l][i]);
      ngram.push_back(next[i]);
      own.pool.add(ngram);
    }
    levels.push_back(std::move(next));
    if (full) {
      levels.erase(levels.begin());
      levels[0].erase(levels[0].begin());
    } else {
      for (std::vector<Token>& level : levels) level.erase(level.begin());
    }
  }

  Params params_;
};

}  // namespace

DrafterEntry lookahead_drafter() {
  using P = Lookahead::Params;
  static const config::Fields<P> fields = {
      {"window", &P::window, "W: columns of the Jacobi window; 0: none", config::between(0, 256)},
      {"ngram", &P::ngram, "N: tokens of an n-gram, the first of which is the text's last", config::between(2, kMaxDraftLength)},
      {"guesses", &P::guesses, "G: n-grams kept for each first token, and verified together", config::between(1, 256)},
      {"pool_from_text", &P::pool_from_text, "the n-grams of prompt and emitted text are added to the pool as well"},
  };
  return {
      {"lookahead",
       "Lookahead decoding needs no draft model: extra rows in each target pass guess future tokens, and the n-grams they form "
       "are verified later",
       "Fu et al. (lookahead decoding), arXiv 2402.02057; hao-ai-lab/LookaheadDecoding, lade/decoding.py, commit 7571393", fields,
       "", "window: 0, ngram: 3, guesses: 2"},
      [](const config::Arguments& arguments, Diagnostics& diagnostics) {
        const P params = fields.read(arguments);
        constexpr std::size_t kMostNodes = 1024;
        if (params.guesses * (params.ngram - 1) > kMostNodes)
          diagnostics.add(arguments.where("guesses"), fmt::format("guesses (ngram - 1) is {}, allowed: at most {}",
                                                                  params.guesses * (params.ngram - 1), kMostNodes));
        if (params.window > 0 && params.window < params.ngram - 2)
          diagnostics.add(arguments.where("window"), fmt::format("window is {}, allowed with n-grams of {}: 0 or at least {}",
                                                                 params.window, params.ngram, params.ngram - 2));
        if (params.window == 0 && !params.pool_from_text)
          diagnostics.add(arguments.where("window"), "no window and no text to take n-grams from, allowed: either");
        return std::make_shared<Lookahead>(params);
      },
      true};
}

}  // namespace specsim::draft
