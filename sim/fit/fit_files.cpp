#include "sim/fit/fit_files.h"

#include "sim/report/csv.h"

#include <fmt/format.h>

namespace specsim::fit {

namespace {

std::string experiment_file(Process process) { return fmt::format("{}.yaml", to_text(process)); }

report::Csv csv_of(const FitReport& report) {
  report::Csv csv({"process", "parameters", "log_likelihood", "held_out", "behind_best", "behind_se", "tokens_per_round",
                   "p_by_depth", "p_accepted", "p_runs", "p_requests", "rejected", "use", "short_length", "extrapolated",
                   "extrapolated_z"});
  for (std::size_t i = 0; i < report.processes.size(); ++i) {
    const ProcessReport& one = report.processes[i];
    const bool tried = report.short_length > 0;
    csv.add({to_text(one.model.process), std::to_string(one.model.parameters()), report::csv_real(one.log_likelihood, 6),
             report::csv_real(one.held_out, 6), report::csv_real(one.behind_best, 4), report::csv_real(one.behind_error, 4),
             report::csv_real(one.tokens_per_round, 6), report::csv_real(one.p_by_depth, 3), report::csv_real(one.p_accepted, 3),
             report::csv_real(one.p_runs, 3), report::csv_real(one.p_requests, 3), one.rejected() ? "1" : "0",
             i == report.best ? "1" : "0", std::to_string(report.short_length),
             tried ? report::csv_real(one.extrapolated, 6) : "", tried ? report::csv_real(one.extrapolated_z, 3) : ""});
  }
  return csv;
}

report::Csv held_out_csv(const FitReport& report) {
  report::Csv csv({"process", "fitted_at", "draft_length", "recorded", "recorded_se", "foretold"});
  for (const ProcessReport& one : report.processes)
    for (const Foretold& at : one.foretold)
      csv.add({to_text(one.model.process), std::to_string(report.draft_length), std::to_string(at.draft_length),
               report::csv_real(at.recorded, 6), report::csv_real(at.recorded_error, 3), report::csv_real(at.foretold, 6)});
  return csv;
}

}  // namespace

std::vector<std::string> fit_file_names() {
  std::vector<std::string> names = {"fit.csv", "held_out.csv"};
  for (const Process process : kAllProcesses) names.push_back(experiment_file(process));
  return names;
}

std::vector<std::pair<std::string, std::string>> fit_files(const FitReport& report) {
  std::vector<std::pair<std::string, std::string>> files = {{"fit.csv", csv_of(report).text()}};
  if (!report.processes[0].foretold.empty()) files.emplace_back("held_out.csv", held_out_csv(report).text());
  for (const ProcessReport& one : report.processes)
    files.emplace_back(experiment_file(one.model.process), one.model.yaml(report.draft_length, report.tokens, report.rounds));
  return files;
}

}  // namespace specsim::fit
