// specsim audit: exact enumeration of the shipped verifier.
#include "sim/experiments/audit/audit.h"
#include "sim/doors/cli/command.h"
#include "sim/doors/cli/options.h"
#include "sim/experiments/judge/coverage.h"
#include "sim/experiments/judge/facts.h"
#include "sim/foundation/base/output.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace specsim::cli {

namespace {

constexpr double kTheoryTolerance = 1e-9;  // theory and audit sum in different orders

// Compares the enumerated distributions of accepted tokens with the theory that `specsim check` uses for the cell.
std::string theory_text(const spec::Cell& cell, const audit::AuditReport& report, bool& agrees) {
  const judge::DistributionFacts facts = judge::gather_facts(cell, spec::plan_of(cell), nullptr);
  std::string why = facts.missing;
  judge::RoundTheory theory;
  if (facts.theory != nullptr) {
    theory = facts.theory->answer(cell);
    why = theory.missing;
  }
  if (!why.empty()) return judge::no_theory_text(why);
  const std::string name = judge::theory_entry(cell, why)->info.name;
  if (theory.distributions.empty() || theory.estimated)
    return fmt::format("theory {}: covers whole sequences, not a round by its context", name);
  double difference = 0.0;
  for (const audit::AuditStart& start : report.starts) {
    const std::size_t stratum = theory.distributions.size() == 1 ? 0 : start.context;
    const std::vector<double>& accepted = theory.distributions.at(stratum).accepted;
    for (std::size_t j = 0; j < accepted.size(); ++j)
      difference = std::max(difference, std::abs(accepted[j] - start.accepted_distribution.at(j)));
  }
  agrees = difference <= kTheoryTolerance + theory.mean_error;
  return fmt::format("theory {}: {}, distribution of accepted wrong by at most {:.1g}", name, agrees ? "agrees" : "DISAGREES",
                     difference);
}

}  // namespace

ExitCode audit_command(const std::vector<std::string>& arguments) {
  ConfigOptions configs;
  CommandLine line("specsim audit CONFIG [options]",
                   "  specsim audit configs/audit/known_pair.yaml\n"
                   "  specsim audit configs/audit/known_pair.yaml --set decode.verifier=sample_match --set "
                   "decode.drafter.draft_length=3\n");
  line.add_words("config", configs.files);
  line.add({{"set", configs.sets, "path=value: override the config"},
            {"seed", configs.seed, "replaces the config's seed, which draws random distributions"}});
  if (!line.read(arguments)) return ExitCode::fine;
  line.require("config", "a config");
  const std::vector<spec::Experiment> experiments = read_experiments(configs);
  bool broken = false;
  Progress progress("cells");
  const std::size_t all = cells_of(experiments).size();
  std::size_t done = 0;
  for (const spec::Experiment& one : experiments) {
    for (const spec::Cell& cell : one.cells) {
      progress.show(static_cast<double>(done++), static_cast<double>(all));
      progress.clear();
      print_output("{} cell {}", cell.experiment, cell.index);
      for (const auto& [path, value] : cell.axes) print_output("  {} = {}", path, value);
      print_output("\n");
      try {
        const audit::AuditReport report = audit::audit_cell(cell);
        bool agrees = true;
        progress.clear();
        print_output("{}{}\n\n", to_text(report), theory_text(cell, report, agrees));
        broken = broken || !agrees || (cell.lossless() && !report.lossless());
      } catch (const audit::NotAudited& reason) {
        print_output("not audited, because {}\n\n", reason.what());
      }
    }
  }
  return broken ? ExitCode::disagree : ExitCode::fine;
}

}  // namespace specsim::cli
