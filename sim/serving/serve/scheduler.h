// Who computes how many tokens in the next step: the registry of schedulers, and the state that they work on.
#pragma once

#include "sim/foundation/config/registry.h"
#include "sim/hardware/latency/server_memory.h"
#include "sim/serving/arrivals/request_trace.h"
#include "sim/serving/serve/block_pool.h"
#include "sim/serving/serve/policy.h"
#include "sim/serving/serve/step_price.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace specsim::serve {

enum class Status : std::uint8_t { unsent, waiting, running, preempted, finished };

// What every second of a request's life goes to, from the moment it is sent to its last token: exactly one of these.
enum class Cause : std::uint8_t {
  frontend,      // on its way to the engine
  queue,         // waiting for admission, never admitted before
  prefill,       // admitted, its prompt not computed yet
  decode,        // in steps of its own, the target's passes where no prompt is in the step
  draft,         // in steps of its own, the draft's passes
  interference,  // in steps of its own, the target's passes that also compute prompts
  stalled,       // admitted and not scheduled: no budget or no block was left
  preempted,     // waiting for its next admission
  recompute,     // admitted again, what was lost not computed yet
  transfer       // its cache on the way from the engine that computed its prompt to the one that decodes
};
constexpr std::size_t kCauses = 10;
const std::array<const char*, kCauses>& cause_names();

// A request as the engine sees it. Its first two cache lines hold all that a step of a decoding sequence touches: with a large
// batch, the simulator's time is that of loading them.
struct alignas(64) Sequence {
  std::uint32_t prompt = 0;
  std::uint32_t output = 0;          // tokens at which it ends
  std::uint32_t limit = 0;           // tokens at which the server knows that it ends, at least `output`
  std::uint32_t emitted = 0;         // tokens that the engine has seen
  std::uint32_t computed = 0;        // tokens whose keys and values exist or are in flight, drafts too
  std::uint32_t spec = 0;            // drafts for its next step
  std::uint32_t placeholders = 0;    // tokens in flight, where steps are scheduled ahead
  std::uint32_t held = 0;            // blocks
  std::uint32_t prefill_target = 0;  // tokens that it had at its last admission
  Status status = Status::unsent;
  bool moved = false;    // its prompt was computed elsewhere, and its cache came over a link
  bool resumed = false;  // admitted again after a preemption, and not computed again yet
  std::uint32_t rounds = 0;
  std::uint32_t drafted = 0;
  std::uint32_t accepted = 0;
  std::int32_t priority = 0;
  arrivals::Picoseconds since = 0;  // when time was last booked in `spent`; what came later is not in it yet
  arrivals::Picoseconds last_token = arrivals::kNever;
  arrivals::Picoseconds first_token = arrivals::kNever;
  std::array<arrivals::Picoseconds, kCauses> spent{};
  std::array<arrivals::Picoseconds, kCauses> spent_first{};  // the part of it up to its first token
  arrivals::Picoseconds sent = 0;
  arrivals::Picoseconds first_scheduled = arrivals::kNever;
  std::uint64_t scheduled_in = 0;  // number of the last scheduling that took it, where the scheduler has to know
  std::uint32_t preemptions = 0;
  std::uint32_t recomputed = 0;  // tokens
  std::uint32_t found = 0;       // tokens, in the prefix cache at its admissions

  [[nodiscard]] std::uint32_t tokens() const { return prompt + emitted; }
  [[nodiscard]] bool in_prefill() const { return computed < prefill_target; }
  // It waits with its prompt computed: the engine that it comes to decodes alone.
  [[nodiscard]] bool came_computed() const { return moved && status == Status::waiting; }
};
static_assert(offsetof(Sequence, last_token) == 64);

// A sequence's share of a step.
struct Item {
  arrivals::RequestId request = 0;
  std::uint32_t rows = 0;            // tokens that are computed
  std::uint32_t drafts = 0;          // how many of the rows are drafts
  std::uint32_t accepted = 0;        // known when the pass begins
  bool prefill = false;              // rows are of the prompt, or of what a preemption lost
  bool emits = false;                // a token comes out
  std::uint32_t emitted_before = 0;  // tokens of its request when the pass begins
  // How many of the drafts are verified, known when the pass begins: all, unless the policy shares rows out. The others are
  // dropped from the pass, and their slots are as those of rejected ones.
  std::uint32_t verified = 0;
  [[nodiscard]] std::uint32_t computed() const { return rows - drafts + verified; }
};

