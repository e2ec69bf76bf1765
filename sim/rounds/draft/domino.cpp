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
      {"block_size", &P::block_size, "positions of a block, of which the first is the text's last token",
       config::between(2, kMaxDraftLength + 1)},
      {"causal_head", &P::causal_head,
       "share of the way that the head takes the logits, from those of the context before the block to those of the context that "
       "all tokens drafted before lead to; 0: no head, DFlash",
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
