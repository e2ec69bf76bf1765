// specsim fit: which of the simulator's context processes reproduces recorded acceptance.
#include "sim/base/output.h"
#include "sim/base/whole_file.h"
#include "sim/cli/command.h"
#include "sim/cli/numbers.h"
#include "sim/cli/options.h"
#include "sim/cli/stop.h"
#include "sim/fit/process_fit.h"
#include "sim/report/csv.h"
#include "sim/report/intervals.h"
#include "sim/report/table.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <string>

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

// One draft length, at which the processes are simulated.
void check_lengths(const std::string& path, const std::vector<fit::RecordedRequest>& requests) {
  const int drafted = requests[0].rounds[0].drafted;
  for (const fit::RecordedRequest& request : requests)
    for (const fit::RecordedRound& round : request.rounds)
      if (round.drafted != drafted)
        throw BadInput({path, 0, 0},
                       fmt::format("rounds that drafted {} and {} tokens, allowed: one draft length, at which the processes are "
                                   "simulated",
                                   drafted, round.drafted));
  if (drafted == 0) throw BadInput({path, 0, 0}, "rounds that drafted nothing, allowed: at least one token");
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
  if (report.short_length == 0) {
    print_output("beyond draft length {} nothing is recorded: figures for longer drafts are a guess\n", report.draft_length);
    return;
  }
  const fit::ProcessReport& nearest = report.processes[report.nearest];
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
      "threads", text("0"), kThreadsHelp)(
      "out", po::value<std::string>(),
      "directory for fit.csv and one experiment for each process: constant, by_depth, kept_state, regimes, regimes_by_depth, "
      "requests_and_regimes");
  po::variables_map values;
  if (!parse(arguments, options, "file", "specsim fit FILE [--kind NAME] [--out DIR] [options]",
             "  specsim fit results/calibration/novels/rounds_t1.jsonl --out results/mine\n", values))
    return ExitCode::fine;
  const auto files = values.count("file") > 0 ? values["file"].as<std::vector<std::string>>() : std::vector<std::string>();
  if (files.size() != 1)
    throw BadInput(
        {"", 0, 0},
        fmt::format("{} files, allowed: one, rounds_t*.jsonl of specsim calibrate, a log of the same form, or accepted prefixes",
                    files.size()));
  const std::vector<fit::RecordedRequest> requests = fit::read_rounds(files[0], values["kind"].as<std::string>());
  check_lengths(files[0], requests);
  Progress progress("steps");
  const StopOnSignal stop;
  const fit::FitReport report = fit::fit_processes(
      requests,
      {.seed = static_cast<std::uint64_t>(read_integer(values["seed"].as<std::string>(), "--seed", config::between(0, 9e15))),
       .threads = read_threads(values["threads"].as<std::string>()),
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
  print_choice(report);
  if (values.count("out") == 0) return ExitCode::fine;
  const auto& out = values["out"].as<std::string>();
  make_directories(out);
  write_whole_file(out + "/fit.csv", csv_of(report).text());
  for (const fit::ProcessReport& one : report.processes)
    write_whole_file(fmt::format("{}/{}.yaml", out, to_text(one.model.process)),
                     one.model.yaml(report.draft_length, report.tokens, report.rounds));
  print_output("wrote {}: fit.csv, and {}.yaml for specsim run, like the others\n", out,
               to_text(report.processes[report.best].model.process));
  return ExitCode::fine;
}

}  // namespace specsim::cli
