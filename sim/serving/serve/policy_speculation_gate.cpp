#include "sim/foundation/base/token.h"
#include "sim/serving/serve/policy.h"

#include <deque>
#include <numeric>
#include <utility>
#include <vector>

namespace specsim::serve {

namespace {

// One length, until the mean acceptance of the last steps that drafted falls below a threshold; then none, for good.
class SpeculationGate final : public ServerPolicy {
 public:
  SpeculationGate(int length, std::size_t window, double threshold, DisableAbove disable)
      : length_(length), window_(window), threshold_(threshold), disable_(disable) {}
  [[nodiscard]] int draft_length(const BatchState& batch) override { return closed_ || disable_.holds(batch) ? 0 : length_; }
  [[nodiscard]] int longest() const override { return length_; }
  [[nodiscard]] std::vector<int> lengths() const override { return {length_}; }
  void observe(const StepRounds& rounds) override {
    if (closed_ || rounds.verified.empty() || rounds.verified.front() == 0) return;
    const double drafted = static_cast<double>(rounds.verified.front()) * static_cast<double>(rounds.verified.size());
    rates_.push_back(std::accumulate(rounds.accepted.begin(), rounds.accepted.end(), 0.0) / drafted);
    if (rates_.size() > window_) rates_.pop_front();
    closed_ = rates_.size() == window_ &&
              std::accumulate(rates_.begin(), rates_.end(), 0.0) / static_cast<double>(window_) < threshold_;
  }

 private:
  int length_;
  std::size_t window_;
  double threshold_;
  DisableAbove disable_;
  std::deque<double> rates_;  // accepted / drafted, the last step's last
  bool closed_ = false;
};

}  // namespace

ServerPolicyEntry speculation_gate_policy() {
  std::vector<config::Parameter> parameters = {
      {"draft_length", config::Type::integer, {}, "tokens that every sequence drafts", config::between(1, kMaxDraftLength), {}},
      {"window",
       config::Type::integer,
       {},
       "steps that the mean goes over (acceptance_rate_window_size)",
       config::between(1, 1e6),
       {}},
      {"threshold",
       config::Type::number,
       {},
       "accepted / drafted below which nothing is drafted any more (acceptance_rate_threshold)",
       config::between(0, 1),
       {}}};
  for (config::Parameter& one : disable_parameters()) parameters.push_back(std::move(one));
  return {
      {"speculation_gate",
       "one draft length, until the mean acceptance of the last steps falls below a threshold; no drafts after that, for good",
       "TensorRT-LLM, SpeculationGate: tensorrt_llm/_torch/speculative/speculation_gate.py, pyexecutor/py_executor.py "
       "(_update_batch_acceptance_rate), commit 4b7d719",
       std::move(parameters),
       "A step's acceptance is that of all its sequences together, of steps that verified drafts alone. Nothing turns it on "
       "again: one bad stretch of window steps is enough. TensorRT-LLM leaves it off unless both are set."},
      [](const config::Arguments& arguments, Diagnostics&) -> PolicyMaker {
        return [length = static_cast<int>(arguments.integer("draft_length")),
                window = static_cast<std::size_t>(arguments.integer("window")), threshold = arguments.number("threshold"),
                disable = read_disable_above(arguments)](const PolicySetting&) {
          return std::make_unique<SpeculationGate>(length, window, threshold, disable);
        };
      }};
}

}  // namespace specsim::serve
