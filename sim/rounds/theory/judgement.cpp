#include "sim/rounds/theory/judgement.h"

#include "sim/foundation/math/series.h"

#include <algorithm>

namespace specsim::theory {

double Judgement::alpha() const {
  math::CompensatedSum sum;
  for (const double mass : accepted) sum.add(mass);
  return std::min(1.0, sum.value());  // equal distributions may sum to 1 + 2e-16
}

Judgement judge_token(std::span<const double> target, std::span<const double> drafted) {
  Judgement judgement{std::vector<double>(target.size()), std::vector<double>(target.size())};
  for (std::size_t x = 0; x < target.size(); ++x) {
    judgement.accepted[x] = std::min(target[x], drafted[x]);
    judgement.rejected[x] = target[x] > drafted[x] ? target[x] - drafted[x] : 0.0;
  }
  return judgement;
}

Judgement judge_sample(std::span<const double> target, std::span<const double> drafted) {
  Judgement judgement{std::vector<double>(target.size()), std::vector<double>(target.size())};
  for (std::size_t x = 0; x < target.size(); ++x) {
    judgement.accepted[x] = target[x] * drafted[x];
    judgement.rejected[x] = target[x] * (1.0 - drafted[x]);
  }
  return judgement;
}

Judgement judge_soft_argmax(std::span<const double> target, std::span<const double> draft_model) {
  const std::size_t vocab = target.size();
  Judgement judgement{std::vector<double>(vocab), std::vector<double>(vocab)};
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
  return judgement;
}

Judgement judge_gumbel(std::span<const double> target, std::span<const double> drafted) {
  Judgement judgement{std::vector<double>(target.size(), 0.0), std::vector<double>(target.begin(), target.end())};
  for (std::size_t x = 0; x < target.size(); ++x) {
    if (target[x] == 0.0 || drafted[x] == 0.0) continue;
    double sum = 0.0;
    for (std::size_t y = 0; y < target.size(); ++y) sum += std::max(target[y] / target[x], drafted[y] / drafted[x]);
    judgement.accepted[x] = 1.0 / sum;
    judgement.rejected[x] = std::max(target[x] - 1.0 / sum, 0.0);
  }
  return judgement;
}

}  // namespace specsim::theory
