// Theory of block verification for one drafted path.
#pragma once

#include "sim/experiments/judge/block_rounds.h"

namespace specsim::judge {

// joint_ratio: for the rule that keeps the whole block by the ratio of joint probabilities (theory::joint_ratio_kernel).
Coverage enumerate_block_verification(BlockRounds rounds, bool joint_ratio = false);

}  // namespace specsim::judge
