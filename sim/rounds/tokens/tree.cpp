#include "sim/rounds/tokens/tree.h"

#include "sim/foundation/base/check.h"

namespace specsim::tokens {

int Tree::add(int parent, int rank) {
  SPECSIM_CHECK(parent >= nodes.back().parent && parent >= 0 && static_cast<std::size_t>(parent) < nodes.size(),
                "a child of node {} after one of node {}", parent, nodes.back().parent);
  const auto index = static_cast<int>(nodes.size());
  Node& above = nodes[static_cast<std::size_t>(parent)];
  if (above.children++ == 0) above.first_child = index;
  nodes.push_back({parent, above.depth + 1, rank, 0, 0});
  return index;
}

}  // namespace specsim::tokens
