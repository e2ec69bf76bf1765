#include "sim/doors/cli/check_summary.h"

#include "sim/experiments/judge/coverage.h"
#include "sim/foundation/base/plural.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <variant>

namespace specsim::cli {

namespace {

// Figures that were not tested print as a dash.
std::string p_text(double p) { return std::isnan(p) ? "-" : fmt::format("{:.2g}", p); }

std::string disagreement(const judge::Row& row) {
  return fmt::format("tokens per round {:.6g}, theory {}: {}, exact theory {}, z {}, p of accepted {}, p of output {}{}",
                     row.tokens_per_round(), spec::theory_name(row.cell->theory),
                     row.judged_by.known ? fmt::format("{:.6g}", row.judged_by.tokens_per_round) : "nothing",
                     row.exact.known ? fmt::format("{:.6g}", row.exact.tokens_per_round) : "nothing",
                     p_text(row.agreement.z_tokens_per_round), p_text(row.agreement.p_accepted_distribution),
                     p_text(row.agreement.p_output_distribution),
                     spec::expects_refuted(row.cell->theory) ? " (this closed form was expected to be refuted)" : "");
}

// There is no theory, although the config does not declare this.
bool lacks_theory(const judge::Row& row) {
  return row.verdict == judge::Verdict::no_theory && !std::holds_alternative<spec::NoTheory>(row.cell->theory);
}
std::string missing_theory(const judge::Row& row) {
  return fmt::format("{}; allowed: theory: {{name: none}} if this is intended", judge::no_theory_text(row.judged_by.missing));
}

std::string missing_power(const judge::Row& row) {
  const judge::Underpowered& blind = *row.underpowered;
  const std::string rounds =
      std::isnan(blind.rounds) ? "" : fmt::format("; about {:.2g} rounds are enough", std::max(blind.rounds, 1.0));
  if (std::isnan(blind.smallest))
    return fmt::format("it would not detect any {}, allowed: one of {:.3g} %{}", blind.of, 100.0 * blind.allowed,
                       rounds.empty() ? "; raise rounds" : rounds);
  return fmt::format("the smallest {} that it detects is {:.3g} %, allowed: {:.3g} %{}", blind.of, 100.0 * blind.smallest,
                     100.0 * blind.allowed, rounds);
}

}  // namespace

CheckSummary summarise_check(const std::vector<judge::Row>& rows) {
  CheckSummary summary;
  std::string& text = summary.text;
  std::size_t agree = 0;
  std::size_t refuted = 0;
  std::vector<const judge::Row*> disagree;
  std::vector<const judge::Row*> untold;
  std::vector<const judge::Row*> blind;
  std::size_t none = 0;
  for (const judge::Row& row : rows) {
    agree += row.verdict == judge::Verdict::agree ? 1 : 0;
    refuted += row.verdict == judge::Verdict::refuted_as_expected ? 1 : 0;
    none += row.verdict == judge::Verdict::no_theory ? 1 : 0;
    if (row.verdict == judge::Verdict::disagree) disagree.push_back(&row);
    if (lacks_theory(row)) untold.push_back(&row);
    if (row.underpowered) blind.push_back(&row);
  }
  const double level = judge::check_level(rows.size() * judge::kChecksPerCell);
  text += fmt::format("\n{}: {} agree, {} disagree, {} refuted as expected, {} without theory\n", plural(rows.size(), "cell"),
                      agree, disagree.size(), refuted, none);
  text += fmt::format(
      "z, p: tokens per round, distribution of accepted and output distribution against theory; a check fails below p "
      "= {:.2g} ({:.0e} false alarms over {} checks).\n"
      "Draws: the cell whose random numbers a cell uses. Cells that share random numbers are correlated: count "
      "their z as one result. Leak seen: the smallest leak of the draft's distribution into the output that the "
      "checks reject with power .99.\n",
      level, judge::kFamilyBudget, rows.size() * judge::kChecksPerCell);
  constexpr std::size_t kShown = 20;  // lines per kind of finding, since a wrong base shows in every cell of a grid
  const auto list = [&](const std::vector<const judge::Row*>& which, const std::string& what, const auto& describe) {
    for (std::size_t i = 0; i < std::min(which.size(), kShown); ++i)
      text += fmt::format("{}: {} cell {}: {}\n", what, which[i]->cell->experiment, which[i]->cell->index, describe(*which[i]));
    if (which.size() > kShown)
      text += fmt::format("{}: {}, see the table\n", what, plural(which.size() - kShown, "further cell"));
  };
  list(disagree, "disagree", disagreement);
  list(untold, "not tested", missing_theory);
  list(blind, "underpowered", missing_power);
  summary.status = !disagree.empty()                   ? ExitCode::disagree
                   : !blind.empty() || !untold.empty() ? ExitCode::untested
                                                       : ExitCode::fine;
  summary.verdict = summary.status == ExitCode::fine ? "agree" : summary.status == ExitCode::disagree ? "disagree" : "untested";
  text += fmt::format("{}\n", !disagree.empty() ? "theory and simulation DISAGREE"
                              : summary.status == ExitCode::untested
                                  ? "nothing disagrees, but not every cell was tested as it should be"
                              : none > 0 ? "theory and simulation agree wherever theory exists"
                                         : "theory and simulation agree");
  return summary;
}

std::vector<report::TestCase> check_cases(const std::vector<judge::Row>& rows) {
  using Outcome = report::TestCase::Outcome;
  std::vector<report::TestCase> cases;
  for (const judge::Row& row : rows) {
    std::string name = fmt::format("cell {}", row.cell->index);
    for (const auto& [path, value] : row.cell->axes) name += fmt::format(" {}={}", path, value);
    const Location& where = row.cell->places.config;
    report::TestCase one{row.cell->experiment, std::move(name), where.file, where.line, Outcome::passed, ""};
    if (row.verdict == judge::Verdict::disagree) {
      one.outcome = Outcome::failed;
      one.message = disagreement(row);
    } else if (row.verdict == judge::Verdict::no_theory) {
      one.outcome = Outcome::skipped;
      one.message = lacks_theory(row) ? missing_theory(row) : "theory: {name: none}";
    } else if (row.underpowered) {
      one.outcome = Outcome::skipped;
      one.message = "underpowered: " + missing_power(row);
    }
    cases.push_back(std::move(one));
  }
  return cases;
}

}  // namespace specsim::cli
