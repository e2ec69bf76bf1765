// Common parts of the subcommands: configs, warnings, progress.
#pragma once

#include "sim/doors/cli/command_line.h"
#include "sim/experiments/run/runner.h"
#include "sim/experiments/spec/spec.h"
#include "sim/foundation/base/files_read.h"
#include "sim/foundation/report/manifest.h"
#include "sim/foundation/report/table.h"

#include <string>
#include <vector>

namespace specsim::cli {

// The configs of a command and the changes to them.
struct ConfigOptions {
  std::vector<std::string> files;
  std::vector<std::string> sets;  // --set PATH=VALUE
  std::string seed;               // "": the configs' own
};

// --set and --seed as changes to a config.
std::vector<spec::Override> read_overrides(const ConfigOptions& configs, Diagnostics& diagnostics);

// Reads every config with its --set and --seed, then applies `more`. Throws BadInput with all errors, in the order of their
// places.
std::vector<spec::Experiment> read_experiments(const ConfigOptions& configs, spec::Misfits misfits = spec::Misfits::refused,
                                               const std::vector<spec::Override>& more = {});

// All cells of the experiments, in order.
std::vector<const spec::Cell*> cells_of(const std::vector<spec::Experiment>& experiments);

// Throws BadInput at `file` if this machine lacks the memory to prepare the cells' contexts, each with `draws` draws of the
// distributions.
void check_tables(const std::vector<const spec::Cell*>& cells, unsigned threads, const std::string& file, unsigned draws = 1);
std::string bytes_text(std::size_t bytes);

// Throws BadInput, at the option that names it, if a file to be written was read as an input.
void check_not_read(const std::string& path, const std::string& option, const FilesRead& read);

// Prints on standard output, within the width of the terminal.
void print_table(const report::Table& table);

// On standard error, unless --quiet is given.
void print_warning(const std::string& warning);
// Prints the warnings of the cells' cost models, each once.
void print_warnings(const std::vector<const spec::Cell*>& cells);

// A bar with rate and time left on a capable terminal; otherwise a line every ten seconds.
class Progress {
 public:
  explicit Progress(std::string unit = "rounds");
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  ~Progress() { finish(); }
  void show(double done, double all);
  void clear() const;  // removes the bar before other output
  void finish();

 private:
  std::string unit_;
  double started_;
  double last_shown_ = 0.0;
  bool draws_;
  bool shown_ = false;
};

double wall_clock();

// The manifest of a command that began at `started` by wall_clock(), for the experiments with all their cells.
report::Manifest new_manifest(const std::vector<spec::Experiment>& experiments, unsigned threads, double started);

}  // namespace specsim::cli
