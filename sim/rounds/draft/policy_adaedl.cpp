#include "sim/foundation/base/token.h"
#include "sim/rounds/draft/length_policy.h"

#include <cmath>

namespace specsim::draft {

namespace {

class AdaEdl final : public LengthPolicy {
 public:
  struct Params {
    double gamma = 0.2;
    double first = 0.3;
    double wanted = 0.9;
    double keep_rate = 0.5;
    double step = 0.01;
    double keep = 0.9;
  };
  AdaEdl(const Params& params, int longest) : params_(params), longest_(longest) {}
  [[nodiscard]] Memory start() const override { return {.length = longest_, .threshold = params_.first}; }
  [[nodiscard]] bool goes_on(const Memory& memory, double /*probability*/, double entropy) const override {
    return 1.0 - std::sqrt(params_.gamma * entropy) >= memory.threshold;
  }
  [[nodiscard]] bool looks() const override { return true; }
  void observe(Memory& memory, int drafted, int accepted) const override {
    if (drafted == 0) return;
    memory.value = params_.keep_rate * memory.value + (1.0 - params_.keep_rate) * accepted / drafted;
    // The threshold rises if too few tokens were accepted, and falls if enough were and drafting was stopped.
    const double moved = memory.value < params_.wanted ? memory.threshold + params_.step
                         : drafted == longest_         ? memory.threshold
                                                       : memory.threshold - params_.step;
    memory.threshold = params_.keep * memory.threshold + (1.0 - params_.keep) * moved;
  }

 private:
  Params params_;
  int longest_;
};

}  // namespace

PolicyEntry adaedl_policy() {
  using P = AdaEdl::Params;
  static const config::Fields<P> fields = {
      {"gamma", &P::gamma, "factor of the entropy in the bound 1 - sqrt(gamma entropy)", config::at_least(0)},
      {"first", &P::first, "threshold of a sequence's first round", config::between(-10, 1)},
      {"wanted", &P::wanted, "accepted / drafted below which the threshold rises", config::between(0, 1)},
      {"keep_rate", &P::keep_rate, "weight of the earlier rounds in the average of accepted / drafted", config::between(0, 1)},
      {"step", &P::step, "size of a step of the threshold", config::between(0, 1)},
      {"keep", &P::keep, "weight of the old threshold; the rest is the weight of the stepped one", config::between(0, 1)},
  };
  return {{"adaedl", "AdaEDL stops drafting when the draft's entropy bounds acceptance below a threshold",
           "Agrawal et al. (AdaEDL), arXiv 2410.18351; the threshold's update as in Zhang et al. (Draft & Verify), "
           "dilab-zju/self-speculative-decoding, decoding.py (auto_th_stop_draft), commit f69f2a7",
           fields},
          [](const config::Arguments& arguments, const LengthChoice& choice, Diagnostics&) -> std::unique_ptr<LengthPolicy> {
            return std::make_unique<AdaEdl>(fields.read(arguments), choice.longest);
          }};
}

}  // namespace specsim::draft
