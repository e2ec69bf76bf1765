// Lookahead decoding: n-grams from a window of guesses.
#include "sim/experiments/judge/enumeration.h"
#include "sim/experiments/judge/method.h"
#include "sim/experiments/judge/text_enumeration.h"

namespace specsim::judge {

namespace {

class LookaheadRounds final : public Enumeration {
 public:
  using Enumeration::Enumeration;

 private:
  [[nodiscard]] RoundTheory work_out() const override {
    const config::Arguments& own = drafter_arguments(*rounds().cell);
    const theory::Lookahead lookahead = {static_cast<int>(own.integer("window")), static_cast<int>(own.integer("ngram")),
                                         static_cast<int>(own.integer("guesses")), own.boolean("pool_from_text")};
    RoundTheory result;
    result.sequence = [distributions = automaton(-1), start = rounds().start(), text = prompt_of(*rounds().cell), lookahead](
                          int rounds) { return theory::lookahead_moments(distributions, start, text, lookahead, rounds); };
    return result;
  }
};

std::string why_not_looked(const BlockRounds& rounds) {
  if (std::string why = why_not_kept(rounds); !why.empty()) return why;
  if (rounds.hidden()) return "theory does not cover a window over contexts that move by themselves";
  return rounds.shape->ends() ? "theory does not cover requests whose drafter reads the text" : "";
}

}  // namespace

TheoryEntry lookahead_theory() {
  return {
      {"lookahead", "n-grams from a window of guesses and from the text, over every text", "Fu et al., arXiv 2402.02057", {}, ""},
      {"tree_point_mass", "greedy_tree"},
      {"lookahead"},
      [](const spec::Cell& cell) -> Coverage {
        BlockRounds rounds(cell);
        std::string why = why_not_looked(rounds);
        if (!why.empty()) return {nullptr, std::move(why)};
        return {std::make_unique<LookaheadRounds>(std::move(rounds)), ""};
      }};
}

}  // namespace specsim::judge
