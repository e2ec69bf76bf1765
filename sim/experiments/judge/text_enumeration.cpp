#include "sim/experiments/judge/text_enumeration.h"

#include "sim/experiments/judge/enumeration.h"
#include "sim/experiments/judge/method.h"

#include <fmt/format.h>

#include <utility>

namespace specsim::judge {

namespace {

// `kMoments`: of a sequence's rounds, from what `Draft` drafts after a text.
template <class Draft, auto kMoments>
class CopiedRounds final : public Enumeration {
 public:
  CopiedRounds(BlockRounds rounds, Draft draft) : Enumeration(std::move(rounds)), draft_(std::move(draft)) {}

 private:
  [[nodiscard]] RoundTheory work_out() const override {
    RoundTheory result;
    result.sequence = [distributions = automaton(-1), moves = transition(), start = rounds().start(), draft = draft_,
                       text = prompt_of(*rounds().cell)](int rounds) {
      return kMoments(distributions, moves, start, text, draft, rounds);
    };
    return result;
  }

  Draft draft_;
};

std::string why_not_read(const BlockRounds& rounds) {
  if (std::string why = why_not_kept(rounds); !why.empty()) return why;
  const double contexts = rounds.shape->contexts;
  if (rounds.hidden() && contexts * contexts > kMostTokens) return fmt::format("{} contexts: too many", rounds.shape->contexts);
  return rounds.shape->ends() ? "theory does not cover requests whose drafter reads the text" : "";
}

template <auto kMoments, class Draft>
Coverage follow(const spec::Cell& cell, Draft draft) {
  BlockRounds rounds(cell);
  std::string why = why_not_read(rounds);
  if (!why.empty()) return {nullptr, std::move(why)};
  return {std::make_unique<CopiedRounds<Draft, kMoments>>(std::move(rounds), std::move(draft)), ""};
}

}  // namespace

Coverage follow_text(const spec::Cell& cell, theory::TextDraft draft) {
  return follow<theory::text_moments>(cell, std::move(draft));
}

Coverage follow_history(const spec::Cell& cell, theory::HistoryDraft draft) {
  return follow<theory::history_moments>(cell, std::move(draft));
}

std::vector<std::vector<int>> drafter_texts(const spec::Cell& cell, const std::string& key) {
  std::vector<std::vector<int>> texts;
  const config::Arguments& own = drafter_arguments(cell);
  if (own.has(key))
    for (const std::vector<double>& text : own.table(key)) texts.emplace_back(text.begin(), text.end());
  return texts;
}

std::vector<int> prompt_of(const spec::Cell& cell) {
  const std::span<const Token> prompt = process(cell).prompt();
  return {prompt.begin(), prompt.end()};
}

}  // namespace specsim::judge
