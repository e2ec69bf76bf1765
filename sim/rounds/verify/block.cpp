#include "sim/rounds/verify/block_verification.h"
#include "sim/rounds/verify/verifier.h"

namespace specsim::verify {

VerifierEntry block_verifier() {
  return {{"block",
           "block verification judges all draft tokens jointly and keeps the longest acceptable prefix",
           "Sun et al., arXiv 2403.10444",
           {}},
          true,
          {.joint = true},
          {},
          [](const config::Arguments&) { return block_verification(WholeBlock::by_capped_ratio); }};
}

}  // namespace specsim::verify
