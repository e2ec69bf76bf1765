#include "sim/foundation/base/token.h"
#include "sim/serving/serve/policy.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

namespace specsim::serve {

namespace {

// The length with the most expected tokens per second. It uses the step's estimated time and the past acceptance of each position
// (SmartSpec, arXiv 2406.14066). Observations are weighted by `memory` per step.
class Goodput final : public ServerPolicy {
 public:
  struct Params {
    int longest = 8;
    double prior = 0.7;
    double memory = 0.99;
    DisableAbove disable;
  };
  Goodput(const Params& params, const PolicySetting& setting)
      : params_(params),
        seconds_(setting.seconds),
        offered_(static_cast<std::size_t>(params.longest) + 1, true),
        verified_(static_cast<std::size_t>(params.longest)),
        accepted_(verified_.size()) {
    if (setting.offers)
      for (int length = 1; length <= params_.longest; ++length)
        offered_[static_cast<std::size_t>(length)] = setting.offers(length);
    for (std::size_t i = 0; i < verified_.size(); ++i) {
      verified_[i] = 1.0;
      accepted_[i] = params_.prior;
    }
  }
  [[nodiscard]] int draft_length(const BatchState& batch) override {
    if (params_.disable.holds(batch)) return 0;
    int best = 0;
    double best_rate = 0.0;
    double reached = 1.0;
    double tokens = 1.0;
    for (int length = 0; length <= params_.longest; ++length) {
      if (length > 0) {
        const auto at = static_cast<std::size_t>(length - 1);
        reached *= accepted_[at] / verified_[at];
        tokens += reached;
      }
      if (!offered_[static_cast<std::size_t>(length)]) continue;
      const double rate = tokens / seconds_(batch, length);
      if (rate > best_rate * (1.0 + 1e-12)) {
        best = length;
        best_rate = rate;
      }
    }
    return best;
  }
  [[nodiscard]] int longest() const override { return params_.longest; }
  [[nodiscard]] std::vector<int> lengths() const override {
    std::vector<int> all;
    for (int length = 1; length <= params_.longest; ++length)
      if (offered_[static_cast<std::size_t>(length)]) all.push_back(length);
    return all;
  }
  void observe(const StepRounds& rounds) override {
    for (std::size_t at = 0; at < std::min(rounds.verified.size(), verified_.size()); ++at) {
      verified_[at] = params_.memory * verified_[at] + rounds.verified[at];
      accepted_[at] = params_.memory * accepted_[at] + rounds.accepted[at];
    }
  }

 private:
  Params params_;
  StepSeconds seconds_;
  std::vector<char> offered_;  // [length]
  std::vector<double> verified_;
  std::vector<double> accepted_;
};

}  // namespace

ServerPolicyEntry goodput_policy() {
  using P = Goodput::Params;
  static const config::Fields<P> fields = {
      {"longest", &P::longest, "longest draft length that is tried", config::between(1, kMaxDraftLength)},
      {"prior", &P::prior, "assumed acceptance of each position before anything is observed", config::between(0, 1)},
      {"memory", &P::memory, "factor on all earlier observations per step", config::between(0, 1)},
      {&P::disable, disable_fields()},
  };
  return {{"goodput", "the draft length with the most expected tokens per second", "SmartSpec, arXiv 2406.14066", fields,
           "Step times are the cost model's own for the current batch; acceptance is that of the rounds before."},
          [](const config::Arguments& arguments, Diagnostics&) -> PolicyMaker {
            return [params = fields.read(arguments)](const PolicySetting& setting) {
              return std::make_unique<Goodput>(params, setting);
            };
          },
          "longest",
          nullptr,
          true};
}

}  // namespace specsim::serve
