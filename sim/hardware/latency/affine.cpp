#include "sim/hardware/latency/cost_model.h"

#include <array>
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

class AffineCost final : public CostModel {
 public:
  AffineCost(const Line& target, const Line& draft, double draft_fixed_per_round, double overhead)
      : target_(target), draft_(draft), draft_fixed_per_round_(draft_fixed_per_round), overhead_(overhead) {}
  [[nodiscard]] PassTime pass(Role role, const Pass& pass) const override {
    const Line& line = role == Role::target ? target_ : draft_;
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
    if (index == 0) time.weights += 1e-3 * draft_fixed_per_round_;
    return time;
  }
  [[nodiscard]] double round_overhead(double /*batch*/) const override { return 1e-3 * overhead_; }

 private:
  Line target_;
  Line draft_;
  double draft_fixed_per_round_;
  double overhead_;
};

struct AffinePreset {
  const char* name;
  std::array<double, 10> values;  // in the order of kNames
};

constexpr std::array<const char*, 10> kNames = {"target_fixed_ms",
                                                "target_ms_per_token",
                                                "target_ms_per_kv_token",
                                                "draft_fixed_ms",
                                                "draft_ms_per_token",
                                                "draft_ms_per_kv_token",
                                                "draft_fixed_ms_per_round",
                                                "overhead_ms",
                                                "target_compute_ms_per_token",
                                                "draft_compute_ms_per_token"};

// Fitted by others to vLLM on an H100 with Llama-3.1-8B and an EAGLE head, batches 1 to 64. Every step pays 5.886 ms and a
// constant 1.207 ms of host time, also without speculation: 7.093 ms in all. The draft's line is for a whole proposal of 3
// passes, 2.135 ms and a time per cached token: each pass here takes a third.
constexpr std::array<AffinePreset, 1> kPresets = {
    {{"h100-llama-3.1-8b-eagle",
      {7.09274659, 0.0210103129, 3.92645679e-5, 2.13526175 / 3.0, 8.41429603e-4, 7.92561643e-7, 0.0, 0.0, 0.0, 0.0}}}};

config::Parameter ms(const char* name, const char* summary) {
  return {name, config::Type::number, "", summary, config::between(0, 1e9), {}};
}

}  // namespace

CostEntry affine_cost() {
  std::vector<config::Parameter> parameters = {
      {"preset",
       config::Type::text,
       "",
       "published coefficients; the other keys then replace single ones",
       {},
       {kPresets[0].name}},
      ms("target_fixed_ms", "fixed time of a target pass"),
      ms("target_ms_per_token", "time of a target pass for each new token of the batch"),
      ms("target_ms_per_kv_token", "time of a target pass for each cached token of the batch"),
      ms("draft_fixed_ms", "fixed time of a draft pass"),
      ms("draft_ms_per_token", "time of a draft pass for each new token of the batch"),
      ms("draft_ms_per_kv_token", "time of a draft pass for each cached token of the batch"),
      ms("draft_fixed_ms_per_round", "time of drafting per round"),
      ms("overhead_ms", "extra host time of a speculative round"),
      ms("target_compute_ms_per_token",
         "arithmetic of a target pass for each new token, joined with the fixed and per-token time by the 4-norm"),
      ms("draft_compute_ms_per_token",
         "arithmetic of a draft pass for each new token, joined with its other times by the 4-norm")};
  return {{"affine", "a pass is a fixed time, a time per token and a time per cached token",
           "SmartSpec, arXiv 2406.14066; preset: SpecDecode-Bench's simulator", std::move(parameters),
           "Linear regression as serving engines fit it; a knee between memory-bound and compute-bound only if "
           "compute_ms_per_token is given."},
          [](const config::Arguments& arguments, Diagnostics& diagnostics) -> std::unique_ptr<CostModel> {
            std::array<double, kNames.size()> values{};
            bool any = arguments.has("preset");
            if (any) values = kPresets[0].values;
            for (std::size_t i = 0; i < kNames.size(); ++i) {
              if (!arguments.has(kNames[i])) continue;
              values[i] = arguments.number(kNames[i]);
              any = true;
            }
            if (!any || values[0] + values[1] <= 0.0) {
              diagnostics.add(arguments.where(),
                              "cost model affine has a target pass that takes no time, allowed: a preset, or target_fixed_ms, "
                              "target_ms_per_token and the rest");
              return nullptr;
            }
            return std::make_unique<AffineCost>(Line{values[0], values[1], values[2], values[8]},
                                                Line{values[3], values[4], values[5], values[9]}, values[6], values[7]);
          }};
}

}  // namespace specsim::cost
