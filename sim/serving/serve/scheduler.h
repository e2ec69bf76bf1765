// Schedulers decide which sequences compute how many tokens in the next step: their registry, and the state that they work on.
#pragma once

#include "sim/foundation/config/registry.h"
#include "sim/hardware/latency/server_memory.h"
#include "sim/serving/arrivals/request_trace.h"
#include "sim/serving/serve/block_pool.h"
#include "sim/serving/serve/policy.h"
#include "sim/serving/serve/step_time.h"

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

// The causes of a request's time, from the moment it is sent to its last token. Every moment counts to exactly one of them.
enum class Cause : std::uint8_t {
  frontend,      // on its way to the engine
  queue,         // waiting for admission, never admitted before
  prefill,       // admitted, its prompt not computed yet
  decode,        // in decoding steps, the target's passes without prompts
  draft,         // in decoding steps, the draft's passes
  interference,  // in decoding steps, the target's passes that also compute prompts
  stalled,       // admitted and not scheduled: no budget or no block was left
  preempted,     // waiting for its next admission
  recompute,     // admitted again, lost tokens not computed yet
  transfer       // its cache comes from the engine that computed its prompt, or from host memory
};
constexpr std::size_t kCauses = 10;
const std::array<const char*, kCauses>& cause_names();

// A request as the engine sees it. Its first two cache lines hold all data that a step of a decoding sequence touches: with a
// large batch, loading them dominates the simulator's time.
struct alignas(64) Sequence {
  std::uint32_t prompt = 0;
  std::uint32_t output = 0;          // tokens at which it ends
  std::uint32_t limit = 0;           // tokens at which the server expects it to end, at least `output`
  std::uint32_t emitted = 0;         // tokens that the engine has seen
  std::uint32_t computed = 0;        // tokens whose keys and values exist or are being computed, including drafts
  std::uint32_t spec = 0;            // drafts for its next step
  std::uint32_t placeholders = 0;    // tokens in flight, if steps are scheduled ahead
  std::uint32_t held = 0;            // blocks
  std::uint32_t prefill_target = 0;  // tokens that it had at its last admission
  Status status = Status::unsent;
  bool moved = false;    // its prompt was computed elsewhere, and its cache came over a link
  bool resumed = false;  // admitted again after a preemption, and not computed again yet
  std::uint32_t rounds = 0;
  std::uint32_t drafted = 0;
  std::uint32_t accepted = 0;
  std::int32_t priority = 0;
  arrivals::Picoseconds since = 0;  // when time was last added to `spent`; later time is not in it yet
  arrivals::Picoseconds last_token = arrivals::kNever;
  arrivals::Picoseconds first_token = arrivals::kNever;
  std::array<arrivals::Picoseconds, kCauses> spent{};
  std::array<arrivals::Picoseconds, kCauses> spent_first{};  // the part of it up to its first token
  arrivals::Picoseconds sent = 0;
  arrivals::Picoseconds first_scheduled = arrivals::kNever;
  std::uint64_t scheduled_in = 0;  // number of the last scheduling that took it, if the scheduler needs it
  std::uint32_t preemptions = 0;
  std::uint32_t recomputed = 0;         // tokens
  std::uint32_t found = 0;              // tokens, in the prefix cache at its admissions
  std::uint32_t looked_up = 0;          // tokens that it had at these admissions
  std::uint32_t found_in_host = 0;      // tokens found in host memory, a part of `found`
  std::uint32_t draft_lost = 0;         // tokens whose cache came from host memory without the draft's
  std::uint32_t draft_recomputed = 0;   // tokens that only the draft computed for that reason
  arrivals::Picoseconds loaded_at = 0;  // when its blocks are loaded from host memory; 0: nothing is being loaded

  [[nodiscard]] std::uint32_t tokens() const { return prompt + emitted; }
  [[nodiscard]] bool in_prefill() const { return computed < prefill_target; }
  // It waits with its prompt computed: its engine only decodes.
  [[nodiscard]] bool arrived_prefilled() const { return moved && status == Status::waiting; }
};
static_assert(offsetof(Sequence, last_token) == 64);

