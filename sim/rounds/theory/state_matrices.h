// Vectors over states and matrices of states x states, as the theories of moving contexts multiply them.
#pragma once

#include "sim/foundation/base/index.h"

#include <cstddef>
#include <span>
#include <vector>

namespace specsim::theory {

using Vector = std::vector<double>;
using Matrix = std::vector<double>;  // states x states, row-major

// One matrix serves every position of a block, or each has its own.
inline const Matrix& at_position(const std::vector<Matrix>& matrices, int position) {
  return matrices.size() == 1 ? matrices.front() : matrices[index_of(position)];
}

inline double dot(std::span<const double> left, std::span<const double> right) {
  double sum = 0.0;
  for (std::size_t i = 0; i < left.size(); ++i) sum += left[i] * right[i];
  return sum;
}

// out += scale * row * matrix.
inline void add_row_times(std::span<const double> row, const Matrix& matrix, double scale, Vector& out) {
  const std::size_t states = row.size();
  for (std::size_t s = 0; s < states; ++s) {
    const double weight = scale * row[s];
    if (weight == 0.0) continue;
    const double* entries = matrix.data() + s * states;
    for (std::size_t next = 0; next < states; ++next) out[next] += weight * entries[next];
  }
}

inline Vector row_times(std::span<const double> row, const Matrix& matrix) {
  Vector out(row.size(), 0.0);
  add_row_times(row, matrix, 1.0, out);
  return out;
}

// matrix * column; four partial sums, because one alone waits for each addition.
inline Vector times_column(const Matrix& matrix, std::span<const double> column) {
  const std::size_t states = column.size();
  Vector out(states);
  for (std::size_t s = 0; s < states; ++s) {
    const double* entries = matrix.data() + s * states;
    double part[4] = {0.0, 0.0, 0.0, 0.0};
    std::size_t next = 0;
    for (; next + 4 <= states; next += 4) {
      for (std::size_t lane = 0; lane < 4; ++lane) part[lane] += entries[next + lane] * column[next + lane];
    }
    for (; next < states; ++next) part[0] += entries[next] * column[next];
    out[s] = (part[0] + part[1]) + (part[2] + part[3]);
  }
  return out;
}

}  // namespace specsim::theory
