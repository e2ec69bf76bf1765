#include "sim/doors/cli/fit_report.h"

#include "sim/doors/cli/options.h"
#include "sim/foundation/base/output.h"
#include "sim/foundation/report/intervals.h"
#include "sim/foundation/report/table.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

namespace specsim::cli {

namespace {

bool has_states(const fit::FittedProcess& model) { return model.start.size() > 1; }

std::string parameters_text(const fit::FittedProcess& model) {
  constexpr std::size_t kShown = 8;  // depths
  std::string text;
  for (std::size_t s = 0; s < model.start.size(); ++s) {
    const std::size_t shown = std::min(model.alpha[s].size(), kShown);
    text += fmt::format("{}alpha {:.3f}{}", s == 0 ? "" : "; ",
                        fmt::join(model.alpha[s].begin(), model.alpha[s].begin() + static_cast<std::ptrdiff_t>(shown), " "),
                        shown < model.alpha[s].size() ? " ..." : "");
    if (model.process == fit::Process::kept_state) {
      text += fmt::format(" weight {:.3f}", model.start[s]);
    } else if (has_states(model)) {
      text += fmt::format(" then {:.3f}", fmt::join(model.transition[s], " "));
    }
  }
  return text;
}

void print_processes(const fit::FitReport& report) {
  report::Table table({{"process", report::Align::left},
                       {"parameters"},
                       {"held out"},
                       {"below best"},
                       {"+-"},
                       {"tok/round"},
                       {"depth"},
                       {"distribution"},
                       {"runs"},
                       {"requests"},
                       {report.short_length > 0 ? fmt::format("from {}", report.short_length) : "from -"},
                       {"z"},
                       {"", report::Align::left}});
  for (const fit::ProcessReport& one : report.processes) {
    const auto text = [](double x, const char* format) { return report::cell_text(x, format); };
    const bool tried = report.short_length > 0;
    table.add({to_text(one.model.process), std::to_string(one.model.parameters()), text(one.held_out, "{:.5f}"),
               text(one.behind_best, "{:.5f}"), text(one.behind_error, "{:.5f}"), text(one.tokens_per_round, "{:.4f}"),
               text(one.p_by_depth, "{:.3f}"), text(one.p_accepted, "{:.3f}"), text(one.p_runs, "{:.3f}"),
               text(one.p_requests, "{:.3f}"), tried ? text(one.extrapolated, "{:.4f}") : "-",
               tried ? text(one.extrapolated_z, "{:.1f}") : "-", one.rejected() ? "rejected" : ""});
  }
  print_table(table);
  print_output(
      "\ndepth, distribution, runs, requests: p-values from {} data sets of the fitted model{}; its parameters are not fitted "
      "again to each,\nso p tends to be too large\n",
      fit::kReplicates,
      report.checked < report.requests ? fmt::format(", compared with {} of the {} requests", report.checked, report.requests)
                                       : "");
  if (report.short_length > 0)
    print_output(
        "from {0}: tokens per round at draft length {1} by a fit to only the first {0} positions of each round, and how many "
        "standard errors\nthat is from the recorded {2:.4f}. It shows how well the process extrapolates to twice the length it "
        "was "
        "fitted to\n",
        report.short_length, report.draft_length, report.tokens_per_round);
  print_output("\n");
  report::Table parameters({{"", report::Align::left, "process"}, {"", report::Align::left, "parameters"}}, {.headless = true});
  for (const fit::ProcessReport& one : report.processes) parameters.add({to_text(one.model.process), parameters_text(one.model)});
  print_table(parameters);
}

// Prints the fits' predictions for draft lengths that they have not seen.
void print_foretold(const fit::FitReport& report) {
  if (report.processes[0].predicted.empty()) return;
  std::vector<report::Head> columns = {{"K"}, {"recorded"}, {"+-"}};
  for (const fit::ProcessReport& one : report.processes) columns.push_back({to_text(one.model.process)});
  report::Table table(columns);
  for (std::size_t i = 0; i < report.processes[0].predicted.size(); ++i) {
    const fit::HeldOutPrediction& at = report.processes[0].predicted[i];
    std::vector<std::string> row = {std::to_string(at.draft_length), fmt::format("{:.4f}", at.recorded),
                                    fmt::format("{:.4f}", at.recorded_error)};
    for (const fit::ProcessReport& one : report.processes)
      row.push_back(fmt::format("{:.4f} {:+.1f} %", one.predicted[i].predicted, 100.0 * one.predicted[i].relative_error()));
    table.add(std::move(row));
  }
  print_output(
      "\nheld out: tokens per round at draft lengths that the fit at {} has not seen; +- is the record's standard error\n{}",
      report.draft_length, table.text(output_width()));
}

void print_choice(const fit::FitReport& report) {
  const fit::ProcessReport& best = report.processes[report.best];
  if (best.rejected())
    print_output(
        "\nnone fits: the data reject every process. {} comes closest; recorded distributions, if available, can "
        "be replayed (context process trace)\n",
        to_text(best.model.process));
  else
    print_output("\nuse {}: the simplest that is not rejected, within one standard error of the best held-out score\n",
                 to_text(best.model.process));
  const fit::ProcessReport& nearest = report.processes[report.nearest];
  if (!best.predicted.empty()) {
    const fit::HeldOutPrediction& last = best.predicted.back();
    print_output("at draft length {}, held out, {} is {:+.1f} % off", last.draft_length, to_text(best.model.process),
                 100.0 * last.relative_error());
    if (report.nearest != report.best)
      print_output(", {}, the nearest over all held-out lengths, {:+.1f} %", to_text(nearest.model.process),
                   100.0 * nearest.predicted.back().relative_error());
    print_output("; beyond the recorded lengths a figure is a guess\n");
    return;
  }
  if (report.short_length == 0) {
    print_output("beyond draft length {} nothing is recorded: figures for longer drafts are a guess\n", report.draft_length);
    return;
  }
  print_output("beyond draft length {} nothing is recorded: a longer draft is extrapolated. From {} to {}, {} was {:+.1f} % off",
               report.draft_length, report.short_length, report.draft_length, to_text(best.model.process),
               100.0 * (best.extrapolated / report.tokens_per_round - 1.0));
  if (report.nearest != report.best)
    print_output(", {}, the nearest, {:+.1f} %", to_text(nearest.model.process),
                 100.0 * (nearest.extrapolated / report.tokens_per_round - 1.0));
  print_output("\n");
}

}  // namespace

void print_fit(const fit::FitReport& report) {
  print_output("{} requests, draft length {}: {:.4f} tokens per round, +- {:.4f}\n\n", report.requests, report.draft_length,
               report.tokens_per_round, report::half_width(report.tokens_per_round_error, report.tokens_per_round_freedom));
  print_processes(report);
  print_foretold(report);
  print_choice(report);
}

void print_spread(const fit::SpreadFit& fit) {
  print_output("{} requests, {} positions, vocabulary {}\n\n", fit.requests, fit.positions, fit.vocab);
  report::Table parameters(
      {{"parameter", report::Align::left}, {"value"}, {"+- standard error"}, {"", report::Align::left, "meaning"}});
  const auto add = [&](const char* name, const fit::SpreadParameter& one, const char* meaning) {
    parameters.add(
        {name, fmt::format("{:.4f}", one.value), one.fitted ? report::cell_text(one.error, "{:.4f}") : "not recorded", meaning});
  };
  add("sigma", fit.sigma, "standard deviation of the target's logits");
  add("its spread", fit.sigma_spread, "standard deviation of its logarithm over contexts");
  add("noise", fit.noise, "standard deviation of the draft's logits around the target's");
  add("its spread", fit.noise_spread, "standard deviation of its logarithm over contexts");
  if (fit.persistence.fitted) {
    add("persistence", fit.persistence, "probability that the next position belongs to the same stretch of text");
    add("between requests", fit.between_requests, "share of the scales' variance that lies between requests");
  }
  print_output("{}\n", parameters.text(output_width()));
  report::Table moments({{"figure", report::Align::left}, {"recorded"}, {"+- standard error"}, {"fitted"}});
  for (const fit::SpreadMoment& one : fit.moments)
    moments.add({one.name, fmt::format("{:.4f}", one.recorded), report::cell_text(one.error, "{:.4f}"),
                 fmt::format("{:.4f}", one.fitted)});
  print_output("{}", moments.text(output_width()));
}

}  // namespace specsim::cli
