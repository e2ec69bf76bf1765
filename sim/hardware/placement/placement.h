// Placements of the models: a static batch of sequences decoded in lockstep on one GPU, on two, or across a network, in simulated
// time.
//
// Common to all placements. All sequences arrive at 0 with prompts of equal length. The target's prefill yields each sequence's
// first token; the rest come in rounds, all sequences of the batch in the same round. A sequence leaves when it has emitted its
// output_tokens; tokens of its last round beyond these are counted separately. The cost model estimates passes at the mean of the
// cached tokens over the batch, which grow as tokens are emitted: prompt_tokens + emitted - 1, because the newest token enters
// the cache with the next pass. Times are whole picoseconds, and parts add up to the end exactly.
#pragma once

#include "sim/foundation/config/registry.h"
#include "sim/hardware/engine/timeline.h"
#include "sim/hardware/latency/cost_model.h"
#include "sim/hardware/placement/accepted.h"
#include "sim/rounds/draft/drafter.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace specsim::placement {

// How a sequence's drafts are produced: one pass of the draft for each of the counts' draft_length tokens; or a drafter's blocks.
struct TokenByToken {};
using Drafting = std::variant<TokenByToken, std::reference_wrapper<const draft::BlockDrafter>>;

// The target's hidden states that a head reads.
struct States {
  double bytes = 0.0;   // a token's; 0: the draft is no head
  bool of_all = false;  // every token's, because the head has a cache of its own; else only the last token's
};

struct Generation {
  const cost::CostModel* cost = nullptr;
  const AcceptedCounts* accepted = nullptr;  // one sequence of the batch each; its draft_length is the generation's
  Drafting drafting;
  double round_cost = 0.0;  // added to each round, in passes without speculation
  std::uint64_t prompt_tokens = 1;
  std::vector<std::uint64_t> output_tokens;  // [sequence], at least 1 each
  int vocab = 0;                             // rows of the probabilities that a network may have to transmit
  States states;                             // the part of them that a network has to carry
  bool shrink = true;                        // a finished sequence leaves the batch; else its place costs time until the end
};

// The parts of the time to the last token: every moment belongs to exactly one of them.
struct Parts {
  Duration prefill;   // prompts, read by either model
  Duration draft;     // drafting while no verification runs
  Duration verify;    // verification, also if drafting runs at the same time
  Duration sampling;  // logits to tokens, for either model
  Duration host;      // the processor while the GPU waits, for either model's passes and for rounds
  Duration network;   // messages in transit
  Duration waiting;   // the target's GPU idle until a pre-drafted block is complete
  [[nodiscard]] Duration total() const { return prefill + draft + verify + sampling + host + network + waiting; }
};

// Mean and percentiles of times in seconds, percentiles by nearest rank; NaN if there are no times.
struct MeanAndPercentiles {
  double mean = 0.0;
  double p50 = 0.0;
  double p99 = 0.0;
};

struct Result {
  std::uint64_t sequences = 0;
  std::uint64_t rounds = 0;           // rounds of the whole batch
  std::uint64_t sequence_rounds = 0;  // sum over sequences
  std::uint64_t emitted = 0;          // sum of output_tokens
  std::uint64_t drafted = 0;          // verified drafts, over all paths: of a chain, draft_length per sequence and round
  std::uint64_t accepted = 0;         // verified drafts that were emitted
  std::uint64_t cut_rounds = 0;       // last rounds that would have emitted more than was left
  std::uint64_t cut_tokens = 0;       // tokens of these beyond the end
  Duration end;                       // the last token of the last sequence
  Parts parts;
  // Not derived from the parts, because drafting and verification can overlap. On one shared GPU both are busy at once.
  Duration target_busy;
  Duration draft_busy;
  Duration wasted_draft;  // drafting of tokens that were not emitted, and blocks that were never used
  Duration wasted_ahead;  // the part of wasted_draft that was pre-drafting for sequences that then rejected or ended
  Duration time_to_first_token;
  MeanAndPercentiles
      time_per_output_token;       // (end - time to first token) / (output_tokens - 1), over sequences of more than one token
  MeanAndPercentiles inter_token;  // between bursts: a round's tokens come at once and count as one
  std::uint64_t fingerprint = 0;   // the engine's hash over all events
};

