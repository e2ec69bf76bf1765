#include "sim/foundation/base/token.h"
#include "sim/foundation/math/simplex.h"
#include "sim/rounds/draft/tree_drafter.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace specsim::draft {

namespace {

class Dspark final : public TreeDrafter {
 public:
  struct Params {
    int block_size = 7;
    double markov_head = 0.5;
    bool argmax = false;
  };
  explicit Dspark(const Params& params)
      : TreeDrafter(path_of(params.block_size), tokens::Siblings::independent), params_(params) {
    shape_.joins = true;
    shape_.joins_whole = params.markov_head == 1.0;
    shape_.argmax = params.argmax;
    shape_.on_target_state = true;
  }
  // The head's bias goes to logits, which adds up before anything is normalised: a geometric mean. Tokens of probability 0 have
  // the logit of the least normal number, as a bias is finite.
  void join(std::span<const double> before, std::span<double> known) const override {
    if (params_.markov_head == 1.0) return;
    if (params_.markov_head == 0.0) {
      std::copy(before.begin(), before.end(), known.begin());
      return;
    }
    const auto logit = [](double p) { return std::log(std::max(p, std::numeric_limits<double>::min())); };
    for (std::size_t x = 0; x < known.size(); ++x)
      known[x] = (1.0 - params_.markov_head) * logit(before[x]) + params_.markov_head * logit(known[x]);
    math::softmax(known);
    math::drop_subnormal(known);
  }
  // The pass goes over the whole block, whatever of it is verified.
  [[nodiscard]] Work work(int nodes) const override {
    if (nodes == 0) return {{}, 1.0};
    return {{static_cast<double>(shape_.nodes)}, 1.0 + nodes};
  }

 private:
  Params params_;
};

}  // namespace

DrafterEntry dspark_drafter() {
  using P = Dspark::Params;
  static const config::Fields<P> fields = {
      {"block_size", &P::block_size, "tokens drafted per round: the text's last token is a position that predicts too",
       config::between(1, kMaxDraftLength)},
      {"markov_head", &P::markov_head,
       "share of the way that the head's bias takes the logits, from those of the context before the block to those of the "
       "context that the token before leads to; 0: no head, DFlash",
       config::between(0, 1)},
      {"selection", &P::argmax, "drawn from the distribution (vLLM's draft_sample_method: probabilistic), or its argmax (greedy)",
       config::one_of<bool>({{"sampled", false}, {"argmax", true}})},
  };
  return {
      {"dspark",
       "DSpark drafts a block in one pass like DFlash, and adds a small Markov head that gives each position the token before it",
       "Cheng et al. (DSpark), arXiv 2607.05147; deepseek-ai/DeepSpec, deepspec/modeling/dspark/markov_head.py, commit afdfa7c",
       fields},
      [](const config::Arguments& arguments, Diagnostics&) { return std::make_shared<Dspark>(fields.read(arguments)); }};
}

}  // namespace specsim::draft
