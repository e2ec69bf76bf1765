#include "sim/foundation/base/token.h"
#include "sim/rounds/draft/parallel_block.h"

namespace specsim::draft {

DrafterEntry dflash_drafter() {
  struct P {
    int block_size = 16;
    int steps = 1;
  };
  static const config::Fields<P> fields = {
      {"block_size", &P::block_size, "positions of a block; the first is the text's last token",
       config::between(2, kMaxDraftLength + 1)},
      {"steps", &P::steps, "denoising passes over the block", config::between(1, 64)},
  };
  return {{"dflash",
           "DFlash drafts a whole block at once: a small diffusion model on the target's features denoises all positions "
           "in one pass",
           "DFlash, arXiv 2602.06036; vLLM, method dflash, whose query block is the bonus token and masks", fields},
          [](const config::Arguments& arguments, Diagnostics&) {
            const P params = fields.read(arguments);
            return std::make_shared<ParallelBlock>(params.block_size - 1, 1.0, params.steps, ParallelBlock::From::target_state);
          }};
}

}  // namespace specsim::draft