struct Step {
  std::vector<Item> items;
  // What the sequences draft, and the rows of a batch and of a pass, where each of them drafts by itself before the target's
  // passes.
  std::vector<LoneDraft> lone_drafts;
  bool drafts_alone = false;
  std::uint32_t batch_rows = 0;
  std::uint32_t pass_rows = 0;
  std::uint32_t preempted = 0;
  std::uint32_t waiting = 0;      // requests that wait after this step was scheduled
  std::uint32_t free_blocks = 0;  // free blocks after this step was scheduled
  int draft_length = 0;           // drafts that the step makes for the next
  void clear() {
    items.clear();
    lone_drafts.clear();
    preempted = 0;
    draft_length = 0;
  }
};

// All that schedulers share: the requests, the pool, who drafts.
struct EngineState {
  Sequence* first_sequence = nullptr;  // [request]: of all replicas
  const arrivals::RequestTrace* workload = nullptr;
  BlockPool* pool = nullptr;
  ServerPolicy* policy = nullptr;
  const Acceptance* acceptance = nullptr;  // how drafts are accepted; nullptr without a policy
  bool uneven = false;                     // sequences draft blocks of their own: not all as many rows as the policy's length
  std::uint32_t widest = 0;                // rows that a sequence's drafts take at most
  std::uint32_t lookahead = 0;             // slots that a scheduled sequence needs beyond its tokens, for drafts
  std::uint32_t extra_rows = 0;            // rows that every sequence may lay into a step beyond its tokens, for the draft
  bool drafts_cached = false;              // the draft keeps keys and values: the last block of a cached prefix is computed anew
  arrivals::Picoseconds now = 0;

  [[nodiscard]] Sequence& at(arrivals::RequestId request) const { return first_sequence[request]; }
  // Rows that a sequence's drafts take in its next step, behind so many tokens; `draft_length`: the policy's, of the step before.
  [[nodiscard]] std::uint32_t drafts(arrivals::RequestId request, std::uint32_t emitted, int draft_length) const {
    return uneven ? uneven_drafts(request, emitted, draft_length) : static_cast<std::uint32_t>(draft_length);
  }
  // As drafts(), where the step before has not ended yet, and nobody knows how many tokens it gives: room for the widest.
  [[nodiscard]] std::uint32_t drafts_ahead(arrivals::RequestId request, int draft_length) const {
    return uneven ? uneven_drafts_ahead(request, draft_length) : static_cast<std::uint32_t>(draft_length);
  }
  // Time up to now goes to `cause`.
  void spend(Sequence& sequence, Cause cause) const {
    sequence.spent[static_cast<std::size_t>(cause)] += now - sequence.since;
    sequence.since = now;
  }

 private:
  [[nodiscard]] std::uint32_t uneven_drafts(arrivals::RequestId request, std::uint32_t emitted, int draft_length) const;
  [[nodiscard]] std::uint32_t uneven_drafts_ahead(arrivals::RequestId request, int draft_length) const;
};

// What the requests of a run have in common.
struct RequestTraits {
  bool one_priority = true;
  bool shared_prefixes = false;
};

struct RunningLimit {
  std::uint32_t requests;  // the most requests that run at once while the server speculates
  std::string_view unset;  // the parameter and flag that would raise it, where nobody set it; "" where it was set
};

