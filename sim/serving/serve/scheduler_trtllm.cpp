// TensorRT-LLM's two stages: the first selects the requests that fit the cache, the second selects their tokens for
// the next step.
#include "sim/serving/serve/cached_blocks.h"
#include "sim/serving/serve/scheduler.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

namespace specsim::serve {

namespace {

struct TrtllmOptions {
  std::uint32_t max_batch_size = 256;
  std::uint32_t max_num_tokens = 8192;
  bool chunked_context = true;
  bool max_utilization = false;
  bool block_reuse = false;
};

class Trtllm final : public Scheduler {
 public:
  explicit Trtllm(const TrtllmOptions& options) : options_(options) {}
  // KvCacheCreator of _torch/pyexecutor/_util.py (2026): the server runs the largest step, of prompts, which have few logits.
  [[nodiscard]] std::optional<cost::StepLimits> profiled() const override {
    return cost::StepLimits{static_cast<double>(options_.max_num_tokens), 0.0};
  }
  [[nodiscard]] bool prefix_caching() const override { return options_.block_reuse; }
  [[nodiscard]] std::vector<std::string> idle_options(const RequestTraits& traits) const override {
    return idle_sentences(traits, "", false, "block_reuse", options_.block_reuse);
  }
  [[nodiscard]] cost::MemoryShare memory_share() const override { return cost::MemoryShare::cache_of_rest; }
  [[nodiscard]] RunningLimit running_limit() const override { return {options_.max_batch_size, ""}; }

  [[nodiscard]] std::string refusal(const arrivals::Request& request, const EngineState& state) const override {
    if (!options_.chunked_context && request.prompt > options_.max_num_tokens)
      return fmt::format("its prompt has {} tokens and chunked_context is false, allowed: at most max_num_tokens, {}",
                         request.prompt, options_.max_num_tokens);
    const std::uint32_t blocks = to_completion(request.prompt, std::max(request.limit, request.output), state);
    return refused_by_pool(blocks, state);
  }

  void schedule(EngineState& state, Step& step) override {
    step.clear();
    if (options_.max_utilization)
      make_room(state, step);
    else if (state.pool->caches())  // without a cache, all blocks are held from the admission on
      for (const arrivals::RequestId id : running_) hold(id, state.at(id), until_next_step(state.at(id), state), state);
    if (step.preempted == 0) admit(state);
    micro_batch(state, step);
    complete_step(state, step, waiting());
  }

  void update(EngineState& state, const Step& step, std::vector<arrivals::RequestId>& finished) override {
    if (state.pool->caches()) {
      for (const Item& item : step.items) {
        const Sequence& sequence = state.at(item.request);
        // Blocks join the cache when the whole prompt is computed, and again at the end, all without the last token.
        if (item.prefill && item.emits) cached_.name(item.request, sequence.tokens() - 1, state);
      }
    }
    take_tokens(state, step, finished, [&](arrivals::RequestId request, Sequence& sequence) {
      if (state.pool->caches()) cached_.name(request, sequence.tokens() - 1, state);
      give_back(request, sequence, state);
    });
  }

 private:
  static std::uint32_t to_completion(std::uint32_t prompt, std::uint32_t output, const EngineState& state) {
    return state.pool->blocks_for(std::uint64_t{prompt} + output + state.lookahead);
  }
  // Blocks for the next step of a sequence that decodes.
  static std::uint32_t next_step(const Sequence& sequence, const EngineState& state) {
    return state.pool->blocks_for(std::uint64_t{sequence.in_prefill() ? sequence.prefill_target : sequence.computed} + 1 +
                                  state.widest);
  }

  // The same, but never more than to its end.
  static std::uint32_t until_next_step(const Sequence& sequence, const EngineState& state) {
    return std::min(next_step(sequence, state), to_completion(sequence.prompt, sequence.limit, state));
  }

  void hold(arrivals::RequestId request, Sequence& sequence, std::uint32_t blocks, EngineState& state) {
    if (blocks <= sequence.held) return;
    if (state.pool->caches())
      cached_.extend(request, blocks - sequence.held, state);
    else
      state.pool->take(blocks - sequence.held);
    sequence.held = blocks;
  }

  void give_back(arrivals::RequestId request, Sequence& sequence, EngineState& state) {
    if (state.pool->caches())
      cached_.release(request, state);
    else
      state.pool->give_back(sequence.held);
    sequence.held = 0;
  }

  // If the next step of all running requests does not fit, pauses those started last.
  void make_room(EngineState& state, Step& step) {
    if (state.pool->unlimited()) return;
    const auto missing = [&] {
      std::uint64_t blocks = 0;
      for (const arrivals::RequestId id : running_) {
        const Sequence& sequence = state.at(id);
        const std::uint32_t wanted = next_step(sequence, state);
        blocks += wanted > sequence.held ? wanted - sequence.held : 0;
      }
      return blocks;
    };
    while (running_.size() > 1 && missing() > state.pool->free()) {
      const arrivals::RequestId request = running_.back();
      Sequence& sequence = state.at(request);
      running_.pop_back();
      if (sequence.in_prefill()) state.spend(sequence, sequence.resumed ? Cause::recompute : Cause::prefill);
      give_back(request, sequence, state);
      lose(sequence, step);
      waiting_.push_front(request);
    }
    for (const arrivals::RequestId id : running_) hold(id, state.at(id), next_step(state.at(id), state), state);
  }

