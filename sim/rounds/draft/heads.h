// Shared by drafters with heads on the target: a given tree, or the best tree for published accuracies by head and rank.
#pragma once

#include "sim/rounds/draft/tree_config.h"

#include <optional>
#include <string>
#include <vector>

namespace specsim::draft {

struct HeadsTree {
  TreeShape shape;
  std::vector<std::vector<double>> accuracies;  // [head][rank]; empty if not given
  int nodes = 0;
};
// Parameters: the shape of a tree, or accuracies and nodes.
const config::Fields<HeadsTree>& heads_fields();
// The tree that the arguments describe; `otherwise` if they give no shape. nullopt after reporting a mistake.
std::optional<tokens::Tree> heads_tree(const config::Arguments& arguments, const std::string& drafter,
                                       const tokens::Tree* otherwise, Diagnostics& diagnostics);

}  // namespace specsim::draft
