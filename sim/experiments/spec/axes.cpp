#include "sim/experiments/spec/axes.h"

#include <algorithm>

namespace specsim::spec {

std::vector<std::string> axes_of(const std::vector<const Cell*>& cells) {
  std::vector<std::string> axes;
  for (const Cell* const cell : cells)
    for (const auto& [path, value] : cell->axes)
      if (std::find(axes.begin(), axes.end(), path) == axes.end()) axes.push_back(path);
  return axes;
}

AxisKind axis_kind(const std::string& path) {
  const std::string part = path.substr(0, path.find('.'));
  if (part == "decode" || path == "cost.draft") return AxisKind::method;
  return part == "workload" ? AxisKind::workload : AxisKind::other;
}

std::string axis_value(const Cell& cell, const std::string& path) {
  for (const auto& [own, value] : cell.axes)
    if (own == path) return value;
  return "";
}

}  // namespace specsim::spec
