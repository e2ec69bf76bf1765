#include "sim/answers/plan/engine_methods.h"

#include <algorithm>
#include <vector>

namespace specsim::plan {

namespace {

const cost::Engine* engine_that_says(const spec::Cell& cell) {
  const cost::Deployment* const deployment = cell.cost_choice ? cell.cost().deployment() : nullptr;
  return deployment != nullptr && !deployment->engine.methods.drafters.empty() ? &deployment->engine : nullptr;
}

bool among(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// Whether the tokens of the cell's chains are drawn; otherwise they are the draft's likeliest or copied from the text.
bool draws(const spec::Cell& cell) {
  if (cell.argmax_draft()) return false;
  if (!cell.contexts->pairs.empty()) {
    const math::Sampling& sampling = cell.contexts->pair(0).draft_sampling();
    if (sampling.temperature == 0.0 || sampling.top_k == 1) return false;
  }
  if (!cell.judges_blocks()) return true;
  const draft::BlockDrafter& drafter = *cell.block()->drafter;
  return drafter.shape().siblings != tokens::Siblings::point_mass && !drafter.shape().argmax;
}

}  // namespace

std::optional<bool> engine_runs(const spec::Cell& cell) {
  const cost::Engine* const engine = engine_that_says(cell);
  if (engine == nullptr) return std::nullopt;
  const cost::EngineMethods& methods = engine->methods;
  const std::string drafter = cell.judges_blocks() ? cell.block()->drafter.name() : "chain";
  const std::string& verifier = cell.verifier().info.name;
  if (!cell.drafts_chains() && cell.drafted_nodes() > cell.draft_length())
    return among(methods.trees, drafter) && among(methods.tree_verifiers, verifier);
  return among(methods.drafters, drafter) && among(methods.verifiers, verifier) && (methods.draws || !draws(cell));
}

std::string engine_of(const spec::Cell& cell) {
  const cost::Engine* const engine = engine_that_says(cell);
  return engine != nullptr ? engine->name : "";
}

}  // namespace specsim::plan
