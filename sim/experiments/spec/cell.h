// One cell of an experiment, as values: what is simulated, what it costs, and what it is held to. Reading a config makes it
// (spec.h); nothing beyond sees YAML.
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

// A part that the config chose: its entry in the registry, its arguments, checked, and what they made of it.
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
  std::vector<double> round_times;  // [draft_length + 1]: of a round that drafts so many, as the policy was told
  double round_cost = 0.0;          // time that the policy adds to every round, in passes of plain decoding
};

// A block, a token tree or a chain, that the verifier judges as a whole.
struct BlockMethod {
  draft::Chain longest_path;
  Chosen<draft::DrafterEntry, draft::BlockDrafter> drafter;
  Chosen<verify::VerifierEntry, verify::BlockRule> verifier;
  std::optional<PolicyChoice> policy;  // nullopt: every block is drafted whole
  bool is_chain = false;  // the drafter drafts a chain and nothing else; it is a block for the verifier or the policy
};

using Method = std::variant<ChainMethod, BlockMethod>;

// Which GPU and models it prices: CostModel::deployment().
using Pricing = Chosen<cost::CostEntry, cost::CostModel>;

// The placement, and the batch that it serves.
struct PlacementChoice {
  const placement::PlacementEntry* entry = nullptr;
  placement::PlacedBatch setting;
};

// What the run is held to: the exact theory of its distributions, nothing, or a closed form by name.
struct ExactTheory {};
struct NoTheory {};
struct NamedTheory {
  const theory::ClosedForm* form = nullptr;
  bool expect_refuted = false;  // the run must contradict it
};
using TheoryChoice = std::variant<ExactTheory, NoTheory, NamedTheory>;

// The theory's name in a config and in the column `theory`: exact, none, or the form's name.
const std::string& theory_name(const TheoryChoice& choice);
bool expects_refuted(const TheoryChoice& choice);

// The places where the config says things, for messages of what later cannot be done with them; the config's own place where it
// is silent.
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
  std::size_t index = 0;                                  // within its experiment, rows of the grid, last axis fastest
  std::vector<std::pair<std::string, std::string>> axes;  // path, value
  Places places;
  std::uint64_t seed = 0;
  std::uint64_t rounds = 0;
  int vocab = 0;
  std::uint32_t sequence_rounds = 64;                      // rounds of each independent sequence, where there are no requests
  std::shared_ptr<const families::ContextModel> contexts;  // the pairs of distributions, and how they change along the text
  Method method;
  std::optional<Pricing> pricing;  // nullopt: the config names no cost, and nothing is said of times
  cost::Workload workload;
  std::optional<PlacementChoice> placement;
  TheoryChoice theory;
  std::vector<std::string> notes;   // what the reader took in place of what the config says, for the user
  std::string method_text;          // drafter, policy and verifier as the config writes them, for tables
  std::uint64_t pairing_group = 0;  // equal for cells that differ only in decode and cost
  std::string preparation_key;      // equal for cells that share prepared tables
  std::string simulation_key;       // equal for cells that have the same counts: they differ in prices alone

  [[nodiscard]] const ChainMethod* chain() const { return std::get_if<ChainMethod>(&method); }
  [[nodiscard]] const BlockMethod* block() const { return std::get_if<BlockMethod>(&method); }
  // The verifier judges what a block drafter drafts, else a chain position by position.
  [[nodiscard]] bool judges_blocks() const { return std::holds_alternative<BlockMethod>(method); }
  // Its drafter drafts a chain and nothing else.
  [[nodiscard]] bool drafts_chains() const { return !judges_blocks() || block()->is_chain; }
  // The cell's draft length policy; nullptr where it has none and every round drafts all that it can.
  [[nodiscard]] const PolicyChoice* policy() const;
  // Tokens on the longest path that is drafted.
  [[nodiscard]] int draft_length() const { return drafted_path().draft_length; }
  // The draft takes its model's argmax instead of sampling.
  [[nodiscard]] bool argmax_draft() const { return drafted_path().argmax; }
  // Tokens drafted per round at most, over all paths.
  [[nodiscard]] int drafted_nodes() const;
  [[nodiscard]] const verify::VerifierEntry& verifier() const;
  [[nodiscard]] const config::Arguments& verifier_arguments() const;
  [[nodiscard]] bool lossless() const { return verifier().lossless; }
  // The model that prices passes; only where there is pricing.
  [[nodiscard]] const cost::CostModel& cost() const;

  // What a user should know before trusting the figures: the cost model's warnings, and the cell's notes.
  [[nodiscard]] std::vector<std::string> warnings() const;

  // A round's time where `full_rate` of rounds accept every draft, and every block is drafted whole; only where there is pricing.
  [[nodiscard]] cost::RoundTime round_time(double full_rate) const;
  // The same, in the mean over rounds that drafted as many nodes as `drafted` counts (empty: all drafted whole), in as many
  // passes as `passes` counts where the drafter's passes are counted. A pass's rows are the mean over rounds of as many passes.
  [[nodiscard]] cost::RoundTime round_time(double full_rate, const std::vector<std::uint64_t>& drafted,
                                           const decode::PassCounts& passes = {}) const;
  // A round in which every sequence drafts all it can, and so many of its tokens are verified in the mean over the batch.
  [[nodiscard]] cost::RoundTime shared_round_time(double full_rate, double verified) const;
  // Sequences (requests) or rounds to simulate: what Simulator::run counts in.
  [[nodiscard]] std::uint64_t work() const;

 private:
  [[nodiscard]] const draft::Chain& drafted_path() const;
};

// The same cell with other distributions, where they are random, and other random numbers.
Cell reseeded(Cell cell, std::uint64_t seed, std::uint64_t rounds);
// The same cell drafting chains of another length. Its method must be of chains.
Cell with_draft_length(Cell cell, int draft_length);
// Whether rounds can verify a part of the chain that they drafted: one without a policy, drawn or guessed, whose contexts are a
// pool of distributions.
bool can_cut(const Cell& cell);
// The same cell whose rounds can, as under a policy: it drafts so many tokens, and judges them as a tree of one path.
Cell to_be_cut(Cell cell, int draft_length);

// Addresses the cell's random distributions, and its drafts, acceptances and final tokens.
rng::Key distribution_key(const Cell& cell);
rng::Key draw_key(const Cell& cell);
// What the cell's tables are prepared from, which refers to the cell; and with a rule for positions in place of the cell's own.
decode::PreparationPlan plan_of(const Cell& cell);
decode::PreparationPlan plan_with_rule(const Cell& cell, const verify::PositionRule& rule);

}  // namespace specsim::spec
