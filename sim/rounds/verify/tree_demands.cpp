#include "sim/rounds/verify/tree_demands.h"

#include <fmt/format.h>

namespace specsim::verify {

std::string why_not_tree(const Demands& demands, const tokens::Tree& tree) {
  for (const tokens::Tree::Node& node : tree.nodes) {
    if (node.children > demands.children)
      return fmt::format("with {} children of a node, allowed: at most {}", node.children, demands.children);
    if (demands.paths && ((node.depth > 0 && node.children > 1) || (node.children == 0 && node.depth < tree.height())))
      return "with a tree that is not a set of paths, allowed: paths of one length that part at the root, such as branching: [3, "
             "1, 1]";
  }
  return "";
}

}  // namespace specsim::verify
