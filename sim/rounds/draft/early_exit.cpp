#include "sim/foundation/base/token.h"
#include "sim/foundation/math/simplex.h"
#include "sim/rounds/draft/tree_drafter.h"

#include <algorithm>

namespace specsim::draft {

namespace {

class EarlyExit final : public TreeDrafter {
 public:
  struct Params {
    int draft_length = 0;
    double exit_share = 0.5;
    bool flatter = true;
  };
  [[nodiscard]] BlockWork work(int nodes) const override {
    BlockWork work = TreeDrafter::work(nodes);
    work.reused = nodes > 0 ? share_ : 0.0;
    return work;
  }
  explicit EarlyExit(const Params& params)
      : TreeDrafter(path_of(params.draft_length), tokens::Siblings::independent), share_(params.exit_share) {
    shape_.alters = params.flatter;
  }
  void alter_distribution(int /*depth*/, double /*chance*/, std::span<const double> target,
                          std::span<double> draft) const override {
    if (!shape_.alters) return;  // pair.draft stands
    std::copy(target.begin(), target.end(), draft.begin());
    math::apply_temperature(draft, 1.0 / share_);
  }

 private:
  double share_;
};

}  // namespace

DrafterEntry early_exit_drafter() {
  using P = EarlyExit::Params;
  static const config::Fields<P> fields = {
      {"draft_length", &P::draft_length, "tokens drafted per round", config::between(1, kMaxDraftLength), config::required},
      {"exit_share", &P::exit_share, "share of the target's layers that a draft pass runs", config::above(0, 1)},
      {"distribution", &P::flatter, "the exit's distribution: the target's to the power of exit_share, or pair.draft",
       config::one_of<bool>({{"flatter_target", true}, {"pair_draft", false}})},
  };
  return {{"early_exit", "the target's own first layers are the draft (self-speculation, LayerSkip)",
           "Elhoushi et al. (LayerSkip), arXiv 2404.16710; Zhang et al. (Draft & Verify), arXiv 2309.08168; "
           "facebookresearch/LayerSkip, self_speculation (forward_remainder)",
           fields},
          [](const config::Arguments& arguments, Diagnostics&) { return std::make_shared<EarlyExit>(fields.read(arguments)); }};
}

}  // namespace specsim::draft
