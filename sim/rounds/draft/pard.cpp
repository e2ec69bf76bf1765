#include "sim/foundation/base/token.h"
#include "sim/rounds/draft/parallel_block.h"

namespace specsim::draft {

DrafterEntry pard_drafter() {
  struct P {
    int draft_length = 12;
  };
  static const config::Fields<P> fields = {
      {"draft_length", &P::draft_length, "tokens drafted per round (draft_k of the program's evaluation)",
       config::between(1, kMaxDraftLength)},
  };
  return {{"pard", "PARD is a draft model that guesses all positions in one pass, using mask tokens after the text",
           "An et al. (PARD), arXiv 2504.18583; P-EAGLE, the same of an EAGLE head: amazon/gpt-oss-20b-p-eagle, vLLM's "
           "parallel_drafting",
           fields},
          [](const config::Arguments& arguments, Diagnostics&) {
            return std::make_shared<ParallelBlock>(fields.read(arguments).draft_length, 0.0, 1, ParallelBlock::From::text);
          }};
}

}  // namespace specsim::draft
