#include "sim/foundation/base/bisect.h"
#include "sim/foundation/base/token.h"
#include "sim/foundation/math/simplex.h"
#include "sim/rounds/draft/tree_drafter.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace specsim::draft {

namespace {

// Moves `draft` towards `end` until its overlap with the target, which begins above `overlap`, falls to it; all the way if the
// overlap at `end` is larger. The overlap is concave along the way, so there is at most one such point.
void lower_overlap(double overlap, std::span<const double> target, std::span<const double> end, std::span<double> draft) {
  const std::vector<double> start(draft.begin(), draft.end());
  const auto move = [&](double share) {
    for (std::size_t x = 0; x < draft.size(); ++x) draft[x] = (1.0 - share) * start[x] + share * end[x];
  };
  const auto above = [&](double share) {
    move(share);
    return math::overlap(target, draft) > overlap;
  };
  move(bisect(0.0, 1.0, above).high);
}

// Moves `draft` until its overlap with the target is `overlap`: towards the target; or away from it along the tokens that the
// draft overestimates, and then on to the target's least likely token. The smallest possible overlap is that token's probability.
void set_overlap(double overlap, std::span<const double> target, std::span<double> draft) {
  double variation = 0.0;  // 1 - the present overlap
  for (std::size_t x = 0; x < draft.size(); ++x) variation += std::max(draft[x] - target[x], 0.0);
  if (overlap >= 1.0 - variation) {
    if (!(variation > 0.0)) return;
    // Adding a share s of the target leaves (1 - s) of the variation.
    const double share = 1.0 - (1.0 - overlap) / variation;
    for (std::size_t x = 0; x < draft.size(); ++x) draft[x] += share * (target[x] - draft[x]);
    return;
  }
  // First along the tokens that the draft overestimates. If draft and target are nearly equal, that difference is rounding and
  // gives no direction.
  constexpr double kRounding = 1e-9;
  std::vector<double> end(draft.size(), 0.0);
  if (variation > kRounding) {
    for (std::size_t x = 0; x < draft.size(); ++x) end[x] = std::max(draft[x] - target[x], 0.0) / variation;
    lower_overlap(overlap, target, end, draft);
    if (math::overlap(target, end) <= overlap) return;
  }
  std::fill(end.begin(), end.end(), 0.0);
  end[static_cast<std::size_t>(std::min_element(target.begin(), target.end()) - target.begin())] = 1.0;
  lower_overlap(overlap, target, end, draft);
}

struct MtpParams {
  int draft_length = 1;
  bool argmax = true;
  std::vector<double> acceptance;  // [depth]; empty: as the draft's distribution gives it
};

class Mtp final : public TreeDrafter {
 public:
  Mtp(int draft_length, std::vector<double> acceptance, Location where)
      : TreeDrafter(path_of(draft_length), tokens::Siblings::independent),
        acceptance_(std::move(acceptance)),
        where_(std::move(where)) {
    if (!acceptance_.empty()) shape_.distribution_depths = draft_length;
    shape_.alters = !acceptance_.empty();
  }
  void alter_distribution(int depth, double /*chance*/, std::span<const double> target, std::span<double> draft) const override {
    if (acceptance_.empty()) return;
    const double wanted = acceptance_[std::min(static_cast<std::size_t>(depth), acceptance_.size() - 1)];
    set_overlap(wanted, target, draft);
    constexpr double kTolerance = 1e-12;
    if (std::abs(math::overlap(target, draft) - wanted) > kTolerance)
      throw BadInput(where_, fmt::format("acceptance is {:.12g}, allowed: in [{:.12g}, 1], from the probability of the target's "
                                         "least likely token",
                                         wanted, *std::min_element(target.begin(), target.end())));
  }

 private:
  std::vector<double> acceptance_;
  Location where_;
};

}  // namespace

DrafterEntry mtp_drafter() {
  using P = MtpParams;
  static const config::Fields<P> fields = {
      {"draft_length", &P::draft_length, "tokens drafted per round", config::between(1, kMaxDraftLength)},
      {"selection", &P::argmax,
       "the likeliest token, as servers do (vLLM's draft_sample_method: greedy), or a drawn one (probabilistic)",
       config::one_of<bool>({{"sampled", false}, {"argmax", true}})},
      {"acceptance", &P::acceptance,
       "probability that a drawn token is accepted at depth 1, 2, ..., given that all before it are; deeper ones use the last",
       config::between(0, 1), config::optional}};
  return {{"mtp",
           "multi-token prediction: a small module shipped with the target and trained with it drafts the next token, and is "
           "reused for later ones",
           "DeepSeek-AI (DeepSeek-V3), arXiv 2412.19437; vllm-project/vllm, vllm/model_executor/models/deepseek_mtp.py (one "
           "layer, its step taken modulo the layers that there are)",
           fields},
          [](const config::Arguments& arguments, Diagnostics& diagnostics) {
            P params = fields.read(arguments);
            if (params.argmax && !params.acceptance.empty())
              diagnostics.add(
                  arguments.where("acceptance"),
                  "acceptance is of drawn tokens, and selection is argmax; allowed: selection: sampled, or published rates "
                  "by context: acceptance_table");
            if (params.argmax) return Draft(Chain{params.draft_length, true});
            return Draft(std::make_shared<Mtp>(params.draft_length, std::move(params.acceptance), arguments.where("acceptance")));
          }};
}

}  // namespace specsim::draft
