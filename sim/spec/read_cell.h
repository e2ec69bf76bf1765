// Makes a cell of its YAML, the axes set.
#pragma once

#include "sim/config/choose.h"
#include "sim/spec/cell.h"

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
// Puts them together, without the policy; nullopt after reporting that they do not go together.
std::optional<Method> make_method(const MethodParts& parts, int vocab, Diagnostics& diagnostics);
// What of the method the prepared tables depend on.
std::string rule_text(const MethodParts& parts, const Method& method);
// An acceptance table knows ranked tokens alone, and nothing of distributions.
void check_ranked(const Cell& cell, Diagnostics& diagnostics);
// The policy of a cell that is whole but for it: a policy may go by the times of rounds.
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
