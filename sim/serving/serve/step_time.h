// The time of an engine's step: the target's pass over rows of different kinds, then the draft's passes, as a cost model
// estimates them.
#pragma once

#include "sim/hardware/latency/cost_model.h"
#include "sim/hardware/latency/energy.h"
#include "sim/serving/arrivals/request_trace.h"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace specsim::serve {

// Times of passes that were estimated before, by the whole numbers that they depend on.

// Threads share it. Each slot takes the first key that falls on it and never changes afterwards, so that a reader needs no lock.
// Other keys of the slot are not kept. Memory grows with the keys, up to kPages pages (8 MB).
class TimeMemo {
 public:
  struct Times {
    double target = 0.0;
    double draft = 0.0;
    double work_joules = 0.0;
  };
  static constexpr std::uint64_t kMostTokens = std::uint64_t{1} << 40;

  TimeMemo() = default;
  TimeMemo(const TimeMemo&) = delete;
  TimeMemo& operator=(const TimeMemo&) = delete;
  ~TimeMemo() {
    for (const std::atomic<Page*>& page : pages_) delete page.load(std::memory_order_relaxed);
  }

  // `kind`: above 0 and below 2^24; `tokens`: below kMostTokens. nullptr: not kept.
  [[nodiscard]] const Times* find(std::uint32_t kind, std::uint64_t tokens) const {
    const std::size_t at = slot_of(kind, tokens);
    const Page* const page = pages_[at / kPageSlots].load(std::memory_order_acquire);
    if (page == nullptr) return nullptr;
    const Slot& slot = (*page)[at % kPageSlots];
    return slot.key.load(std::memory_order_acquire) == key_of(kind, tokens) ? &slot.times : nullptr;
  }
  void keep(std::uint32_t kind, std::uint64_t tokens, const Times& times) {
    const std::size_t at = slot_of(kind, tokens);
    std::atomic<Page*>& place = pages_[at / kPageSlots];
    Page* page = place.load(std::memory_order_acquire);
    if (page == nullptr) {
      auto fresh = std::make_unique<Page>();
      if (place.compare_exchange_strong(page, fresh.get(), std::memory_order_acq_rel)) page = fresh.release();
    }
    Slot& slot = (*page)[at % kPageSlots];
    std::uint64_t nothing = 0;
    if (!slot.key.compare_exchange_strong(nothing, kBeingWritten, std::memory_order_relaxed)) return;
    slot.times = times;
    slot.key.store(key_of(kind, tokens), std::memory_order_release);
  }

 private:
  static constexpr std::size_t kPages = 512;
  static constexpr std::size_t kPageSlots = 512;
  static constexpr std::uint64_t kBeingWritten = kMostTokens - 1;  // with kind 0, which no key has
  struct alignas(32) Slot {
    std::atomic<std::uint64_t> key{0};
    Times times;
  };
  using Page = std::array<Slot, kPageSlots>;

  static std::uint64_t key_of(std::uint32_t kind, std::uint64_t tokens) { return kind * kMostTokens + tokens; }
  // Steps that follow each other have neighbouring slots; kinds begin far from each other (Fibonacci hashing).
  static std::size_t slot_of(std::uint32_t kind, std::uint64_t tokens) {
    return ((kind * std::uint64_t{0x9e3779b97f4a7c15} >> 46U) + tokens) % (kPages * kPageSlots);
  }

  std::array<std::atomic<Page*>, kPages> pages_{};
};

// The kind of drafter, which determines its time and its memory.
enum class DraftMethod {
  // heads or a head model: keys and values in the target's pool, one pass over all rows and one per further draft token
  eagle,
  draft_model,  // a whole model, with keys and values in the target's pool too; it adds an extra row per sequence to the batch
  ngram         // no passes and no cache
};

// When the processor does the work of a step.
enum class HostTime {
  as_the_engine,  // as the cost model's engine has it
  overlapped,     // while the GPU computes the step before, also of an engine whose host works between steps
  between_steps   // with the GPU idle, also for an engine that hides it
};

