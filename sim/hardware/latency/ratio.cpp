#include "sim/hardware/latency/cost_model.h"

#include <fmt/format.h>

namespace specsim::cost {

namespace {

class RatioCost final : public CostModel {
 public:
  struct Params {
    std::optional<double> cost_ratio;
    std::optional<double> target_to_draft_ratio;
    std::optional<double> draft_seconds;
    std::optional<double> target_seconds;
    double verify_inflation = 1.0;
    double overhead = 0.0;
  };
  RatioCost(double cost_ratio, const Params& params)
      : cost_ratio_(cost_ratio), own_(params), unit_(params.target_seconds.value_or(1.0)) {}
  [[nodiscard]] PassTime pass(Role role, const Pass& pass) const override {
    PassTime time;
    time.weights = unit_ * (role == Role::draft ? cost_ratio_ : pass.tokens > 1.0 ? own_.verify_inflation : 1.0);
    return time;
  }
  [[nodiscard]] double round_overhead(double /*batch*/) const override { return unit_ * own_.overhead; }
  [[nodiscard]] bool in_seconds() const override { return own_.target_seconds.has_value(); }

 private:
  double cost_ratio_;
  Params own_;
  double unit_;
};

}  // namespace

CostEntry ratio_cost() {
  using P = RatioCost::Params;
  static const config::Fields<P> fields = {
      {"cost_ratio", &P::cost_ratio, "draft pass / target pass", config::between(0, 1e6)},
      {"target_to_draft_ratio", &P::target_to_draft_ratio,
       "the inverse of cost_ratio, for papers that define it that way; give one of the two", config::above(0, 1e9)},
      {"draft_seconds", &P::draft_seconds, "time of a draft pass, with target_seconds instead of a ratio",
       config::between(0, 1e6)},
      {"target_seconds", &P::target_seconds, "time of a target pass", config::above(0, 1e6)},
      {"verify_inflation", &P::verify_inflation, "target pass over draft_length + 1 tokens / over one", config::above(0, 1e6)},
      {"overhead", &P::overhead, "host time of a speculative round, in target passes", config::between(0, 1e6)}};
  return {{"ratio", "draft and target passes in a fixed ratio; verification costs one target pass",
           "Leviathan et al., arXiv 2211.17192", fields,
           "speedup = tokens_per_round / (draft_length cost_ratio + verify_inflation + overhead)."},
          [](const config::Arguments& arguments, Diagnostics& diagnostics) -> std::unique_ptr<CostModel> {
            const P params = fields.read(arguments);
            const bool seconds = params.draft_seconds || params.target_seconds;
            const int ways = (params.cost_ratio ? 1 : 0) + (params.target_to_draft_ratio ? 1 : 0) + (seconds ? 1 : 0);
            if (ways != 1 || (seconds && !(params.draft_seconds && params.target_seconds))) {
              diagnostics.add(
                  arguments.where(),
                  fmt::format("cost model ratio has {}, allowed: exactly one of cost_ratio; target_to_draft_ratio; draft_seconds "
                              "with target_seconds",
                              ways == 0   ? "no ratio"
                              : ways == 1 ? (params.draft_seconds ? "draft_seconds alone" : "target_seconds alone")
                                          : "the ratio in more than one way"));
              return nullptr;
            }
            const double ratio = params.cost_ratio              ? *params.cost_ratio
                                 : params.target_to_draft_ratio ? 1.0 / *params.target_to_draft_ratio
                                                                : *params.draft_seconds / *params.target_seconds;
            return std::make_unique<RatioCost>(ratio, params);
          }};
}

}  // namespace specsim::cost
