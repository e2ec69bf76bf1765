// TensorRT-LLM's two stages: the first selects the requests that fit the cache, the second selects their tokens for
// the next step.
#include "sim/serving/serve/scheduler.h"

#include <fmt/format.h>

#include <algorithm>

namespace specsim::serve {

namespace {

struct TrtllmOptions {
  std::uint32_t max_batch_size = 256;
  std::uint32_t max_num_tokens = 8192;
  bool chunked_context = true;
  bool max_utilization = false;
};

class Trtllm final : public Scheduler {
 public:
  explicit Trtllm(const TrtllmOptions& options) : options_(options) {}
  // KvCacheCreator of _torch/pyexecutor/_util.py (2026): the server runs the largest step, of prompts, which have few logits.
  [[nodiscard]] std::optional<cost::StepLimits> profiled() const override {
    return cost::StepLimits{static_cast<double>(options_.max_num_tokens), 0.0};
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
    if (options_.max_utilization) make_room(state, step);
    if (step.preempted == 0) admit(state);
    micro_batch(state, step);
    complete_step(state, step, waiting());
  }

  void update(EngineState& state, const Step& step, std::vector<arrivals::RequestId>& finished) override {
    take_tokens(state, step, finished);
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

  static void hold(Sequence& sequence, std::uint32_t blocks, EngineState& state) {
    if (blocks <= sequence.held) return;
    state.pool->take(blocks - sequence.held);
    sequence.held = blocks;
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
      state.pool->give_back(sequence.held);
      sequence.held = 0;
      lose(sequence, step);
      waiting_.push_front(request);
    }
    for (const arrivals::RequestId id : running_) hold(state.at(id), next_step(state.at(id), state), state);
  }

  void admit(EngineState& state) {
    while (!waiting_.empty() && running_.size() < options_.max_batch_size) {
      const arrivals::RequestId request = waiting_.front();
      Sequence& sequence = state.at(request);
      const std::uint32_t blocks = options_.max_utilization ? state.pool->blocks_for(std::uint64_t{sequence.tokens()} + 1)
                                                            : to_completion(sequence.prompt, sequence.limit, state);
      if (!state.pool->unlimited() && blocks > state.pool->free()) return;
      waiting_.pop_front();
      running_.push_back(request);
      hold(sequence, blocks, state);
      begin(sequence, sequence.arrived_prefilled() ? sequence.tokens() - 1 : 0, state);
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
  };
  return {{"trtllm", "requests are admitted if the cache has room to their end, or only for their next step",
           "TensorRT-LLM, capacityScheduler.cpp and microBatchScheduler.cpp (2026)", fields,
           "First come, first served. Drafts count fully against max_num_tokens."},
          [](const config::Arguments& arguments, Diagnostics&) -> SchedulerMaker {
            return [options = fields.read(arguments)] { return std::make_unique<Trtllm>(options); };
          },
          "",
          "trtllm",
          "TensorRT-LLM",
          defaults_of_trtllm};
}

}  // namespace specsim::serve
