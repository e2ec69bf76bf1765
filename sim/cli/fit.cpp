// specsim fit: which of the simulator's context processes reproduces recorded acceptance.
#include "sim/base/output.h"
#include "sim/cli/command.h"
#include "sim/cli/numbers.h"
#include "sim/cli/options.h"
#include "sim/cli/stop.h"
#include "sim/fit/process_fit.h"
#include "sim/report/csv.h"
#include "sim/report/intervals.h"
#include "sim/report/output_folder.h"
#include "sim/report/table.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <string>
#include <utility>

namespace specsim::cli {

namespace po = boost::program_options;

namespace {

bool has_states(const fit::FittedProcess& model) { return model.start.size() > 1; }

std::string parameters_text(const fit::FittedProcess& model) {
  constexpr std::size_t kShown = 8;  // depths
  std::string text;
  for (std::size_t s = 0; s < model.start.size(); ++s) {
    const std::size_t shown = std::min(model.alpha[s].size(), kShown);
    fmt::format_to(std::back_inserter(text), "{}alpha {:.3f}{}", s == 0 ? "" : "; ",
                   fmt::join(model.alpha[s].begin(), model.alpha[s].begin() + static_cast<std::ptrdiff_t>(shown), " "),
                   shown < model.alpha[s].size() ? " ..." : "");
    if (model.process == fit::Process::kept_state) {
      fmt::format_to(std::back_inserter(text), " weight {:.3f}", model.start[s]);
    } else if (has_states(model)) {
      fmt::format_to(std::back_inserter(text), " then {:.3f}", fmt::join(model.transition[s], " "));
    }
  }
  return text;
}

// What the fit is made to, and the recorded draft lengths beyond it.
struct FitData {
  std::vector<fit::RecordedRequest> requests;
  std::vector<fit::RecordedLength> held_out;
};

// `draft_length` 0: the longest recorded.
FitData read_data(const std::string& path, const std::string& other, const std::string& kind, int draft_length) {
  FitData data;
  std::vector<fit::RecordedLength> recorded = fit::read_draft_lengths(path, kind);
  const int longest = recorded.back().draft_length;
  if (draft_length == 0) draft_length = longest;
  for (fit::RecordedLength& one : recorded) {
    if (one.draft_length == draft_length)
      data.requests = std::move(one.requests);
    else if (one.draft_length > draft_length)
      data.held_out.push_back(std::move(one));
  }
  if (data.requests.empty())
    throw BadInput({"--draft-length", 0, 0},
                   fmt::format("{}, allowed: {} (what {} holds)", draft_length,
                               recorded.size() > 1 ? fmt::format("1 to {}", longest) : std::to_string(longest), path));
  if (other.empty()) return data;
  for (fit::RecordedLength& one : fit::read_draft_lengths(other, kind))
    if (one.draft_length != draft_length) data.held_out.push_back(std::move(one));
  return data;
}

report::Csv csv_of(const fit::FitReport& report) {
  report::Csv csv({"process", "parameters", "log_likelihood", "held_out", "behind_best", "behind_se", "tokens_per_round",
                   "p_by_depth", "p_accepted", "p_runs", "p_requests", "rejected", "use", "short_length", "extrapolated",
                   "extrapolated_z"});
  for (std::size_t i = 0; i < report.processes.size(); ++i) {
    const fit::ProcessReport& one = report.processes[i];
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

report::Csv held_out_csv(const fit::FitReport& report) {
  report::Csv csv({"process", "fitted_at", "draft_length", "recorded", "recorded_se", "foretold"});
  for (const fit::ProcessReport& one : report.processes)
    for (const fit::Foretold& at : one.foretold)
      csv.add({to_text(one.model.process), std::to_string(report.draft_length), std::to_string(at.draft_length),
               report::csv_real(at.recorded, 6), report::csv_real(at.recorded_error, 3), report::csv_real(at.foretold, 6)});
  return csv;
}

void print_processes(const fit::FitReport& report) {
  report::Table table({{"process", report::Align::left},
                       {"parameters"},
                       {"held out"},
                       {"behind"},
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
  print_output("{}", table.text(output_width()));
  print_output(
      "\ndepth, distribution, runs, requests: p-values from {} data sets of the fitted model; its parameters are not fitted "
      "again to "
      "each,\nso p is too large if anything\n",
      fit::kReplicates);
  if (report.short_length > 0)
    print_output(
        "from {0}: tokens per round at draft length {1} by a fit to the first {0} positions of each round alone, and how many "
        "standard "
        "errors\nthat is from the recorded {2:.4f}: how far the process may be trusted at twice the length it was fitted to\n",
        report.short_length, report.draft_length, report.tokens_per_round);
  print_output("\n");
  report::Table parameters({{"", report::Align::left}, {"", report::Align::left}}, {.headless = true});
  for (const fit::ProcessReport& one : report.processes) parameters.add({to_text(one.model.process), parameters_text(one.model)});
  print_output("{}", parameters.text(output_width()));
}

// What the fits say of draft lengths that they have not seen.
void print_foretold(const fit::FitReport& report) {
  if (report.processes[0].foretold.empty()) return;
  std::vector<report::Head> columns = {{"K"}, {"recorded"}, {"+-"}};
  for (const fit::ProcessReport& one : report.processes) columns.push_back({to_text(one.model.process)});
  report::Table table(columns);
  for (std::size_t i = 0; i < report.processes[0].foretold.size(); ++i) {
    const fit::Foretold& at = report.processes[0].foretold[i];
    std::vector<std::string> row = {std::to_string(at.draft_length), fmt::format("{:.4f}", at.recorded),
                                    fmt::format("{:.4f}", at.recorded_error)};
    for (const fit::ProcessReport& one : report.processes)
      row.push_back(fmt::format("{:.4f} {:+.1f} %", one.foretold[i].foretold, 100.0 * one.foretold[i].relative_error()));
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
        "\nnone fits: the data reject every process. {} comes closest; the distributions themselves, where they were kept, can "
        "be "
        "replayed (context process trace)\n",
        to_text(best.model.process));
  else
    print_output("\nuse {}: the simplest that is not rejected, within one standard error of the best held-out score\n",
                 to_text(best.model.process));
  const fit::ProcessReport& nearest = report.processes[report.nearest];
  if (!best.foretold.empty()) {
    const fit::Foretold& last = best.foretold.back();
    print_output("at draft length {}, held out, {} is {:+.1f} % off", last.draft_length, to_text(best.model.process),
                 100.0 * last.relative_error());
    if (report.nearest != report.best)
      print_output(", {}, the nearest over all held-out lengths, {:+.1f} %", to_text(nearest.model.process),
                   100.0 * nearest.foretold.back().relative_error());
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

ExitCode fit_command(const std::vector<std::string>& arguments) {
  po::options_description options;
  const auto text = [](const char* fallback) { return po::value<std::string>()->default_value(fallback); };
  options.add_options()("kind", text(""), "only requests of this kind")("seed", text("0"), "of the bootstrap")(
      "draft-length", po::value<std::string>(),
      "fit the rounds of this draft length; accepted prefixes by position hold every one up to their own, and the longer ones "
      "then "
      "judge the fit (default: the longest)")(
      "held-out", text(""), "recorded rounds at other draft lengths, to judge the fit by")("threads", text("0"), kThreadsHelp)(
      "out", po::value<std::string>(),
      "directory for fit.csv and one experiment for each process: constant, by_depth, kept_state, regimes, regimes_by_depth, "
      "requests_and_regimes")("force", kForceHelp);
  po::variables_map values;
  if (!parse(arguments, options, "file",
             "specsim fit FILE [--draft-length K] [--held-out FILE] [--kind NAME] [--out DIR] [options]",
             "  specsim fit results/calibration/novels/rounds_t1.jsonl --out results/mine\n", values))
    return ExitCode::fine;
  const double started = wall_clock();
  const auto files = values.count("file") > 0 ? values["file"].as<std::vector<std::string>>() : std::vector<std::string>();
  if (files.size() != 1)
    throw BadInput(
        {"", 0, 0},
        fmt::format("{} files, allowed: one, rounds_t*.jsonl of specsim calibrate, a log of the same form, or accepted prefixes",
                    files.size()));
  const int draft_length = values.count("draft-length") > 0
                               ? static_cast<int>(read_integer(values["draft-length"].as<std::string>(), "--draft-length",
                                                               config::between(1, kMaxDraftLength)))
                               : 0;
  FitData data = read_data(files[0], values["held-out"].as<std::string>(), values["kind"].as<std::string>(), draft_length);
  const std::vector<fit::RecordedRequest>& requests = data.requests;
  std::optional<report::OutputFolder> folder;
  if (values.count("out") > 0) {
    folder.emplace(values["out"].as<std::string>());
    std::vector<std::string> names = {"fit.csv", "held_out.csv"};
    for (const fit::Process process : fit::kAllProcesses) names.push_back(fmt::format("{}.yaml", to_text(process)));
    folder->claim({names, "specsim fit", values.count("force") > 0, true, report::Writing::at_once});
  }
  const unsigned threads = read_threads(values["threads"].as<std::string>());
  Progress progress("steps");
  const StopOnSignal stop;
  const fit::FitReport report = fit::fit_processes(
      requests,
      {.seed = static_cast<std::uint64_t>(read_integer(values["seed"].as<std::string>(), "--seed", config::between(0, 9e15))),
       .held_out = std::move(data.held_out),
       .threads = threads,
       .progress = [&](double done, double all) { progress.show(done, all); },
       .stop = stop.flag()});
  progress.finish();
  if (report.processes.empty()) {
    print_error("stopped before the end; nothing was kept\n");
    return ExitCode::interrupted;
  }
  print_output("{} requests, draft length {}: {:.4f} tokens per round, +- {:.4f}\n\n", requests.size(), report.draft_length,
               report.tokens_per_round,
               report::half_width(report.tokens_per_round_error, static_cast<double>(requests.size() - 1)));
  print_processes(report);
  print_foretold(report);
  print_choice(report);
  if (!folder) return ExitCode::fine;
  folder->write("fit.csv", csv_of(report).text());
  if (!report.processes[0].foretold.empty()) folder->write("held_out.csv", held_out_csv(report).text());
  for (const fit::ProcessReport& one : report.processes)
    folder->write(fmt::format("{}.yaml", to_text(one.model.process)),
                  one.model.yaml(report.draft_length, report.tokens, report.rounds));
  report::Manifest manifest = report::new_manifest(command_line());
  manifest.threads = threads;
  manifest.files = files;
  manifest.configs = {"{}"};
  manifest.cells = report.processes.size();
  manifest.wall_seconds = wall_clock() - started;
  folder->finish(manifest);
  print_output("wrote {}: fit.csv, and {}.yaml for specsim run, like the others\n", folder->path(),
               to_text(report.processes[report.best].model.process));
  return ExitCode::fine;
}

}  // namespace specsim::cli