// A sequence's share of a step.
struct Item {
  arrivals::RequestId request = 0;
  std::uint32_t rows = 0;            // tokens that are computed
  std::uint32_t drafts = 0;          // how many of the rows are drafts
  std::uint32_t accepted = 0;        // known when the pass begins
  bool prefill = false;              // rows are of the prompt, or of tokens lost in a preemption
  bool emits = false;                // a token comes out
  std::uint32_t emitted_before = 0;  // tokens of its request when the pass begins
  // How many of the drafts are verified, known when the pass begins: all, unless the policy shares out rows. The others are
  // dropped from the pass, and their slots are treated as those of rejected ones.
  std::uint32_t verified = 0;
  [[nodiscard]] std::uint32_t computed() const { return rows - drafts + verified; }
};

struct Step {
  std::vector<Item> items;
  // If each sequence drafts by itself before the target's passes: the sequences' drafts, and the rows of a batch and of a pass.
  std::vector<SequentialDraft> sequential_drafts;
  bool drafts_sequentially = false;
  std::uint32_t batch_rows = 0;
  std::uint32_t pass_rows = 0;
  std::uint32_t preempted = 0;
  std::uint32_t waiting = 0;            // requests that wait after this step was scheduled
  std::uint32_t free_blocks = 0;        // free blocks after this step was scheduled
  int draft_length = 0;                 // drafts that the step makes for the next
  arrivals::Picoseconds loaded_at = 0;  // the pass waits for blocks from host memory and ends then at the earliest
  void clear() {
    items.clear();
    sequential_drafts.clear();
    preempted = 0;
    draft_length = 0;
    loaded_at = 0;
  }
};

// The state that all schedulers share: the requests, the pool, the drafts.
struct EngineState {
  Sequence* first_sequence = nullptr;  // [request]: of all replicas
  const arrivals::RequestTrace* workload = nullptr;
  BlockPool* pool = nullptr;
  ServerPolicy* policy = nullptr;
  const Acceptance* acceptance = nullptr;  // how drafts are accepted; nullptr without a policy
  // each sequence drafts its own block, so that its rows may differ from the policy's length
  bool uneven = false;
  std::uint32_t widest = 0;      // most rows of a sequence's drafts
  std::uint32_t lookahead = 0;   // extra slots that a scheduled sequence needs for drafts
  std::uint32_t extra_rows = 0;  // most extra rows per sequence in a step, for the draft
  // the draft's cache needs the target's features of the token before: part of a cached prefix is computed again
  bool drafts_cached = false;
  bool saves_states = false;  // the target has layers with a state: a cached prefix ends where one is saved
  bool loses_drafts = false;  // the draft computes tokens again whose cache comes from host memory
  arrivals::Picoseconds now = 0;
  arrivals::Picoseconds wakes = arrivals::kNever;  // when the first request's blocks are loaded from host memory

  [[nodiscard]] Sequence& at(arrivals::RequestId request) const { return first_sequence[request]; }
  // Rows of a sequence's drafts in its next step, after this many tokens; `draft_length`: the policy's, of the step before.
  [[nodiscard]] std::uint32_t drafts(arrivals::RequestId request, std::uint32_t emitted, int draft_length) const {
    return uneven ? uneven_drafts(request, emitted, draft_length) : static_cast<std::uint32_t>(draft_length);
  }
  // As drafts(), if the step before has not ended yet and its number of tokens is unknown: room for the widest.
  [[nodiscard]] std::uint32_t drafts_ahead(arrivals::RequestId request, int draft_length) const {
    return uneven ? uneven_drafts_ahead(request, draft_length) : static_cast<std::uint32_t>(draft_length);
  }
  // A request, for a policy that chooses a draft length per request.
  [[nodiscard]] DraftingRequest drafting(arrivals::RequestId request, std::uint32_t emitted) const;
  // Adds the time up to now to `cause`.
  void spend(Sequence& sequence, Cause cause) const {
    sequence.spent[static_cast<std::size_t>(cause)] += now - sequence.since;
    sequence.since = now;
  }

