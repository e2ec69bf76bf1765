#include "sim/foundation/base/token.h"
#include "sim/rounds/draft/tree_drafter.h"

namespace specsim::draft {

std::shared_ptr<const BlockDrafter> chain_block(int draft_length) {
  return std::make_shared<TreeDrafter>(path_of(draft_length), tokens::Siblings::independent);
}

DrafterEntry chain_drafter() {
  using P = Chain;
  static const config::Fields<P> fields = {
      {"draft_length", &P::draft_length, "tokens drafted per round; 0: plain decoding", config::between(0, kMaxDraftLength),
       config::required},
      {"selection", &P::argmax, "sampled from the draft's distribution, or its argmax (a point mass)",
       config::one_of<bool>({{"sampled", false}, {"argmax", true}})},
  };
  return {{"chain", "draft_length tokens one after the other, on one path", "Leviathan et al., arXiv 2211.17192", fields,
           "An argmax draft token has probability 1 under the distribution that it was drawn from, so a lossless rule accepts it "
           "with target(argmax draft). "
           "It pays where the draft guesses well and costs a few percent of a target pass: at batch 1 T5-small "
           "(.02 of a pass) made T5-XXL 2.6 to 3.4 times as fast, T5-large (.11), which guesses better, 1.4 to "
           "1.7 times (Leviathan et al., translation on a TPU v4). It hardly pays with a draft that is dear, as "
           "7B for Vicuna-33B (1.12 times, EAGLE's authors), and loses in batches that fill the GPU: a draft of "
           "1B for a model of 70B from batch 32 on (vLLM issue 17984)."},
          [](const config::Arguments& arguments, Diagnostics&) { return fields.read(arguments); }};
}

}  // namespace specsim::draft
