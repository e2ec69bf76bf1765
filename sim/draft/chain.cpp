#include "sim/base/token.h"
#include "sim/draft/tree_drafter.h"

namespace specsim::draft {

std::shared_ptr<const BlockDrafter> chain_block(int draft_length) {
  return std::make_shared<TreeDrafter>(path_of(draft_length), tokens::Siblings::independent);
}

DrafterEntry chain_drafter() {
  return {{"chain",
           "draft_length tokens one after the other, on one path",
           "Leviathan et al., arXiv 2211.17192",
           {{"draft_length",
             config::Type::integer,
             {},
             "tokens drafted per round; 0: plain decoding",
             config::between(0, kMaxDraftLength),
             {}},
            {"selection",
             config::Type::text,
             "sampled",
             "sampled from the draft's distribution, or its argmax (a point mass)",
             {},
             {"sampled", "argmax"}}},
           "An argmax draft token has probability 1 under the distribution that it was drawn from, so a lossless rule accepts it "
           "with target(argmax draft)."},
          [](const config::Arguments& arguments, Diagnostics&) {
            return Chain{static_cast<int>(arguments.integer("draft_length")), arguments.text("selection") == "argmax"};
          }};
}

}  // namespace specsim::draft