struct PlacedBatch;

class Placement {
 public:
  Placement() = default;
  Placement(const Placement&) = delete;
  Placement& operator=(const Placement&) = delete;
  virtual ~Placement() = default;
  // Whether a round that accepts every draft adds a token of the target's own.
  [[nodiscard]] virtual decode::Bonus bonus() const { return decode::Bonus::emitted; }
  // False: nothing is ever drafted.
  [[nodiscard]] virtual bool speculates() const { return true; }
  // A round is the draft's passes and then the target's, without overlap, as a cost model estimates it.
  [[nodiscard]] virtual bool passes_are_sequential() const { return false; }
  // The next block is drafted while the one before it is verified, on the assumption that all of it is accepted.
  [[nodiscard]] virtual bool drafts_ahead() const { return bonus() == decode::Bonus::none; }
  // While the target verifies, the draft prepares blocks for the outcomes of the round (draft::prepares_meanwhile).
  [[nodiscard]] virtual bool prepares_outcomes() const { return false; }
  // The draft has a GPU of its own, which the target could use without speculation.
  [[nodiscard]] virtual bool second_gpu() const { return false; }
  // The most seconds of a round that drafts this many tokens and whose passes take `passes` seconds one after the other.
  [[nodiscard]] virtual double longest_round(double passes, const PlacedBatch& /*setting*/, int /*drafted*/) const {
    return passes;
  }
  // Messages carry the draft's distributions, of PlacedBatch::vocab tokens each.
  [[nodiscard]] virtual bool sends_distributions() const { return false; }
  // The draft is not on the target's GPUs.
  [[nodiscard]] virtual bool draft_elsewhere() const { return second_gpu(); }
  // The generation's counts must have been recorded with this placement's bonus(), and draft_length >= 1 unless the placement
  // does not speculate.
  [[nodiscard]] virtual Result simulate(const Generation& generation, engine::Timeline* timeline) const = 0;
};

struct PlacementEntry {
  config::PartInfo info;
  std::function<std::unique_ptr<Placement>(const config::Arguments&, Diagnostics&)> make;
};
config::Registry<PlacementEntry>& placements();

// No speculation: the baseline that placements are compared with.
std::unique_ptr<Placement> plain_decoding();

// The placement of an experiment, and the batch that it serves.
struct PlacedBatch {
  std::shared_ptr<const Placement> placement;
  std::uint64_t batch = 1;
  std::uint64_t prompt_tokens = 1;
  std::uint64_t output_tokens = 128;  // the most that a sequence emits
  double end_token_rate = 0.0;        // probability that an emitted token ends its sequence
  int vocab = 0;
  States states;
  bool shrink = true;
};

struct Comparison {
  Result run;
  Result plain;  // the same batch, one token per pass
  // on two GPUs: no speculation, with the target on both, if the cost model can estimate it
  std::optional<Result> plain_twice;
  [[nodiscard]] double speedup() const;                          // plain end / end
  [[nodiscard]] std::optional<double> speedup_of_twice() const;  // plain_twice end / end
};

// [sequence]: min(output_tokens, the geometric place of the first end token), determined by the key and the sequence's number.
// The place of the end token is assumed to be independent of acceptance.
std::vector<std::uint64_t> output_lengths(const PlacedBatch& setting, rng::Key key);

// Runs the placement and the baseline without speculation over the same texts. At draft length 0 both are the baseline.
Comparison compare(const PlacedBatch& setting, const cost::CostModel& cost, const RoundSource& source,
                   engine::Timeline* timeline = nullptr);

// Estimates the times that a run may need: the prefills, and rounds at either end of the contexts and of the batch. `drafting`
// and `round_cost` as in Generation. Throws BadInput for times that the cost model does not cover. Returns the most seconds that
// the run takes.
double check_prices(const PlacedBatch& setting, const cost::CostModel& cost, int draft_length,
                    const Drafting& drafting = TokenByToken(), double round_cost = 0.0);

}  // namespace specsim::placement
