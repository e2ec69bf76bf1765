// One engine: schedules steps, estimates their times, and applies their results.
#pragma once

#include "sim/serving/serve/acceptance.h"
#include "sim/serving/serve/scheduler.h"
#include "sim/serving/serve/step_time.h"

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_set>
#include <vector>

namespace specsim::serve {

// A time between two chunks of tokens of a sequence, and how many chunks had it.
struct Gap {
  arrivals::Picoseconds length = 0;
  std::uint32_t tokens = 1;
  std::uint32_t count = 1;
};

// Totals of an engine.
struct ServerTotals {
  std::uint64_t steps = 0;
  std::uint64_t prefill_steps = 0;  // steps that computed tokens of prompts
  std::uint64_t rows = 0;
  std::uint64_t draft_rows = 0;
  std::uint64_t rounds = 0;  // rounds of decoding: each sequence of each step that decodes has one
  // steps in which all sequences have equally many rows, so that a full CUDA graph can hold them
  std::uint64_t uniform_steps = 0;
  std::uint64_t mixed_steps = 0;  // other steps
  std::uint64_t eager_steps = 0;  // steps of more rows than the largest CUDA graph
  std::uint32_t largest_batch = 0;
  std::uint32_t fewest_free_blocks = 0;
  double batch_ps = 0.0;  // integral of the batch over steps
  arrivals::Picoseconds busy = 0;
  arrivals::Picoseconds drafting = 0;
  double verifying_ps = 0.0;        // time of steps that verify drafts
  double verifying_batch_ps = 0.0;  // integral of the batch over these
  double work_joules = 0.0;         // energy of one of its GPUs beyond what it draws idle
  HostCache::Totals host;           // of the second tier of its prefix cache
  double host_block_bytes = 0.0;
};

struct StepRecord {
  std::uint32_t replica = 0;
  std::uint64_t step = 0;
  arrivals::Picoseconds start = 0;
  StepTime time;
  std::uint32_t prefill_rows = 0;
  std::uint32_t decode_rows = 0;
  std::uint32_t draft_rows = 0;
  const Step* plan = nullptr;
  const Sequence* sequences = nullptr;  // [request]
  const BlockPool* pool = nullptr;
};

class StepObserver {
 public:
  StepObserver() = default;
  StepObserver(const StepObserver&) = delete;
  StepObserver& operator=(const StepObserver&) = delete;
  virtual ~StepObserver() = default;
  virtual void began(const StepRecord& record) = 0;
};

// Of a step, in whole numbers, which are faster than those of StepWork and give the same sums.
struct StepSums {
  std::uint32_t prompt_rows = 0;
  std::uint32_t round_rows = 0;  // of sequences that decode
  std::uint32_t verified_drafts = 0;
  std::uint64_t rejected = 0;      // drafts
  bool uniform = true;             // no prompts, and equally many rows of each sequence:
  std::uint32_t rows_each = 0;     // those of the first
  std::uint64_t cached = 0;        // tokens of the sequences that decode, before the step
  std::uint64_t cached_after = 0;  // tokens after it, without the drafts that it rejected
  std::uint64_t twice_pairs = 0;   // of a new token and one that it attends to
  // `before`: the sequence's cached tokens.
  void add_round(const Item& item, std::uint32_t before);
};

class Server {
 public:
  struct Parts {
    std::unique_ptr<Scheduler> scheduler;
    std::unique_ptr<BlockPool> pool;
    std::unique_ptr<ServerPolicy> policy;  // nullptr: nothing is drafted
    const Acceptance* acceptance = nullptr;
    const StepLatency* latency = nullptr;
    std::uint32_t lookahead = 0;
    std::uint32_t extra_rows = 0;
    bool drafts_cached = false;
    bool saves_states = false;
    bool loses_drafts = false;
    bool in_step = false;  // it shares experts with other engines: steps of all begin and end together
  };
  // `sequences`: [request].
  Server(std::uint32_t index, Parts parts, const arrivals::RequestTrace& workload, Sequence* sequences, StepObserver* observer);

