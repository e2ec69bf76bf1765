// SGLang's scheduler: batches of prompts run first and separately, decoding includes all running requests; memory is promised by
// a ratio that falls while no request has to be retracted.
#include "sim/serving/serve/cached_blocks.h"
#include "sim/serving/serve/queue_order.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <unordered_map>

namespace specsim::serve {

namespace {

struct SglangOptions {
  std::uint32_t max_prefill_tokens = 16384;
  std::uint32_t chunked_prefill_size = 8192;  // 0: prompts are never cut
  std::uint32_t max_running_requests = 0;     // 0: the server's own
  std::uint32_t max_model_len = 131072;
  double schedule_conservativeness = 1.0;
  std::uint32_t scheduler_recv_interval = 1;
  bool radix_cache = false;
  QueueOrder order = QueueOrder::fcfs;
};

// Most tokens of an output that an admission reserves, and how the ratio changes (SGLANG_CLIP_MAX_NEW_TOKENS_ESTIMATION and
// related variables).
constexpr std::uint32_t kMostReserved = 4096;
constexpr double kFirstRatio = 0.7;
constexpr double kLastRatioShare = 0.14;
constexpr double kDecaySteps = 600.0;
constexpr double kStepsAfterRetraction = 20.0;
// Default limit of requests at once without speculation: this many for each request of max_model_len that the pool holds, between
// two bounds (ModelRunner.init_memory_pool).
constexpr double kRunningEachLongest = 512.0;
constexpr double kFewestRunning = 2048.0;
constexpr double kMostRunning = 4096.0;

std::vector<std::pair<std::string, std::int64_t>> defaults_by_gpu_of_sglang(const cost::Hardware& hardware) {
  return {{"chunked_prefill_size", cost::sglang_chunk(hardware)}};
}

class Sglang final : public Scheduler {
 public:
  explicit Sglang(const SglangOptions& options)
      : options_(options),
        order_(options.order),
        first_ratio_(std::min(1.0, kFirstRatio * options.schedule_conservativeness)),
        last_ratio_(first_ratio_ * kLastRatioShare),
        ratio_(first_ratio_) {}
  [[nodiscard]] bool prefix_caching() const override { return options_.radix_cache; }
  [[nodiscard]] bool loads_from_host() const override { return options_.radix_cache; }
  [[nodiscard]] cost::MemoryShare memory_share() const override { return cost::MemoryShare::weights_and_cache; }
  [[nodiscard]] double usual_share(const cost::Hardware& hardware, int gpus) const override {
    return cost::sglang_share(hardware, options_.chunked_prefill_size, gpus);
  }
  [[nodiscard]] RunningLimit running_limit() const override {
    if (options_.max_running_requests > 0) return {options_.max_running_requests, ""};
    return {cost::kSglangRunsSpeculating, "max_running_requests (--max-running-requests)"};
  }
  [[nodiscard]] std::vector<std::string> idle_options(const RequestTraits& traits) const override {
    return idle_sentences(traits, "schedule_policy", options_.order == QueueOrder::priority, "radix_cache", options_.radix_cache);
  }
  [[nodiscard]] std::uint32_t running() const override {
    return static_cast<std::uint32_t>(running_.size() + (chunked_ ? 1 : 0));
  }

  [[nodiscard]] std::string refusal(const arrivals::Request& request, const EngineState& state) const override {
    if (std::string why = refused_by_length(request, options_.max_model_len); !why.empty()) return why;
    // Tokens that an admission to an idle engine needs: the prompt, the reserved part of the output, and a block.
    const std::uint32_t page = state.pool->block_tokens();
    if (options_.chunked_prefill_size > 0 && options_.chunked_prefill_size < std::min(page, request.prompt))
      return fmt::format("chunked_prefill_size is {} and its prompt has {} tokens, allowed: at least a block, {}",
                         options_.chunked_prefill_size, request.prompt, page);
    const std::uint64_t admission =
        std::uint64_t{request.prompt} + std::min(std::max(request.limit, request.output), kMostReserved) + page;
    if (!state.pool->unlimited() && admission > std::uint64_t{state.pool->usable()} * page)
      return fmt::format("its admission asks for {} tokens, prompt, output and a block, allowed: at most the pool's {}",
                         admission, std::uint64_t{state.pool->usable()} * page);
    const std::uint64_t most = std::uint64_t{request.prompt} + request.output + width(state);
    return refused_by_pool(state.pool->blocks_for(most), state);
  }

