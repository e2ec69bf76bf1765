#include "tests/support/round_figures.h"

#include "sim/foundation/base/check.h"

#include <cmath>

namespace specsim::theory {

double tokens_per_round_variance(double alpha, int draft_length) {
  SPECSIM_CHECK(alpha >= 0.0 && alpha <= 1.0, "alpha = {}", alpha);
  SPECSIM_CHECK(draft_length >= 0, "draft_length = {}", draft_length);
  // emitted = sum over i <= draft_length of [position i is reached], and for i <= j the covariance of two of these is
  // alpha^j (1 - alpha^i) = alpha^j (1 - alpha) geometric_sum(alpha, i).
  double power = 1.0;         // alpha^j
  double sum_j = 0.0;         // geometric_sum(alpha, j)
  double sums_below_j = 0.0;  // over i < j of geometric_sum(alpha, i)
  double total = 0.0;
  for (int j = 0; j <= draft_length; ++j) {
    total += power * (sum_j + 2.0 * sums_below_j);
    sums_below_j += sum_j;
    sum_j += power;
    power *= alpha;
  }
  return (1.0 - alpha) * total;
}

double marginal_tokens(double alpha, int draft_length) {
  SPECSIM_CHECK(alpha >= 0.0 && alpha <= 1.0, "alpha = {}", alpha);
  SPECSIM_CHECK(draft_length >= 0, "draft_length = {}", draft_length);
  return std::pow(alpha, draft_length + 1);
}

double claimed_marginal_tokens(double alpha, int draft_length) {
  // The limit at alpha = 0 is 0; the product would be 0 times infinity.
  return alpha == 0.0 ? 0.0 : -marginal_tokens(alpha, draft_length) * std::log(alpha);
}

}  // namespace specsim::theory