class Scheduler {
 public:
  Scheduler() = default;
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;
  virtual ~Scheduler() = default;
  // Steps are scheduled while the one before still runs.
  [[nodiscard]] virtual bool asynchronous() const { return false; }
  [[nodiscard]] virtual HostTime host_time() const { return HostTime::as_the_engine; }
  // Blocks of equal prefixes are computed once.
  [[nodiscard]] virtual bool prefix_caching() const { return false; }
  // The step that the server computes at its start to learn what memory activations take; nothing where it does not.
  [[nodiscard]] virtual std::optional<cost::StepLimits> profiled() const { return std::nullopt; }
  [[nodiscard]] virtual cost::MemoryShare memory_share() const { return cost::MemoryShare::everything; }
  // The share of the GPU's memory that the server's own command takes where nobody says it; cost::kUsualShare is most servers'.
  [[nodiscard]] virtual double usual_share(const cost::Hardware& /*hardware*/, int /*gpus*/) const { return cost::kUsualShare; }
  [[nodiscard]] virtual RunningLimit running_limit() const = 0;
  // A sentence for each of the scheduler's options that is set and changes nothing with such requests.
  [[nodiscard]] virtual std::vector<std::string> idle_options(const RequestTraits& /*traits*/) const { return {}; }
  // Why the server would not start, where every sequence may lay so many rows more into a step for the draft; "" where it would.
  [[nodiscard]] virtual std::string refused_start(std::uint32_t /*extra_rows*/) const { return ""; }
  // What a real server refuses and is simulated all the same, since its meaning is clear; "" where there is nothing.
  [[nodiscard]] virtual std::string doubt() const { return ""; }
  // Why this request can never be served; "" where it can.
  [[nodiscard]] virtual std::string refusal(const arrivals::Request& request, const EngineState& state) const = 0;
  // A request comes to the queue: to its end, unless the scheduler keeps another order.
  virtual void arrive(arrivals::RequestId request, EngineState& state);
  // The next step; no items where there is nothing to compute.
  virtual void schedule(EngineState& state, Step& step) = 0;
  // What a step gave: rejected drafts go, tokens come, sequences end. `finished` gets those that end, in the step's order.
  virtual void update(EngineState& state, const Step& step, std::vector<arrivals::RequestId>& finished) = 0;
  [[nodiscard]] std::uint32_t waiting() const { return static_cast<std::uint32_t>(waiting_.size()); }
  [[nodiscard]] virtual std::uint32_t running() const { return static_cast<std::uint32_t>(running_.size()); }

 protected:
  // Why a request of so many blocks, at its end, can never be served, and why one of such a length; "" where it can.
  [[nodiscard]] static std::string refused_by_pool(std::uint32_t blocks, const EngineState& state);
  [[nodiscard]] static std::string refused_by_length(const arrivals::Request& request, std::uint32_t max_model_len);
  // A sequence that waited runs from now on, with so many of its tokens computed already: those of a cached prefix, or all but
  // the last one where its prompt was computed elsewhere.
  static void begin(Sequence& sequence, std::uint32_t cached, const EngineState& state);
  // A sequence that runs loses what was computed, and waits again: its blocks are the scheduler's to free.
  static void lose(Sequence& sequence, Step& step);
  // Sentences for idle_options(). `policy` and `cache`: names of the option that orders by priority where `by_priority`, and of
  // the one that keeps prefixes where `caching`.
  [[nodiscard]] static std::vector<std::string> idle_sentences(const RequestTraits& traits, const char* policy, bool by_priority,
                                                               const char* cache, bool caching);
  // Sequences that have ended run no longer.
  void forget_finished(const EngineState& state);
  // update() where nothing but its own length ends a sequence and its blocks are shared with none.
  void take_tokens(EngineState& state, const Step& step, std::vector<arrivals::RequestId>& finished);

  std::deque<arrivals::RequestId> waiting_;
  std::vector<arrivals::RequestId> running_;  // running requests in order of admission
};

// What every scheduler does with the items that it took: the policy chooses the drafts of the next step by the batch as it
// stands, with requests `beside` the step where these decode in the next one; then the items' rows count as computed, and a
// sequence whose tokens all are gets a token.
void complete_step(EngineState& state, Step& step, std::uint32_t waiting, std::span<const arrivals::RequestId> beside = {});

// Makes a scheduler, as often as engines are started.
using SchedulerMaker = std::function<std::unique_ptr<Scheduler>()>;

struct SchedulerEntry {
  config::PartInfo info;
  // Reads the arguments once, for all schedulers that are made. May return nullptr after reporting.
  std::function<SchedulerMaker(const config::Arguments&, Diagnostics&)> read;
  // Why prompts cannot be computed by engines of their own; "" where they can.
  const char* not_apart = "";
  // The engine of configs/engines whose prices apply where a config names none; "": those of the cost model.
  const char* engine = "";
  // What its server is called, as sim/answers/plan writes its flags; "" for none.
  const char* product = "";
  // Parameters that the server's own command chooses by the GPU where nobody says them; nullptr: it takes the fallbacks of
  // `info`.
  std::vector<std::pair<std::string, std::int64_t>> (*defaults)(const cost::Hardware& hardware) = nullptr;
};

config::Registry<SchedulerEntry>& schedulers();

}  // namespace specsim::serve
