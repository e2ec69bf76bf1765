// specsim merge: adds up the counts of shards, and computes all other results from them.
#include "sim/doors/cli/check_summary.h"
#include "sim/doors/cli/command.h"
#include "sim/doors/cli/options.h"
#include "sim/doors/cli/result_files.h"
#include "sim/experiments/judge/rows.h"
#include "sim/experiments/run/counts_file.h"
#include "sim/experiments/run/identity.h"
#include "sim/foundation/base/checksum.h"
#include "sim/foundation/base/files_read.h"
#include "sim/foundation/base/output.h"
#include "sim/foundation/base/whole_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <utility>

namespace specsim::cli {

namespace {

// The shards of one run, and the contents of their manifests, which must agree.
struct Shards {
  std::vector<spec::Experiment> experiments;
  std::string identity;            // of the whole run, without the shard
  std::vector<std::string> files;  // the configs in the first manifest, which all others must list too; read once
  std::vector<std::string> configs;
  std::vector<FileSum> inputs;
  double seconds = 0.0;  // wall time of all shards, added up
  unsigned threads = 1;
  std::uint64_t of = 0;
  std::map<std::uint64_t, std::string> directories;       // [number of the shard]
  std::map<std::uint64_t, std::vector<FileSum>> results;  // files in its manifest
};

// The directories of shards: those named, or all in a named folder that is not a shard itself, sorted by name, without `out`. A
// folder allows more shards than fit on a command line.
std::vector<std::string> shard_directories(const std::vector<std::string>& named, const std::string& out) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  const auto is_shard = [&](const fs::path& folder) {
    return fs::exists(folder / "manifest.yaml", ignored) || fs::exists(folder / kJournal, ignored);
  };
  std::vector<std::string> directories;
  for (const std::string& name : named) {
    std::vector<std::string> within;
    if (!is_shard(name))
      for (const auto& entry : fs::directory_iterator(name, ignored))
        if (is_shard(entry.path()) && !fs::equivalent(entry.path(), out, ignored)) within.push_back(entry.path().string());
    if (within.empty()) within.push_back(name);
    std::sort(within.begin(), within.end());
    directories.insert(directories.end(), within.begin(), within.end());
  }
  return directories;
}

// Throws BadInput if another program version made the shard, or if its run is unfinished.
report::Manifest read_shard_manifest(const std::string& directory) {
  std::error_code ignored;
  const std::string path = directory + "/manifest.yaml";
  if (std::filesystem::exists(directory + "/" + kJournal, ignored))
    throw BadInput({directory + "/" + kJournal, 0, 0},
                   "the run of this shard is unfinished, allowed: finish it with --resume, or run it again with --force");
  report::Manifest own = report::read_manifest(path);
  const report::Manifest mine = report::new_manifest("");
  if (own.commit != mine.commit || own.version != mine.version)
    throw BadInput({path, 0, 0}, fmt::format("was made by specsim {} ({}), and this is {} ({}), allowed: shards of the program "
                                             "that joins them",
                                             own.version, own.commit, mine.version, mine.commit));
  return own;
}

// Throws BadInput unless the shard belongs to the same run as those before it.
void add_shard(const std::string& directory, const std::string& first, Shards& shards) {
  const std::string path = directory + "/manifest.yaml";
  const report::Manifest own = read_shard_manifest(directory);
  if (shards.of == 0 || own.configs != shards.configs || own.files != shards.files) {
    Diagnostics diagnostics;
    std::vector<spec::Experiment> parsed;
    const FilesRead read;
    for (std::size_t i = 0; i < own.configs.size(); ++i)
      parsed.push_back(spec::read_experiment_text(own.configs[i], own.files[i], {}, diagnostics));
    diagnostics.throw_if_any();
    const std::string name = run::identity(parsed);
    if (shards.of == 0) {
      shards.of = own.shards;
      shards.identity = name;
      shards.files = own.files;
      shards.configs = own.configs;
    }
    if (name != shards.identity)
      throw BadInput({path, 0, 0},
                     fmt::format("belongs to another run than {}: their configs differ, allowed: shards of one run", first));
    shards.inputs = run::inputs_of(parsed, read.sums());
    if (shards.experiments.empty()) shards.experiments = std::move(parsed);
  }
  shards.seconds += own.wall_seconds;
  shards.threads = std::max(shards.threads, own.threads);
  if (const std::string changed = run::changed_inputs(own.inputs, shards.inputs); !changed.empty())
    throw BadInput({path, 0, 0}, changed + ", allowed: the files that the shard was run with");
  if (own.shards != shards.of)
    throw BadInput({path, 0, 0}, fmt::format("is shard {}/{}, allowed: one of {}", own.shard, own.shards, shards.of));
  shards.results[own.shard] = own.results;
  const auto [place, added] = shards.directories.emplace(own.shard, directory);
  if (!added)
    throw BadInput({path, 0, 0}, fmt::format("is shard {}/{}, and so is {}: shards overlap, allowed: each shard once", own.shard,
                                             shards.of, place->second));
}

// All shards of a run. Throws BadInput if one is missing or given twice.
Shards read_shards(const std::vector<std::string>& directories) {
  Shards shards;
  for (const std::string& directory : directories) add_shard(directory, directories.front(), shards);
  for (std::uint64_t i = 1; i <= shards.of; ++i)
    if (shards.directories.count(i) == 0)
      throw BadInput({directories.front(), 0, 0}, fmt::format("shard {}/{} is missing: {} of {} given, allowed: all of them", i,
                                                              shards.of, shards.directories.size(), shards.of));
  return shards;
}

// Adds the counts of all shards to those of the rows. Throws BadInput if counts do not match a manifest's checksum, or do not
// add up to the whole run.
void add_counts(const Shards& shards, const std::string& first, std::vector<judge::Row>& rows) {
  std::map<std::pair<std::string, std::size_t>, decode::Counts*> counts;
  for (judge::Row& row : rows) counts[{row.cell->experiment, row.cell->index}] = &row.counts;
  for (const auto& [index, directory] : shards.directories) {
    const std::string path = directory + "/counts.csv";
    const std::string text = read_written_file(path);
    run::add_counts_csv(path, text, counts);
    const std::vector<FileSum>& listed = shards.results.at(index);
    if (std::find(listed.begin(), listed.end(), FileSum{"counts.csv", checksum(text)}) == listed.end())
      throw BadInput({path, 0, 0}, "does not match the checksum in its manifest, allowed: counts as they were written");
  }
  for (const judge::Row& row : rows) {
    const std::string wrong = run::incompleteness(*row.cell, row.counts);
    if (!wrong.empty())
      throw BadInput({first, 0, 0}, fmt::format("the shards' counts do not add up to the whole: {} cell {}: {}",
                                                row.cell->experiment, row.cell->index, wrong));
  }
}

// Rows of the whole run, judged.
std::vector<judge::Row> merged_rows(const Shards& shards, const std::string& first) {
  const std::vector<const spec::Cell*> cells = cells_of(shards.experiments);
  judge::FactsOfCells facts;
  run::RunOptions options;
  options.observe = facts.observe();
  run::RunResult prepared = run::prepare_cells(cells, options);
  std::vector<judge::Row> rows(cells.size());
  for (std::size_t i = 0; i < cells.size(); ++i) {
    rows[i].cell = cells[i];
    rows[i].counts = std::move(prepared.counts[i]);
    rows[i].timed = prepared.timed[i];
  }
  add_counts(shards, first, rows);
  judge::judge_rows(rows, facts);
  return rows;
}

}  // namespace

