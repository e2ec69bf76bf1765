// One cell's decoding, ready to run chunk by chunk on any thread.
#pragma once

#include "sim/decode/block_round.h"
#include "sim/decode/chunk.h"
#include "sim/decode/counts.h"
#include "sim/decode/prepared.h"
#include "sim/decode/random_bits.h"
#include "sim/families/context.h"
#include "sim/verify/verifier.h"

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

namespace specsim::decode {

// What prepared tables depend on; cells that differ in nothing else share them.
struct PreparationPlan {
  int vocab = 0;
  bool argmax_draft = false;  // the drafter takes the draft model's argmax instead of sampling
  rng::Key distribution_key;  // addresses the random distributions
  const families::ContextModel* contexts = nullptr;
  const verify::PositionRule* rule = nullptr;
  // Where blocks are judged instead of positions:
  const verify::BlockRule* block_rule = nullptr;
  const draft::BlockDrafter* drafter = nullptr;
  const draft::LengthPolicy* policy = nullptr;  // nullptr: every block is drafted whole

  // Draft distributions per context.
  [[nodiscard]] int depths() const;
};

// Sees every context's distributions once, while they are at hand: (context, depth, distributions, the context's classes).
using DistributionObserver = std::function<void(int, int, const verify::PositionDistributions&, const OutputClasses&)>;

struct Prepared {
  std::optional<PreparedContexts> tables;  // empty where every position draws fresh distributions, and where blocks are judged
  std::optional<BlockTables> blocks;       // where blocks are judged
  std::vector<OutputClasses> classes;      // [contexts], without the per-token part
  int class_count = kFirstTopToken;
  std::vector<std::uint8_t> bin_of_class;
  int strata = 1;
  std::vector<std::uint32_t> stratum;  // [contexts]; empty: one stratum
};

// Thrown by prepare() where it was told to stop.
struct Interrupted {};

// Draws every context's distributions and builds the tables; without `tables`, only what the judging of counts needs. `observer`
// may be empty. `stop`, if given, is looked at before each context.
Prepared prepare(const PreparationPlan& plan, const DistributionObserver& observer, bool tables = true,
                 const std::atomic<bool>* stop = nullptr);
// Bytes that prepare() will keep, at most: where distributions have few tokens, plans of blocks may be fewer.
std::size_t prepared_bytes(const PreparationPlan& plan);

// Distributions of one context at one depth, drawn from the model's families: shared by preparation and fresh decoding.
class DistributionDrawer {
 public:
  explicit DistributionDrawer(const PreparationPlan& plan);
  // The target's distribution at a context.
  void target(std::size_t pair, std::uint64_t context, std::vector<double>& target) const;
  // The draft model's own distribution and what the draft token is drawn from.
  void draft(std::size_t pair, std::uint64_t context, std::size_t depth, const std::vector<double>& target,
             std::vector<double>& draft_model, std::vector<double>& drafted) const;

 private:
  const PreparationPlan* plan_;
};

// Fresh distributions: how their output distribution is judged. Each emitted token (of one round in kFreshJudged) gives a
// variable that is uniform under the target: its place in the target's running sum, tokens with draft > target first, then the
// rest, each part by token, with one more uniform for the place within the token's own mass. A leak of the draft shifts it down.
constexpr std::uint64_t kMaxFreshSequences = std::uint64_t{1} << 31;
constexpr int kFreshClasses = 16;
constexpr std::uint32_t kFreshJudged = 8;

struct RoundSetup;

// What a round emits after full acceptance: one more token of the target's, or nothing,
// as where the next block is drafted before this one is verified.
enum class Bonus : bool { none, emitted };

class Simulator {
 public:
  // Without a bonus token draft_length must be at least 1: a failed check.
  Simulator(const PreparationPlan& plan, const Prepared& prepared, rng::Key draw_key, int draft_length,
            std::uint32_t sequence_rounds, Bonus bonus = Bonus::emitted);
  [[nodiscard]] Counts empty_counts() const;
  // Rounds (requests: sequences) that a whole chunk holds.
  [[nodiscard]] std::uint64_t chunk_size() const;
  // Chunk `index` of a run of `total` rounds (requests: of `total` sequences): adds to `counts`.
  void run(std::uint64_t index, std::uint64_t total, Counts& counts, RoundSink* sink = nullptr) const;
  // The same with words from elsewhere: one sequence of `rounds` rounds in lane 0.
  void run_scripted(std::uint64_t rounds, BitSource& random_bits, Counts& counts, RoundSink& sink) const;

 private:
  void run_prepared(const ChunkPlan& chunk, BitSource& random_bits, Counts& counts, RoundSink* sink) const;
  // In a file of its own: the compiler's choices for the usual loop do not depend on it.
  void run_prepared_without_bonus(const RoundSetup& setup, const ChunkPlan& chunk, BitSource& random_bits, Counts& counts,
                                  RoundSink* sink) const;
  void run_fresh(const ChunkPlan& chunk, BitSource& random_bits, Counts& counts, RoundSink* sink) const;
  void run_blocks(const ChunkPlan& chunk, Counts& counts, RoundSink* sink) const;
  // Chains that stay in one context, by a rule that judges them side by side: the same counts as run_blocks().
  [[nodiscard]] const verify::ChainRule* chain_rule() const;
  void run_chains(const verify::ChainRule& rule, const ChunkPlan& chunk, Counts& counts) const;
  PreparationPlan plan_;
  const Prepared* prepared_;
  rng::Key draw_key_;
  int draft_length_;
  std::uint32_t sequence_rounds_;
  Bonus bonus_;
};

}  // namespace specsim::decode
