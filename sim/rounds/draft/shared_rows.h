// A budget of rows that a batch shares among its draft tokens: estimates of which tokens survive, and the size of the budget.
// Both adaptive_verification policies use it: decode's and the server's.
#pragma once

#include "sim/foundation/config/fields.h"
#include "sim/rounds/draft/length_policy.h"

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

namespace specsim::draft {

// How the probability that a draft token is accepted is estimated before verification: from past acceptance at its position, from
// the draft's distribution there, or from that distribution's overlap with the target's.
enum class Confidence { history, estimate, head };

// How many tokens the batch verifies: best_budget() of the round before, budget_stopped_early() of this round, or a fixed number
// per sequence.
enum class RowBudget { previous, early_stop, rows };

struct SharedRows {
  std::optional<Confidence> confidence;  // nullopt: the best one available
  RowBudget budget = RowBudget::previous;
  double rows = 1.0;       // rows verified of each sequence in the mean, with RowBudget::rows
  int refit = 100;         // rounds from one fit to the next
  double smoothing = 0.0;  // weight of the past mean in the moving mean of confidences, for RowBudget::previous

  [[nodiscard]] double smoothed(double before, double now) const { return smoothing * before + (1.0 - smoothing) * now; }

  [[nodiscard]] std::size_t fixed_budget(std::size_t sequences) const {
    return static_cast<std::size_t>(rows * static_cast<double>(sequences) + 1e-9);
  }
};
// confidence, budget, rows, refit and smoothing. A decoder shares rows out once per round and knows how its drafts look; a server
// does so once per step and may not know it.
enum class Sharer { decoder, server };
config::Fields<SharedRows> shared_rows_fields(Sharer sharer);

// The probability that each position's token is accepted if it is reached, learnt from past acceptance: sigmoid(slope x +
// intercept[k]). x is the log-odds of the draft's likeliest token; one slope for all positions. vLLM's constants.
class AcceptanceFit {
 public:
  // A fit of `positions`, kept in memory that start() made. Confidence::history drops x and learns the positions' own rates.
  // Confidence::head learns nothing, since an forecast holds the answer.
  AcceptanceFit(std::vector<double>& memory, std::size_t positions, Confidence confidence)
      : memory_(memory), positions_(positions), confidence_(confidence) {}
  static std::vector<double> start(std::size_t positions, Confidence confidence);

  // For token k of a chain with these forecasts, which Confidence::history does not use.
  [[nodiscard]] double chance(std::span<const LengthPolicy::TokenForecast> forecasts, std::size_t k) const;
  // Learns from a chain with this many verified and accepted tokens.
  void observe(std::span<const LengthPolicy::TokenForecast> forecasts, std::size_t verified, std::size_t accepted);
  // One Newton step on the log-loss of the observations since the last fit, damped if these are few. The information matrix is an
  // arrowhead, so the intercepts are eliminated one by one to find the slope's step.
  void refit();

 private:
  [[nodiscard]] double* own(std::size_t k);
  [[nodiscard]] const double* own(std::size_t k) const;
  [[nodiscard]] double certainty(std::span<const LengthPolicy::TokenForecast> forecasts, std::size_t k) const {
    return confidence_ == Confidence::estimate ? forecasts[k].certainty : 0.0;
  }

  std::vector<double>& memory_;
  std::size_t positions_;
  Confidence confidence_;
};

// A draft token that may be verified.
struct DraftSlot {
  double survival = 0.0;  // estimated probability that all tokens of the chain up to this one are accepted
  std::size_t position = 0;
  std::size_t chain = 0;
};
// The likeliest to survive first; ties: the one nearer to its chain's beginning.
void sort_slots(std::vector<DraftSlot>& slots);

// The number of slots with the most expected tokens per time; ties: the fewest slots. `tokens`: emitted without any slot; `time`:
// of a round that verifies this many.
template <class Time>
std::size_t best_budget(const std::vector<DraftSlot>& slots, double tokens, const Time& time) {
  double most = tokens / time(std::size_t{0});
  std::size_t budget = 0;
  for (std::size_t i = 0; i < slots.size(); ++i) {
    tokens += slots[i].survival;
    const double rate = tokens / time(i + 1);
    if (rate <= most) continue;
    most = rate;
    budget = i + 1;
  }
  return budget;
}

// Like best_budget(), but stops at the first slot that does not pay. best_budget() over this round's slots would need foresight:
// whether a token is verified would depend on the confidence of later tokens, and so on the token itself.
template <class Time>
std::size_t budget_stopped_early(const std::vector<DraftSlot>& slots, double tokens, const Time& time) {
  double most = tokens / time(std::size_t{0});
  for (std::size_t i = 0; i < slots.size(); ++i) {
    tokens += slots[i].survival;
    const double rate = tokens / time(i + 1);
    if (rate <= most) return i;
    most = rate;
  }
  return slots.size();
}

}  // namespace specsim::draft
