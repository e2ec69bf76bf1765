#include "sim/hardware/latency/cost_model.h"

#include <cmath>

namespace specsim::cost {

namespace {

// Milliseconds of a pass: fixed, per token of the batch, per cached token that the batch reads.
struct Line {
  double fixed = 0.0;
  double per_token = 0.0;
  double per_kv_token = 0.0;
  double compute_per_token = 0.0;  // arithmetic, which limits passes over many tokens
};

// Memory and arithmetic of a pass overlap, but not fully: the 4-norm of the two follows measured steps between the two bounds.
double joined(double memory, double arithmetic) {
  if (arithmetic <= memory * 1e-5) return memory;
  if (memory <= arithmetic * 1e-5) return arithmetic;
  const double ratio = arithmetic / memory;
  return memory * std::sqrt(std::sqrt(1.0 + ratio * ratio * ratio * ratio));
}

struct Lines {
  Line target;
  Line draft;
  double draft_fixed_per_round = 0.0;
  double overhead = 0.0;
};

class AffineCost final : public CostModel {
 public:
  explicit AffineCost(const Lines& lines) : own_(lines) {}
  [[nodiscard]] PassTime pass(Role role, const Pass& pass) const override {
    const Line& line = role == Role::target ? own_.target : own_.draft;
    PassTime time;
    time.weights = 1e-3 * line.fixed;
    const double tokens = pass.batch * pass.tokens;
    time.compute = 1e-3 * line.per_token * tokens;
    if (line.compute_per_token > 0.0)
      time.compute = 1e-3 * joined(line.fixed + line.per_token * tokens, line.compute_per_token * tokens) - time.weights;
    time.kv = 1e-3 * line.per_kv_token * pass.batch * pass.context;
    return time;
  }
  [[nodiscard]] PassTime draft_pass(const Workload& workload, int index, double extra) const override {
    PassTime time = CostModel::draft_pass(workload, index, extra);
    if (index == 0) time.weights += 1e-3 * own_.draft_fixed_per_round;
    return time;
  }
  [[nodiscard]] double round_overhead(double /*batch*/) const override { return 1e-3 * own_.overhead; }

 private:
  Lines own_;
};

// Fitted by others to vLLM on an H100 with Llama-3.1-8B and an EAGLE head, batches 1 to 64. Every step pays 5.886 ms and a
// constant 1.207 ms of host time, also without speculation: 7.093 ms in all. The draft's line is for a whole proposal of 3
// passes, 2.135 ms and a time per cached token: each pass here takes a third.
constexpr const char* kPreset = "h100-llama-3.1-8b-eagle";
constexpr Lines kPresetLines = {{7.09274659, 0.0210103129, 3.92645679e-5}, {2.13526175 / 3.0, 8.41429603e-4, 7.92561643e-7}};

}  // namespace

CostEntry affine_cost() {
  const config::Interval ms = config::between(0, 1e9);
  using config::optional;
  static const config::Fields<Lines> fields = {
      {"preset", config::elsewhere<std::string>, "published coefficients; the other keys then replace single ones",
       config::one_of({kPreset})},
      {&Lines::target, config::Fields<Line>{{"target_fixed_ms", &Line::fixed, "fixed time of a target pass", ms, optional},
                                            {"target_ms_per_token", &Line::per_token,
                                             "time of a target pass for each new token of the batch", ms, optional},
                                            {"target_ms_per_kv_token", &Line::per_kv_token,
                                             "time of a target pass for each cached token of the batch", ms, optional}}},
      {&Lines::draft, config::Fields<Line>{{"draft_fixed_ms", &Line::fixed, "fixed time of a draft pass", ms, optional},
                                           {"draft_ms_per_token", &Line::per_token,
                                            "time of a draft pass for each new token of the batch", ms, optional},
                                           {"draft_ms_per_kv_token", &Line::per_kv_token,
                                            "time of a draft pass for each cached token of the batch", ms, optional}}},
      {"draft_fixed_ms_per_round", &Lines::draft_fixed_per_round, "time of drafting per round", ms, optional},
      {"overhead_ms", &Lines::overhead, "extra host time of a speculative round", ms, optional},
      {&Lines::target,
       config::Fields<Line>{
           {"target_compute_ms_per_token", &Line::compute_per_token,
            "arithmetic of a target pass for each new token, joined with the fixed and per-token time by the 4-norm", ms,
            optional}}},
      {&Lines::draft,
       config::Fields<Line>{{"draft_compute_ms_per_token", &Line::compute_per_token,
                             "arithmetic of a draft pass for each new token, joined with its other times by the 4-norm", ms,
                             optional}}}};
  return {{"affine", "a pass is a fixed time, a time per token and a time per cached token",
           "SmartSpec, arXiv 2406.14066; preset: SpecDecode-Bench's simulator", fields,
           "Linear regression as serving engines fit it; a knee between memory-bound and compute-bound only if "
           "compute_ms_per_token is given."},
          [](const config::Arguments& arguments, Diagnostics& diagnostics) -> std::unique_ptr<CostModel> {
            Lines lines = arguments.has("preset") ? kPresetLines : Lines();
            fields.read(arguments, lines);
            if (lines.target.fixed + lines.target.per_token <= 0.0) {
              diagnostics.add(arguments.where(),
                              "cost model affine has a target pass that takes no time, allowed: a preset, or target_fixed_ms, "
                              "target_ms_per_token and the rest");
              return nullptr;
            }
            return std::make_unique<AffineCost>(lines);
          }};
}

}  // namespace specsim::cost
