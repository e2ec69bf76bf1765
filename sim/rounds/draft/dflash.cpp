#include "sim/foundation/base/token.h"
#include "sim/rounds/draft/parallel_block.h"

namespace specsim::draft {

DrafterEntry dflash_drafter() {
  struct P {
    int block_size = 16;
    int steps = 1;
  };
  static const config::Fields<P> fields = {
      {"block_size", &P::block_size, "positions of a block, of which the first is the text's last token",
       config::between(2, kMaxDraftLength + 1)},
      {"steps", &P::steps, "denoising passes over the block", config::between(1, 64)},
  };
  return {
      {"dflash", "block diffusion: a small model on the target's features denoises a whole block at once",
       "DFlash, arXiv 2602.06036; vLLM, method dflash, whose query block is the bonus token and masks", fields,
       "Drafts block_size - 1 tokens, each the argmax of the draft's distribution for its depth in the context before the block "
       "(context by_depth: one distribution for each position). Each denoising step is a pass of the cost section's draft over "
       "the block. Its head is a few layers of the target's width, and a pass costs what it costs for one token as long as "
       "weights are what takes time: longer blocks than a chain's pay. A checkpoint's config says its block_size. "
       "It pays at small batch: its authors report over 6 times plain decoding and up to 2.5 times EAGLE-3's "
       "speedup; a port to TPUs measured 2.41 times, at 5.68 tokens a round. As these were of 16 positions, "
       "most of a block is verified for nothing, which costs where the batch fills the GPU; no measurement "
       "of large batches is known here."},
      [](const config::Arguments& arguments, Diagnostics&) {
        const P params = fields.read(arguments);
        return std::make_shared<ParallelBlock>(params.block_size - 1, 1.0, params.steps, ParallelBlock::From::target_state);
      }};
}

}  // namespace specsim::draft
