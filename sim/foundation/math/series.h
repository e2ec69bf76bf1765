// Sums that stay accurate: geometric sums near ratio 1, and compensated addition.
#pragma once

namespace specsim::math {

// sum over 0 <= i < terms of alpha^i; alpha >= 0, terms >= 0. Exactly `terms` at alpha = 1, relative error of a few
// rounding units everywhere, also where 1 - alpha is tiny.
[[nodiscard]] double geometric_sum(double alpha, int terms);

// d/d alpha of geometric_sum: sum over 1 <= i < terms of i alpha^(i-1). Every term is positive: nothing cancels. O(terms).
[[nodiscard]] double geometric_sum_derivative(double alpha, int terms);

// Neumaier's variant of Kahan summation: the error does not grow with the number of terms, and a term larger than the
// running sum loses nothing. Mergeable.
class CompensatedSum {
 public:
  CompensatedSum() = default;
  explicit CompensatedSum(double start) : sum_(start) {}
  void add(double term);
  void add(const CompensatedSum& other);
  CompensatedSum& operator+=(double term) {
    add(term);
    return *this;
  }
  [[nodiscard]] double value() const { return sum_ + lost_; }

 private:
  double sum_ = 0.0;
  double lost_ = 0.0;  // rounding errors of sum_
};

}  // namespace specsim::math
