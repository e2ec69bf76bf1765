// specsim fit: which of the simulator's context processes reproduces recorded acceptance.
#include "sim/base/output.h"
#include "sim/base/whole_file.h"
#include "sim/cli/command.h"
#include "sim/cli/numbers.h"
#include "sim/cli/options.h"
#include "sim/cli/stop.h"
#include "sim/fit/process_fit.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <iterator>

namespace specsim::cli {

namespace po = boost::program_options;

namespace {

std::string parameters_text(const fit::FittedProcess& model) {
  std::string text;
  for (std::size_t s = 0; s < model.start.size(); ++s) {
    fmt::format_to(std::back_inserter(text), "{}alpha {:.3f}", s == 0 ? "" : "; ", fmt::join(model.alpha[s], " "));
    if (model.process == fit::Process::kept_state) fmt::format_to(std::back_inserter(text), " weight {:.3f}", model.start[s]);
    if (model.process == fit::Process::regimes)
      fmt::format_to(std::back_inserter(text), " then {:.3f}", fmt::join(model.transition[s], " "));
  }
  return text;
}

}  // namespace

ExitCode fit_command(const std::vector<std::string>& arguments) {
  po::options_description options;
  const auto text = [](const char* fallback) { return po::value<std::string>()->default_value(fallback); };
  options.add_options()("kind", text(""), "only requests of this kind")("seed", text("0"), "of the bootstrap")(
      "threads", text("0"), kThreadsHelp)(
      "out", po::value<std::string>(),
      "directory for fit.csv and one experiment for each process: constant, by_depth, kept_state, regimes");
  po::variables_map values;
  if (!parse(arguments, options, "file", "specsim fit FILE [--kind NAME] [--out DIR] [options]",
             "  specsim fit results/calibration/novels/rounds_t1.jsonl --out results/mine\n", values))
    return ExitCode::fine;
  const auto files = values.count("file") > 0 ? values["file"].as<std::vector<std::string>>() : std::vector<std::string>();
  if (files.size() != 1)
    throw BadInput(
        {"", 0, 0},
        fmt::format("{} files, allowed: one, rounds_t*.jsonl of specsim calibrate or a log of the same form", files.size()));
  const std::vector<fit::RecordedRequest> requests = fit::read_rounds(files[0], values["kind"].as<std::string>());
  for (const fit::RecordedRequest& request : requests)
    for (const fit::RecordedRound& round : request.rounds)
      if (round.drafted != requests[0].rounds[0].drafted)
        throw BadInput({files[0], 0, 0},
                       fmt::format("rounds that drafted {} and {} tokens, allowed: one draft length, at which the processes are "
                                   "simulated",
                                   requests[0].rounds[0].drafted, round.drafted));
  if (requests[0].rounds[0].drafted == 0)
    throw BadInput({files[0], 0, 0}, "rounds that drafted nothing, allowed: at least one token");
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
  print_output(
      "{} requests, draft length {}: {:.4f} tokens per round\n\n{:<12}{:>11}{:>11}{:>9}{:>9}{:>11}  {:>7}{:>7}{:>7}{:>9}\n",
      requests.size(), report.draft_length, report.tokens_per_round, "process", "parameters", "held out", "behind", "+-",
      "tok/round", "depth", "distribution", "runs", "requests");
  std::string csv =
      "process,parameters,log_likelihood,held_out,behind_best,behind_se,tokens_per_round,p_by_depth,p_accepted,p_runs,p_requests,"
      "rejected,use\n";
  for (std::size_t i = 0; i < report.processes.size(); ++i) {
    const fit::ProcessReport& one = report.processes[i];
    const char* const name = to_text(one.model.process);
    print_output("{:<12}{:>11}{:>11.5f}{:>9.5f}{:>9.5f}{:>11.4f}  {:>7.3f}{:>7.3f}{:>7.3f}{:>9.3f}  {}\n", name,
                 one.model.parameters(), one.held_out, one.behind_best, one.behind_error, one.tokens_per_round, one.p_by_depth,
                 one.p_accepted, one.p_runs, one.p_requests, one.rejected() ? "rejected" : "");
    fmt::format_to(std::back_inserter(csv), "{},{},{:.6g},{:.6g},{:.4g},{:.4g},{:.6g},{:.3g},{:.3g},{:.3g},{:.3g},{},{}\n", name,
                   one.model.parameters(), one.log_likelihood, one.held_out, one.behind_best, one.behind_error,
                   one.tokens_per_round, one.p_by_depth, one.p_accepted, one.p_runs, one.p_requests, one.rejected() ? 1 : 0,
                   i == report.best ? 1 : 0);
  }
  print_output(
      "\ndepth, distribution, runs, requests: p-values from {} data sets of the fitted model; its parameters are not fitted "
      "again to "
      "each, so p is\ntoo large if anything\n\n",
      fit::kReplicates);
  for (const fit::ProcessReport& one : report.processes)
    print_output("{:<12}{}\n", to_text(one.model.process), parameters_text(one.model));
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
  if (values.count("out") == 0) return ExitCode::fine;
  const auto& out = values["out"].as<std::string>();
  make_directories(out);
  write_whole_file(out + "/fit.csv", csv);
  for (const fit::ProcessReport& one : report.processes)
    write_whole_file(fmt::format("{}/{}.yaml", out, to_text(one.model.process)),
                     one.model.yaml(report.draft_length, report.tokens, report.rounds));
  print_output("wrote {}: fit.csv, and {}.yaml for specsim run, like the others\n", out, to_text(best.model.process));
  return ExitCode::fine;
}

}  // namespace specsim::cli