 private:
  [[nodiscard]] std::uint32_t uneven_drafts(arrivals::RequestId request, std::uint32_t emitted, int draft_length) const;
  [[nodiscard]] std::uint32_t uneven_drafts_ahead(arrivals::RequestId request, int draft_length) const;
};

// Common properties of the requests of a run.
struct RequestTraits {
  bool one_priority = true;
  bool shared_prefixes = false;
};

struct RunningLimit {
  std::uint32_t requests;  // most requests that run at once while the server speculates
  std::string_view unset;  // the parameter and flag that would raise it, if it was not set; "" if it was
};

// The steps after the scheduled ones, as long as no request arrives.
struct SameSteps {
  std::uint32_t steps = 0;  // that certainly have the same sequences with as many rows, whatever is accepted
  std::uint32_t slots = 0;  // that each of their sequences has blocks for, beyond its computed tokens
};

class Scheduler {
 public:
  Scheduler() = default;
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;
  virtual ~Scheduler() = default;
  // Whether steps are scheduled while the one before still runs.
  [[nodiscard]] virtual bool asynchronous() const { return false; }
  [[nodiscard]] virtual HostTime host_time() const { return HostTime::as_the_engine; }
  // Whether blocks of equal prefixes are computed once.
  [[nodiscard]] virtual bool prefix_caching() const { return false; }
  // Whether it takes cached prefixes from host memory too.
  [[nodiscard]] virtual bool loads_from_host() const { return false; }
  // Whether cached prefixes of a target that has layers with a state end where a state is saved.
  [[nodiscard]] virtual bool saves_states() const { return false; }
  // The step that the server computes at its start to measure the memory of activations; nothing if it does not.
  [[nodiscard]] virtual std::optional<cost::StepLimits> profiled() const { return std::nullopt; }
  [[nodiscard]] virtual cost::MemoryShare memory_share() const { return cost::MemoryShare::everything; }
  // The default share of the GPU's memory of the server's own command; most servers have cost::kUsualShare.
  [[nodiscard]] virtual double usual_share(const cost::Hardware& /*hardware*/, int /*gpus*/) const { return cost::kUsualShare; }
  [[nodiscard]] virtual RunningLimit running_limit() const = 0;
  // A sentence for each of the scheduler's options that is set and changes nothing with such requests.
  [[nodiscard]] virtual std::vector<std::string> idle_options(const RequestTraits& /*traits*/) const { return {}; }
  // Why the server would not start if every sequence may add this many rows to a step for the draft; "" if it would.
  [[nodiscard]] virtual std::string refused_start(std::uint32_t /*extra_rows*/) const { return ""; }
  // A setting that a real server refuses and that is simulated anyway because its meaning is clear; "" if there is none.
  [[nodiscard]] virtual std::string doubt() const { return ""; }
  // Why this request can never be served; "" if it can.
  [[nodiscard]] virtual std::string refusal(const arrivals::Request& request, const EngineState& state) const = 0;
  // Adds a request to the queue: at its end, unless the scheduler keeps another order.
  virtual void arrive(arrivals::RequestId request, EngineState& state);
  // The next step; no items if there is nothing to compute.
  virtual void schedule(EngineState& state, Step& step) = 0;
  // Applies the results of a step: drops rejected drafts, adds tokens, ends sequences. `finished` gets those that end, in the
  // step's order.
  virtual void update(EngineState& state, const Step& step, std::vector<arrivals::RequestId>& finished) = 0;
  // `last`: the step that was scheduled last. Its sequences decode, each with as many rows, and so do those of the step that
  // runs.
  [[nodiscard]] virtual SameSteps same_steps(const EngineState& /*state*/, const Step& /*last*/) const { return {}; }
  // So many of these steps were done without schedule() and update().
  virtual void skipped(std::uint32_t /*steps*/) {}
  [[nodiscard]] std::uint32_t waiting() const { return static_cast<std::uint32_t>(waiting_.size()); }
  [[nodiscard]] virtual std::uint32_t running() const { return static_cast<std::uint32_t>(running_.size()); }

