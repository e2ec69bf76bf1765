// Trees as a config writes them, shared by the drafters that take one.
#pragma once

#include "sim/foundation/config/arguments.h"
#include "sim/rounds/tokens/tree.h"

#include <optional>
#include <vector>

namespace specsim::draft {

constexpr int kMaxNodes = 1024;

// branching, paths, parents: the shape of a tree, followed by a drafter's `own` parameters.
std::vector<config::Parameter> shape_parameters(std::vector<config::Parameter> own);

// siblings: what tokens::Siblings lists
config::Parameter siblings_parameter();
tokens::Siblings siblings_of(const config::Arguments& arguments);

// Reads a tree from exactly one of `branching`, `paths` and `parents`; nullopt after reporting.
std::optional<tokens::Tree> tree_of(const config::Arguments& arguments, tokens::Siblings siblings, Diagnostics& diagnostics);

}  // namespace specsim::draft
