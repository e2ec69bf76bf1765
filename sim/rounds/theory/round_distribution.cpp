#include "sim/rounds/theory/round_distribution.h"

#include "sim/foundation/base/check.h"
#include "sim/foundation/math/series.h"

namespace specsim::theory {
namespace {

void check_alpha(double alpha) { SPECSIM_CHECK(alpha >= 0.0 && alpha <= 1.0, "alpha = {}", alpha); }
void check_length(int draft_length) { SPECSIM_CHECK(draft_length >= 0, "draft_length = {}", draft_length); }

}  // namespace

double RoundDistribution::mean_accepted() const {
  math::CompensatedSum sum;
  for (std::size_t j = 1; j < accepted.size(); ++j) sum += static_cast<double>(j) * accepted[j];
  return sum.value();
}

double RoundDistribution::mean_emitted() const { return mean_accepted() + 1.0; }

double RoundDistribution::variance_emitted() const {
  const double mean = mean_accepted();
  math::CompensatedSum sum;
  for (std::size_t j = 0; j < accepted.size(); ++j) {
    const double deviation = static_cast<double>(j) - mean;
    sum += accepted[j] * deviation * deviation;
  }
  return sum.value();
}

double RoundDistribution::tail(int j) const {
  if (j <= 0) return 1.0;
  // Summed from the far end, where the terms are smallest.
  double sum = 0.0;
  for (int i = draft_length(); i >= j; --i) sum += accepted[static_cast<std::size_t>(i)];
  return sum;
}

RoundDistribution constant_alpha(double alpha, int draft_length) {
  check_length(draft_length);
  return by_position(std::vector<double>(static_cast<std::size_t>(draft_length), alpha));
}

RoundDistribution by_position(std::span<const double> alpha) {
  RoundDistribution distribution;
  distribution.accepted.reserve(alpha.size() + 1);
  double reached = 1.0;
  for (const double rate : alpha) {
    check_alpha(rate);
    distribution.accepted.push_back(reached * (1.0 - rate));
    reached *= rate;
  }
  distribution.accepted.push_back(reached);
  return distribution;
}

double tokens_per_round(double alpha, int draft_length) {
  check_alpha(alpha);
  check_length(draft_length);
  return math::geometric_sum(alpha, draft_length + 1);
}

double tokens_per_round(std::span<const double> alpha) {
  double sum = 1.0;
  for (std::size_t j = alpha.size(); j-- > 0;) {
    check_alpha(alpha[j]);
    sum = 1.0 + alpha[j] * sum;
  }
  return sum;
}

}  // namespace specsim::theory
