#include "sim/foundation/base/token.h"
#include "sim/rounds/draft/joined_block.h"

namespace specsim::draft {

DrafterEntry dflash2_drafter() {
  struct P {
    int block_size = 8;
    double selector = 0.5;
    int candidates = 16;
    bool argmax = false;
  };
  static const config::Fields<P> fields = {
      {"block_size", &P::block_size, "positions of a block; the first is the text's last token",
       config::between(2, kMaxDraftLength + 1)},
      {"selector", &P::selector,
       "how far the score of a pair of neighbours moves the logits, from those of the context before the block (0: DFlash) to "
       "those of the context after the previous token (1)",
       config::between(0, 1)},
      {"candidates", &P::candidates, "number of likeliest tokens per position after the first that the path may use",
       config::between(1, 256)},
      {"selection", &P::argmax, "the path is drawn candidate by candidate, or takes the best one each time (temperature 0)",
       config::one_of<bool>({{"sampled", false}, {"argmax", true}})},
  };
  return {{"dflash2",
           "DFlash 2 drafts a block in one pass like DFlash, and a selector walks a path through the likeliest candidates of "
           "each position",
           "vllm-project/vllm pull request 52816 and sgl-project/sglang pull request 35371 (DFlash2); vllm, "
           "v1/worker/gpu/spec_decode/dflash2/speculator.py, commit 030da62",
           fields},
          [](const config::Arguments& arguments, Diagnostics&) {
            const P params = fields.read(arguments);
            return std::make_shared<JoinedBlock>(
                params.block_size - 1, params.block_size,
                JoinedBlock::Head{.share = params.selector, .candidates = params.candidates, .argmax = params.argmax});
          }};
}

}  // namespace specsim::draft
