#include "sim/foundation/base/token.h"
#include "sim/rounds/draft/joined_block.h"

namespace specsim::draft {

DrafterEntry dspark_drafter() {
  struct P {
    int block_size = 7;
    double markov_head = 0.5;
    bool argmax = false;
  };
  static const config::Fields<P> fields = {
      {"block_size", &P::block_size, "tokens drafted per round; the position of the text's last token predicts one too",
       config::between(1, kMaxDraftLength)},
      {"markov_head", &P::markov_head,
       "how far the head's bias moves the logits, from those of the context before the block (0: DFlash) to those of the "
       "context after the previous token (1)",
       config::between(0, 1)},
      {"selection", &P::argmax, "drawn from the distribution (vLLM's draft_sample_method: probabilistic), or its argmax (greedy)",
       config::one_of<bool>({{"sampled", false}, {"argmax", true}})},
  };
  return {
      {"dspark",
       "DSpark drafts a block in one pass like DFlash, and adds a small Markov head that gives each position the token before it",
       "Cheng et al. (DSpark), arXiv 2607.05147; deepseek-ai/DeepSpec, deepspec/modeling/dspark/markov_head.py, commit afdfa7c",
       fields},
      [](const config::Arguments& arguments, Diagnostics&) {
        const P params = fields.read(arguments);
        return std::make_shared<JoinedBlock>(params.block_size, params.block_size,
                                             JoinedBlock::Head{.share = params.markov_head, .argmax = params.argmax});
      }};
}

}  // namespace specsim::draft
