// A small linear programme by the simplex method with Bland's rule: an oracle for optima that theory states in closed form.
#pragma once

#include <cstddef>
#include <limits>
#include <vector>

namespace specsim::tests {

// The largest gain . x over x >= 0 with rows[i] . x <= bound[i]; every bound is >= 0 and the optimum is finite.
inline double maximise(const std::vector<double>& gain, const std::vector<std::vector<double>>& rows,
                       const std::vector<double>& bound) {
  constexpr double zero = 1e-12;
  const std::size_t variables = gain.size();
  const std::size_t columns = variables + rows.size() + 1;
  std::vector<std::vector<double>> table;
  std::vector<std::size_t> basis;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    table.emplace_back(columns, 0.0);
    for (std::size_t j = 0; j < variables; ++j) table.back()[j] = rows[i][j];
    table.back()[variables + i] = 1.0;
    table.back().back() = bound[i];
    basis.push_back(variables + i);
  }
  std::vector<double> objective(columns, 0.0);
  for (std::size_t j = 0; j < variables; ++j) objective[j] = -gain[j];
  for (;;) {
    std::size_t enter = 0;
    while (enter + 1 < columns && objective[enter] >= -zero) ++enter;
    if (enter + 1 == columns) return objective.back();
    std::size_t leave = table.size();
    double least = std::numeric_limits<double>::infinity();
    for (std::size_t i = 0; i < table.size(); ++i) {
      if (table[i][enter] <= zero) continue;
      const double ratio = table[i].back() / table[i][enter];
      if (ratio < least - zero || (ratio <= least + zero && leave < table.size() && basis[i] < basis[leave])) {
        least = ratio;
        leave = i;
      }
    }
    if (leave == table.size()) return std::numeric_limits<double>::infinity();
    const double pivot = table[leave][enter];
    for (double& entry : table[leave]) entry /= pivot;
    const auto clear = [&](std::vector<double>& row) {
      const double factor = row[enter];
      if (factor == 0.0) return;
      for (std::size_t j = 0; j < columns; ++j) row[j] -= factor * table[leave][j];
    };
    for (std::size_t i = 0; i < table.size(); ++i) {
      if (i != leave) clear(table[i]);
    }
    clear(objective);
    basis[leave] = enter;
  }
}

}  // namespace specsim::tests
