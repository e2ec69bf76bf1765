#include "sim/serving/serve/scheduler.h"

#include <fmt/format.h>

#include <algorithm>

namespace specsim::serve {

DraftingRequest EngineState::drafting(arrivals::RequestId request, std::uint32_t emitted) const {
  const Sequence& sequence = at(request);
  return {request, sequence.prompt + emitted, sequence.limit - std::min(sequence.limit, emitted)};
}

std::uint32_t EngineState::uneven_drafts(arrivals::RequestId request, std::uint32_t emitted, int draft_length) const {
  const int own = draft_length > 0 ? policy->of_request(drafting(request, emitted), draft_length) : 0;
  return own > 0 ? acceptance->drafted(request, emitted, own) : 0;
}

std::uint32_t EngineState::uneven_drafts_ahead(arrivals::RequestId request, int draft_length) const {
  const int own = draft_length > 0 ? policy->of_request(drafting(request, at(request).emitted), draft_length) : 0;
  return own > 0 ? acceptance->widest(own) : 0;
}

void Scheduler::arrive(arrivals::RequestId request, EngineState& state) {
  state.at(request).status = Status::waiting;
  waiting_.push_back(request);
}

std::string Scheduler::refused_by_pool(std::uint32_t blocks, const EngineState& state) {
  if (state.pool->unlimited() || blocks <= state.pool->usable()) return "";
  return fmt::format("it needs {} blocks to its end, allowed: at most the pool's {}", blocks, state.pool->usable());
}

std::string Scheduler::refused_by_length(const arrivals::Request& request, std::uint32_t max_model_len) {
  // A client's own limit may be larger: the server then cuts it, as if the client had given none.
  if (std::uint64_t{request.prompt} + request.output <= max_model_len) return "";
  return fmt::format("its prompt has {} tokens and its output {}, allowed: together at most max_model_len, {}", request.prompt,
                     request.output, max_model_len);
}

void Scheduler::begin(Sequence& sequence, std::uint32_t cached, const EngineState& state) {
  if (!sequence.arrived_prefilled()) {
    sequence.found += cached;
    sequence.looked_up += sequence.tokens();
  }
  sequence.computed = cached;
  sequence.prefill_target = sequence.arrived_prefilled() ? 0 : sequence.tokens();
  sequence.resumed = sequence.status == Status::preempted;
  state.spend(sequence, sequence.resumed ? Cause::preempted : Cause::queue);
  if (sequence.resumed) sequence.recomputed += sequence.tokens() - cached;
  sequence.status = Status::running;
  if (sequence.first_scheduled == arrivals::kNever) sequence.first_scheduled = state.now;
}

arrivals::Picoseconds Scheduler::load(Sequence& sequence, std::span<const std::uint64_t> hashes, const EngineState& state) {
  const auto tokens = static_cast<std::uint32_t>(hashes.size()) * state.pool->block_tokens();
  sequence.found_in_host += tokens;
  if (state.loses_drafts) sequence.draft_lost = tokens;
  return state.pool->host()->load(hashes, state.now);
}

void Scheduler::lose(Sequence& sequence, Step& step) {
  sequence.draft_lost = 0;
  sequence.loaded_at = 0;
  sequence.computed = 0;
  sequence.spec = 0;
  sequence.prefill_target = 0;
  sequence.status = Status::preempted;
  ++sequence.preemptions;
  ++step.preempted;
}

void Scheduler::take_tokens(EngineState& state, const Step& step, std::vector<arrivals::RequestId>& finished) {
  take_tokens(state, step, finished, [&](arrivals::RequestId /*request*/, Sequence& sequence) {
    state.pool->give_back(sequence.held);
    sequence.held = 0;
  });
}

void Scheduler::take_tokens(EngineState& state, const Step& step, std::vector<arrivals::RequestId>& finished,
                            const std::function<void(arrivals::RequestId, Sequence&)>& give_back) {
  for (const Item& item : step.items) {
    Sequence& sequence = state.at(item.request);
    if (!item.emits) continue;
    sequence.computed -= item.drafts - item.accepted;
    sequence.emitted += std::min(item.accepted + 1, sequence.output - sequence.emitted);
    sequence.spec = state.drafts(item.request, sequence.emitted, step.draft_length);
    if (sequence.emitted < sequence.output) continue;
    give_back(item.request, sequence);
    sequence.status = Status::finished;
    finished.push_back(item.request);
  }
  forget_finished(state);
}

std::vector<std::string> Scheduler::idle_sentences(const RequestTraits& traits, const char* policy, bool by_priority,
                                                   const char* cache, bool caching) {
  std::vector<std::string> lines;
  if (by_priority && traits.one_priority)
    lines.push_back(fmt::format("{} priority changes nothing: all requests have the same (column priority of a trace)", policy));
  if (caching && !traits.shared_prefixes)
    lines.push_back(fmt::format("{} changes nothing: no prompts share a prefix (sessions and traces with hashes do)", cache));
  return lines;
}

std::uint32_t Scheduler::steps_in_pool(const EngineState& state, const Step& last, std::uint32_t steps, std::uint32_t slots) {
  const BlockPool& pool = *state.pool;
  if (pool.unlimited()) return steps;
  const auto needed = [&] {
    std::uint64_t blocks = 0;
    for (const Item& item : last.items) {
      const Sequence& sequence = state.at(item.request);
      const std::uint32_t most = pool.blocks_for(sequence.computed + std::uint64_t{steps} * item.rows + slots);
      blocks += most > sequence.held ? most - sequence.held : 0;
    }
    return blocks;
  };
  while (steps > 0 && needed() > pool.free()) steps /= 2;
  return steps;
}

void Scheduler::forget_finished(const EngineState& state) {
  std::erase_if(running_, [&](arrivals::RequestId id) { return state.at(id).status == Status::finished; });
}

void complete_step(EngineState& state, Step& step, std::uint32_t waiting, std::span<const arrivals::RequestId> others) {
  step.waiting = waiting;
  step.free_blocks = state.pool->free();
  if (step.items.empty()) return;
  if (state.policy != nullptr) {
    BatchState batch{static_cast<std::uint32_t>(step.items.size() + others.size()), waiting, 0.0};
    for (const Item& item : step.items) batch.cached += state.at(item.request).computed;
    for (const arrivals::RequestId request : others) batch.cached += state.at(request).computed;
    step.draft_length = state.policy->draft_length(batch);
  }
  for (Item& item : step.items) {
    Sequence& sequence = state.at(item.request);
    sequence.computed += item.rows;
    item.emits = sequence.computed >= sequence.tokens();
  }
}

}  // namespace specsim::serve