ExitCode merge_command(const std::vector<std::string>& arguments) {
  std::vector<std::string> named;
  std::string out;
  bool force = false;
  CommandLine line(
      "specsim merge DIR... --out DIR",
      "  specsim run configs/quickstart.yaml --shard 1/2 --out out/a\n  specsim run configs/quickstart.yaml --shard 2/2 "
      "--out out/b\n"
      "  specsim merge out/a out/b --out out/all\n"
      "  specsim merge out/shards --out out/all      # all shards within a folder\n");
  line.add_words("shard-dir", named);
  line.add({{"out", out, "directory for the joined data.csv, counts.csv and manifest.yaml"},
            {"force", force, "delete an unfinished run in --out, and replace another run's results or other files there"}});
  line.needs({"out"});
  if (!line.read(arguments)) return ExitCode::fine;
  if (named.empty()) throw BadInput({"", 0, 0}, "specsim merge needs the directories of the shards");
  const std::vector<std::string> directories = shard_directories(named, out);
  std::error_code ignored;
  for (const std::string& directory : directories)
    if (std::filesystem::equivalent(directory, out, ignored))
      throw BadInput({"--out", 0, 0}, fmt::format("is {}, a directory to read from, allowed: another one", directory));
  const Shards shards = read_shards(directories);
  const std::string identity_of_whole = shards.identity + " 1/1";
  report::OutputFolder folder(out);
  if (!force && folder.has(kJournal))
    throw BadInput({folder.file(kJournal), 0, 0}, "an unfinished run is here, allowed: another --out, or --force to delete it");
  folder.claim({kResultFiles, identity_of_whole, force, true, report::Writing::at_once, shards.inputs});
  if (force) folder.remove(kJournal);

  const std::vector<judge::Row> rows = merged_rows(shards, directories.front());
  const CheckSummary summary = summarise_check(rows);
  write_output(judge::table(rows, true, {}) + summary.text);
  flush_output();
  report::Manifest manifest = new_manifest(shards.experiments, shards.threads, 0.0);
  manifest.wall_seconds = shards.seconds;
  manifest.identity = identity_of_whole;
  manifest.inputs = shards.inputs;
  manifest.verdict = summary.verdict;
  print_output("wrote {}/{}\n", out, write_results(folder, rows, manifest, true));
  // Shards of a run without check may have too few rounds for one.
  return summary.status == ExitCode::disagree ? ExitCode::disagree : ExitCode::fine;
}

}  // namespace specsim::cli
