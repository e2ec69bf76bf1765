#include "sim/plan/stated_acceptance.h"

#include <fmt/format.h>

namespace specsim::plan {

namespace {

AcceptanceCurve richest_curve(logs::Kind kind, const logs::Findings& findings, int longest, const Location& where,
                              const std::string& how) {
  if (!findings.position_rates.empty()) return unconditional_acceptance(findings.position_rates, longest, where);
  if (findings.draft_length > 0 && findings.mean_length.known())
    return length_acceptance(findings.mean_length.value, findings.draft_length, longest, where);
  if (findings.alpha.known()) return constant_acceptance(findings.alpha.value, longest);
  if (findings.draft_length > 0 && findings.acceptance_rate.known())
    return rate_acceptance(findings.acceptance_rate.value, findings.draft_length, longest);
  throw BadInput(where, fmt::format("{} do not say the draft length, allowed: {}", logs::describe(kind), how));
}

}  // namespace

AcceptanceCurve logged_acceptance(logs::Kind kind, const logs::Findings& findings, int longest, const Location& where,
                                  const std::string& how) {
  AcceptanceCurve curve = richest_curve(kind, findings, longest, where, how);
  curve.source = fmt::format("{}: {}", logs::describe(kind), curve.source);
  return curve;
}

AcceptanceCurve table_acceptance(const std::string& name, const Location& where, int longest) {
  const spec::AcceptanceTable table = spec::named_acceptance_table(name, where);
  AcceptanceCurve curve = conditional_acceptance(table.of_chain(), longest);
  if (!table.origin().empty()) curve.source += fmt::format(": {}", table.origin());
  if (table.selection != spec::Selection::unsaid && table.temperature != "0")
    curve.source += table.selection == spec::Selection::sampled ? "; of drafts that are drawn (selection: sampled)"
                                                                : "; of drafts that are chosen (selection: argmax)";
  return curve;
}

}  // namespace specsim::plan
