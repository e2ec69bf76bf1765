// vLLM's V1 scheduler, request by request as it decides: vllm/v1/core/sched/scheduler.py and kv_cache_manager.py of 2026.
#include "sim/foundation/base/check.h"
#include "sim/serving/serve/cached_blocks.h"

#include <fmt/format.h>

#include <algorithm>

namespace specsim::serve {

namespace {

struct VllmOptions {
  std::uint32_t max_num_batched_tokens = 2048;
  std::uint32_t max_num_seqs = 256;
  std::uint32_t max_model_len = 131072;
  std::uint32_t long_prefill_token_threshold = 0;
  bool chunked_prefill = true;
  bool by_priority = false;
  bool asynchronous = true;
  bool reserve_full_isl = true;
  bool prefix_caching = false;
  double watermark = 0.0;
};

class VllmV1 final : public Scheduler {
 public:
  explicit VllmV1(const VllmOptions& options) : options_(options) {}
  [[nodiscard]] bool asynchronous() const override { return options_.asynchronous; }
  [[nodiscard]] HostTime host_time() const override {
    return options_.asynchronous ? HostTime::overlapped : HostTime::between_steps;
  }
  [[nodiscard]] bool prefix_caching() const override { return options_.prefix_caching; }
  [[nodiscard]] bool saves_states() const override { return options_.prefix_caching; }
  [[nodiscard]] bool loads_from_host() const override { return options_.prefix_caching; }
  [[nodiscard]] RunningLimit running_limit() const override { return {options_.max_num_seqs, ""}; }
  [[nodiscard]] std::vector<std::string> idle_options(const RequestTraits& traits) const override {
    return idle_sentences(traits, "policy", options_.by_priority, "prefix_caching", options_.prefix_caching);
  }
  // VllmConfig._set_max_num_scheduled_tokens: rows that a draft model adds to the batch are subtracted from the budget (issue
  // 50708).
  [[nodiscard]] std::string refused_start(std::uint32_t extra_rows) const override {
    const std::uint64_t reserved = std::uint64_t{extra_rows} * options_.max_num_seqs;
    if (reserved < options_.max_num_batched_tokens) return "";
    return fmt::format(
        "max_num_batched_tokens is {} and a draft model reserves a row for each of max_num_seqs, {}, allowed: more than these",
        options_.max_num_batched_tokens, reserved);
  }
  [[nodiscard]] std::string doubt() const override {  // SchedulerConfig.verify_max_model_len
    if (options_.max_num_batched_tokens >= options_.max_num_seqs) return "";
    return fmt::format("vLLM does not start with max_num_batched_tokens ({}) below max_num_seqs ({}); simulated as given",
                       options_.max_num_batched_tokens, options_.max_num_seqs);
  }
  [[nodiscard]] std::optional<cost::StepLimits> profiled() const override {
    return cost::StepLimits{static_cast<double>(options_.max_num_batched_tokens), static_cast<double>(options_.max_num_seqs)};
  }

  [[nodiscard]] std::string refusal(const arrivals::Request& request, const EngineState& state) const override {
    if (std::string why = refused_by_length(request, options_.max_model_len); !why.empty()) return why;
    if (!options_.chunked_prefill && request.prompt > options_.max_num_batched_tokens)
      return fmt::format("its prompt has {} tokens and chunked_prefill is false, allowed: at most max_num_batched_tokens, {}",
                         request.prompt, options_.max_num_batched_tokens);
    const std::uint64_t most = std::min<std::uint64_t>(
        std::uint64_t{request.prompt} + request.output + state.lookahead + state.widest, options_.max_model_len);
    return refused_by_pool(state.pool->blocks_for(most), state);
  }

  void arrive(arrivals::RequestId request, EngineState& state) override {
    state.at(request).status = Status::waiting;
    enqueue(request, state);
  }