  void arrive(arrivals::RequestId request, EngineState& state) override {
    state.at(request).status = Status::waiting;
    order_.join(request, state, waiting_);
    ++unreceived_;
    if (options_.order != QueueOrder::fcfs) arrived_at_[request] = prompt_tokens_;
  }

  void schedule(EngineState& state, Step& step) override {
    step.clear();
    const bool idle = running_.empty() && !chunked_;
    if (idle) ratio_ = first_ratio_;
    if (idle || ++steps_unreceiving_ >= options_.scheduler_recv_interval) {
      unreceived_ = 0;
      steps_unreceiving_ = 0;
    }
    prefill_batch(state, step);
    if (!step.items.empty()) steps_unreceiving_ = options_.scheduler_recv_interval;  // it looks after each batch of prompts
    if (step.items.empty()) {
      decode_batch(state, step);
      complete_step(state, step, waiting());
    } else {  // drafts made after prompts are verified together with the decoding requests
      complete_step(state, step, waiting(), running_);
    }
  }

  void update(EngineState& state, const Step& step, std::vector<arrivals::RequestId>& finished) override {
    for (const Item& item : step.items) {
      Sequence& sequence = state.at(item.request);
      // Later batches of prompts find the blocks that this batch computed.
      if (item.prefill && state.pool->caches()) cached_.name(item.request, radix_keys(sequence.computed, state), state);
      if (!item.emits) continue;
      sequence.computed -= item.drafts - item.accepted;
      const std::uint32_t room = std::min(sequence.output - sequence.emitted, options_.max_model_len - sequence.tokens());
      sequence.emitted += std::min(item.accepted + 1, room);
      const bool ends = sequence.emitted == sequence.output || sequence.tokens() >= options_.max_model_len;
      if (item.prefill && !ends) running_.push_back(item.request);
      sequence.spec = state.drafts(item.request, sequence.emitted, step.draft_length);
      if (!ends) continue;
      if (state.pool->caches())
        cached_.name(item.request, radix_keys(std::min(sequence.computed, sequence.tokens()), state), state);
      give_back(item.request, sequence, state);
      sequence.status = Status::finished;
      finished.push_back(item.request);
    }
    forget_finished(state);
  }

  [[nodiscard]] SameSteps same_steps(const EngineState& state, const Step& last) const override {
    if (state.pool->caches() || chunked_ || !waiting_.empty() || last.items.size() != running_.size()) return {};
    const std::uint32_t rows = last.items.front().rows;
    std::uint32_t tokens = options_.max_model_len;  // that each sequence may get, rejected ones included
    for (const Item& item : last.items) {
      const Sequence& sequence = state.at(item.request);
      if (sequence.status != Status::running || sequence.computed + 1 != sequence.tokens() + rows) return {};
      tokens = std::min({tokens, sequence.output - sequence.emitted - 1, options_.max_model_len - sequence.tokens() - 1});
    }
    const std::uint32_t slots = width(state) - rows;
    return {steps_in_pool(state, last, tokens / rows, slots), slots};
  }
  void skipped(std::uint32_t steps) override {
    for (std::uint32_t step = 0; step < steps; ++step) {
      ratio_ = std::max(last_ratio_, ratio_ - (first_ratio_ - last_ratio_) / kDecaySteps);
      if (++steps_unreceiving_ >= options_.scheduler_recv_interval) steps_unreceiving_ = 0;
    }
  }

