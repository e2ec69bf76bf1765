// The inputs from which a cell's rounds are prepared, and the prepared tables.
#pragma once

#include "sim/foundation/rng/address.h"
#include "sim/rounds/decode/block_tables.h"
#include "sim/rounds/decode/output_classes.h"
#include "sim/rounds/decode/prepared.h"
#include "sim/rounds/draft/drafter.h"
#include "sim/rounds/draft/length_policy.h"
#include "sim/rounds/families/context.h"
#include "sim/rounds/verify/block_rule.h"
#include "sim/rounds/verify/position_rule.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <variant>
#include <vector>

namespace specsim::decode {

constexpr int kFreshClasses =
    16;  // 16;  // output classes if every text position has its own distributions: see simulator_fresh.cpp

// Chains judged position by position.
struct PositionJudging {
  const verify::PositionRule* rule = nullptr;
};
// Blocks judged as a whole.
struct BlockJudging {
  const verify::BlockRule* rule = nullptr;
  const draft::BlockDrafter* drafter = nullptr;
  const draft::LengthPolicy* policy = nullptr;  // nullptr: every block is drafted whole
};

// Everything that prepared tables depend on; cells with equal plans share tables.
struct PreparationPlan {
  int vocab = 0;
  bool argmax_draft = false;  // the drafter takes the draft model's argmax instead of sampling
  rng::Key distribution_key;  // addresses the random distributions
  const families::ContextModel* contexts = nullptr;
  std::variant<PositionJudging, BlockJudging> judging;

  // Number of draft distributions per context; deeper positions use the last one.
  [[nodiscard]] int depths() const;
  // Whether the drafter combines the distributions of two contexts (the one before the block and the one after the previous
  // token), and the two differ.
  [[nodiscard]] bool joins() const;
};

// Called once per context with its distributions while they are in memory: (context, depth, distributions, the context's
// classes).
using DistributionObserver = std::function<void(int, int, const verify::PositionDistributions&, const OutputClasses&)>;

struct Prepared {
  std::optional<PreparedContexts> tables;  // empty if every position draws fresh distributions, or if blocks are judged
  std::optional<BlockTables> blocks;       // only if blocks are judged
  std::vector<OutputClasses> classes;      // [contexts], without the per-token part
  int class_count = kFirstTopToken;
  std::vector<std::uint8_t> bin_of_class;
  int strata = 1;
  std::vector<std::uint32_t> stratum;  // [contexts]; empty: one stratum
};

// Thrown by prepare() after a request to stop.
struct Interrupted {};

// Draws every context's distributions and builds the tables; without `tables`, only what is needed to judge counts. `observer`
// may be empty. `stop`, if given, is checked before each context.
Prepared prepare(const PreparationPlan& plan, const DistributionObserver& observer, bool tables = true,
                 const std::atomic<bool>* stop = nullptr);
// Upper bound of the bytes that prepare() keeps: if distributions have few tokens, blocks may need fewer plans.
std::size_t prepared_bytes(const PreparationPlan& plan);

// Distributions of one context at one depth, drawn from the model's families: shared by preparation and fresh decoding.
class DistributionDrawer {
 public:
  explicit DistributionDrawer(const PreparationPlan& plan);
  // The target's distribution at a context.
  void target(std::size_t pair, std::uint64_t context, std::vector<double>& target) const;
  // The draft model's own distribution (before its sampling settings, for a draft that joins two), and the distribution from
  // which the draft token is drawn.
  void draft(std::size_t pair, std::uint64_t context, std::size_t depth, const std::vector<double>& target,
             std::vector<double>& draft_model, std::vector<double>& drafted) const;
  // PositionDistributions::looked_at for these distributions, given the results of draft().
  void looked_at(std::size_t pair, std::uint64_t context, std::size_t depth, const std::vector<double>& target,
                 const std::vector<double>& drafted, std::vector<double>& looked_at) const;
  // For pairs with plan.joins(): the distribution from which the draft token is drawn in a context, and its looked_at. `before`,
  // `known`: the draft model's own distributions in the context before the block and in the context that follows the previous
  // token.
  void joined(std::size_t pair, const std::vector<double>& before, const std::vector<double>& known, std::vector<double>& drafted,
              std::vector<double>& looked_at) const;

 private:
  const PreparationPlan* plan_;
};

}  // namespace specsim::decode
