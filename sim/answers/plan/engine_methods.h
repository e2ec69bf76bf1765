// Whether a server's program has a method, by what its file in configs/engines says of it.
#pragma once

#include "sim/experiments/spec/cell.h"

#include <optional>
#include <string>

namespace specsim::plan {

// Whether the engine that prices the cell drafts and verifies so; nothing where its file does not say, or where no GPU is priced.
// Length policies are not asked for: servers have their own (docs/guides/serving.md).
std::optional<bool> engine_runs(const spec::Cell& cell);
// That engine's name in the config; "" where engine_runs() is nothing.
std::string engine_of(const spec::Cell& cell);

}  // namespace specsim::plan