 private:
  // Most requests that run at once.
  [[nodiscard]] std::size_t most_running(const EngineState& state) const {
    if (options_.max_running_requests > 0) return options_.max_running_requests;
    if (state.policy != nullptr) return cost::kSglangRunsSpeculating;
    if (state.pool->unlimited()) return static_cast<std::size_t>(kMostRunning);
    const double longest = static_cast<double>(state.pool->usable()) * state.pool->block_tokens() / options_.max_model_len;
    return static_cast<std::size_t>(std::clamp(std::floor(kRunningEachLongest * longest), kFewestRunning, kMostRunning));
  }

  // Slots that a decoding request takes beyond its tokens.
  [[nodiscard]] static std::uint32_t width(const EngineState& state) { return 1 + state.widest; }

  static std::uint32_t missing(const Sequence& sequence, std::uint64_t tokens, const EngineState& state) {
    const std::uint32_t wanted = state.pool->blocks_for(tokens);
    return wanted > sequence.held ? wanted - sequence.held : 0;
  }

  void take(arrivals::RequestId request, Sequence& sequence, std::uint32_t blocks, EngineState& state) {
    if (state.pool->caches())
      cached_.extend(request, blocks, state);
    else
      state.pool->take(blocks);
    sequence.held += blocks;
  }

  void give_back(arrivals::RequestId request, Sequence& sequence, EngineState& state) {
    if (state.pool->caches())
      cached_.release(request, state);
    else
      state.pool->give_back(sequence.held);
    sequence.held = 0;
  }

  // Reserved tokens of the outputs of running requests.
  [[nodiscard]] double promised(const EngineState& state) const {
    double tokens = 0.0;
    for (const arrivals::RequestId id : running_) {
      const Sequence& sequence = state.at(id);
      tokens += ratio_ * std::min(sequence.limit - sequence.emitted, kMostReserved);
    }
    return tokens;
  }

  void prefill_batch(EngineState& state, Step& step) {
    std::int64_t prefill_budget = options_.max_prefill_tokens;
    std::int64_t chunk_budget = options_.chunked_prefill_size > 0 ? options_.chunked_prefill_size : std::int64_t{1} << 40;
    double free_tokens =
        state.pool->unlimited() ? 1e18 : static_cast<double>(state.pool->free()) * state.pool->block_tokens() - promised(state);
    const auto charge = [&](std::uint32_t rows) {  // whole pages
      const std::int64_t tokens = std::int64_t{state.pool->blocks_for(rows)} * state.pool->block_tokens();
      prefill_budget -= tokens;
      chunk_budget -= tokens;
    };
    const auto add = [&](arrivals::RequestId request, Sequence& sequence, std::uint32_t rows) {
      take(request, sequence, missing(sequence, std::uint64_t{sequence.computed} + rows, state), state);
      step.items.push_back({request, rows, 0, 0, true, false, 0});
      prompt_tokens_ += rows;
      charge(rows);
    };
    if (chunked_) {
      Sequence& sequence = state.at(chunked_request_);
      const std::uint32_t rest = sequence.tokens() - sequence.computed;
      const auto rows = static_cast<std::uint32_t>(std::min<std::int64_t>(rest, chunk_budget));
      if (!state.pool->unlimited() && missing(sequence, std::uint64_t{sequence.computed} + rows, state) > state.pool->free())
        return;
      chunked_ = rows < rest;
      add(chunked_request_, sequence, rows);
    }
    const auto admits = [&] {
      return waiting_.size() > unreceived_ && !chunked_ && prefill_budget > 0 && chunk_budget > 0 &&
             running_.size() + step.items.size() < most_running(state);
    };
    order_.order(
        admits(), [&](arrivals::RequestId id) { return prompt_tokens_ - arrived_at_.at(id); }, cached_, state, waiting_);
    while (!waiting_.empty() && admits()) {
      const arrivals::RequestId request = waiting_.front();
      Sequence& sequence = state.at(request);
      hits_.clear();
      in_host_.clear();
      const bool decodes = sequence.arrived_prefilled();
      if (state.pool->caches() && !decodes) {
        const std::uint32_t keys = radix_keys(sequence.tokens() - 1, state);
        cached_.find(request, keys, state, hits_);
        CachedBlocks::find_in_host(request, static_cast<std::uint32_t>(hits_.size()), keys, state, in_host_);
      }
      const auto loaded = static_cast<std::uint32_t>(in_host_.size()) * state.pool->block_tokens();
      const std::uint32_t found = static_cast<std::uint32_t>(hits_.size()) * state.pool->block_tokens() + loaded;
      // Unused cached blocks count as free until a request uses them.
      const double woken = state.pool->caches() ? CachedBlocks::among_free(hits_, *state.pool) * state.pool->block_tokens() : 0.0;
      const std::uint32_t whole = sequence.tokens() - found;
      const double reserve = std::min(sequence.limit - sequence.emitted, kMostReserved);
      if (whole + loaded + woken + reserve + state.pool->block_tokens() > free_tokens) break;
      if (decodes) {  // it joins the running batch without a pass over its prompt
        order_.leave(waiting_);
        begin(sequence, sequence.tokens() - 1, state);
        take(request, sequence, missing(sequence, sequence.tokens(), state), state);
        running_.push_back(request);
        free_tokens -= whole + reserve;
        continue;
      }
      const bool cut = whole > chunk_budget;
      if (!cut && whole > prefill_budget && !step.items.empty()) break;
      const auto rows =
          cut ? static_cast<std::uint32_t>(chunk_budget / state.pool->block_tokens() * state.pool->block_tokens()) : whole;
      if (rows == 0) break;
      order_.leave(waiting_);
      begin(sequence, found, state);
      if (state.pool->caches()) {
        cached_.begin(request, hits_, state);
        sequence.held = static_cast<std::uint32_t>(hits_.size());
      }
      if (loaded > 0) {  // while the batch computes, layer by layer; the next request finds these blocks on the GPU
        take(request, sequence, static_cast<std::uint32_t>(in_host_.size()), state);
        cached_.name(request, found, state);
        step.loaded_at = load(sequence, in_host_, state);
      }
      add(request, sequence, rows);
      free_tokens -= woken + loaded + rows + (cut ? 0.0 : reserve);
      if (cut) {
        chunked_ = true;
        chunked_request_ = request;
      }
    }
  }

