// What heads on the target share: a tree that is given, or the best for published accuracies by head and rank.
#pragma once

#include "sim/foundation/config/arguments.h"
#include "sim/rounds/tokens/tree.h"

#include <optional>
#include <string>
#include <vector>

namespace specsim::draft {

// The shape of a tree, or accuracies and nodes, followed by a drafter's `own` parameters.
std::vector<config::Parameter> heads_parameters(std::vector<config::Parameter> own);
// The tree that the arguments describe; `otherwise` where they give no shape. nullopt after reporting what is wrong.
std::optional<tokens::Tree> heads_tree(const config::Arguments& arguments, const std::string& drafter,
                                       const tokens::Tree* otherwise, Diagnostics& diagnostics);

}  // namespace specsim::draft
