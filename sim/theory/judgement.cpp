#include "sim/theory/judgement.h"

#include "sim/base/check.h"
#include "sim/math/series.h"

#include <algorithm>

namespace specsim::theory {

double Judgement::alpha() const {
  math::CompensatedSum sum;
  for (const double mass : accepted) sum.add(mass);
  return std::min(1.0, sum.value());  // equal distributions may sum to 1 + 2e-16
}

Judgement judge(const std::string& verifier, std::span<const double> target, std::span<const double> drafted,
                std::span<const double> draft_model) {
  const std::size_t vocab = target.size();
  Judgement judgement{std::vector<double>(vocab), std::vector<double>(vocab)};
  if (verifier == "token") {
    for (std::size_t x = 0; x < vocab; ++x) {
      judgement.accepted[x] = std::min(target[x], drafted[x]);
      judgement.rejected[x] = target[x] > drafted[x] ? target[x] - drafted[x] : 0.0;
    }
  } else if (verifier == "greedy" || verifier == "sample_match") {
    // A one-hot target makes the greedy rule a special case of matching samples.
    for (std::size_t x = 0; x < vocab; ++x) {
      judgement.accepted[x] = target[x] * drafted[x];
      judgement.rejected[x] = target[x] * (1.0 - drafted[x]);
    }
  } else if (verifier == "soft_argmax") {
    std::size_t top = 0;
    for (std::size_t x = 1; x < vocab; ++x)
      if (draft_model[x] > draft_model[top]) top = x;
    const double accepted = target[top] >= draft_model[top] ? 1.0 : target[top] / draft_model[top];
    math::CompensatedSum lost;
    for (std::size_t x = 0; x < vocab; ++x)
      if (target[x] > draft_model[x]) lost.add(target[x] - draft_model[x]);
    judgement.accepted[top] = accepted;
    for (std::size_t x = 0; x < vocab && accepted < 1.0; ++x)
      if (target[x] > draft_model[x]) judgement.rejected[x] = (1.0 - accepted) * (target[x] - draft_model[x]) / lost.value();
  } else {
    SPECSIM_CHECK(false, "no theory of verifier {}", verifier);
  }
  return judgement;
}

}  // namespace specsim::theory
