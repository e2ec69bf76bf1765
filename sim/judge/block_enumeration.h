// Theory of block verification, of one drafted path.
#pragma once

#include "sim/judge/block_rounds.h"

namespace specsim::judge {

Coverage enumerate_block_verification(BlockRounds rounds);

}  // namespace specsim::judge