  void schedule(EngineState& state, Step& step) override {
    step.clear();
    state.wakes = arrivals::kNever;
    std::int64_t budget = std::int64_t{options_.max_num_batched_tokens} - std::int64_t{state.extra_rows} * options_.max_num_seqs;
    schedule_running(state, step, budget);
    if (step.preempted == 0) schedule_waiting(state, step, budget);
    ++schedulings_;
    // Drops the drafts in flight of a sequence that is not scheduled now.
    if (options_.asynchronous && step.items.size() < running_.size()) {
      for (const Item& item : step.items) state.at(item.request).scheduled_in = schedulings_;
      for (const arrivals::RequestId id : running_)
        if (Sequence& sequence = state.at(id); sequence.scheduled_in != schedulings_) sequence.spec = 0;
    }
    complete_step(state, step, waiting());
    if (!options_.asynchronous) return;
    for (const Item& item : step.items) {
      if (!item.emits) continue;
      Sequence& sequence = state.at(item.request);
      sequence.placeholders += 1 + item.drafts;
      sequence.spec = state.drafts_ahead(item.request, step.draft_length);
    }
  }

  // Every condition that leads schedule_running() away from the usual step of a decoding sequence is some tokens ahead.
  [[nodiscard]] SameSteps same_steps(const EngineState& state, const Step& last) const override {
    if (state.pool->caches() || !waiting_.empty() || last.items.size() != running_.size()) return {};
    const std::uint32_t rows = last.items.front().rows;
    if (options_.long_prefill_token_threshold > 0 && rows > options_.long_prefill_token_threshold) return {};
    const std::uint32_t in_flight = options_.asynchronous ? 2 * rows : 0;
    std::uint32_t tokens = options_.max_model_len;  // that each sequence may get, rejected ones included
    for (const Item& item : last.items) {
      const Sequence& sequence = state.at(item.request);
      const std::uint32_t end = options_.asynchronous ? std::min(sequence.output, sequence.limit - 1) : sequence.output;
      if (sequence.status != Status::running || sequence.placeholders != in_flight || sequence.emitted >= end ||
          sequence.computed + 1 != sequence.tokens() + (options_.asynchronous ? in_flight : rows) ||
          std::uint64_t{sequence.computed} + state.lookahead >= options_.max_model_len)
        return {};
      tokens = std::min({tokens, end - sequence.emitted - 1, options_.max_model_len - state.lookahead - sequence.computed - 1});
    }
    return {steps_in_pool(state, last, tokens / rows, state.lookahead), state.lookahead};
  }

  void update(EngineState& state, const Step& step, std::vector<arrivals::RequestId>& finished) override {
    const std::size_t before = finished.size();
    const bool asynchronous = options_.asynchronous;
    const bool uneven = state.uneven;
    const auto length = static_cast<std::uint32_t>(step.draft_length);
    const std::uint32_t longest = options_.max_model_len;
    for (const Item& item : step.items) {
      Sequence& sequence = state.at(item.request);
      if (!item.emits || sequence.status == Status::finished) continue;
      const std::uint32_t rejected = item.drafts - item.accepted;
      if (sequence.computed > 0) sequence.computed -= rejected;
      if (asynchronous) sequence.placeholders -= rejected + item.accepted + 1;
      const std::uint32_t room = std::min(sequence.output - sequence.emitted, longest - sequence.tokens());
      sequence.emitted += std::min(item.accepted + 1, room);
      if (room <= item.accepted + 1) {
        // AsyncScheduler registers the blocks of a step's tokens before a request that ends frees them: all but its last token's.
        if (asynchronous && state.pool->caches() && sequence.status == Status::running)
          cached_.name(item.request, sequence.tokens() - 1, state);
        finish(item.request, sequence, state);
        finished.push_back(item.request);
      } else if (!asynchronous) {
        sequence.spec = uneven ? state.drafts(item.request, sequence.emitted, step.draft_length) : length;
      } else if (state.pool->caches() && sequence.status == Status::running) {
        cached_.name(item.request, std::min(sequence.computed - sequence.placeholders, sequence.tokens()), state);
      }
    }
    if (finished.size() == before) return;
    forget_finished(state);
    if (finished_waiting_) {
      std::erase_if(waiting_, [&](arrivals::RequestId id) { return state.at(id).status == Status::finished; });
      finished_waiting_ = false;
    }
  }

