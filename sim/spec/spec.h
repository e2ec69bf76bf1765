// An experiment file: its grid of cells, and what each cell consists of.
#pragma once

#include "sim/config/arguments.h"
#include "sim/config/value.h"
#include "sim/cost/round_time.h"
#include "sim/decode/simulator.h"
#include "sim/draft/drafter.h"
#include "sim/draft/length_policy.h"
#include "sim/families/context.h"
#include "sim/placement/placement.h"
#include "sim/verify/verifier.h"

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace specsim::spec {

// `theory:` of a config: which closed form to hold the run to.
struct TheoryChoice {
  std::string name = "exact";  // exact: what the context process calls for; else one of theory/closed_forms.h
  bool expect_refuted = false;
};

struct Cell {
  std::string experiment;
  std::size_t index = 0;                                  // within its experiment, rows of the grid, last axis fastest
  std::vector<std::pair<std::string, std::string>> axes;  // path, value
  config::Value config;                                   // with the axes set, without `sweep`
  std::uint64_t seed = 0;
  std::uint64_t rounds = 0;
  int vocab = 0;
  std::uint32_t sequence_rounds = 64;
  std::string verifier;
  config::Arguments verifier_arguments;
  bool lossless = true;
  bool one_hot_target = false;  // the verifier's demand
  draft::Chain chain;
  std::string drafter_kind;
  config::Arguments drafter_arguments;
  TheoryChoice theory;
  std::shared_ptr<families::ContextModel> contexts;
  std::shared_ptr<verify::PositionRule> rule;  // nullptr where blocks are judged:
  std::shared_ptr<const verify::BlockRule> block_rule;
  std::shared_ptr<const draft::BlockDrafter> drafter;
  std::shared_ptr<const draft::LengthPolicy> policy;  // nullptr: none
  std::string policy_kind;
  config::Arguments policy_arguments;
  std::vector<double> policy_times;  // [draft_length + 1]: of a round that drafts so many, as the policy was told
  std::shared_ptr<cost::CostModel> cost;
  cost::Workload workload;
  std::shared_ptr<const placement::Setting> placement;  // nullptr: the config names none
  std::uint64_t pairing_group = 0;                      // equal for cells that differ only in decode and cost
  std::string preparation_key;                          // equal for cells that share prepared tables

  // A round's time where `full_rate` of rounds accept every draft, and every block is drafted whole.
  [[nodiscard]] cost::RoundTime round_time(double full_rate) const;
  // The same, in the mean over rounds that drafted as many nodes as `drafted` counts; empty: all drafted whole.
  [[nodiscard]] cost::RoundTime round_time(double full_rate, const std::vector<std::uint64_t>& drafted) const;
  // Sequences (requests) or rounds to simulate: what Simulator::run counts in.
  [[nodiscard]] std::uint64_t work() const;
};

// The same cell with other distributions, where they are random, and other luck.
Cell reseeded(Cell cell, std::uint64_t seed, std::uint64_t rounds);

// Addresses the cell's random distributions, and its drafts, acceptances and final tokens.
rng::Key distribution_key(const Cell& cell);
rng::Key draw_key(const Cell& cell);
// What the cell's tables are prepared from, with its own rule or another; refers to the cell.
decode::PreparationPlan plan_of(const Cell& cell, const verify::PositionRule* rule = nullptr);

struct Experiment {
  std::string name;
  std::string file;
  config::Value config;  // with --set applied
  std::vector<std::string> axes;
  std::vector<Cell> cells;
  std::vector<std::string> left_out;  // a line for each batch with Misfits::left_out
};

// What becomes of cells whose models and caches the GPU's memory cannot hold, while other cells fit.
enum class Misfits { refused, left_out };

struct Override {
  std::string path;  // "sweep.PATH" sets the axis PATH
  std::string value;
  std::string shown;  // in messages: "--set PATH"
};

// Reads and validates whole experiments, all cells included; every mistake goes to `diagnostics`.
Experiment read_experiment(const std::string& path, const std::vector<Override>& overrides, Diagnostics& diagnostics,
                           Misfits misfits = Misfits::refused);
Experiment read_experiment(config::Value config, const std::string& file, const std::vector<Override>& overrides,
                           Diagnostics& diagnostics, Misfits misfits = Misfits::refused);

// The top-level sections and their keys, for the reference page.
struct SectionInfo {
  std::string path;
  std::string summary;
  std::vector<config::Parameter> parameters;
};
const std::vector<SectionInfo>& config_sections();

}  // namespace specsim::spec