  [[nodiscard]] std::string refusal(const arrivals::Request& request) const { return parts_.scheduler->refusal(request, state_); }
  void arrive(arrivals::RequestId request, arrivals::Picoseconds now);
  // For routing by prefix: how many of a prompt's first hashes were sent here with earlier requests, as a router in front of the
  // server knows it; and the hashes that a new request adds.
  [[nodiscard]] std::uint32_t known_hashes(const arrivals::Request& request) const;
  void remember(const arrivals::Request& request);
  // When the running step ends; while none runs, when a request's blocks are loaded from host memory; else kNever.
  [[nodiscard]] arrivals::Picoseconds next() const { return idle() ? wakes_ : ends_; }
  [[nodiscard]] bool idle() const { return ends_ == arrivals::kNever; }
  // Requests in the running step.
  [[nodiscard]] std::uint32_t batch() const { return idle() ? 0 : static_cast<std::uint32_t>(current_.items.size()); }
  // Called at next(), when the step's tokens are ready, if one runs. `finished` gets the requests that end.
  void finish_step(arrivals::Picoseconds now, std::vector<arrivals::RequestId>& finished);
  // Called after finish_step, and when a request arrives at an idle engine: schedules the next computations.
  void begin_steps(arrivals::Picoseconds now);
  // Ends the steps that end before `limit` and begins the next ones, as long as they have the same sequences. If no request
  // arrives before `limit`, the results are those of finish_step() and begin_steps().
  void decode_until(arrivals::Picoseconds limit);
  // Until when the steps certainly have the same sequences, if no request arrives: the end of the last one that has, at least
  // next().
  [[nodiscard]] arrivals::Picoseconds quiet_until();
  // For an engine in step with others, after begin_steps(). scheduled_rows(): rows of the scheduled step, 0 if there is none;
  // `together_with()`: how long it takes together with the others' rows; begin_together(): the step begins, and ends with the
  // slowest engine.
  [[nodiscard]] double scheduled_rows() const { return composed_ ? work_.prompts.rows + work_.decoding.rows : 0.0; }
  [[nodiscard]] arrivals::Picoseconds together_with(const cost::OtherEngines& peers);
  void begin_together(arrivals::Picoseconds now, arrivals::Picoseconds longest);

  [[nodiscard]] std::uint32_t waiting() const { return parts_.scheduler->waiting(); }
  [[nodiscard]] std::uint32_t in_system() const { return parts_.scheduler->waiting() + parts_.scheduler->running(); }
  [[nodiscard]] ServerTotals totals() const;
  [[nodiscard]] const std::vector<Gap>& gaps() const { return gaps_; }
  void swap_gaps(std::vector<Gap>& gaps) { gaps_.swap(gaps); }
  [[nodiscard]] const BlockPool& pool() const { return *parts_.pool; }

 private:
  void begin_pass(arrivals::Picoseconds now);
  [[nodiscard]] SameSteps same_steps() const;
  void decode_same(const SameSteps& same, arrivals::Picoseconds limit);
  [[nodiscard]] std::uint32_t take_accepted(Sequence& sequence, Item& item);
  void compose();
  void observe_round(const Item& item, const Sequence& sequence);
  void add_prompt(const Item& item, std::uint32_t before);
  void finish_work();
  void recompute_draft(const Item& item, std::uint32_t before);
  void share_rows();
  void play(Item& item, const Sequence& sequence);
  void observe_shared_rounds(const std::vector<arrivals::RequestId>& finished);
  [[nodiscard]] StepTime step_time() const;
  void run(arrivals::Picoseconds now);
  void sum_draft_rows();
  void account(arrivals::Picoseconds now);
  void account_chunk(Sequence& sequence, std::uint32_t got, arrivals::Picoseconds now);
  void add_gap(const Gap& gap);
  void add_common_gaps(std::uint32_t largest);
  struct SequenceRound {
    std::uint32_t emitted = 0;
    std::uint32_t accepted = 0;
  };

  std::uint32_t index_;
  Parts parts_;
  EngineState state_;
  StepObserver* observer_;
  Step current_;
  Step queued_;  // the step after it, if the scheduler is asynchronous
  bool has_queued_ = false;
  arrivals::Picoseconds began_ = 0;
  arrivals::Picoseconds ends_ = arrivals::kNever;
  arrivals::Picoseconds wakes_ = arrivals::kNever;
  StepTime time_;
  bool mixed_ = false;     // the running step computes prompts
  bool composed_ = false;  // a step is scheduled and waits for the engines that it begins with
  // Work of the running step, or of the one that waits.
  StepWork work_;
  StepSums sums_;
  ServerTotals totals_;
  std::vector<Gap> gaps_;
  std::vector<std::uint32_t> common_gap_;  // [tokens]: sequences that got a chunk when this step began and get another at its end
  std::uint32_t largest_chunk_ = 0;        // the largest chunk of the running step
  bool per_request_ = false;
  std::unordered_set<std::uint64_t> remembered_;  // hashes
  std::vector<double> draft_rows_;                // [pass]: of the running step, if sequences draft blocks of their own
  std::vector<std::uint32_t> verified_;           // [position]: for the policy
  std::vector<std::uint32_t> accepted_;
  // If the policy shares out rows:
  std::unique_ptr<Rounds> rounds_;          // else nullptr
  std::vector<DraftedChain> chains_;        // of the running step, or of the one that waits
  std::vector<std::uint32_t> of_chains_;    // [chain]: drafts that are verified
  std::vector<std::uint32_t> taken_;        // [chain]: drafts that are accepted
  std::vector<arrivals::RequestId> ended_;  // with the step before
  std::vector<SequenceRound> played_;       // by quiet_until()
};

}  // namespace specsim::serve
