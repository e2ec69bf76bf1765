#include "sim/serve/scheduler.h"

namespace specsim::serve {

void complete_step(EngineState& state, Step& step, std::uint32_t waiting) {
  step.waiting = waiting;
  step.free_blocks = state.pool->free();
  if (step.items.empty()) return;
  if (state.policy != nullptr) {
    BatchState batch{static_cast<std::uint32_t>(step.items.size()), waiting, 0.0};
    for (const Item& item : step.items) batch.cached += state.at(item.request).computed;
    step.draft_length = state.policy->draft_length(batch);
  }
  for (Item& item : step.items) {
    Sequence& sequence = state.at(item.request);
    sequence.computed += item.rows;
    item.emits = sequence.computed >= sequence.tokens();
  }
}

}  // namespace specsim::serve
