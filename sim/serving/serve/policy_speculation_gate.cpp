#include "sim/foundation/base/token.h"
#include "sim/serving/serve/policy.h"

#include <deque>
#include <numeric>
#include <utility>
#include <vector>

namespace specsim::serve {

namespace {

// One length, until the mean acceptance of the last steps with drafts falls below a threshold; then none, permanently.
class SpeculationGate final : public ServerPolicy {
 public:
  struct Params {
    int draft_length = 0;
    std::size_t window = 0;
    double threshold = 0.0;
    DisableAbove disable;
  };
  explicit SpeculationGate(const Params& params) : params_(params) {}
  [[nodiscard]] int draft_length(const BatchState& batch) override {
    return closed_ || params_.disable.holds(batch) ? 0 : params_.draft_length;
  }
  [[nodiscard]] int longest() const override { return params_.draft_length; }
  [[nodiscard]] std::vector<int> lengths() const override { return {params_.draft_length}; }
  void observe(const StepRounds& rounds) override {
    if (closed_ || rounds.verified.empty() || rounds.verified.front() == 0) return;
    const double drafted = static_cast<double>(rounds.verified.front()) * static_cast<double>(rounds.verified.size());
    rates_.push_back(std::accumulate(rounds.accepted.begin(), rounds.accepted.end(), 0.0) / drafted);
    if (rates_.size() > params_.window) rates_.pop_front();
    closed_ = rates_.size() == params_.window &&
              std::accumulate(rates_.begin(), rates_.end(), 0.0) / static_cast<double>(params_.window) < params_.threshold;
  }

 private:
  Params params_;
  std::deque<double> rates_;  // accepted / drafted, the newest step last
  bool closed_ = false;
};

}  // namespace

ServerPolicyEntry speculation_gate_policy() {
  using P = SpeculationGate::Params;
  static const config::Fields<P> fields = {
      {"draft_length", &P::draft_length, "tokens that every sequence drafts", config::between(1, kMaxDraftLength),
       config::required},
      {"window", &P::window, "steps over which the mean is taken (acceptance_rate_window_size)", config::between(1, 1e6),
       config::required},
      {"threshold", &P::threshold, "accepted / drafted below which nothing is drafted any more (acceptance_rate_threshold)",
       config::between(0, 1), config::required},
      {&P::disable, disable_fields()},
  };
  return {
      {"speculation_gate",
       "one draft length, until the mean acceptance of the last steps falls below a threshold; no drafts after that, permanently",
       "TensorRT-LLM, SpeculationGate: tensorrt_llm/_torch/speculative/speculation_gate.py, pyexecutor/py_executor.py "
       "(_update_batch_acceptance_rate), commit 4b7d719",
       fields,
       "A step's acceptance is that of all its sequences together; only steps that verified drafts count. Nothing turns it on "
       "again: one bad stretch of window steps is enough. TensorRT-LLM leaves it off unless both are set."},
      [](const config::Arguments& arguments, Diagnostics&) -> PolicyMaker {
        return [params = fields.read(arguments)](const PolicySetting&) { return std::make_unique<SpeculationGate>(params); };
      }};
}

}  // namespace specsim::serve
