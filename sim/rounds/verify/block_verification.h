// Judging a chain's draft tokens jointly, from the last one backwards.
#pragma once

#include "sim/rounds/verify/block_rule.h"

#include <memory>

namespace specsim::verify {

// The probability that all draft tokens stay.
enum class WholeBlock {
  by_capped_ratio,  // the running ratio of target to draft, capped at 1 after every token
  by_joint_ratio,   // the ratio of the joint probabilities, capped at 1 once: keeps more than is correct
};

std::unique_ptr<BlockRule> block_verification(WholeBlock whole);

}  // namespace specsim::verify