 protected:
  // Why a request of this many blocks, at its end, can never be served, and why one of such a length; "" if it can.
  [[nodiscard]] static std::string refused_by_pool(std::uint32_t blocks, const EngineState& state);
  [[nodiscard]] static std::string refused_by_length(const arrivals::Request& request, std::uint32_t max_model_len);
  // Admits a waiting sequence, with this many of its tokens computed already: those of a cached prefix, or all but the last one
  // if its prompt was computed elsewhere.
  static void begin(Sequence& sequence, std::uint32_t cached, const EngineState& state);
  // Loads these contents for a sequence that was just admitted with them among its cached tokens; returns when they are there.
  static arrivals::Picoseconds load(Sequence& sequence, std::span<const std::uint64_t> hashes, const EngineState& state);
  // A running sequence loses its computed tokens, and waits again; the scheduler must free its blocks.
  static void lose(Sequence& sequence, Step& step);
  // Sentences for idle_options(). `policy`: name of the option that orders by priority if `by_priority`; `cache`: name of the
  // option that keeps prefixes if `caching`.
  [[nodiscard]] static std::vector<std::string> idle_sentences(const RequestTraits& traits, const char* policy, bool by_priority,
                                                               const char* cache, bool caching);
  // As many of `steps` steps as the pool has blocks for, if each sequence of `last` takes at most its rows and `slots` more.
  [[nodiscard]] static std::uint32_t steps_in_pool(const EngineState& state, const Step& last, std::uint32_t steps,
                                                   std::uint32_t slots);
  // Removes sequences that have ended from the running ones.
  void forget_finished(const EngineState& state);
  // update() for schedulers in which a sequence only ends by its own length. `give_back` frees the blocks of one that ends.
  void take_tokens(EngineState& state, const Step& step, std::vector<arrivals::RequestId>& finished,
                   const std::function<void(arrivals::RequestId, Sequence&)>& give_back);
  // The same if sequences share no blocks.
  void take_tokens(EngineState& state, const Step& step, std::vector<arrivals::RequestId>& finished);

  std::deque<arrivals::RequestId> waiting_;
  std::vector<arrivals::RequestId> running_;  // running requests in order of admission
};

// Completes a step, in every scheduler, after its items were chosen. The policy chooses the drafts of the next step from the
// current batch, including `others`: requests outside the step that decode in the next one. Then the items' rows count as
// computed, and a sequence gets a token if all of its tokens are computed.
void complete_step(EngineState& state, Step& step, std::uint32_t waiting, std::span<const arrivals::RequestId> others = {});

// Makes a scheduler, once for each engine that is started.
using SchedulerMaker = std::function<std::unique_ptr<Scheduler>()>;

struct SchedulerEntry {
  config::PartInfo info;
  // Reads the arguments once, for all schedulers that are made. May return nullptr after reporting.
  std::function<SchedulerMaker(const config::Arguments&, Diagnostics&)> read;
  // Why prompts cannot be computed by separate engines; "" if they can.
  const char* not_apart = "";
  // The engine of configs/engines whose latencies apply if a config names none; "": those of the cost model.
  const char* engine = "";
  // Name of its server in sim/answers/plan, which writes its flags; "" for none.
  const char* product = "";
  // Parameters whose defaults the server's own command chooses by the GPU; nullptr: the defaults of `info` hold.
  std::vector<std::pair<std::string, std::int64_t>> (*defaults)(const cost::Hardware& hardware) = nullptr;
  const char* off_with_ngrams = "";  // a parameter whose default is false if drafts come from n-grams; "": none
};

config::Registry<SchedulerEntry>& schedulers();

}  // namespace specsim::serve
