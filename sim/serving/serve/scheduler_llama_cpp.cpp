// llama.cpp's server: slots, each of which drafts by itself, one after the other; then one batch of all slots' tokens and
// prompts.
#include "sim/serving/serve/scheduler.h"

#include <fmt/format.h>

#include <algorithm>

namespace specsim::serve {

namespace {

struct LlamaCppOptions {
  std::uint32_t slots = 4;
  std::uint32_t context = 4096;
  std::uint32_t batch = 2048;
  std::uint32_t ubatch = 512;
  std::uint32_t draft_min = 0;
  bool cache_prompt = false;
};

// A free slot whose text begins with more than this share of a prompt gets it (--slot-prompt-similarity).
constexpr double kSimilar = 0.1;

class LlamaCpp final : public Scheduler {
 public:
  explicit LlamaCpp(const LlamaCppOptions& options)
      : options_(options), slots_(options.slots, kFree), draft_has_(options.slots, 0), left_(options.slots) {}
  [[nodiscard]] bool prefix_caching() const override { return options_.cache_prompt; }
  [[nodiscard]] std::vector<std::string> idle_options(const RequestTraits& traits) const override {
    return idle_sentences(traits, "", false, "cache_prompt", options_.cache_prompt);
  }
  [[nodiscard]] RunningLimit running_limit() const override { return {options_.slots, ""}; }
  [[nodiscard]] std::uint32_t running() const override {
    return static_cast<std::uint32_t>(slots_.size() - static_cast<std::size_t>(std::count(slots_.begin(), slots_.end(), kFree)));
  }

  [[nodiscard]] std::string refusal(const arrivals::Request& request, const EngineState& state) const override {
    if (request.prompt >= options_.context)
      return fmt::format("its prompt has {} tokens, allowed: fewer than a slot's context, {} (context)", request.prompt,
                         options_.context);
    if (std::uint64_t{request.prompt} + request.output > options_.context)
      return fmt::format("its prompt has {} tokens and its output {}, allowed: together at most a slot's context, {} (context)",
                         request.prompt, request.output, options_.context);
    const std::uint32_t blocks = state.pool->blocks_for(options_.context);
    if (!state.pool->unlimited() && blocks > state.pool->usable())
      return fmt::format("a slot's context needs {} blocks, allowed: at most the pool's {}", blocks, state.pool->usable());
    return "";
  }

  void schedule(EngineState& state, Step& step) override {
    step.clear();
    admit(state);
    BatchState batch{running(), waiting(), 0.0};
    for (const arrivals::RequestId id : slots_)
      if (id != kFree) batch.cached += state.at(id).computed;
    step.waiting = waiting();
    step.free_blocks = state.pool->free();
    if (batch.requests == 0) return;
    const int draft_length = state.policy != nullptr ? state.policy->draft_length(batch) : 0;
    step.draft_length = draft_length;
    step.drafts_sequentially = true;
    step.pass_rows = options_.ubatch;
    step.batch_rows = options_.batch;
    std::uint32_t rows = 0;
    for (std::size_t slot = 0; slot < slots_.size(); ++slot) {
      if (slots_[slot] == kFree || state.at(slots_[slot]).in_prefill()) continue;
      Sequence& sequence = state.at(slots_[slot]);
      const std::uint32_t drafts = drafts_of(slots_[slot], sequence, draft_length, state);
      if (drafts > 0) {
        const bool looked_up = state.acceptance->looks_up(slots_[slot]);
        step.sequential_drafts.push_back({sequence.tokens() - draft_has_[slot], draft_has_[slot], drafts, looked_up});
        if (!looked_up) draft_has_[slot] = sequence.tokens() + drafts - 1;
      }
      step.items.push_back({slots_[slot], 1 + drafts, drafts, 0, false, true, 0});
      rows += 1 + drafts;
    }
    for (const arrivals::RequestId id : slots_) {
      if (id == kFree || !state.at(id).in_prefill() || rows >= options_.batch) continue;
      const Sequence& sequence = state.at(id);
      const std::uint32_t own = std::min(sequence.prefill_target - sequence.computed, options_.batch - rows);
      step.items.push_back({id, own, 0, 0, true, false, 0});
      rows += own;
    }
    for (Item& item : step.items) {
      Sequence& sequence = state.at(item.request);
      sequence.computed += item.rows;
      item.emits = sequence.computed >= sequence.tokens();
    }
  }

  void update(EngineState& state, const Step& step, std::vector<arrivals::RequestId>& finished) override {
    for (const Item& item : step.items) {
      if (!item.emits) continue;
      Sequence& sequence = state.at(item.request);
      sequence.computed -= item.drafts - item.accepted;
      const std::uint32_t room = std::min(sequence.output - sequence.emitted, options_.context - sequence.tokens());
      sequence.emitted += std::min(item.accepted + 1, room);
      const auto slot = static_cast<std::size_t>(std::find(slots_.begin(), slots_.end(), item.request) - slots_.begin());
      // The draft's cache keeps its own accepted tokens, except for the last one, which it has never read.
      draft_has_[slot] = std::min(draft_has_[slot], sequence.computed);
      if (sequence.emitted < sequence.output && sequence.tokens() < options_.context) continue;
      state.pool->give_back(sequence.held);
      sequence.held = 0;
      sequence.status = Status::finished;
      slots_[slot] = kFree;
      left_[slot] = {item.request, std::min(sequence.computed, sequence.tokens()), ++ends_};
      finished.push_back(item.request);
    }
  }