 private:
  // Priority, then arrival, then the order of sending.
  [[nodiscard]] static bool goes_before(arrivals::RequestId a, arrivals::RequestId b, const EngineState& state) {
    const Sequence& x = state.at(a);
    const Sequence& y = state.at(b);
    if (x.priority != y.priority) return x.priority < y.priority;
    if (x.sent != y.sent) return x.sent < y.sent;
    return a < b;
  }

  void enqueue(arrivals::RequestId request, EngineState& state) {
    if (!options_.by_priority) {
      waiting_.push_back(request);
      return;
    }
    waiting_.insert(std::upper_bound(waiting_.begin(), waiting_.end(), request,
                                     [&](arrivals::RequestId a, arrivals::RequestId b) { return goes_before(a, b, state); }),
                    request);
  }

  [[nodiscard]] arrivals::RequestId victim(const EngineState& state) const {
    if (!options_.by_priority) return running_.back();
    return *std::max_element(running_.begin(), running_.end(),
                             [&](arrivals::RequestId a, arrivals::RequestId b) { return goes_before(a, b, state); });
  }

  void preempt(arrivals::RequestId request, EngineState& state, Step& step) {
    Sequence& sequence = state.at(request);
    release(request, sequence, state);
    if (sequence.in_prefill()) state.spend(sequence, sequence.resumed ? Cause::recompute : Cause::prefill);
    lose(sequence, step);
    if (options_.by_priority)
      enqueue(request, state);
    else
      waiting_.push_front(request);
  }

  void schedule_running(EngineState& state, Step& step, std::int64_t& budget) {
    const std::uint32_t own_tokens = state.pool->caches() ? 0 : state.pool->block_tokens();
    const std::uint32_t lookahead = state.lookahead;
    const std::int64_t longest = options_.max_model_len;
    const std::int64_t threshold =
        options_.long_prefill_token_threshold > 0 ? options_.long_prefill_token_threshold : std::int64_t{1} << 40;
    for (std::size_t i = 0; i < running_.size() && budget > 0;) {
      const arrivals::RequestId request = running_[i];
      Sequence& sequence = state.at(request);
      // It reaches its end with the tokens in flight, whatever is accepted.
      if (sequence.placeholders > 0 && sequence.computed + 2 - sequence.placeholders >= sequence.prompt + sequence.limit) {
        ++i;
        continue;
      }
      // The usual step of a decoding sequence: its last token and all of its drafts, in blocks that it already has.
      std::uint32_t drafts = sequence.spec;
      std::uint32_t rows = 1 + drafts;
      bool prefill = sequence.in_prefill();
      if (prefill || sequence.computed + 1 != sequence.tokens() + sequence.placeholders || rows > budget || rows > threshold ||
          sequence.computed + std::int64_t{rows} >= longest ||
          sequence.computed + std::uint64_t{rows} + lookahead > std::uint64_t{sequence.held} * own_tokens) {
        if (prefill && loads(sequence, state)) {
          ++i;
          continue;
        }
        std::int64_t fresh = std::int64_t{sequence.tokens()} + sequence.spec + sequence.placeholders - sequence.computed;
        fresh = std::min(std::min(fresh, threshold), std::min(budget, longest - 1 - sequence.computed));
        if (fresh <= 0) {
          ++i;
          continue;
        }
        fresh = up_to_block(sequence, sequence.computed, fresh, 0, state);
        if (fresh == 0) {
          ++i;
          continue;
        }
        rows = static_cast<std::uint32_t>(fresh);
        if (!make_room(request, sequence, rows, state, step, i, budget)) break;
        prefill = sequence.in_prefill();
        const std::int64_t verified = fresh + sequence.computed - sequence.tokens() - sequence.placeholders;
        drafts = verified > 0 ? static_cast<std::uint32_t>(std::min<std::int64_t>(sequence.spec, verified)) : 0;
      }
      sequence.spec = 0;
      step.items.push_back({request, rows, drafts, 0, prefill, false, 0});
      budget -= rows;
      ++i;
    }
  }

