// Halves an interval around a place that a function decides.
#pragma once

namespace specsim {

struct Bisected {
  double low = 0.0;
  double high = 0.0;
  [[nodiscard]] double middle() const { return 0.5 * (low + high); }
};

constexpr int kToTheLastBit = 200;  // halvings after which no number lies between

// `is_below(x)`: whether x is below the place; from some x on it is false.
template <class IsBelow>
Bisected bisect(double low, double high, const IsBelow& is_below, int halvings = 60) {
  Bisected found{low, high};
  for (int i = 0; i < halvings; ++i) {
    const double middle = found.middle();
    if (middle == found.low || middle == found.high) break;
    (is_below(middle) ? found.low : found.high) = middle;
  }
  return found;
}

}  // namespace specsim