  void retract(arrivals::RequestId request, EngineState& state, Step& step) {
    Sequence& sequence = state.at(request);
    give_back(request, sequence, state);
    lose(sequence, step);
    order_.join(request, state, waiting_);
  }

  void decode_batch(EngineState& state, Step& step) {
    const auto needed = [&] {
      std::uint64_t blocks = 0;
      for (const arrivals::RequestId id : running_) {
        const Sequence& sequence = state.at(id);
        blocks += missing(sequence, std::uint64_t{sequence.computed} + width(state), state);
      }
      return blocks;
    };
    bool retracted = false;
    while (running_.size() > 1 && !state.pool->unlimited() && needed() > state.pool->free()) {
      auto victim = running_.end() - 1;
      if (state.widest == 0)  // the fewest tokens of output, then the longest prompt
        victim = std::min_element(running_.begin(), running_.end(), [&](arrivals::RequestId a, arrivals::RequestId b) {
          const Sequence& x = state.at(a);
          const Sequence& y = state.at(b);
          return x.emitted != y.emitted ? x.emitted < y.emitted : x.prompt > y.prompt;
        });
      const arrivals::RequestId request = *victim;
      running_.erase(victim);
      retract(request, state, step);
      retracted = true;
    }
    if (retracted) {
      double emitted = 0.0;
      double limits = 0.0;
      for (const arrivals::RequestId id : running_) {
        emitted += state.at(id).emitted;
        limits += state.at(id).limit;
      }
      ratio_ = std::min(1.0, (emitted + kStepsAfterRetraction * static_cast<double>(running_.size())) / (limits + 1.0));
    } else if (!running_.empty()) {
      ratio_ = std::max(last_ratio_, ratio_ - (first_ratio_ - last_ratio_) / kDecaySteps);
    }
    for (const arrivals::RequestId id : running_) {
      Sequence& sequence = state.at(id);
      const std::uint32_t drafts = sequence.spec;
      take(id, sequence, missing(sequence, std::uint64_t{sequence.computed} + width(state), state), state);
      step.items.push_back({id, 1 + drafts, drafts, 0, false, false, 0});
      sequence.spec = 0;
    }
  }

