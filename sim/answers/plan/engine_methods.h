// Whether a server supports a method, according to its file in configs/engines.
#pragma once

#include "sim/experiments/spec/cell.h"

#include <optional>
#include <string>

namespace specsim::plan {

// Whether the cell's engine supports this drafting and verification; nullopt if its file does not state it, or if the cell has
// no GPU. Length policies are not checked, since servers have their own (docs/guides/serving.md).
std::optional<bool> engine_runs(const spec::Cell& cell);
// That engine's name in the config; "" if engine_runs() is nullopt.
std::string engine_of(const spec::Cell& cell);

}  // namespace specsim::plan
