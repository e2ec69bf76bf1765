#include "sim/draft/text_match.h"

#include <fmt/format.h>

#include <algorithm>

namespace specsim::draft {

namespace {

class Lookahead final : public TextDrafter {
 public:
  Lookahead(int window, int ngram, int guesses)
      : TextDrafter(ngram - 1, guesses * (ngram - 1)), window_(window), guesses_(static_cast<std::size_t>(guesses)) {}

  // The newest different n-grams of the pool that begin with the text's last token.
  void choose(Sight& sight, ChosenBlock& block) const override {
    const std::span<const Token> text = sight.text();
    const auto tail = static_cast<std::size_t>(shape().draft_length);
    std::vector<std::vector<Token>> paths;
    for (std::size_t end = text.size() > tail ? text.size() - tail : 0; end > 0 && paths.size() < guesses_; --end) {
      if (!matches_end(text, end, 1)) continue;
      std::vector<Token> path(text.begin() + static_cast<std::ptrdiff_t>(end),
                              text.begin() + static_cast<std::ptrdiff_t>(end + tail));
      if (std::find(paths.begin(), paths.end(), path) == paths.end()) paths.push_back(std::move(path));
    }
    add_paths(block, paths);
  }

  // The lookahead branch goes through the target with the guesses.
  [[nodiscard]] Work work(int nodes) const override { return {{}, 1.0 + nodes + window_ * shape().draft_length}; }

 private:
  int window_;
  std::size_t guesses_;
};

}  // namespace

DrafterEntry lookahead_drafter() {
  return {
      {"lookahead",
       "n-grams of the text so far that begin with its last token, several at once",
       "Fu et al. (lookahead decoding), arXiv 2402.02057",
       {{"window", config::Type::integer, "15", "W: positions of the Jacobi window, priced", config::between(1, 256), {}},
        {"ngram",
         config::Type::integer,
         "5",
         "N: tokens of an n-gram, the first of which is the text's last",
         config::between(2, kMaxDraftLength),
         {}},
        {"guesses", config::Type::integer, "15", "G: n-grams verified together at most", config::between(1, 256), {}}},
       "No draft model. A guess is an n-gram of prompt or emitted text that begins with the text's last token, the newest first: "
       "the pool of the reference filled from prompt and accepted text. The n-grams that it takes from its Jacobi window as "
       "well, greedy continuations of "
       "tokens that it copied into the window, are not simulated, while the window's W (N - 1) rows of the target's pass are "
       "paid for: tokens per round are a lower bound where the window would add hits. The formula for b independent n-grams "
       "is another matter: typical acceptance of b chains drawn apart, at temperature 0, has exactly its law."},
      [](const config::Arguments& arguments, Diagnostics& diagnostics) {
        const auto ngram = static_cast<int>(arguments.integer("ngram"));
        const auto guesses = static_cast<int>(arguments.integer("guesses"));
        constexpr int kMostNodes = 1024;
        if (guesses * (ngram - 1) > kMostNodes) {
          diagnostics.add(arguments.where("guesses"),
                          fmt::format("guesses (ngram - 1) is {}, allowed: at most {}", guesses * (ngram - 1), kMostNodes));
          return Draft();
        }
        return Draft{{ngram - 1, false},
                     std::make_shared<Lookahead>(static_cast<int>(arguments.integer("window")), ngram, guesses)};
      }};
}

}  // namespace specsim::draft
