// A static batch: waiting requests are admitted together and computed together, and the next batch begins when the last sequence
// has ended.
#include "sim/serving/serve/scheduler.h"

#include <algorithm>

namespace specsim::serve {

namespace {

class StaticBatch final : public Scheduler {
 public:
  explicit StaticBatch(std::uint32_t batch) : batch_(batch) {}
  [[nodiscard]] RunningLimit running_limit() const override { return {batch_, ""}; }

  [[nodiscard]] std::string refusal(const arrivals::Request& request, const EngineState& state) const override {
    return refused_by_pool(needed(request.prompt, request.output, state), state);
  }

  void schedule(EngineState& state, Step& step) override {
    step.clear();
    if (running_.empty()) admit(state);
    for (const arrivals::RequestId request : running_) {
      Sequence& sequence = state.at(request);
      const bool prefill = sequence.computed == 0;
      const std::uint32_t drafts = prefill ? 0 : sequence.spec;
      step.items.push_back({request, prefill ? sequence.prompt : 1 + drafts, drafts, 0, prefill, true, 0});
      sequence.spec = 0;
    }
    complete_step(state, step, waiting());
  }

  void update(EngineState& state, const Step& step, std::vector<arrivals::RequestId>& finished) override {
    take_tokens(state, step, finished);
  }

 private:
  static std::uint32_t needed(std::uint32_t prompt, std::uint32_t output, const EngineState& state) {
    return state.pool->blocks_for(std::uint64_t{prompt} + output + state.lookahead);
  }

  void admit(EngineState& state) {
    while (!waiting_.empty() && running_.size() < batch_) {
      const arrivals::RequestId request = waiting_.front();
      Sequence& sequence = state.at(request);
      const std::uint32_t blocks = needed(sequence.prompt, sequence.output, state);
      if (!state.pool->unlimited() && blocks > state.pool->free()) return;
      waiting_.pop_front();
      running_.push_back(request);
      state.pool->take(blocks);
      sequence.held = blocks;
      begin(sequence, sequence.arrived_prefilled() ? sequence.tokens() - 1 : 0, state);
    }
  }

  std::uint32_t batch_;
};

}  // namespace

SchedulerEntry static_batch_scheduler() {
  struct P {
    std::uint32_t batch = 0;
  };
  static const config::Fields<P> fields = {
      {"batch", &P::batch, "maximum number of requests of a batch", config::between(1, 1e7), config::required},
  };
  return {{"static", "batches that begin together; the next one when the last sequence has ended", "", fields,
           "Blocks are kept to the end of each output, so nothing is ever preempted. A placement treats one batch in the same "
           "way."},
          [](const config::Arguments& arguments, Diagnostics&) -> SchedulerMaker {
            return [batch = fields.read(arguments).batch] { return std::make_unique<StaticBatch>(batch); };
          }};
}

}  // namespace specsim::serve
