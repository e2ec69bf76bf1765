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
  return {{"chain", "a draft model writes the next tokens one after another, and the target checks them in one pass",
           "Leviathan et al., arXiv 2211.17192", fields},
          [](const config::Arguments& arguments, Diagnostics&) { return fields.read(arguments); }};
}

}  // namespace specsim::draft
