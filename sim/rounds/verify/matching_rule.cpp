#include "sim/rounds/verify/matching_rule.h"

namespace specsim::verify {

int MatchingRule::step(Block& block, int node, Token& final_token) const {
  final_token = block.pick_target(node);
  const int first = block.tree().nodes[static_cast<std::size_t>(node)].first_child;
  for (int child = first; child < first + block.children(node); ++child)
    if (block.token(child) == final_token) return child;
  return kNone;
}

}  // namespace specsim::verify
