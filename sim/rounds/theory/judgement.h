// Verification rules at one position, written from the papers and not from the simulator. They give the mass with which a rule
// emits a token as an accepted draft and as the final token after a rejection.
//
// The draft token is drawn from `drafted`; `draft_model` is the draft model's own distribution; distributions as in bounds.h.
#pragma once

#include <span>
#include <vector>

namespace specsim::theory {

struct Judgement {
  std::vector<double> accepted;  // [vocab]: P(the draft token is x and is accepted); sums to alpha
  std::vector<double> rejected;  // [vocab]: P(the draft is rejected and the final token is x); sums to 1 - alpha
  [[nodiscard]] double alpha() const;
};

// Rejection sampling token by token (Leviathan et al. 2022, Chen et al. 2023): min(target, drafted), then (target - drafted)+.
[[nodiscard]] Judgement judge_token(std::span<const double> target, std::span<const double> drafted);

// The target samples, and the draft token is kept while the two are equal. At temperature 0 this is the greedy rule.
[[nodiscard]] Judgement judge_sample(std::span<const double> target, std::span<const double> drafted);

// Draft and target sample with the same Gumbel noise, and the draft token is kept while the two are equal. Both are x with
// probability 1 / sum over y of max(target(y) / target(x), drafted(y) / drafted(x)) (Daliri et al. 2024, arXiv 2408.07978).
// O(vocab^2).
[[nodiscard]] Judgement judge_gumbel(std::span<const double> target, std::span<const double> drafted);

// A published mistake: the draft model's argmax is judged as if it had been sampled from the model's own distribution.
[[nodiscard]] Judgement judge_soft_argmax(std::span<const double> target, std::span<const double> draft_model);

}  // namespace specsim::theory
