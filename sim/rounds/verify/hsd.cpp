#include "sim/rounds/verify/block_verification.h"
#include "sim/rounds/verify/verifier.h"

namespace specsim::verify {

VerifierEntry hsd_verifier() {
  return {{"hsd",
           "hierarchical speculative decoding as its program runs it",
           "Zhou et al., arXiv 2601.05724; ZhouYuxuanYX/Hierarchical-Speculative-Decoding, simulation.py (HSD), commit 5941630",
           {}},
          false,
          {.joint = true},
          {},
          [](const config::Arguments&) { return block_verification(WholeBlock::by_joint_ratio); }};
}

}  // namespace specsim::verify
