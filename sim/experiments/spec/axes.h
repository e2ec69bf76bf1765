// The axes that cells are spread over, as tables and files show them.
#pragma once

#include "sim/experiments/spec/cell.h"

#include <string>
#include <vector>

namespace specsim::spec {

// Paths of the axes that the cells are spread over, in the order in which they first appear.
std::vector<std::string> axes_of(const std::vector<const Cell*>& cells);
// The axes of the cells that the rows stand for, one each.
template <class Row>
std::vector<std::string> axes_of(const std::vector<Row>& rows) {
  std::vector<const Cell*> cells;
  for (const Row& row : rows) cells.push_back(row.cell);
  return axes_of(cells);
}
// What an axis changes: how tokens are decoded (the draft's price with it), what is asked for, or anything else.
enum class AxisKind { method, workload, other };
AxisKind axis_kind(const std::string& path);
// What an axis is set to in the cell; "" for one that it lacks.
std::string axis_value(const Cell& cell, const std::string& path);

}  // namespace specsim::spec
