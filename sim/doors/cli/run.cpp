// specsim run and specsim check: the same simulation; check ends in a verdict.
#include "sim/doors/cli/check_summary.h"
#include "sim/doors/cli/command.h"
#include "sim/doors/cli/numbers.h"
#include "sim/doors/cli/options.h"
#include "sim/doors/cli/result_files.h"
#include "sim/doors/cli/single_file.h"
#include "sim/doors/cli/stop.h"
#include "sim/experiments/judge/coverage.h"
#include "sim/experiments/judge/draw_spread.h"
#include "sim/experiments/judge/rows.h"
#include "sim/experiments/run/identity.h"
#include "sim/experiments/run/runner.h"
#include "sim/experiments/run/timed.h"
#include "sim/foundation/base/files_read.h"
#include "sim/foundation/base/memory.h"
#include "sim/foundation/base/output.h"
#include "sim/foundation/base/plural.h"
#include "sim/foundation/base/whole_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <iterator>
#include <optional>
#include <set>

namespace specsim::cli {

namespace {

run::Shard read_shard(const std::string& text, const std::string& option) {
  unsigned long long index = 0;  // scanf reads "-1" as a huge number, which is out of range as well
  unsigned long long of = 0;
  char rest = 0;
  if (std::sscanf(text.c_str(), "%llu/%llu%c", &index, &of, &rest) != 2 || index < 1 || index > of || of > 100000)
    throw BadInput({option, 0, 0}, fmt::format("\"{}\", allowed: i/n with 1 <= i <= n <= 100000", text));
  return {index, of};
}

struct RunTask {
  ConfigOptions configs;
  std::vector<spec::Experiment> experiments;
  std::vector<FileSum> inputs;  // files that the experiments read
  run::RunOptions run;          // threads, shard, resume; the rest is set in run_task()
  std::string identity;
  std::string out;    // directory; empty: no files
  std::string trace;  // file; empty: none
  std::string junit;  // file; empty: none
  bool github = false;
  bool force = false;
  bool dry_run = false;
  bool quiet = false;
  [[nodiscard]] bool whole() const { return run.shard.of == 1; }
};

void add_run_options(CommandLine& line, RunTask& task, bool check) {
  task.run.threads = 0;
  line.add_words("config", task.configs.files);
  line.add(
      {{"set", task.configs.sets, "path=value: override the configs, e.g. --set rounds=1e5"},
       {"out", task.out, directory_name,
        "directory for data.csv, counts.csv, manifest.yaml and, if the cost is in seconds, waterfall.csv"},
       {"threads", task.run.threads, read_threads, kThreadsHelp},
       {"seed", task.configs.seed, "replaces the configs' seed"},
       {"shard", task.run.shard, read_shard, "i/n: this process's share of every cell; join with specsim merge"},
       {"resume", task.run.resume, "continue the unfinished run in --out"},
       {"force", task.force,
        "delete an unfinished run, and replace another run's results or other files, in --out and where other options "
        "write"},
       {"dry-run", task.dry_run, "print the estimated cost, and stop"},
       {"quiet", task.quiet,
        check ? "no table, no warnings and no progress; the verdict is still printed" : "no table, no warnings and no progress"},
       {"trace", task.trace, file_name,
        "FILE.json: the first cell's placement as a timeline, for Perfetto or chrome://tracing"}});
  if (check)
    line.add({{"junit", task.junit, file_name, "FILE.xml: one test per cell, for CI servers"},
              {"github", task.github, "print cells that disagree or were not tested as GitHub annotations"}});
}

// Throws BadInput for incompatible options.
void check_options(const CommandLine& line, const RunTask& task, bool check) {
  line.check(
      {{"force", check ? std::vector<std::string>{"out", "trace", "junit"} : std::vector<std::string>{"out", "trace"}, {}, ""}});
  if (!task.whole() && check)
    throw BadInput({"--shard", 0, 0},
                   "given to specsim check, allowed: specsim run for each shard, then specsim merge, which judges the whole");
  if (!task.whole() && task.out.empty() && !task.dry_run)
    throw BadInput({"--shard", 0, 0}, "given without --out, allowed: with --out, since specsim merge needs the counts");
  if (task.run.resume && task.out.empty())
    throw BadInput({"--resume", 0, 0}, "given without --out, allowed: with the --out of the unfinished run");
  if (task.run.resume && task.force) throw BadInput({"--resume", 0, 0}, "given together with --force, allowed: one of them");
}

// Prints the estimated cost of a run.
void print_estimate(const std::vector<const spec::Cell*>& cells, unsigned threads) {
  const run::RunEstimate needs = run::estimate(cells, threads);
  const bool fits = needs.memory_bytes <= available_memory();
  const double seconds = fits ? run::measured_seconds(cells, threads).value_or(needs.seconds) : needs.seconds;
  print_output("{}, {:.4g} rounds, about {} of tables (largest set {}), about {:.{}f} s on {}\n", plural(needs.cells, "cell"),
               needs.rounds, bytes_text(needs.memory_bytes), bytes_text(needs.largest_tables_bytes), seconds,
               seconds < 10.0 ? 1 : 0, plural(threads, "thread"));
}

// Moves the run's counts by cell out of `result`.
std::vector<judge::Row> rows_of(const std::vector<const spec::Cell*>& cells, run::RunResult& result) {
  std::vector<judge::Row> rows(cells.size());
  for (std::size_t i = 0; i < cells.size(); ++i) {
    rows[i].cell = cells[i];
    rows[i].counts = std::move(result.counts[i]);
    rows[i].timed = result.timed[i];
  }
  return rows;
}

// `read`: the files that are read from here on, which the trace must not replace. Throws BadInput.
void read_inputs(RunTask& task, const FilesRead& read) {
  task.experiments = read_experiments(task.configs);
  if (!task.trace.empty()) run::check_traceable(*cells_of(task.experiments).front(), {"--trace", 0, 0});
  check_single_files({{"--trace", task.trace, kTimelineStart}, {"--junit", task.junit, kJunitStart}}, read, task.out,
                     kResultFiles, task.force);
  task.identity = fmt::format("{} {}", run::identity(task.experiments), to_text(task.run.shard));
  task.inputs = run::inputs_of(task.experiments, read.sums());
}

// Runs the cells, with a journal if there is a folder. `facts` are gathered if they are judged.
run::RunResult run_task(const RunTask& task, const std::vector<const spec::Cell*>& cells, report::OutputFolder* folder,
                        judge::FactsOfCells* facts) {
  run::RunOptions how = task.run;
  bool resumable = false;  // a journal existed before this run
  if (folder != nullptr) {
    claim_run(*folder, kResultFiles, task.identity, task.inputs, task.run.resume, task.force);
    resumable = folder->has(kJournal);
    how.journal = folder->file(kJournal);
    how.origin = run::new_origin(task.identity, task.inputs);
    // A damaged file is reported even with --quiet.
    how.warn = [](const std::string& what) { print_error("warning: {}\n", what); };
  }
  Progress progress;
  how.progress = [&](double done, double all) { progress.show(done, all); };
  if (facts != nullptr) how.observe = facts->observe();
  const StopOnSignal stop;  // after this the journal has everything
  how.stop = stop.flag();
  try {
    return run::run_cells(cells, how);
  } catch (const BadInput&) {  // a distribution cannot be drawn, so the run cannot be resumed
    if (folder != nullptr && !resumable) folder->remove(kJournal);
    throw;
  }
}

// Prints the results of all rounds together: the table, and check's verdict.
CheckSummary print_rows(const std::vector<judge::Row>& rows, const std::vector<const spec::Cell*>& cells, const RunTask& task,
                        bool check) {
  CheckSummary summary;
  std::string text;
  if (!task.quiet) {
    const StopOnSignal stop;
    run::RunOptions how;
    how.threads = task.run.threads;
    how.stop = stop.flag();
    text += judge::table(rows, check, judge::draw_spreads(judge::cells_to_draw_again(rows), how));
    if (!check) text += judge::no_theory_lines(judge::uncovered(cells));
  }
  if (check) {
    summary = summarise_check(rows);
    text += summary.text;
  }
  if (task.github) text += report::github_annotations(check_cases(rows));
  write_output(text);
  flush_output();  // before the files, so that the user need not wait for the disk
  return summary;
}

ExitCode simulate(const std::vector<std::string>& arguments, bool check) {
  const std::string name = check ? "check" : "run";
  RunTask task;
  CommandLine line(
      fmt::format("specsim {} CONFIG... [options]", name),
      fmt::format("  specsim {0} configs/quickstart.yaml\n"
                  "  specsim {0} configs/quickstart.yaml --set pair.draft.value=0.6 --set rounds=1e7 --out out/colder\n"
                  "  specsim {0} configs/quickstart.yaml --out out/q --resume\n"
                  "  specsim {0} configs/quickstart.yaml --dry-run\n",
                  name));
  add_run_options(line, task, check);
  if (!line.read(arguments)) return ExitCode::fine;
  line.require("config", "a config");
  const double started = wall_clock();
  const FilesRead read;
  check_options(line, task, check);
  read_inputs(task, read);
  const std::vector<const spec::Cell*> cells = cells_of(task.experiments);
  if (task.dry_run) print_estimate(cells, task.run.threads);
  check_tables(cells, task.run.threads, task.experiments.front().file);
  print_warnings(cells);
  if (task.dry_run) return ExitCode::fine;

  std::optional<report::OutputFolder> folder;
  if (!task.out.empty()) folder.emplace(task.out);
  // Theory is computed only if it is printed: by check, and for data.csv.
  judge::FactsOfCells facts;
  const bool judged = task.whole() && (check || folder);
  run::RunResult result = run_task(task, cells, folder ? &*folder : nullptr, judged ? &facts : nullptr);
  if (!result.finished) {
    print_error("stopped before the end; {}\n", folder ? result.how_to_continue : "nothing was kept (no --out)");
    return ExitCode::interrupted;
  }

  std::vector<judge::Row> rows = rows_of(cells, result);
  if (judged) judge::judge_rows(rows, facts);
  const CheckSummary summary = task.whole() ? print_rows(rows, cells, task, check) : CheckSummary{};
  if (folder) {
    report::Manifest manifest = new_manifest(task.experiments, task.run.threads, started);
    manifest.shard = task.run.shard.index;
    manifest.shards = task.run.shard.of;
    manifest.identity = task.identity;
    manifest.inputs = task.inputs;
    manifest.verdict = summary.verdict;
    const std::string written = write_results(*folder, rows, manifest, task.whole());
    folder->remove(kJournal);
    print_output("wrote {}/{}\n", task.out, written);
  }
  if (!task.junit.empty()) {
    write_whole_file(task.junit, report::junit_xml(check_cases(rows)));
    print_output("wrote {}\n", task.junit);
  }
  if (!task.trace.empty()) {
    run::write_trace(*cells.front(), task.trace);
    print_output("wrote {}\n", task.trace);
  }
  return summary.status;
}

}  // namespace

ExitCode run_command(const std::vector<std::string>& arguments) { return simulate(arguments, false); }
ExitCode check_command(const std::vector<std::string>& arguments) { return simulate(arguments, true); }

}  // namespace specsim::cli
