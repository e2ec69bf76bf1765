#include "sim/foundation/base/token.h"
#include "sim/rounds/draft/parallel_block.h"

namespace specsim::draft {

DrafterEntry parallel_drafter() {
  struct P {
    int draft_length = 0;
  };
  static const config::Fields<P> fields = {
      {"draft_length", &P::draft_length, "tokens drafted per round", config::between(1, kMaxDraftLength), config::required},
  };
  return {{"parallel", "all positions of a chain are guessed in one draft pass, each without the others",
           "Gloeckle et al. (multi-token prediction), arXiv 2404.19737", fields},
          [](const config::Arguments& arguments, Diagnostics&) {
            return std::make_shared<ParallelBlock>(fields.read(arguments).draft_length, 0.0, 1,
                                                   ParallelBlock::From::target_state);
          }};
}

}  // namespace specsim::draft