 private:
  static constexpr arrivals::RequestId kFree = ~arrivals::RequestId{0};

  // At most up to the output's end or the slot's, and not at all below draft_min.
  [[nodiscard]] std::uint32_t drafts_of(arrivals::RequestId request, const Sequence& sequence, int draft_length,
                                        const EngineState& state) const {
    if (draft_length == 0) return 0;
    const std::uint32_t left =
        std::min(sequence.limit - sequence.emitted, options_.context - std::min(options_.context, sequence.tokens()));
    const std::uint32_t drafts = std::min(state.drafts(request, sequence.emitted, draft_length), left > 0 ? left - 1 : 0);
    return drafts < options_.draft_min ? 0 : drafts;
  }

  // Tokens of a slot's text that the request begins with, as far as hashes show it.
  [[nodiscard]] std::uint32_t common(arrivals::RequestId request, std::size_t slot, const EngineState& state) const {
    if (!options_.cache_prompt || left_[slot].end == 0) return 0;
    const arrivals::Request& asked = state.workload->requests[request];
    const arrivals::Request& before = state.workload->requests[left_[slot].request];
    const auto hashes = state.workload->hashes.begin();
    std::uint32_t same = 0;
    while (same < std::min(asked.hashes, before.hashes) && hashes[asked.first_hash + same] == hashes[before.first_hash + same])
      ++same;
    return std::min({same * state.workload->hash_tokens, left_[slot].tokens, state.at(request).tokens() - 1});
  }

  // The free slot for a request: the one whose text it shares most of, else the one that ended first. slots_.size(): none is
  // free.
  [[nodiscard]] std::size_t free_slot(arrivals::RequestId request, const EngineState& state) const {
    std::size_t best = slots_.size();
    std::size_t oldest = slots_.size();
    auto most = static_cast<std::uint32_t>(kSimilar * state.at(request).tokens());
    for (std::size_t slot = 0; slot < slots_.size(); ++slot) {
      if (slots_[slot] != kFree) continue;
      if (oldest == slots_.size() || (options_.cache_prompt && left_[slot].end < left_[oldest].end)) oldest = slot;
      if (const std::uint32_t tokens = common(request, slot, state); tokens > most) {
        most = tokens;
        best = slot;
      }
    }
    return best < slots_.size() ? best : oldest;
  }

  void admit(EngineState& state) {
    const std::uint32_t blocks = state.pool->blocks_for(options_.context);
    while (!waiting_.empty() && (state.pool->unlimited() || blocks <= state.pool->free())) {
      const arrivals::RequestId request = waiting_.front();
      const std::size_t slot = free_slot(request, state);
      if (slot == slots_.size()) return;
      waiting_.pop_front();
      Sequence& sequence = state.at(request);
      const std::uint32_t cached = common(request, slot, state);
      slots_[slot] = request;
      draft_has_[slot] = std::min(draft_has_[slot], cached);
      state.pool->take(blocks);
      sequence.held = blocks;
      begin(sequence, cached, state);
    }
  }

  // The text that a slot keeps after a request's end.
  struct Left {
    arrivals::RequestId request = 0;
    std::uint32_t tokens = 0;  // in the target's cache
    std::uint64_t end = 0;     // number of the request's end; 0: the slot was never used
  };

  LlamaCppOptions options_;
  std::vector<arrivals::RequestId> slots_;  // [slot]: its request, or kFree
  std::vector<std::uint32_t> draft_has_;    // [slot]: tokens in the draft's cache
  std::vector<Left> left_;                  // [slot]
  std::uint64_t ends_ = 0;
};

}  // namespace

SchedulerEntry llama_cpp_scheduler() {
  using P = LlamaCppOptions;
  static const config::Fields<P> fields = {
      {"slots", &P::slots, "requests that run at once (--parallel)", config::between(1, 65536)},
      {"context", &P::context, "tokens of a slot, prompt and output; an output ends there", config::between(2, 1e9)},
      {"n_batch", &P::batch, "tokens of a batch, which prompts fill up in the order of the slots", config::between(1, 1e9)},
      {"n_ubatch", &P::ubatch, "tokens of a pass: a batch takes as many passes as it needs", config::between(1, 1e9)},
      {"draft_min", &P::draft_min, "smallest draft: a slot that would draft fewer tokens drafts nothing (--draft-min)",
       config::between(0, 64)},
      {"cache_prompt", &P::cache_prompt,
       "a slot keeps its text, and a prompt that begins with it is computed from there on; the draft's cache is kept as well"},
  };
  return {{"llama_cpp", "slots that draft one after another, then one batch of their tokens and of prompts",
           "llama.cpp, tools/server/server-context.cpp (2026)", fields,
           "First come, first served, to the first free slot; with cache_prompt to the one that shares more than a tenth of the "
           "prompt and the most of it, else to the one that was free for longest. The slot keeps the context until the request "
           "ends; nothing is "
           "preempted. The draft works for one slot at a time, at batch 1, before the target's batch: the first time over the "
           "whole prompt, later over the tokens that it has not seen. Chains only."},
          [](const config::Arguments& arguments, Diagnostics&) -> SchedulerMaker {
            return [options = fields.read(arguments)] { return std::make_unique<LlamaCpp>(options); };
          },
          "its server computes a prompt in the slot that decodes it",
          "llama_cpp",
          "llama.cpp"};
}

}  // namespace specsim::serve
