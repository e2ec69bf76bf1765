// Makes a cell from its YAML, with the axes set.
#pragma once

#include "sim/experiments/spec/cell.h"
#include "sim/foundation/config/choose.h"

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace specsim::spec {

// Objects that cells of a sweep share, so that they and their files are read once: cost models by their section, with remembered
// passes, and distributions by theirs.
struct ReadCache {
  std::map<std::string, CostChoice> cost_choices;
  std::map<std::string, std::shared_ptr<const families::ContextModel>> contexts;  // [pair and context]
};

// Reads and checks a cell. Reports every error to `diagnostics`, which must be empty at the call. If it is not empty afterwards,
// the cell must not be used.
Cell read_cell(const config::Value& config, ReadCache& cache, Diagnostics& diagnostics);

struct DrafterChoice {
  const draft::DrafterEntry* entry = nullptr;
  config::Arguments arguments;
  draft::Draft draft;
};

// Drafter, verifier and policy as `decode` names them. Parts that could not be read stay empty.
struct MethodParts {
  DrafterChoice drafter;
  config::Choice<verify::VerifierEntry> verifier;
  std::optional<config::Choice<draft::PolicyEntry>> policy;  // nullopt: the config has none, valid or not
  double policy_round_cost = 0.0;                            // passes of decoding without speculation
  // The parts as the config writes them, in a form that is equal for equal meanings.
  std::string drafter_text;
  std::string verifier_text;
  std::string policy_text;
};
MethodParts read_method(const config::Value& decode, Diagnostics& diagnostics);
// Makes the method of drafter and verifier, to which add_policy() adds the policy. nullopt, after reporting why, if the three
// are incompatible.
std::optional<Method> make_method(const MethodParts& parts, int vocab, Diagnostics& diagnostics);
// The parts of the method that the prepared tables depend on, as a text. Cells share tables if this text and their distributions
// are equal.
std::string rule_text(const MethodParts& parts, const Method& method);
// Reports settings that are incompatible with an acceptance table as context process. The table states how often the child of
// each rank is accepted and has no distributions, so settings that change distributions, or look at them, cannot work.
void check_ranked(const Cell& cell, Diagnostics& diagnostics);
// Adds the policy that chooses draft lengths. It comes last, since it may depend on the times of rounds, which the rest of the
// cell determines.
void add_policy(const MethodParts& parts, Cell& cell, Diagnostics& diagnostics);
// Reports incompatibilities of a block method with the cell's distributions.
void check_block(const Cell& cell, const BlockMethod& block, Diagnostics& diagnostics);

// Draws a pair of distributions of each kind that the cells have, to find invalid ones before the start.
void probe(const std::vector<Cell>& cells, Diagnostics& diagnostics);

// The memory that the cell's models and caches need on the GPUs, if that is too much; nullopt if it fits or is unknown.
std::optional<cost::MemoryBudget> misfit(const Cell& cell);
// The changes that make such a cell fit: fewer sequences, more GPUs, with their numbers.
std::string ways_to_fit(const Cell& cell);
// The largest number of cached tokens of a sequence.
double most_context(const Cell& cell);

}  // namespace specsim::spec
