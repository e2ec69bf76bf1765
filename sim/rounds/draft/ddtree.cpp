#include "sim/foundation/base/token.h"
#include "sim/rounds/draft/marginal_tree.h"

#include <memory>

namespace specsim::draft {

DrafterEntry ddtree_drafter() {
  struct P {
    int block_size = 16;
    int nodes = 64;
    int width = 0;
    int steps = 1;
  };
  static const config::Fields<P> fields = {
      {"block_size", &P::block_size, "positions of a block; the first is the text's last token",
       config::between(2, kMaxDraftLength + 1)},
      {"nodes", &P::nodes, "tokens of the tree", config::between(1, 256)},
      {"width", &P::width, "number of likeliest tokens per position that paths may use; 0: all", config::between(0, 256)},
      {"steps", &P::steps, "denoising passes over the block", config::between(1, 64)}};
  return {
      {"ddtree",
       "DDTree makes a tree from a block drafter's one pass: the likeliest paths through the distributions of its positions",
       "Ringel and Romano (DDTree), arXiv 2604.12989; liranringel/ddtree, ddtree.py, commit c96427a; SGLang pull request 29907, "
       "vLLM pull request 42910",
       fields,
       "One pass gives a distribution for each position. Here it is the mean over the draft model's own continuations of the "
       "text, "
       "at temperature 1. A path's value is the product of its tokens' probabilities, and a heap takes the best nodes one after "
       "the "
       "other; tokens are point masses. The product assumes that positions are independent, but they are not: if the target "
       "takes "
       "a sibling of the likeliest token, the positions after it were made for the likeliest one. The effect appears where the "
       "next "
       "token "
       "depends on the last (process markov). In contexts without memory (fixed, by_depth, iid, text) a sibling's successors are "
       "as "
       "good as those of the likeliest token, so the result is an upper bound. With width 1 it is dflash's chain.",
       "nodes: 3, block_size: 3"},
      [](const config::Arguments& arguments, Diagnostics&) {
        const P params = fields.read(arguments);
        return std::make_shared<MarginalTree>(params.block_size - 1, params.steps,
                                              MarginalTree::Budget{.nodes = params.nodes, .width = params.width});
      }};
}

}  // namespace specsim::draft
