// The axes that cells differ in, as tables and files show them.
#pragma once

#include "sim/experiments/spec/cell.h"

#include <string>
#include <vector>

namespace specsim::spec {

// Paths of the axes that the cells differ in, in the order of their first appearance.
std::vector<std::string> axes_of(const std::vector<const Cell*>& cells);
// The axes of the cells of the rows, one cell per row.
template <class Row>
std::vector<std::string> axes_of(const std::vector<Row>& rows) {
  std::vector<const Cell*> cells;
  for (const Row& row : rows) cells.push_back(row.cell);
  return axes_of(cells);
}
// The kind of setting that an axis changes: how tokens are decoded (including the draft's cost), the workload, or anything else.
enum class AxisKind { method, workload, other };
AxisKind axis_kind(const std::string& path);
// The value of an axis in the cell; "" if the cell lacks the axis.
std::string axis_value(const Cell& cell, const std::string& path);

}  // namespace specsim::spec
