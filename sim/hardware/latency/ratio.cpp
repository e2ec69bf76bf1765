#include "sim/hardware/latency/cost_model.h"

#include <fmt/format.h>

namespace specsim::cost {

namespace {

class RatioCost final : public CostModel {
 public:
  RatioCost(double cost_ratio, double verify_inflation, double overhead, double target_seconds)
      : cost_ratio_(cost_ratio),
        verify_inflation_(verify_inflation),
        overhead_(overhead),
        unit_(target_seconds > 0.0 ? target_seconds : 1.0),
        in_seconds_(target_seconds > 0.0) {}
  [[nodiscard]] PassTime pass(Role role, const Pass& pass) const override {
    PassTime time;
    time.weights = unit_ * (role == Role::draft ? cost_ratio_ : pass.tokens > 1.0 ? verify_inflation_ : 1.0);
    return time;
  }
  [[nodiscard]] double round_overhead(double /*batch*/) const override { return unit_ * overhead_; }
  [[nodiscard]] bool in_seconds() const override { return in_seconds_; }

 private:
  double cost_ratio_;
  double verify_inflation_;
  double overhead_;
  double unit_;
  bool in_seconds_;
};

}  // namespace

CostEntry ratio_cost() {
  return {{"ratio",
           "draft and target passes in a fixed ratio; verification costs one target pass",
           "Leviathan et al., arXiv 2211.17192",
           {{"cost_ratio", config::Type::number, "", "draft pass / target pass", config::between(0, 1e6), {}},
            {"target_to_draft_ratio",
             config::Type::number,
             "",
             "the inverse of cost_ratio, for papers that define it that way; give one of the two",
             config::Interval{0, 1e9, true, false},
             {}},
            {"draft_seconds",
             config::Type::number,
             "",
             "time of a draft pass, with target_seconds instead of a ratio",
             config::Interval{0, 1e6},
             {}},
            {"target_seconds", config::Type::number, "", "time of a target pass", config::Interval{0, 1e6, true, false}, {}},
            {"verify_inflation",
             config::Type::number,
             "1",
             "target pass over draft_length + 1 tokens / over one",
             config::Interval{0, 1e6, true, false},
             {}},
            {"overhead",
             config::Type::number,
             "0",
             "host time of a speculative round, in target passes",
             config::between(0, 1e6),
             {}}},
           "speedup = tokens_per_round / (draft_length cost_ratio + verify_inflation + overhead)."},
          [](const config::Arguments& arguments, Diagnostics& diagnostics) -> std::unique_ptr<CostModel> {
            const bool seconds = arguments.has("draft_seconds") || arguments.has("target_seconds");
            const int ways =
                (arguments.has("cost_ratio") ? 1 : 0) + (arguments.has("target_to_draft_ratio") ? 1 : 0) + (seconds ? 1 : 0);
            if (ways != 1 || (seconds && !(arguments.has("draft_seconds") && arguments.has("target_seconds")))) {
              diagnostics.add(
                  arguments.where(),
                  fmt::format("cost model ratio has {}, allowed: exactly one of cost_ratio; target_to_draft_ratio; draft_seconds "
                              "with target_seconds",
                              ways == 0   ? "no ratio"
                              : ways == 1 ? (arguments.has("draft_seconds") ? "draft_seconds alone" : "target_seconds alone")
                                          : "the ratio in more than one way"));
              return nullptr;
            }
            const double ratio = arguments.has("cost_ratio") ? arguments.number("cost_ratio")
                                 : arguments.has("target_to_draft_ratio")
                                     ? 1.0 / arguments.number("target_to_draft_ratio")
                                     : arguments.number("draft_seconds") / arguments.number("target_seconds");
            return std::make_unique<RatioCost>(ratio, arguments.number("verify_inflation"), arguments.number("overhead"),
                                               seconds ? arguments.number("target_seconds") : 0.0);
          }};
}

}  // namespace specsim::cost
