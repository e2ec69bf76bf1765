// specsim fit: which of the simulator's context processes reproduces recorded acceptance.
#include "sim/doors/cli/command.h"
#include "sim/doors/cli/fit_report.h"
#include "sim/doors/cli/fit_table.h"
#include "sim/doors/cli/numbers.h"
#include "sim/doors/cli/option_partners.h"
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

namespace po = boost::program_options;

namespace {

void add_fit_options(po::options_description& description) {
  const auto text = [](const char* fallback) { return po::value<std::string>()->default_value(fallback); };
  description.add_options()("kind", text(""), "only requests of this kind")("seed", text("0"), "seed of the bootstrap")(
      "draft-length", po::value<std::string>(),
      "fit the rounds of this draft length; accepted prefixes by position hold every one up to their own, and the longer ones "
      "then judge the fit (default: the longest)")(
      "held-out", text(""), "recorded rounds at other draft lengths, to judge the fit by")("threads", text("0"), kThreadsHelp)(
      "out", po::value<std::string>(),
      "directory for fit.csv, one experiment for each process (constant, by_depth, kept_state, regimes, regimes_by_depth, "
      "requests_and_regimes) and spread.yaml: synthetic distributions like those of the record; of recorded overlaps and "
      "distributions that alone, and of a table")(
      "temperature", po::value<std::string>(),
      "temperature of decoding of a table that does not state it (default: 0, and the fit says so)")("force", kForceHelp);
}

// The one file that the processes are fitted to.
std::string recorded_file(const Options& options) {
  const std::vector<std::string> files = options.texts("file");
  if (files.size() != 1)
    throw BadInput(
        {"", 0, 0},
        fmt::format(
            "{} files, allowed: one, rounds_t*.jsonl of specsim calibrate, a log of the same form, accepted prefixes, or a "
            "table of acceptance",
            files.size()));
  return files[0];
}

using Claim = std::function<report::OutputClaim(std::vector<std::string> names)>;

void refuse(const Options& options, const std::vector<const char*>& names, const char* allowed) {
  for (const char* name : names)
    if (options.has(name) && !options.text(name).empty())
      throw BadInput({fmt::format("--{}", name), 0, 0}, fmt::format("{}, allowed: {}", options.text(name), allowed));
}

// spread.yaml alone, with what led to it.
void write_spread(const Options& options, report::OutputFolder& folder, const std::string& yaml, double started) {
  folder.write(fit::kSpreadFile, yaml);
  report::Manifest manifest = report::new_manifest(command_line());
  manifest.files = options.texts("file");
  manifest.configs = {"{}"};
  manifest.cells = 1;
  manifest.wall_seconds = wall_clock() - started;
  folder.finish(manifest);
  print_output("wrote {}: {} for specsim run and compare\n", folder.path(), fit::kSpreadFile);
}

void claim_spread(const Options& options, const Claim& claim, std::optional<report::OutputFolder>& folder) {
  if (!options.has("out")) return;
  folder.emplace(options.text("out"));
  folder->claim(claim({fit::kSpreadFile}));
}

// Distributions whose acceptance is that of a table.
void fit_published(const Options& options, const NamedTable& table, const Claim& claim, double started) {
  refuse(options, {"kind", "draft-length", "held-out"}, "with recorded acceptance");
  const fit::TableFit fit = fit::fit_table(table.record);
  std::optional<report::OutputFolder> folder;
  if (!fit.fails()) claim_spread(options, claim, folder);
  print_table_fit(table, fit);
  if (fit.fails())
    throw BadInput(table.where, fmt::format("out of reach: {}; allowed: a table that the family of distributions can meet",
                                            fit.out_of_reach()));
  if (!fit.out_of_reach().empty()) print_warning(fmt::format("out of reach: {}", fit.out_of_reach()));
  if (!fit.warning().empty()) print_warning(fit.warning());
  if (folder) write_spread(options, *folder, fit.yaml(), started);
}

// Distributions like those of the record, where it holds more than outcomes: the fit is then of these alone.
void fit_distributions(const Options& options, const fit::SpreadRecord& record, const Claim& claim, double started) {
  refuse(options, {"draft-length", "held-out"}, "with recorded rounds or accepted prefixes");
  std::optional<report::OutputFolder> folder;
  claim_spread(options, claim, folder);
  const fit::SpreadFit fit = fit::fit_spread(record);
  print_spread(fit);
  if (!fit.warning().empty()) print_warning(fit.warning());
  if (folder) write_spread(options, *folder, fit.yaml(), started);
}

fit::FitData read_data(const Options& options) {
  const std::string file = recorded_file(options);
  const int draft_length =
      options.has("draft-length")
          ? static_cast<int>(read_integer(options.text("draft-length"), "--draft-length", config::between(1, kMaxDraftLength)))
          : 0;
  return fit::read_fit_data(file, options.text("held-out"), options.text("kind"), draft_length);
}

}  // namespace

ExitCode fit_command(const std::vector<std::string>& arguments) {
  po::options_description description;
  add_fit_options(description);
  po::variables_map values;
  if (!parse(arguments, description, "file",
             "specsim fit FILE [--draft-length K] [--held-out FILE] [--kind NAME] [--out DIR] [options]",
             "  specsim fit results/calibration/novels/rounds_t1.jsonl --out results/mine\n"
             "  specsim fit eagle-vicuna-7b-chat --out results/mine    (a table of acceptance: a name, or a .yaml file)\n",
             values))
    return ExitCode::fine;
  const double started = wall_clock();
  const Options options(values);
  check_partners(values, {{"force", {"out"}, {}, ""}});
  const FilesRead read;
  const Claim claim = [&](std::vector<std::string> names) {
    return claim_at_once(std::move(names), command_identity("fit", values, {"file"}), options.has("force"), read.sums());
  };
  const std::optional<NamedTable> table =
      find_table(recorded_file(options), options.has("temperature") ? options.text("temperature") : "");
  if (table) {
    fit_published(options, *table, claim, started);
    return ExitCode::fine;
  }
  refuse(options, {"temperature"}, "with a table of acceptance, for a record has its own");
  const fit::SpreadRecord positions = fit::read_spread_record(recorded_file(options), options.text("kind"));
  if (!positions.outcomes) {
    fit_distributions(options, positions, claim, started);
    return ExitCode::fine;
  }
  fit::FitData data = read_data(options);
  std::optional<report::OutputFolder> folder;
  if (options.has("out")) {
    folder.emplace(options.text("out"));
    std::vector<std::string> names = fit::fit_file_names();
    names.emplace_back(fit::kSpreadFile);
    folder->claim(claim(std::move(names)));
  }
  fit::FitRun run;
  run.threads = read_threads(options.text("threads"));
  run.seed = static_cast<std::uint64_t>(read_integer(options.text("seed"), "--seed", config::between(0, 9e15)));
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
  manifest.files = options.texts("file");
  manifest.configs = {"{}"};
  manifest.cells = report.processes.size();
  manifest.wall_seconds = wall_clock() - started;
  folder->finish(manifest);
  print_output("wrote {}: fit.csv, and {}.yaml for specsim run, like the others\n", folder->path(),
               to_text(report.processes[report.best].model.process));
  return ExitCode::fine;
}

}  // namespace specsim::cli
