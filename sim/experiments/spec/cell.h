// One cell of an experiment as values: its simulation, its cost, and the theory that it is compared with. spec.h makes it from a
// config; no later code sees YAML.
#pragma once

#include "sim/foundation/base/error.h"
#include "sim/foundation/config/arguments.h"
#include "sim/hardware/latency/round_time.h"
#include "sim/hardware/model/model_shape.h"
#include "sim/hardware/placement/placement.h"
#include "sim/rounds/decode/simulator.h"
#include "sim/rounds/draft/drafter.h"
#include "sim/rounds/draft/length_policy.h"
#include "sim/rounds/families/context.h"
#include "sim/rounds/theory/closed_forms.h"
#include "sim/rounds/verify/verifier.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace specsim::spec {

constexpr std::uint64_t kDefaultSeed = 20260117;

// A part that the config chose: its registry entry, its checked arguments, and the object made from them.
template <class Entry, class Part>
struct Chosen {
  const Entry* entry = nullptr;
  config::Arguments arguments;
  std::shared_ptr<const Part> part;

  [[nodiscard]] const std::string& name() const { return entry->info.name; }
  const Part& operator*() const { return *part; }
  const Part* operator->() const { return part.get(); }
};

// A chain of drafted tokens that the verifier judges position by position.
struct ChainMethod {
  draft::Chain chain;
  Chosen<verify::VerifierEntry, verify::PositionRule> verifier;
};

struct PolicyChoice : Chosen<draft::PolicyEntry, draft::LengthPolicy> {
  std::vector<double> round_times;  // [draft_length + 1]: of a round that drafts so many tokens, as passed to the policy
  double round_cost = 0.0;          // time that the policy adds to every round, in passes of decoding without speculation
};

// A block, a token tree or a chain, that the verifier judges as a whole.
struct BlockMethod {
  draft::Chain longest_path;
  Chosen<draft::DrafterEntry, draft::BlockDrafter> drafter;
  Chosen<verify::VerifierEntry, verify::BlockRule> verifier;
  std::optional<PolicyChoice> policy;  // nullopt: every block is drafted whole
  bool is_chain = false;               // the drafter drafts only chains; the verifier or the policy treats a chain as a block
};

using Method = std::variant<ChainMethod, BlockMethod>;

// Its GPU and models: CostModel::deployment().
using CostChoice = Chosen<cost::CostEntry, cost::CostModel>;

// The placement, and the batch that it serves.
struct PlacementChoice {
  const placement::PlacementEntry* entry = nullptr;
  placement::PlacedBatch setting;
};

// The prediction that the run is compared with: the exact theory of its distributions, none, or a closed form by name.
struct ExactTheory {};
struct NoTheory {};
struct NamedTheory {
  const theory::ClosedForm* form = nullptr;
  bool expect_refuted = false;  // the run must contradict the form
};
using TheoryChoice = std::variant<ExactTheory, NoTheory, NamedTheory>;

// The theory's name in a config and in the column `theory`: exact, none, or the form's name.
const std::string& theory_name(const TheoryChoice& choice);
bool expects_refuted(const TheoryChoice& choice);

// Places of settings in the config, for later error messages; if a setting is missing, the place of the config itself.
struct Places {
  Location config;
  Location rounds;
  Location pair;
  Location vocab;
  Location context;
  Location process;
  Location context_fresh;
  Location context_file;
  Location drafter;
  Location drafter_kind;
  Location draft_length;
  Location verifier;
  Location cost;
  Location placement_kind;
};

struct Cell {
  std::string experiment;
  std::size_t index = 0;                                  // within its experiment: row of the grid, last axis fastest
  std::vector<std::pair<std::string, std::string>> axes;  // path, value
  Places places;
  std::uint64_t seed = kDefaultSeed;
  std::uint64_t rounds = 1000000;
  int vocab = 0;
  std::uint32_t sequence_rounds = 64;                      // rounds of each independent sequence, if there are no requests
  std::shared_ptr<const families::ContextModel> contexts;  // the pairs of distributions, and how they change along the text
  Method method;
  std::optional<CostChoice> cost_choice;  // nullopt: the config names no cost, so results contain no times
  cost::Workload workload;
  std::optional<PlacementChoice> placement;
  TheoryChoice theory;
  std::vector<std::string> notes;   // values that the reader used in place of those in the config, for the user
  std::string method_text;          // drafter, policy and verifier as in the config, for tables
  std::uint64_t pairing_group = 0;  // equal for cells that differ only in decode and cost
  std::string preparation_key;      // equal for cells that share prepared tables
  bool assumed_acceptance = false;  // pair.assumed
  std::string simulation_key;       // equal for cells with the same counts, which differ only in cost