  // Whether the blocks of an admitted request are still on their way from host memory. It is not scheduled until then
  // (WAITING_FOR_REMOTE_KVS); its loaded blocks get their hashes when it is.
  [[nodiscard]] static bool loads(Sequence& sequence, EngineState& state) {
    if (sequence.loaded_at == 0) return false;
    if (sequence.loaded_at > state.now) {
      state.wakes = std::min(state.wakes, sequence.loaded_at);
      return true;
    }
    state.spend(sequence, Cause::transfer);
    sequence.loaded_at = 0;
    return false;
  }

  // Scheduler._mamba_block_aligned_split of vLLM 0.27: how many of `fresh` tokens of a prompt are computed after the first
  // `start`, so that a state can be saved at the end of the step. It ends with a block, with the last block that a later request
  // can find, or after `shared` more tokens, whose keys and values are cached and whose state is not. A step that is shorter than
  // a block waits.
  [[nodiscard]] static std::int64_t up_to_block(const Sequence& sequence, std::uint32_t start, std::int64_t fresh,
                                                std::uint32_t shared, const EngineState& state) {
    const std::uint32_t tokens = sequence.tokens();
    if (!state.saves_states || start >= std::max(sequence.prompt, tokens - 1)) return fresh;
    const std::int64_t block = state.pool->block_tokens();
    std::int64_t last = tokens - tokens % block;
    if (state.drafts_cached) last = std::max<std::int64_t>(last - block, 0);
    if (start + fresh < last)
      fresh = fresh / block * block;
    else if (start < last)
      fresh = last - start;
    return shared >= block ? std::min<std::int64_t>(fresh, shared) : fresh;
  }

  // Blocks for the running request number `i`, from others if none are free. False: it was preempted itself.
  bool make_room(arrivals::RequestId request, Sequence& sequence, std::uint32_t rows, EngineState& state, Step& step,
                 std::size_t& i, std::int64_t& budget) {
    while (!allocate(request, sequence, rows, state, false)) {
      const arrivals::RequestId last = victim(state);
      const auto place = static_cast<std::size_t>(std::find(running_.begin(), running_.end(), last) - running_.begin());
      running_.erase(running_.begin() + static_cast<std::ptrdiff_t>(place));
      const auto item = std::find_if(step.items.begin(), step.items.end(), [&](const Item& one) { return one.request == last; });
      if (item != step.items.end()) {
        budget += item->rows;
        step.items.erase(item);
        --i;
      }
      preempt(last, state, step);
      if (last == request) return false;
    }
    return true;
  }

