// specsim run and specsim check: the same simulation; check ends in a verdict.
#include "sim/base/files_read.h"
#include "sim/base/memory.h"
#include "sim/base/output.h"
#include "sim/base/whole_file.h"
#include "sim/cli/check_summary.h"
#include "sim/cli/command.h"
#include "sim/cli/numbers.h"
#include "sim/cli/options.h"
#include "sim/cli/result_files.h"
#include "sim/cli/stop.h"
#include "sim/judge/coverage.h"
#include "sim/judge/rows.h"
#include "sim/run/identity.h"
#include "sim/run/runner.h"
#include "sim/run/timed.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <iterator>
#include <optional>
#include <set>

namespace specsim::cli {

namespace po = boost::program_options;

namespace {

run::Shard read_shard(const std::string& text) {
  unsigned long long index = 0;  // scanf takes "-1" for a huge number, which is out of range as well
  unsigned long long of = 0;
  char rest = 0;
  if (std::sscanf(text.c_str(), "%llu/%llu%c", &index, &of, &rest) != 2 || index < 1 || index > of || of > 100000)
    throw BadInput({"--shard", 0, 0}, fmt::format("\"{}\", allowed: i/n with 1 <= i <= n <= 100000", text));
  return {index, of};
}

// Makes the folder safe to write into: nothing in it but what may be replaced, or this run's own unfinished work.
void claim_folder(report::OutputFolder& folder, const std::string& identity, bool resume, bool force) {
  if (force) folder.remove(kJournal);
  // Whoever began an unfinished run said what may be replaced; whether it is this run the journal says itself.
  const bool begun = folder.has(kJournal);
  folder.claim({kResultFiles, identity, force || begun});
  if (resume && !begun && folder.has("manifest.yaml")) print_error("{} is finished already; running it again\n", folder.path());
}

void add_run_options(po::options_description& options, bool check) {
  options.add_options()("set", po::value<std::vector<std::string>>()->composing(),
                        "path=value: override the configs, e.g. --set rounds=1e5")(
      "out", po::value<std::string>(),
      "directory for data.csv, counts.csv, manifest.yaml and, where the cost is in seconds, waterfall.csv")(
      "threads", po::value<std::string>()->default_value("0"), kThreadsHelp)("seed", po::value<std::string>(),
                                                                             "instead of the configs' seed")(
      "shard", po::value<std::string>()->default_value("1/1"),
      "i/n: this process's share of every cell; join with specsim merge")("resume", "go on with the unfinished run in --out")(
      "force", "drop an unfinished run in --out, or replace another run's results there")(
      "dry-run", "say what it would take, and stop")("quiet", "no table, no warnings")(
      "trace", po::value<std::string>(), "FILE.json: the first cell's placement as a timeline, for Perfetto or chrome://tracing");
  if (check)
    options.add_options()("junit", po::value<std::string>(), "FILE.xml: a test for each cell, as CI servers show them")(
        "github", "print cells that disagree or were not tested as annotations of GitHub's");
}

// Throws BadInput for options that do not go together.
void check_options(const po::variables_map& values, bool shards, bool check) {
  const bool with_out = values.count("out") > 0;
  if (shards && check)
    throw BadInput({"--shard", 0, 0},
                   "given to specsim check, allowed: specsim run for each shard, then specsim merge, which judges the whole");
  if (shards && !with_out && values.count("dry-run") == 0)
    throw BadInput({"--shard", 0, 0}, "given without --out, allowed: with --out, since specsim merge needs the counts");
  if (values.count("resume") > 0 && !with_out)
    throw BadInput({"--resume", 0, 0}, "given without --out, allowed: with --out, where the unfinished run is");
  if (values.count("resume") > 0 && values.count("force") > 0)
    throw BadInput({"--resume", 0, 0}, "given together with --force, allowed: one of them");
}

// What a run of the cells would take.
void print_estimate(const std::vector<const spec::Cell*>& cells, unsigned threads) {
  const run::RunEstimate needs = run::estimate(cells, threads);
  const bool fits = needs.memory_bytes <= available_memory();
  const double seconds = fits ? run::measured_seconds(cells, threads).value_or(needs.seconds) : needs.seconds;
  print_output("{} cells, {:.4g} rounds, about {} of tables (largest set {}), about {:.{}f} s on {} threads\n", needs.cells,
               needs.rounds, bytes_text(needs.memory_bytes), bytes_text(needs.largest_tables_bytes), seconds,
               seconds < 10.0 ? 1 : 0, threads);
}

// The run's counts by cell; nothing is left of them in `result`.
std::vector<judge::Row> rows_of(const std::vector<const spec::Cell*>& cells, run::RunResult& result) {
  std::vector<judge::Row> rows(cells.size());
  for (std::size_t i = 0; i < cells.size(); ++i) {
    rows[i].cell = cells[i];
    rows[i].counts = std::move(result.counts[i]);
    rows[i].timed = std::move(result.timed[i]);
  }
  return rows;
}

ExitCode simulate(const std::vector<std::string>& arguments, bool check) {
  const std::string name = check ? "check" : "run";
  po::options_description options;
  add_run_options(options, check);
  po::variables_map values;
  if (!parse(arguments, options, "config", fmt::format("specsim {} CONFIG... [options]", name),
             fmt::format("  specsim {0} configs/quickstart.yaml\n"
                         "  specsim {0} configs/quickstart.yaml --set pair.draft.value=0.6 --set rounds=1e7 --out out/colder\n"
                         "  specsim {0} configs/quickstart.yaml --out out/q --resume\n"
                         "  specsim {0} configs/quickstart.yaml --dry-run\n",
                         name),
             values))
    return ExitCode::fine;
  if (values.count("config") == 0)
    throw BadInput({"", 0, 0}, fmt::format("specsim {} needs a config; specsim {} --help shows examples", name, name));
  const double started = wall_clock();
  run::RunOptions run;
  run.threads = read_threads(values["threads"].as<std::string>());
  run.shard = read_shard(values["shard"].as<std::string>());
  const std::string out = values.count("out") > 0 ? values["out"].as<std::string>() : "";
  if (values.count("out") > 0 && out.empty()) throw BadInput({"--out", 0, 0}, "\"\", allowed: a directory");
  check_options(values, run.shard.of > 1, check);
  const FilesRead read;
  const std::vector<spec::Experiment> experiments =
      read_experiments(values["config"].as<std::vector<std::string>>(),
                       values.count("set") > 0 ? values["set"].as<std::vector<std::string>>() : std::vector<std::string>{},
                       values.count("seed") > 0 ? values["seed"].as<std::string>() : "");
  const std::vector<const spec::Cell*> cells = cells_of(experiments);

  const std::string trace = values.count("trace") > 0 ? values["trace"].as<std::string>() : "";
  if (values.count("trace") > 0 && trace.empty()) throw BadInput({"--trace", 0, 0}, "\"\", allowed: a file");
  if (!trace.empty()) run::check_traceable(*cells.front(), {"--trace", 0, 0});
  check_not_read(trace, "--trace", read);
  const std::string junit = values.count("junit") > 0 ? values["junit"].as<std::string>() : "";
  if (values.count("junit") > 0 && junit.empty()) throw BadInput({"--junit", 0, 0}, "\"\", allowed: a file");
  check_not_read(junit, "--junit", read);

  if (values.count("dry-run") > 0) print_estimate(cells, run.threads);
  check_tables(cells, run.threads, experiments.front().file);
  if (values.count("quiet") == 0) print_warnings(cells);
  if (values.count("dry-run") > 0) return ExitCode::fine;

  const std::string identity = fmt::format("{} {}/{}", run::identity(experiments), run.shard.index, run.shard.of);
  const std::vector<FileSum> inputs = run::inputs_of(experiments, read.sums());
  std::optional<report::OutputFolder> folder;
  bool resumable = false;  // a journal was here before this run
  if (!out.empty()) {
    folder.emplace(out);
    run.resume = values.count("resume") > 0;
    claim_folder(*folder, identity, run.resume, values.count("force") > 0);
    resumable = folder->has(kJournal);
    run.journal = folder->file(kJournal);
    run.origin = run::new_origin(identity, inputs);
    run.warn = [](const std::string& what) { print_error("warning: {}\n", what); };
  }
  Progress progress;
  run.progress = [&](double done, double all) { progress.show(done, all); };
  // Theory is worked out where it is printed: by check, and for data.csv.
  judge::FactsOfCells facts;
  const bool whole = run.shard.of == 1;
  const bool judged = whole && (check || !out.empty());
  if (judged) run.observe = facts.observe();
  std::optional<StopOnSignal> stop(std::in_place);
  run.stop = stop->flag();
  run::RunResult result;
  try {
    result = run::run_cells(cells, run);
  } catch (const BadInput&) {  // a distribution that cannot be drawn: there is nothing to go on with
    if (folder && !resumable) folder->remove(kJournal);
    throw;
  }
  progress.finish();
  stop.reset();  // the journal has everything from here on
  if (!result.finished) {
    print_error("stopped before the end; {}\n", out.empty() ? "nothing was kept (no --out)"
                                                : result.journal_lost
                                                    ? "nothing was kept: the journal was removed"
                                                    : fmt::format("the same command with --resume goes on ({})", run.journal));
    return ExitCode::interrupted;
  }

  std::vector<judge::Row> rows = rows_of(cells, result);
  CheckSummary summary;
  if (judged) judge::judge_rows(rows, facts);
  if (whole) {
    std::string text;
    if (values.count("quiet") == 0) {
      text += judge::table(rows, check);
      if (!check) text += judge::no_theory_lines(judge::uncovered(cells));
    }
    if (check) {
      summary = summarise_check(rows);
      text += summary.text;
    }
    if (values.count("github") > 0) text += report::github_annotations(check_cases(rows));
    write_output(text);
    flush_output();  // before the files: whoever watches need not wait for the disk
  }
  if (folder) {
    report::Manifest manifest = new_manifest(experiments, run.threads, started);
    manifest.shard = run.shard.index;
    manifest.shards = run.shard.of;
    manifest.identity = identity;
    manifest.inputs = inputs;
    manifest.verdict = summary.verdict;
    const std::string written = write_results(*folder, rows, manifest, whole);
    folder->remove(kJournal);
    print_output("wrote {}/{}\n", out, written);
  }
  if (!junit.empty()) {
    write_whole_file(junit, report::junit_xml(check_cases(rows)));
    print_output("wrote {}\n", junit);
  }
  if (!trace.empty()) {
    run::write_trace(*cells.front(), trace);
    print_output("wrote {}\n", trace);
  }
  return summary.status;
}

}  // namespace

ExitCode run_command(const std::vector<std::string>& arguments) { return simulate(arguments, false); }
ExitCode check_command(const std::vector<std::string>& arguments) { return simulate(arguments, true); }

}  // namespace specsim::cli