  [[nodiscard]] const ChainMethod* chain() const { return std::get_if<ChainMethod>(&method); }
  [[nodiscard]] const BlockMethod* block() const { return std::get_if<BlockMethod>(&method); }
  // The verifier judges the blocks of a block drafter; otherwise it judges a chain position by position.
  [[nodiscard]] bool judges_blocks() const { return std::holds_alternative<BlockMethod>(method); }
  // The drafter drafts only chains.
  [[nodiscard]] bool drafts_chains() const { return !judges_blocks() || block()->is_chain; }
  // The cell's draft length policy; nullptr if it has none and every round drafts all that it can.
  [[nodiscard]] const PolicyChoice* policy() const;
  // Tokens on the longest drafted path.
  [[nodiscard]] int draft_length() const { return drafted_path().draft_length; }
  // The draft takes its model's argmax instead of sampling.
  [[nodiscard]] bool argmax_draft() const { return drafted_path().argmax; }
  // Tokens drafted per round at most, over all paths.
  [[nodiscard]] int drafted_nodes() const;
  [[nodiscard]] const verify::VerifierEntry& verifier() const;
  [[nodiscard]] const config::Arguments& verifier_arguments() const;
  [[nodiscard]] bool lossless() const { return verifier().lossless; }
  // The model of pass latencies; only if the config has a cost.
  [[nodiscard]] const cost::CostModel& cost() const;

  // Caveats for the user: the cost model's warnings, and the cell's notes.
  [[nodiscard]] std::vector<std::string> warnings() const;

  // A round's time if `full_rate` of rounds accept every draft and every block is drafted whole; only if the config has a cost.
  [[nodiscard]] cost::RoundTime round_time(double full_rate) const;
  // The same as a mean over rounds that drafted as many nodes as `drafted` counts (empty: all drafted whole), in as many passes
  // as `passes` counts if the drafter's passes are counted. A pass's rows are the mean over rounds with as many passes.
  [[nodiscard]] cost::RoundTime round_time(double full_rate, const std::vector<std::uint64_t>& drafted,
                                           const decode::PassCounts& passes = {}) const;
  // A round in which every sequence drafts all it can, and `verified` of its tokens on average are verified.
  [[nodiscard]] cost::RoundTime shared_round_time(double full_rate, double verified) const;
  // Sequences (requests) or rounds to simulate, the unit of Simulator::run.
  [[nodiscard]] std::uint64_t work() const;

 private:
  [[nodiscard]] const draft::Chain& drafted_path() const;
};

// The same cell with other random distributions (if they are random) and other random numbers.
Cell reseeded(Cell cell, std::uint64_t seed, std::uint64_t rounds);
// The same cell with chains of another length. Its method must draft chains.
Cell with_draft_length(Cell cell, int draft_length);
// Whether rounds can verify only a part of their drafted chain: chains without a policy, drawn or guessed, with a pool of
// distributions.
bool can_cut(const Cell& cell);
// The same cell with rounds that can be cut, as under a policy: it drafts so many tokens, and judges them as a tree of one path.
Cell to_be_cut(Cell cell, int draft_length);

// Keys of the cell's random distributions, and of its drafts, acceptances and final tokens.
rng::Key distribution_key(const Cell& cell);
rng::Key draw_key(const Cell& cell);
// The plan for the cell's tables, which refers to the cell; and the same with another rule for positions.
decode::PreparationPlan plan_of(const Cell& cell);
decode::PreparationPlan plan_with_rule(const Cell& cell, const verify::PositionRule& rule);

}  // namespace specsim::spec
