// specsim fit: which of the simulator's context processes reproduces recorded acceptance.
#include "sim/doors/cli/command.h"
#include "sim/doors/cli/fit_report.h"
#include "sim/doors/cli/fit_table.h"
#include "sim/doors/cli/options.h"
#include "sim/doors/cli/result_files.h"
#include "sim/doors/cli/stop.h"
#include "sim/experiments/fit/fit_files.h"
#include "sim/experiments/fit/spread_fit.h"
#include "sim/foundation/base/files_read.h"
#include "sim/foundation/base/output.h"
#include "sim/foundation/report/output_folder.h"

#include <fmt/format.h>

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace specsim::cli {

namespace {

struct FitOptions {
  std::vector<std::string> files;
  std::string kind;
  std::uint64_t seed = 0;
  std::optional<int> draft_length;
  std::string held_out;
  unsigned threads = 0;
  std::optional<std::string> out;
  std::string temperature;
  bool force = false;
};

void add_fit_options(CommandLine& line, FitOptions& options) {
  line.add_words("file", options.files);
  line.add({{"kind", options.kind, "only requests of this kind"},
            {"seed", options.seed, config::between(0, 9e15), "seed of the bootstrap"},
            {"draft-length", options.draft_length, config::between(1, kMaxDraftLength),
             "fit the rounds of this draft length; accepted prefixes by position contain every shorter length, and longer ones "
             "then test the fit (default: the longest)"},
            {"held-out", options.held_out, "recorded rounds at other draft lengths, which test the fit"},
            {"threads", options.threads, read_threads, kThreadsHelp},
            {"out", options.out,
             "directory for fit.csv, one experiment for each process (constant, by_depth, kept_state, regimes, regimes_by_depth, "
             "requests_and_regimes) and spread.yaml: synthetic distributions like those of the record; for recorded overlaps and "
             "distributions, and for a table, only spread.yaml"},
            {"temperature", options.temperature,
             "temperature of decoding of a table that does not state it (default: 0, which the fit reports)"},
            {"force", options.force, kForceHelp}});
}

using Claim = std::function<report::OutputClaim(std::vector<std::string> names)>;

void refuse(const CommandLine& line, const std::vector<std::string>& names, const char* allowed) {
  for (const std::string& name : names)
    if (const std::string text = line.text(name); !text.empty())
      throw BadInput({"--" + name, 0, 0}, fmt::format("{}, allowed: {}", text, allowed));
}

// Writes only spread.yaml, with the inputs of the fit.
void write_spread(const FitOptions& options, report::OutputFolder& folder, const std::string& yaml, double started) {
  folder.write(fit::kSpreadFile, yaml);
  report::Manifest manifest = report::new_manifest(command_line());
  manifest.files = options.files;
  manifest.configs = {"{}"};
  manifest.cells = 1;
  manifest.wall_seconds = wall_clock() - started;
  folder.finish(manifest);
  print_output("wrote {}: {} for specsim run and compare\n", folder.path(), fit::kSpreadFile);
}

void claim_spread(const FitOptions& options, const Claim& claim, std::optional<report::OutputFolder>& folder) {
  if (!options.out) return;
  folder.emplace(*options.out);
  folder->claim(claim({fit::kSpreadFile}));
}

// Fits distributions to a table's acceptance.
void fit_published(const CommandLine& line, const FitOptions& options, const NamedTable& table, const Claim& claim,
                   double started) {
  refuse(line, {"kind", "draft-length", "held-out"}, "with recorded acceptance");
  const fit::TableFit fit = fit::fit_table(table.record);
  std::optional<report::OutputFolder> folder;
  if (!fit.fails()) claim_spread(options, claim, folder);
  print_table_fit(table, fit);
  if (fit.fails())
    throw BadInput(table.where, fmt::format("not matched: {}; allowed: a table that the family of distributions can match",
                                            fit.out_of_reach()));
  if (!fit.out_of_reach().empty()) print_warning(fmt::format("not matched: {}", fit.out_of_reach()));
  if (!fit.warning().empty()) print_warning(fit.warning());
  if (folder) write_spread(options, *folder, fit.yaml(), started);
}

// Fits distributions to the record, if it contains more than outcomes. Then no process is fitted.
void fit_distributions(const CommandLine& line, const FitOptions& options, const fit::SpreadRecord& record, const Claim& claim,
                       double started) {
  refuse(line, {"draft-length", "held-out"}, "with recorded rounds or accepted prefixes");
  std::optional<report::OutputFolder> folder;
  claim_spread(options, claim, folder);
  const fit::SpreadFit fit = fit::fit_spread(record);
  print_spread(fit);
  if (!fit.warning().empty()) print_warning(fit.warning());
  if (folder) write_spread(options, *folder, fit.yaml(), started);
}

}  // namespace

ExitCode fit_command(const std::vector<std::string>& arguments) {
  FitOptions options;
  CommandLine line("specsim fit FILE [--draft-length K] [--held-out FILE] [--kind NAME] [--out DIR] [options]",
                   "  specsim fit results/calibration/novels/rounds_t1.jsonl --out results/mine\n"
                   "  specsim fit eagle-vicuna-7b-chat --out results/mine    (a table of acceptance: a name, or a .yaml file)\n");
  add_fit_options(line, options);
  if (!line.read(arguments)) return ExitCode::fine;
  const double started = wall_clock();
  line.check({{"force", {"out"}, {}, ""}});
  // The one file that the processes are fitted to.
  if (options.files.size() != 1)
    throw BadInput(
        {"", 0, 0},
        fmt::format(
            "{} files, allowed: one, rounds_t*.jsonl of specsim calibrate, a log of the same form, accepted prefixes, or a "
            "table of acceptance",
            options.files.size()));
  const std::string& file = options.files.front();
  const FilesRead read;
  const Claim claim = [&](std::vector<std::string> names) {
    return claim_at_once(std::move(names), line.identity(), options.force, read.sums());
  };
  const std::optional<NamedTable> table = find_table(file, options.temperature);
  if (table) {
    fit_published(line, options, *table, claim, started);
    return ExitCode::fine;
  }
  refuse(line, {"temperature"}, "with a table of acceptance, since a record has its own");
  const fit::SpreadRecord positions = fit::read_spread_record(file, options.kind);
  if (!positions.outcomes) {
    fit_distributions(line, options, positions, claim, started);
    return ExitCode::fine;
  }
  fit::FitData data = fit::read_fit_data(file, options.held_out, options.kind, options.draft_length.value_or(0));
  std::optional<report::OutputFolder> folder;
  if (options.out) {
    folder.emplace(*options.out);
    std::vector<std::string> names = fit::fit_file_names();
    names.emplace_back(fit::kSpreadFile);
    folder->claim(claim(std::move(names)));
  }
  fit::FitRun run;
  run.threads = options.threads;
  run.seed = options.seed;
  run.held_out = std::move(data.held_out);
  Progress progress("steps");
  run.progress = [&](double done, double all) { progress.show(done, all); };
  const StopOnSignal stop;
  run.stop = stop.flag();
  const fit::FitReport report = fit::fit_processes(data.requests, run);
  progress.finish();
  if (report.processes.empty()) {
    print_error("stopped before the end; nothing was kept\n");
    return ExitCode::interrupted;
  }
  print_fit(report);
  if (!folder) return ExitCode::fine;
  for (const auto& [name, content] : fit::fit_files(report)) folder->write(name, content);
  const fit::SpreadFit spread = fit::fit_spread(positions);
  if (!spread.warning().empty()) print_warning(spread.warning());
  folder->write(fit::kSpreadFile, spread.yaml());
  report::Manifest manifest = report::new_manifest(command_line());
  manifest.threads = run.threads;
  manifest.files = options.files;
  manifest.configs = {"{}"};
  manifest.cells = report.processes.size();
  manifest.wall_seconds = wall_clock() - started;
  folder->finish(manifest);
  print_output("wrote {}: fit.csv, and {}.yaml for specsim run, like the others\n", folder->path(),
               to_text(report.processes[report.best].model.process));
  return ExitCode::fine;
}

}  // namespace specsim::cli
