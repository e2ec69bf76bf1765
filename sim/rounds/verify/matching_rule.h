// The target draws its own token after each node, and the walk goes on while a child equals it.
#pragma once

#include "sim/rounds/verify/block_rule.h"

namespace specsim::verify {

class MatchingRule final : public NodeRule {
 protected:
  int step(Block& block, int node, Token& final_token) const override;
};

}  // namespace specsim::verify
