#include "sim/doors/web/explorer.h"

#include "sim/doors/web/questions.h"
#include "sim/foundation/base/error.h"
#include "sim/hardware/presets/presets.h"
#include "sim/rounds/families/distribution.h"
#include "sim/rounds/verify/verifier.h"
#include "specsim_version.h"

#include <algorithm>
#include <cmath>
#include <exception>

namespace specsim::web {

Json number(double x) { return std::isfinite(x) ? Json(x) : Json(); }

Json numbers(const std::vector<double>& list) {
  Json all = Json::array();
  for (const double x : list) all.push_back(number(x));
  return all;
}

double number_at(const Json& question, const char* key, double otherwise) {
  const auto at = question.find(key);
  if (at == question.end() || at->is_null()) return otherwise;
  if (!at->is_number()) throw BadInput({key, 0, 0}, at->dump() + ", allowed: a number");
  return at->get<double>();
}

std::string text_at(const Json& question, const char* key, const std::string& otherwise) {
  const auto at = question.find(key);
  if (at == question.end() || at->is_null()) return otherwise;
  if (!at->is_string()) throw BadInput({key, 0, 0}, at->dump() + ", allowed: a text");
  return at->get<std::string>();
}

namespace {

// A chain is a tree whose siblings were drawn independently.
bool judges_chains(const verify::VerifierEntry& entry) {
  const auto& trees = entry.demands.trees;
  return trees.empty() || entry.make || std::find(trees.begin(), trees.end(), tokens::Siblings::independent) != trees.end();
}

}  // namespace

Json answer_parts() {
  Json parts;
  parts["version"] = build_info::version;
  parts["commit"] = build_info::commit;
  for (const cost::PresetKind kind : cost::kPresetKinds) parts[cost::name_of(kind)] = cost::preset_names(kind);
  for (const verify::VerifierEntry& entry : verify::verifiers().entries())
    parts["verifier"].push_back({{"name", entry.info.name},
                                 {"summary", entry.info.summary},
                                 {"paper", entry.info.paper},
                                 {"lossless", entry.lossless},
                                 {"positions", static_cast<bool>(entry.make)},
                                 {"chains", judges_chains(entry)},
                                 {"one_hot_target", entry.demands.one_hot_target},
                                 {"argmax_draft", entry.demands.argmax_draft}});
  for (const families::FamilyEntry& entry : families::families().entries())
    parts["family"].push_back({{"name", entry.info.name}, {"summary", entry.info.summary}});
  return parts;
}

std::string answer(const std::string& question) {
  Json reply;
  try {
    const Json asked = Json::parse(question);
    const std::string what = text_at(asked, "ask", "");
    reply =
        what == "parts"       ? answer_parts()
        : what == "plan"      ? answer_plan(asked)
        : what == "map"       ? answer_map(asked)
        : what == "landscape" ? answer_landscape(asked)
        : what == "mass"      ? answer_mass(asked)
        : what == "rounds"    ? answer_rounds(asked)
        : what == "step"      ? answer_step(asked)
        : what == "serve"     ? answer_serve(asked)
        : what == "tune"      ? answer_tune(asked)
        : what == "replay"
            ? answer_replay(asked)
            : throw BadInput({"ask", 0, 0},
                             "\"" + what + "\", allowed: parts, plan, map, landscape, mass, rounds, step, serve, tune, replay");
  } catch (const std::exception& error) {
    reply = {{"error", error.what()}};
  }
  return reply.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace specsim::web
