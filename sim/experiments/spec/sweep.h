// The `sweep:` block: a grid of values at config paths.
#pragma once

#include "sim/foundation/config/value.h"

#include <string>
#include <vector>

namespace specsim::spec {

// One axis: several paths that change together (one, unless zipped), and their values point by point.
struct Axis {
  std::vector<std::string> paths;
  std::vector<Location> where;                     // the place of each path
  std::vector<std::vector<config::Value>> points;  // [point][path]
};

// Lists, ranges {from, to, step | count, scale: linear | log}, and `zip:` blocks whose lists advance together.
std::vector<Axis> read_sweep(const config::Value& sweep, Diagnostics& diagnostics);

constexpr std::size_t kMaxCells = 100000;

}  // namespace specsim::spec
