#include "sim/experiments/spec/engine_names.h"

#include "sim/foundation/config/value.h"
#include "sim/hardware/latency/deployment.h"
#include "sim/rounds/draft/drafter.h"
#include "sim/rounds/verify/verifier.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace specsim::spec {

namespace {

template <class Entry>
void check(const std::vector<std::string>& names, const config::Registry<Entry>& registry, const cost::EngineMethods& methods,
           Diagnostics& diagnostics) {
  for (const std::string& name : names) static_cast<void>(registry.find(name, methods.places.at(name), diagnostics));
}

// Proposals for which some engine file has data.
std::set<std::string> shipped_proposals() {
  std::set<std::string> names;
  for (const std::string& engine : cost::engine_names()) {
    Diagnostics diagnostics;
    for (const auto& [name, layers] : cost::read_engine(cost::PresetChoice{engine, {}, {}}, diagnostics).proposals)
      names.insert(name);
  }
  return names;
}

}  // namespace

void check_engine_names(const cost::Engine& engine, Diagnostics& diagnostics) {
  const cost::EngineMethods& methods = engine.methods;
  check(methods.drafters, draft::drafters(), methods, diagnostics);
  check(methods.verifiers, verify::verifiers(), methods, diagnostics);
  check(methods.trees, draft::drafters(), methods, diagnostics);
  check(methods.tree_verifiers, verify::verifiers(), methods, diagnostics);
}

void check_engine_names(const cost::CostModel* cost, Diagnostics& diagnostics) {
  const cost::Deployment* const deployment = cost != nullptr ? cost->deployment() : nullptr;
  if (deployment != nullptr) check_engine_names(deployment->engine, diagnostics);
}

std::vector<std::string> doubtful_proposals(const cost::Engine& engine) {
  std::vector<std::string> lines;
  if (engine.proposals.empty()) return lines;
  std::set<std::string> known = shipped_proposals();
  for (const draft::DrafterEntry& entry : draft::drafters().entries()) known.insert(entry.info.name);
  const std::vector<std::string> names(known.begin(), known.end());
  for (const auto& [name, layers] : engine.proposals) {
    if (known.contains(name) || nearest_name(name, names).empty()) continue;
    const std::string where = to_string(engine.proposal_places.at(name));
    lines.push_back(fmt::format("{}{}", where.empty() ? "" : where + ": ",
                                config::unknown_name("proposals has the method", name, names) +
                                    "; it is taken as your own method, which cost.proposal selects"));
  }
  return lines;
}

}  // namespace specsim::spec
