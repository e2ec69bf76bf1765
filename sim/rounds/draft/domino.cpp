#include "sim/foundation/base/token.h"
#include "sim/rounds/draft/joined_block.h"

namespace specsim::draft {

DrafterEntry domino_drafter() {
  struct P {
    int block_size = 16;
    double causal_head = 0.5;
    bool argmax = false;
  };
  static const config::Fields<P> fields = {
      {"block_size", &P::block_size, "positions of a block; the first is the text's last token",
       config::between(2, kMaxDraftLength + 1)},
      {"causal_head", &P::causal_head,
       "how far the head moves the logits, from those of the context before the block (0: DFlash) to those of the context "
       "after all tokens drafted before (1)",
       config::between(0, 1)},
      {"selection", &P::argmax, "drawn from the distribution, or its argmax, as SGLang drafts",
       config::one_of<bool>({{"sampled", false}, {"argmax", true}})},
  };
  return {{"domino",
           "Domino drafts a block in one pass like DFlash, and corrects each position by a recurrent head that reads the block's "
           "tokens before it",
           "Huang et al. (Domino), arXiv 2605.29707; sgl-project/sglang pull request 36899", fields},
          [](const config::Arguments& arguments, Diagnostics&) {
            const P params = fields.read(arguments);
            return std::make_shared<JoinedBlock>(
                params.block_size - 1, params.block_size,
                JoinedBlock::Head{.share = params.causal_head, .argmax = params.argmax, .path = true});
          }};
}

}  // namespace specsim::draft
