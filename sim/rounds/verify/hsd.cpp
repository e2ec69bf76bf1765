#include "sim/rounds/verify/block_verification.h"
#include "sim/rounds/verify/verifier.h"

namespace specsim::verify {

VerifierEntry hsd_verifier() {
  return {
      {"hsd",
       "hierarchical speculative decoding as its program has it: block verification that keeps the whole block by the joint "
       "ratio",
       "Zhou et al., arXiv 2601.05724; ZhouYuxuanYX/Hierarchical-Speculative-Decoding, simulation.py (HSD), commit 5941630",
       {},
       "All draft tokens stay with min(1, target(x_1 .. x_K)/draft(x_1 .. x_K)). Otherwise, from the end backwards, tokens 1 .. "
       "i "
       "stay with D+/D-, where D+ and D- are the masses of (p_i target - draft)+ and of (draft - p_i target)+ after token i, and "
       "p_i is the ratio of the first i tokens over its largest value on the way, 1 at least; the final token comes from (p_i "
       "target - draft)+. D- is D+ + 1 - p_i, and p_i is block verification's: with p_K for the whole block it would be block "
       "verification, term by term. The joint ratio is more than p_K wherever the ratio rose above 1 and fell again: then "
       "more tokens stay than a lossless rule for one chain can keep, and the text is biased. Positions are not judged one by "
       "one: there is no alpha. Its repository has the step back in three forms, all with the joint ratio for the whole block: "
       "simulation.py has this one; algorithm.py (commit 436676d) takes 1 for the target's capped probability wherever the "
       "ratio is no new largest one, and never steps back from there; algorithm_clean.py cuts the joint ratio at 1 and forgets "
       "how far it had risen. "
       "Its authors report over 12 % with EAGLE-3 and call it lossless; what their program gains over block, "
       "the best lossless rule for one chain, is paid for with the text. Simulated, 2.77 tokens a round "
       "against the token verifier's 2.30 (configs/examples/methods/lossy.yaml). It does not pay where the "
       "text is to be the target's: take block."},
      false,
      {.joint = true},
      {},
      [](const config::Arguments&) { return block_verification(WholeBlock::by_joint_ratio); }};
}

}  // namespace specsim::verify
