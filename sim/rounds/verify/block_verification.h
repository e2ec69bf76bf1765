// Judging a chain's draft tokens jointly, from the last one backwards.
#pragma once

#include "sim/rounds/verify/block_rule.h"

#include <memory>

namespace specsim::verify {

// With what probability all draft tokens stay.
enum class WholeBlock {
  by_capped_ratio,  // the running ratio of target to draft, cut at 1 after every token
  by_joint_ratio,   // the ratio of the joint probabilities, cut at 1 once: more stay than may
};

std::unique_ptr<BlockRule> block_verification(WholeBlock whole);

}  // namespace specsim::verify
