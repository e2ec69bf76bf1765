#include "sim/answers/plan/stated_acceptance.h"

#include "sim/hardware/presets/presets.h"

#include <fmt/format.h>

#include <algorithm>

namespace specsim::plan {

namespace {

AcceptanceCurve richest_curve(logs::LogKind kind, const logs::Findings& findings, int longest, const Location& where,
                              const std::string& how) {
  if (!findings.position_rates.empty()) return unconditional_acceptance(findings.position_rates, longest, where);
  if (findings.draft_length > 0 && findings.mean_length.known())
    return length_acceptance(findings.mean_length.value, findings.draft_length, longest, where);
  if (findings.alpha.known()) return constant_acceptance(findings.alpha.value, longest);
  if (findings.draft_length > 0 && findings.acceptance_rate.known())
    return rate_acceptance(findings.acceptance_rate.value, findings.draft_length, longest);
  throw BadInput(where, fmt::format("{} do not state the draft length, allowed: {}", logs::describe(kind), how));
}

}  // namespace

AcceptanceCurve logged_acceptance(logs::LogKind kind, const logs::Findings& findings, int longest, const Location& where,
                                  const std::string& how) {
  AcceptanceCurve curve = richest_curve(kind, findings, longest, where, how);
  curve.source = fmt::format("{}: {}", logs::describe(kind), curve.source);
  return curve;
}

LastRateError last_rate_error(int measured) {
  LastRateError result;
  for (const cost::Preset& preset : cost::presets()) {
    if (preset.kind != cost::PresetKind::acceptance) continue;
    const spec::AcceptanceTable table = spec::named_acceptance_table(preset.name, {}, spec::Contexts::several);
    std::vector<double> rates = table.of_chain();
    // drop repeated rates, which were not recorded
    while (rates.size() > 1 && rates[rates.size() - 1] == rates[rates.size() - 2]) rates.pop_back();
    const int whole = static_cast<int>(rates.size());
    if (table.one_pass || !table.by_context.empty() || table.draft == "none" || measured < 1 || whole <= measured) continue;
    const std::vector<double> known(rates.begin(), rates.begin() + measured);
    const double miss = conditional_acceptance(known, whole).tokens_per_round.back() /
                            conditional_acceptance(rates, whole).tokens_per_round.back() -
                        1.0;
    result.least = result.tables == 0 ? miss : std::min(result.least, miss);
    result.most = result.tables == 0 ? miss : std::max(result.most, miss);
    ++result.tables;
  }
  return result;
}

AcceptanceCurve table_acceptance(const std::string& name, const Location& where, int longest) {
  const spec::AcceptanceTable table = spec::named_acceptance_table(name, where, spec::Contexts::several);
  const std::vector<double> rates = table.of_chain();
  // A block has as many positions as it was trained with.
  if (table.one_pass) longest = std::min(longest, static_cast<int>(rates.size()));
  AcceptanceCurve curve =
      table.by_context.empty() ? conditional_acceptance(rates, longest) : context_acceptance(table.by_context, longest);
  curve.recorded_target = table.target;
  curve.recorded_draft = table.draft;
  if (!table.origin().empty()) curve.source += fmt::format(": {}", table.origin());
  if (table.selection != spec::Selection::unsaid && table.temperature != "0")
    curve.source += table.selection == spec::Selection::sampled ? "; for drawn drafts (selection: sampled)"
                                                                : "; for chosen drafts (selection: argmax)";
  return curve;
}

}  // namespace specsim::plan
