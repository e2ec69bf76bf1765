#include "sim/experiments/fit/fit_files.h"

#include "sim/foundation/report/csv.h"

#include <fmt/format.h>

namespace specsim::fit {

namespace {

std::string experiment_file(Process process) { return fmt::format("{}.yaml", to_text(process)); }

// A line of fit.csv: one process.
struct FitLine {
  const FitReport* report = nullptr;
  std::size_t at = 0;
  [[nodiscard]] const ProcessReport& process() const { return report->processes[at]; }
};

// A figure of the process with `digits` digits.
report::Column<FitLine> figure_column(const char* name, const char* unit, const char* meaning, double ProcessReport::*value,
                                      int digits) {
  return {name, unit, meaning, [value, digits](const FitLine& line) { return report::csv_real(line.process().*value, digits); }};
}

const std::vector<report::Column<FitLine>>& fit_columns() {
  using Line = FitLine;
  using Report = ProcessReport;
  static const std::vector<report::Column<Line>> list = {
      {"process", "", "the context process", [](const Line& line) { return to_text(line.process().model.process); }},
      {"parameters", "1", "fitted parameters",
       [](const Line& line) { return std::to_string(line.process().model.parameters()); }},
      figure_column("log_likelihood", "1", "logarithm of the likelihood of the whole record", &Report::log_likelihood, 6),
      figure_column("held_out", "1", "log score per judged position, each fifth of the requests by a fit to the others",
                    &Report::held_out, 6),
      figure_column("behind_best", "1", "how much higher held_out is for the best of the allowed processes", &Report::behind_best,
                    4),
      figure_column("behind_se", "1", "standard error of behind_best, over requests", &Report::behind_error, 4),
      figure_column("tokens_per_round", "tokens", "tokens per round of the fitted process", &Report::tokens_per_round, 6),
      figure_column("p_by_depth", "1", "p-value of the accepted drafts by depth, by parametric bootstrap", &Report::p_by_depth,
                    3),
      figure_column("p_accepted", "1", "p-value of the distribution of accepted drafts per round", &Report::p_accepted, 3),
      figure_column("p_runs", "1", "p-value of the lengths of runs of accepted positions, across rounds", &Report::p_runs, 3),
      figure_column("p_requests", "1", "p-value of the spread of the acceptance rate over requests", &Report::p_requests, 3),
      {"rejected", "0 or 1", "whether the smallest p-value rejects the process",
       [](const Line& line) { return line.process().rejected() ? "1" : "0"; }},
      {"use", "0 or 1", "whether it is the process to use",
       [](const Line& line) { return line.at == line.report->best ? "1" : "0"; }},
      {"short_length", "tokens", "draft length of the short drafts, half the recorded one; 0: there are no shorter ones",
       [](const Line& line) { return std::to_string(line.report->short_length); }},
      {"extrapolated", "tokens", "tokens per round at the recorded draft length, predicted by a fit to only the short drafts",
       [](const Line& line) { return line.report->short_length > 0 ? report::csv_real(line.process().extrapolated, 6) : ""; }},
      {"extrapolated_z", "1", "distance of extrapolated from the recorded figure, in standard errors of the latter",
       [](const Line& line) { return line.report->short_length > 0 ? report::csv_real(line.process().extrapolated_z, 3) : ""; }}};
  return list;
}

std::string fit_csv(const FitReport& report) {
  std::vector<FitLine> lines;
  for (std::size_t i = 0; i < report.processes.size(); ++i) lines.push_back({&report, i});
  return report::csv(fit_columns(), lines);
}

// A line of held_out.csv: one process at one draft length.
struct HeldOutLine {
  Process process;
  int fitted_at = 0;
  HeldOutPrediction at;
};

const std::vector<report::Column<HeldOutLine>>& held_out_columns() {
  using Line = HeldOutLine;
  static const std::vector<report::Column<Line>> list = {
      {"process", "", "the context process", [](const Line& line) { return to_text(line.process); }},
      {"fitted_at", "tokens", "draft length of the record that it was fitted to",
       [](const Line& line) { return std::to_string(line.fitted_at); }},
      {"draft_length", "tokens", "the other draft length", [](const Line& line) { return std::to_string(line.at.draft_length); }},
      {"recorded", "tokens", "tokens per round that were recorded there",
       [](const Line& line) { return report::csv_real(line.at.recorded, 6); }},
      {"recorded_se", "tokens", "standard error of recorded, over requests",
       [](const Line& line) { return report::csv_real(line.at.recorded_error, 3); }},
      {"foretold", "tokens", "tokens per round there by the fitted process",
       [](const Line& line) { return report::csv_real(line.at.predicted, 6); }}};
  return list;
}

std::string held_out_csv(const FitReport& report) {
  std::vector<HeldOutLine> lines;
  for (const ProcessReport& one : report.processes)
    for (const HeldOutPrediction& at : one.predicted) lines.push_back({one.model.process, report.draft_length, at});
  return report::csv(held_out_columns(), lines);
}

}  // namespace

std::vector<std::string> fit_file_names() {
  std::vector<std::string> names = {"fit.csv", "held_out.csv"};
  for (const Process process : kAllProcesses) names.push_back(experiment_file(process));
  return names;
}

std::vector<std::pair<std::string, std::string>> fit_files(const FitReport& report) {
  std::vector<std::pair<std::string, std::string>> files = {{"fit.csv", fit_csv(report)}};
  if (!report.processes[0].predicted.empty()) files.emplace_back("held_out.csv", held_out_csv(report));
  const RequestEnd end{report.tokens, report.cut_by_rounds ? report.rounds : 0};
  for (const ProcessReport& one : report.processes)
    files.emplace_back(experiment_file(one.model.process), one.model.yaml(report.draft_length, end, report.rounds));
  return files;
}

std::vector<report::FileInfo> described_files() {
  return {{"fit.csv of fit", report::column_infos(fit_columns())},
          {"held_out.csv of fit", report::column_infos(held_out_columns()), "Written if other draft lengths are held out."}};
}

}  // namespace specsim::fit