  SglangOptions options_;
  OrderedQueue order_;
  double first_ratio_;
  double last_ratio_;
  double ratio_;
  bool chunked_ = false;  // a prompt is cut, and continues in the next step
  arrivals::RequestId chunked_request_ = 0;
  std::uint32_t steps_unreceiving_ = 0;  // since it looked for new requests
  std::size_t unreceived_ = 0;           // requests that came since then
  CachedBlocks cached_;                  // with the radix cache
  std::vector<BlockPool::Block> hits_;   // cached blocks of the current request
  std::vector<std::uint64_t> in_host_;   // and its blocks in host memory after them
  std::uint64_t prompt_tokens_ = 0;      // computed so far
  std::unordered_map<arrivals::RequestId, std::uint64_t>
      arrived_at_;  // prompt_tokens_ when it first arrived, if the order needs it
};

}  // namespace

SchedulerEntry sglang_scheduler() {
  using P = SglangOptions;
  static const config::Fields<P> fields = {
      {"max_prefill_tokens", &P::max_prefill_tokens, "maximum number of tokens of prompts in a step, but one prompt always fits",
       config::between(1, 1e9)},
      {"chunked_prefill_size", &P::chunked_prefill_size,
       "maximum number of tokens of prompts in a step, the last of which is cut; 0: never cut", config::between(0, 1e9)},
      {"max_running_requests", &P::max_running_requests,
       "maximum number of requests that run at once; 0: the server's default, 48 with speculation, else 512 for each "
       "max_model_len that the "
       "pool holds, between 2,048 and 4,096",
       config::between(0, 1e9)},
      {"max_model_len", &P::max_model_len, "maximum number of tokens of a request, prompt and output", config::between(2, 1e9)},
      {"schedule_conservativeness", &P::schedule_conservativeness, "factor on the share of outputs that an admission reserves",
       config::between(0.01, 10)},
      {"scheduler_recv_interval", &P::scheduler_recv_interval,
       "decoding steps between checks for new requests; it also checks after each batch of prompts and while idle",
       config::between(1, 1e6)},
      {"schedule_policy", &P::order,
       "which request is admitted first: in order of arrival, the longest cached prefix (beyond 128 waiting in order of "
       "arrival), the most requested branch of the tree, the longest output, at random, by priority, the highest ratio of "
       "waiting (in tokens of prompts computed meanwhile; beyond 128 waiting in order of arrival) to uncached tokens, the "
       "fewest uncached tokens",
       queue_order_words()},
      {"radix_cache", &P::radix_cache, "equal prefixes are computed once, in whole blocks"},
  };
  return {
      {"sglang", "batches of prompts first and separately, then all running requests decode; retraction when memory runs out",
       "SGLang, python/sglang/srt/managers/schedule_policy.py and scheduler.py (2025, 2026)", fields,
       "An admission assumes that running requests need new_token_ratio of their remaining limit (at most 4,096 tokens each): "
       "0.7 at first, falling over 600 decoding steps to 0.098, reset by a retraction. The shortest outputs are retracted, "
       "with speculation the last of the batch; they lose everything computed beyond the cached prefix and go to the end of "
       "the queue. Orders by cached tokens (lpm, dfs-weight, hrrn, shortest-prefill-first) are fcfs without radix_cache, as in "
       "the server. The radix cache's keys with a head as draft are pairs of neighbouring tokens, so that the last one of a "
       "cached "
       "text is not found. With these orders, a request that shares more than 32 tokens with one before it in the queue, and has "
       "no more than "
       "32 in the cache, waits for that one."},
      [](const config::Arguments& arguments, Diagnostics&) -> SchedulerMaker {
        return [options = fields.read(arguments)] { return std::make_unique<Sglang>(options); };
      },
      "",
      "sglang",
      "SGLang",
      defaults_by_gpu_of_sglang};
}

}  // namespace specsim::serve
