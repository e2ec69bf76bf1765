// A budget of rows that a batch shares out among its drafted tokens: estimates of which of them survive, and how large it is.
#pragma once

#include <cstddef>
#include <vector>

namespace specsim::draft {

// The chance that each position's token is accepted once it is reached, learnt from what was: sigmoid(slope x + intercept[k]), x
// the log-odds of the draft's likeliest token, one slope for all positions. vLLM's constants.
class AcceptanceFit {
 public:
  // A fit of `positions`, kept in memory that start() made. `with_slope`: false leaves x out, and the positions' own rates are
  // learnt.
  AcceptanceFit(std::vector<double>& memory, std::size_t positions, bool with_slope)
      : memory_(memory), positions_(positions), with_slope_(with_slope) {}
  static std::vector<double> start(std::size_t positions, bool with_slope);

  [[nodiscard]] double chance(std::size_t k, double certainty) const;
  void observe(std::size_t k, double certainty, bool accepted);
  // One Newton step on the log-loss of what was observed since the last one, damped where that is little. The information matrix
  // is an arrowhead, so that the slope's step is found by leaving out the intercepts one by one.
  void refit();

 private:
  [[nodiscard]] double* own(std::size_t k);
  [[nodiscard]] const double* own(std::size_t k) const;

  std::vector<double>& memory_;
  std::size_t positions_;
  bool with_slope_;
};

// A drafted token that may be verified.
struct DraftSlot {
  double survival = 0.0;  // the estimated chance that all tokens of the chain are accepted as far as this one
  std::size_t position = 0;
  std::size_t chain = 0;
};
// The likeliest to survive first; where they are equal, the one nearer to its chain's beginning.
void sort_slots(std::vector<DraftSlot>& slots);

// The number of slots with the most expected tokens per time; of equals the fewest. `tokens`: those that come without any;
// `time`: of a round that verifies so many.
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

// As best_budget(), but no slot is looked at behind the first that does not pay. best_budget() of this round's slots would be no
// choice without foresight: whether a token is verified would hang on the confidence of those behind it, and so on the token
// itself.
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