// The work of a step.
struct StepWork {
  cost::Segment prompts;
  cost::Segment decoding;
  cost::Segment draft_only;   // what the draft's pass over prompts has beyond the target's, where its cache was lost
  double logits = 0.0;        // rows that go through the LM head
  double cached_after = 0.0;  // cached tokens after the step, without the drafts that it rejected
  // [pass of the draft]: rows of all sequences together, in addition to the step's own rows in the first pass; nullptr: one row
  // per sequence in as many passes as it drafts tokens.
  const std::vector<double>* draft_rows = nullptr;
  cost::OtherEngines peers;  // engines that share experts with this one
  [[nodiscard]] double requests() const { return prompts.sequences + decoding.sequences; }
  [[nodiscard]] cost::Segment draft_prompts() const {
    return {prompts.sequences, prompts.rows + draft_only.rows, prompts.cached + draft_only.cached,
            prompts.pairs + draft_only.pairs};
  }
};

// This many sequences that decode `rows_each` rows, with `cached` tokens in all.
inline cost::Segment decoding_alike(double sequences, double rows_each, double cached) {
  const double rows = sequences * rows_each;
  return {sequences, rows, cached, rows * (cached / sequences + 0.5 * (rows_each + 1.0))};
}

// A sequence that drafts by itself: its first pass computes the rows that the draft has not seen, after this many cached tokens.
struct SequentialDraft {
  std::uint32_t first_rows = 1;
  std::uint32_t cached = 0;
  std::uint32_t drafts = 1;
  bool looked_up = false;  // no pass drafts for it
};

struct StepTime {
  arrivals::Picoseconds target = 0;
  arrivals::Picoseconds draft = 0;  // the draft's passes, and the other time of a speculative round
  double work_joules = 0.0;         // energy of one GPU beyond its idle power
  [[nodiscard]] arrivals::Picoseconds total() const { return target + draft; }
};

class StepLatency {
 public:
  // `keeps_draft`: the server may draft again later. A step without drafts then still computes its rows in one pass of the draft,
  // whose cache would otherwise have gaps (vLLM's pull requests 51575 and 53426). The model must live longer.
  StepLatency(const cost::CostModel& cost, DraftMethod method, HostTime host, bool keeps_draft = false)
      : cost_(&cost),
        method_(method),
        host_(host),
        keeps_draft_(keeps_draft && method != DraftMethod::ngram),
        draft_gpus_(cost::draft_gpus_per_target_gpu(cost)) {}
  // The time of a step at whose end `draft_length` draft tokens are made for the next one.
  [[nodiscard]] StepTime time(const StepWork& work, int draft_length) const;
  // The same bits for a step that only decodes, `rows_each` rows for each of its sequences, with these tokens cached before it
  // and after it, in all. Few sequences have the same tokens again and again: their times are kept.
  [[nodiscard]] StepTime decoding_time(std::uint32_t sequences, std::uint32_t rows_each, std::uint64_t cached,
                                       std::uint64_t cached_after, int draft_length) const;
  // The time of a step whose sequences draft one after another, at batch 1, before the target computes its rows: in batches of at
  // most `batch_rows`, each in passes of at most `pass_rows`.
  [[nodiscard]] StepTime sequential_time(const StepWork& work, const std::vector<SequentialDraft>& drafts, double batch_rows,
                                         double pass_rows) const;
  // Total seconds of the same step.
  [[nodiscard]] double seconds(const StepWork& work, int draft_length) const;
  struct Parts {
    double target = 0.0;
    double draft = 0.0;
    double work_joules = 0.0;
  };
  [[nodiscard]] Parts parts(const StepWork& work, int draft_length) const;

 private:
  // Rounds to whole picoseconds; throws BadInput for a step beyond simulated time.
  [[nodiscard]] static StepTime rounded(const Parts& time);
  // Adds a pass of the draft.
  void add_draft(const cost::PassTime& pass, Parts& parts) const {
    parts.draft += pass.total();
    parts.work_joules += draft_gpus_ * pass.work_joules;
  }
  // parts() without the later passes of a draft that drafts token by token; the same, kept by `kind` and `tokens`, if they
  // determine `work()`; and those passes.
  [[nodiscard]] Parts first_parts(const StepWork& work, int draft_length) const;
  template <class Work>
  [[nodiscard]] Parts kept_parts(std::uint32_t kind, std::uint64_t tokens, int draft_length, const Work& work) const;
  void add_later_passes(double sequences, double cached_after, int draft_length, Parts& parts) const;
  // Adds the draft's passes by StepWork::draft_rows.
  void add_passes(const StepWork& work, Parts& parts) const;

  const cost::CostModel* cost_;
  DraftMethod method_;
  HostTime host_;
  bool keeps_draft_;
  double draft_gpus_;
  std::unique_ptr<TimeMemo> memo_ = std::make_unique<TimeMemo>();
};

}  // namespace specsim::serve
