#include "sim/serve/scheduler.h"

namespace specsim::serve {

std::uint32_t EngineState::uneven_drafts(RequestId request, std::uint32_t emitted, int draft_length) const {
  const int own = draft_length > 0 ? policy->of_request(request, draft_length) : 0;
  return own > 0 ? acceptance->drafted(request, emitted, own) : 0;
}

std::uint32_t EngineState::uneven_drafts_ahead(RequestId request, int draft_length) const {
  const int own = draft_length > 0 ? policy->of_request(request, draft_length) : 0;
  return own > 0 ? acceptance->widest(own) : 0;
}

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
