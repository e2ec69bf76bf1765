// What each verification rule does at one position, written from the papers and not from the simulator: the mass with
// which it emits a token as an accepted draft and as the final token after a rejection.
#pragma once

#include <span>
#include <string>
#include <vector>

namespace specsim::theory {

struct Judgement {
  std::vector<double> accepted;  // [vocab]: P(the draft token is x and is accepted); sums to alpha
  std::vector<double> rejected;  // [vocab]: P(the draft is rejected and the final token is x); sums to 1 - alpha
  [[nodiscard]] double alpha() const;
};

// Rules `token` (Leviathan et al., Chen et al.), `greedy`, `sample_match` and `soft_argmax` (see bounds.h). `drafted` is
// what the draft token is drawn from, `draft_model` the draft model's own distribution; distributions as in bounds.h.
[[nodiscard]] Judgement judge(const std::string& verifier, std::span<const double> target, std::span<const double> drafted,
                              std::span<const double> draft_model);

}  // namespace specsim::theory
