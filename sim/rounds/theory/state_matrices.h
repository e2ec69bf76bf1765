// Vectors over states and matrices of states x states, and their products, for the theories of moving contexts.
#pragma once

#include "sim/foundation/base/index.h"
#include "sim/foundation/math/series.h"

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

namespace specsim::theory {

using Vector = std::vector<double>;
using Matrix = std::vector<double>;  // states x states, row-major

// The matrix of a position: one matrix may apply to all positions of a block.
inline const Matrix& at_position(const std::vector<Matrix>& matrices, int position) {
  return matrices.size() == 1 ? matrices.front() : matrices[index_of(position)];
}

inline double dot(std::span<const double> left, std::span<const double> right) {
  double sum = 0.0;
  for (std::size_t i = 0; i < left.size(); ++i) sum += left[i] * right[i];
  return sum;
}

inline double total(std::span<const double> values) {
  math::CompensatedSum sum;
  for (const double value : values) sum += value;
  return sum.value();
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

// out += left * right, in blocks of rows of `right` that stay in cache, four at a time. Zero blocks are skipped, so that contexts
// with few successors per state stay fast.
inline void add_product(const Matrix& left, const Matrix& right, std::size_t states, Matrix& out) {
  constexpr std::size_t kBlock = 32;
  for (std::size_t first = 0; first < states; first += kBlock) {
    const std::size_t last = std::min(first + kBlock, states);
    for (std::size_t s = 0; s < states; ++s) {
      double* target_row = out.data() + s * states;
      const double* weights = left.data() + s * states;
      std::size_t mid = first;
      for (; mid + 4 <= last; mid += 4) {
        const double w0 = weights[mid];
        const double w1 = weights[mid + 1];
        const double w2 = weights[mid + 2];
        const double w3 = weights[mid + 3];
        if (w0 == 0.0 && w1 == 0.0 && w2 == 0.0 && w3 == 0.0) continue;
        const double* row0 = right.data() + mid * states;
        const double* row1 = row0 + states;
        const double* row2 = row1 + states;
        const double* row3 = row2 + states;
        for (std::size_t next = 0; next < states; ++next) {
          target_row[next] += (w0 * row0[next] + w1 * row1[next]) + (w2 * row2[next] + w3 * row3[next]);
        }
      }
      for (; mid < last; ++mid) {
        const double weight = weights[mid];
        if (weight == 0.0) continue;
        const double* row = right.data() + mid * states;
        for (std::size_t next = 0; next < states; ++next) target_row[next] += weight * row[next];
      }
    }
  }
}

}  // namespace specsim::theory
