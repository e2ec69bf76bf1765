#include "sim/foundation/math/series.h"

#include "sim/foundation/base/check.h"

#include <cmath>

namespace specsim::math {

double geometric_sum(double alpha, int terms) {
  SPECSIM_CHECK(alpha >= 0.0 && std::isfinite(alpha), "alpha = {}", alpha);
  SPECSIM_CHECK(terms >= 0, "terms = {}", terms);
  // Horner's scheme adds only positive terms, so it is accurate at any ratio; long sums use the closed form for speed.
  constexpr int kLongestDirect = 64;
  if (terms <= kLongestDirect) {
    double sum = 0.0;
    for (int i = 0; i < terms; ++i) sum = sum * alpha + 1.0;
    return sum;
  }
  const double gap = 1.0 - alpha;
  if (gap == 0.0) return terms;
  // alpha is exact, and so is 1 - alpha for alpha in [1/2, 2]. expm1 keeps the digits that 1 - alpha^terms would lose.
  return -std::expm1(terms * std::log(alpha)) / gap;
}

double geometric_sum_derivative(double alpha, int terms) {
  SPECSIM_CHECK(alpha >= 0.0 && std::isfinite(alpha), "alpha = {}", alpha);
  SPECSIM_CHECK(terms >= 0, "terms = {}", terms);
  double sum = 0.0;
  for (int i = terms - 1; i >= 1; --i) sum = sum * alpha + i;
  return sum;
}

void CompensatedSum::add(double term) {
  const double next = sum_ + term;
  // The smaller of the two addends is the one that loses digits.
  lost_ += std::abs(sum_) >= std::abs(term) ? (sum_ - next) + term : (term - next) + sum_;
  sum_ = next;
}

void CompensatedSum::add(const CompensatedSum& other) {
  add(other.sum_);
  lost_ += other.lost_;
}

}  // namespace specsim::math
