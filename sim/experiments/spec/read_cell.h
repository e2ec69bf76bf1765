// Makes a cell of its YAML, the axes set.
#pragma once

#include "sim/experiments/spec/cell.h"
#include "sim/foundation/config/choose.h"

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace specsim::spec {

// What cells of a sweep share instead of reading it, and the files that it names, again: cost models by their section, with what
// they keep of earlier passes, and distributions by theirs.
struct ReadCache {
  std::map<std::string, Pricing> pricings;
  std::map<std::string, std::shared_ptr<const families::ContextModel>> contexts;  // [pair and context]
};

// Reads and checks a cell. Every mistake goes to `diagnostics`, which comes in empty; where it does not stay so the cell is not
// to be used.
Cell read_cell(const config::Value& config, ReadCache& cache, Diagnostics& diagnostics);

struct DrafterChoice {
  const draft::DrafterEntry* entry = nullptr;
  config::Arguments arguments;
  draft::Draft draft;
};

// Drafter, verifier and policy as `decode` names them. What could not be read stays empty.
struct MethodParts {
  DrafterChoice drafter;
  config::Choice<verify::VerifierEntry> verifier;
  std::optional<config::Choice<draft::PolicyEntry>> policy;  // nullopt: the config has none, be it right or wrong
  double policy_round_cost = 0.0;                            // passes of plain decoding
  // The parts as the config writes them, in a form that is equal where they mean the same.
  std::string drafter_text;
  std::string verifier_text;
  std::string policy_text;
};
MethodParts read_method(const config::Value& decode, Diagnostics& diagnostics);
// Makes the method of drafter and verifier, to which add_policy() adds the policy; nullopt, after reporting why, where the three
// do not go together.
std::optional<Method> make_method(const MethodParts& parts, int vocab, Diagnostics& diagnostics);
// The parts of the method that the prepared tables depend on, as a text: cells share tables where it is equal, and their
// distributions are.
std::string rule_text(const MethodParts& parts, const Method& method);
// Reports what does not go with an acceptance table as the cell's context process: the table says how often the child of each
// rank is accepted and has no distributions, so that whatever changes them, or looks at them, has nothing to work on.
void check_ranked(const Cell& cell, Diagnostics& diagnostics);
// Adds the policy that chooses draft lengths. It comes last, since it may go by the times of rounds, which the rest of the cell
// decides.
void add_policy(const MethodParts& parts, Cell& cell, Diagnostics& diagnostics);
// Reports what a method of blocks cannot do with the cell's distributions.
void check_block(const Cell& cell, const BlockMethod& block, Diagnostics& diagnostics);

// Draws a pair of distributions of each kind that the cells have, to find before the start what cannot be drawn at all.
void probe(const std::vector<Cell>& cells, Diagnostics& diagnostics);

// What must lie in the GPUs' memory for the cell's models and caches, where that is too much; nullopt where it fits or is not
// known.
std::optional<cost::MemoryBudget> misfit(const Cell& cell);
// The most tokens that a sequence of the cell has in the cache.
double most_context(const Cell& cell);

}  // namespace specsim::spec