  void schedule_waiting(EngineState& state, Step& step, std::int64_t& budget) {
    for (std::size_t at = 0; at < waiting_.size() && budget > 0 && running_.size() < options_.max_num_seqs;) {
      const arrivals::RequestId request = waiting_[at];
      Sequence& sequence = state.at(request);
      hits_.clear();
      in_host_.clear();
      const bool decodes = sequence.arrived_prefilled();
      if (state.pool->caches() && !decodes) {
        cached_.find(request, sequence.tokens() - 1, state, hits_);  // the last token is always computed
        CachedBlocks::find_in_host(request, static_cast<std::uint32_t>(hits_.size()), sequence.tokens() - 1, state, in_host_);
        if (state.drafts_cached && !in_host_.empty())
          in_host_.pop_back();
        else if (state.drafts_cached && !hits_.empty())
          hits_.pop_back();
        // OffloadingConnectorScheduler: a request waits while another one loads the same block, and others go first.
        if (const auto [same, until] = being_loaded(state); same) {
          state.wakes = std::min(state.wakes, until);
          ++at;
          continue;
        }
      }
      auto shared = static_cast<std::uint32_t>(hits_.size());
      if (state.saves_states) CachedBlocks::cut_to_state(request, state, hits_);
      shared = (shared - static_cast<std::uint32_t>(hits_.size())) * state.pool->block_tokens();
      // A prompt that was computed elsewhere needs blocks here, but no row except its last token's.
      const std::uint32_t cached = decodes
                                       ? sequence.tokens() - 1
                                       : static_cast<std::uint32_t>(hits_.size() + in_host_.size()) * state.pool->block_tokens();
      std::int64_t fresh = std::int64_t{sequence.tokens()} - cached;
      if (options_.long_prefill_token_threshold > 0) fresh = std::min<std::int64_t>(fresh, options_.long_prefill_token_threshold);
      if (!options_.chunked_prefill && fresh > budget) break;
      fresh = std::min(fresh, budget);
      if (!decodes) fresh = up_to_block(sequence, cached, fresh, shared, state);
      if (fresh == 0) break;
      if (!in_host_.empty()) fresh = 0;  // it computes nothing before its blocks are loaded
      sequence.prefill_target = decodes ? 0 : sequence.tokens();
      sequence.computed = cached;
      if (!allocate(request, sequence, static_cast<std::uint32_t>(fresh), state, true)) {
        sequence.computed = 0;
        break;
      }
      waiting_.erase(waiting_.begin() + static_cast<std::ptrdiff_t>(at));
      running_.push_back(request);
      begin(sequence, cached, state);
      if (!in_host_.empty()) {
        sequence.loaded_at = load(sequence, in_host_, state);
        state.wakes = std::min(state.wakes, sequence.loaded_at);
        continue;
      }
      step.items.push_back({request, static_cast<std::uint32_t>(fresh), 0, 0, !decodes, false, 0});
      budget -= fresh;
    }
  }

  // Whether one of in_host_ is on its way for another request, and until when.
  [[nodiscard]] std::pair<bool, arrivals::Picoseconds> being_loaded(const EngineState& state) const {
    arrivals::Picoseconds until = 0;
    for (const std::uint64_t hash : in_host_) until = std::max(until, state.pool->host()->arrives(hash));
    return {until > state.now, until};
  }

  // Room for `rows` more tokens and the drafts' slots after them. At an admission hits_ are the sequence's first blocks, and
  // blocks for in_host_ are taken too.
  bool allocate(arrivals::RequestId request, Sequence& sequence, std::uint32_t rows, EngineState& state, bool admission) {
    BlockPool& pool = *state.pool;
    if (pool.unlimited() && !pool.caches()) return true;
    const auto hits = admission ? static_cast<std::uint32_t>(hits_.size()) : 0;
    const std::uint32_t held = sequence.held + hits;
    const std::uint32_t woken = admission ? CachedBlocks::among_free(hits_, pool) : 0;
    const std::uint64_t ahead =
        std::min<std::uint64_t>(std::uint64_t{sequence.computed} + rows + state.lookahead, options_.max_model_len);
    const std::uint32_t wanted = pool.blocks_for(ahead);
    const std::uint32_t need = wanted > held ? wanted - held : 0;
    const std::uint64_t watermark =
        admission && !running_.empty() ? static_cast<std::uint64_t>(options_.watermark * (pool.usable() + 1)) : 0;
    if (admission && options_.reserve_full_isl) {
      const std::uint32_t whole = pool.blocks_for(std::min(sequence.tokens(), options_.max_model_len));
      if (std::uint64_t{whole > held ? whole - held : 0} + woken + watermark > pool.free()) return false;
    }
    if (std::uint64_t{need} + woken + watermark > pool.free()) return false;
    if (!pool.caches()) {
      pool.take(need);
      sequence.held += need;
      return true;
    }
    if (admission) cached_.begin(request, hits_, state);
    cached_.extend(request, need, state);
    sequence.held = held + need;
    // Only blocks of known tokens are registered in the prefix cache, not those of drafts or those that are being loaded.
    if (!admission || in_host_.empty()) cached_.name(request, std::min(sequence.computed + rows, sequence.tokens()), state);
    return true;
  }

