#include "sim/foundation/math/stochastic_matrix.h"

#include "sim/foundation/base/check.h"

#include <cmath>
#include <cstddef>
#include <utility>

namespace specsim::math {

std::vector<double> stationary_distribution(const std::vector<double>& transition, int states) {
  const auto n = static_cast<std::size_t>(states);
  SPECSIM_CHECK(n > 0 && transition.size() == n * n, "{} entries for {} states", transition.size(), n);
  // pi (P - I) = 0 with the last equation replaced by sum pi = 1.
  std::vector<double> a(n * n);
  std::vector<double> b(n, 0.0);
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t j = 0; j < n; ++j) a[j * n + i] = transition[i * n + j] - (i == j ? 1.0 : 0.0);
  for (std::size_t i = 0; i < n; ++i) a[(n - 1) * n + i] = 1.0;
  b[n - 1] = 1.0;
  for (std::size_t column = 0; column < n; ++column) {
    std::size_t pivot = column;
    for (std::size_t row = column + 1; row < n; ++row)
      if (std::abs(a[row * n + column]) > std::abs(a[pivot * n + column])) pivot = row;
    SPECSIM_CHECK(std::abs(a[pivot * n + column]) > 1e-14, "no unique stationary distribution, column {}", column);
    for (std::size_t k = 0; k < n; ++k) std::swap(a[column * n + k], a[pivot * n + k]);
    std::swap(b[column], b[pivot]);
    for (std::size_t row = 0; row < n; ++row) {
      if (row == column) continue;
      const double factor = a[row * n + column] / a[column * n + column];
      for (std::size_t k = column; k < n; ++k) a[row * n + k] -= factor * a[column * n + k];
      b[row] -= factor * b[column];
    }
  }
  for (std::size_t i = 0; i < n; ++i) b[i] /= a[i * n + i];
  return b;
}

}  // namespace specsim::math