  // The first whole block of a prompt that is not cached; nothing if all are.
  [[nodiscard]] std::optional<std::uint64_t> first_new_block(arrivals::RequestId request, const EngineState& state) {
    const std::uint32_t known = state.at(request).tokens() - 1;  // the last token is always computed
    cached_.find(request, known, state, hits_);
    const auto next = static_cast<std::uint32_t>(hits_.size());
    if (next >= known / state.pool->block_tokens()) return std::nullopt;
    return CachedBlocks::hash_of(request, next, state);
  }

  // First come, first served. With a cache, a request waits while an earlier one computes its first new block, so that it finds
  // that block; those behind it go on.
  void admit(EngineState& state) {
    const bool caches = state.pool->caches();
    being_computed_.clear();
    std::uint64_t promised = 0;  // blocks that running requests will still take
    if (caches) {
      for (const arrivals::RequestId id : running_) {
        const Sequence& sequence = state.at(id);
        if (!options_.max_utilization) promised += to_completion(sequence.prompt, sequence.limit, state) - sequence.held;
        if (!sequence.in_prefill()) continue;
        if (const auto block = first_new_block(id, state)) being_computed_.insert(*block);
      }
    }
    for (auto at = waiting_.begin(); at != waiting_.end() && running_.size() < options_.max_batch_size;) {
      const arrivals::RequestId request = *at;
      Sequence& sequence = state.at(request);
      hits_.clear();
      if (caches && !sequence.arrived_prefilled()) {
        const auto block = first_new_block(request, state);
        if (block && !being_computed_.insert(*block).second) {
          ++at;
          continue;
        }
      }
      const std::uint32_t blocks = options_.max_utilization ? state.pool->blocks_for(std::uint64_t{sequence.tokens()} + 1)
                                                            : to_completion(sequence.prompt, sequence.limit, state);
      // Blocks that are found count as needed too.
      if (!state.pool->unlimited() && blocks + promised > state.pool->free()) return;
      at = waiting_.erase(at);
      running_.push_back(request);
      const auto found = static_cast<std::uint32_t>(hits_.size());
      begin(sequence, sequence.arrived_prefilled() ? sequence.tokens() - 1 : found * state.pool->block_tokens(), state);
      std::uint32_t first = blocks;
      if (caches) {
        cached_.begin(request, hits_, state);
        sequence.held = found;
        first = options_.max_utilization ? blocks : until_next_step(sequence, state);
        promised += blocks - first;
      }
      hold(request, sequence, first, state);
    }
  }

  // Decoding requests use the budget first, then contexts are cut to the rest, in whole blocks except for the last piece.
  void micro_batch(EngineState& state, Step& step) {
    std::int64_t budget = options_.max_num_tokens;
    for (const bool contexts : {false, true})
      for (const arrivals::RequestId request : running_) {
        Sequence& sequence = state.at(request);
        if (sequence.in_prefill() != contexts || budget <= 0) continue;
        if (!contexts) {
          const std::uint32_t rows = 1 + sequence.spec;
          if (rows > budget) return;
          step.items.push_back({request, rows, sequence.spec, 0, false, false, 0});
          sequence.spec = 0;
          budget -= rows;
          continue;
        }
        std::int64_t rows = sequence.prefill_target - sequence.computed;
        if (rows > budget) {
          if (!options_.chunked_context) return;
          rows = budget / state.pool->block_tokens() * state.pool->block_tokens();
          if (rows == 0) return;
        }
        step.items.push_back({request, static_cast<std::uint32_t>(rows), 0, 0, true, false, 0});
        budget -= rows;
      }
  }

  TrtllmOptions options_;
  CachedBlocks cached_;                               // with block_reuse
  std::vector<BlockPool::Block> hits_;                // cached blocks of the current request
  std::unordered_set<std::uint64_t> being_computed_;  // first new blocks of prompts that are being computed
};

// Defaults of BuildConfig, which trtllm-serve uses.
std::vector<std::pair<std::string, std::int64_t>> defaults_of_trtllm(const cost::Hardware& /*hardware*/) {
  return {{"max_batch_size", 2048}, {"max_num_tokens", static_cast<std::int64_t>(cost::kTrtllmStep.rows)}};
}

}  // namespace

SchedulerEntry trtllm_scheduler() {
  using P = TrtllmOptions;
  static const config::Fields<P> fields = {
      {"capacity", &P::max_utilization,
       "guaranteed_no_evict: room to the end of every output, nothing is ever paused; max_utilization: room for the next step "
       "only, the last started request is paused if memory runs out",
       config::one_of<bool>({{"guaranteed_no_evict", false}, {"max_utilization", true}})},
      {"max_batch_size", &P::max_batch_size, "maximum number of requests that run at once", config::between(1, 1e7)},
      {"max_num_tokens", &P::max_num_tokens, "maximum number of tokens that a step computes", config::between(1, 1e9)},
      {"chunked_context", &P::chunked_context, "a prompt may be cut into several steps, at whole blocks"},
      {"block_reuse", &P::block_reuse,
       "blocks of equal prefixes are computed once (enable_block_reuse); whole blocks only, without enable_partial_reuse"},
  };
  return {
      {"trtllm", "requests are admitted if the cache has room to their end, or only for their next step",
       "TensorRT-LLM, capacityScheduler.cpp and microBatchScheduler.cpp (2026)", fields,
       "First come, first served. Drafts count fully against max_num_tokens. With block_reuse, a request waits while an earlier "
       "one computes its first new block, and speculation changes no hits: a head's cache is in the target's blocks."},
      [](const config::Arguments& arguments, Diagnostics&) -> SchedulerMaker {
        return [options = fields.read(arguments)] { return std::make_unique<Trtllm>(options); };
      },
      "",
      "trtllm",
      "TensorRT-LLM",
      defaults_of_trtllm};
}

}  // namespace specsim::serve