  void release(arrivals::RequestId request, Sequence& sequence, EngineState& state) {
    if (state.pool->caches())
      cached_.release(request, state);
    else
      state.pool->give_back(sequence.held);
    sequence.held = 0;
  }

  void finish(arrivals::RequestId request, Sequence& sequence, EngineState& state) {
    finished_waiting_ = finished_waiting_ || sequence.status == Status::preempted;  // its last token was in flight
    release(request, sequence, state);
    sequence.status = Status::finished;
  }

  VllmOptions options_;
  bool finished_waiting_ = false;
  std::uint64_t schedulings_ = 0;
  std::vector<BlockPool::Block> hits_;
  std::vector<std::uint64_t> in_host_;
  CachedBlocks cached_;  // with prefix caching
};

std::vector<std::pair<std::string, std::int64_t>> defaults_by_gpu(const cost::Hardware& hardware) {
  const cost::StepLimits step = cost::vllm_step(hardware);
  return {{"max_num_batched_tokens", static_cast<std::int64_t>(step.rows)},
          {"max_num_seqs", static_cast<std::int64_t>(step.requests)}};
}

}  // namespace

SchedulerEntry vllm_v1_scheduler() {
  using P = VllmOptions;
  static const config::Fields<P> fields = {
      {"max_num_batched_tokens", &P::max_num_batched_tokens, "maximum number of tokens that a step computes",
       config::between(1, 1e9)},
      {"max_num_seqs", &P::max_num_seqs, "maximum number of requests that run at once", config::between(1, 1e9)},
      {"max_model_len", &P::max_model_len, "maximum number of tokens of a request, prompt and output", config::between(2, 1e9)},
      {"long_prefill_token_threshold", &P::long_prefill_token_threshold,
       "maximum number of tokens of one request in a step; 0: no limit", config::between(0, 1e9)},
      {"chunked_prefill", &P::chunked_prefill, "a prompt may be cut into several steps"},
      {"policy", &P::by_priority, "which request goes first, and which is preempted",
       config::one_of<bool>({{"fcfs", false}, {"priority", true}})},
      {"async", &P::asynchronous,
       "a step is scheduled while the one before it runs, so that the host's time is hidden by the GPU's; if not set, false with "
       "drafts of n-grams"},
      {"reserve_full_isl", &P::reserve_full_isl, "a request is admitted only if its whole prompt fits the pool"},
      {"watermark", &P::watermark, "share of the pool that an admission leaves free while others run", config::between(0, 0.5)},
      {"prefix_caching", &P::prefix_caching, "blocks of equal prefixes are computed once"},
  };
  return {
      {"vllm_v1", "one budget of tokens per step for prompts and decoding, running requests first; preemption by recomputation",
       "vLLM, vllm/v1/core/sched/scheduler.py (2026)", fields,
       "A draft's tokens count against the budget; drafts are cut at the end of the budget or of max_model_len. A decoding "
       "request needs blocks for its drafts, and as many slots again if the draft keeps a cache. With a head as draft, the last "
       "block of a cached prefix is computed again. If the target has layers with a state, blocks are so large that a state fits "
       "into one, a cached prefix ends where a state is saved, and steps of prompts end with a block (--mamba-cache-mode align, "
       "version 0.27)."},
      [](const config::Arguments& arguments, Diagnostics&) -> SchedulerMaker {
        return [options = fields.read(arguments)] { return std::make_unique<VllmV1>(options); };
      },
      "",
      "vllm",
      "vLLM",
      defaults_by_gpu,
      "async"};  // VllmConfig allows it only for drafts that stay on the GPU (pull request 31998)
}

}  // namespace specsim::serve
