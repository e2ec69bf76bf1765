// What the subcommands share: options, help, progress.
#pragma once

#include "sim/experiments/run/runner.h"
#include "sim/experiments/spec/spec.h"
#include "sim/foundation/base/files_read.h"
#include "sim/foundation/report/manifest.h"
#include "sim/foundation/report/table.h"

#include <boost/program_options.hpp>

#include <set>
#include <string>
#include <vector>

namespace specsim::cli {

// What was given on a command line, by option, as the type that the option was declared with.
class Options {
 public:
  explicit Options(const boost::program_options::variables_map& values) : values_(&values) {}
  [[nodiscard]] bool has(const char* name) const { return values_->count(name) > 0; }
  [[nodiscard]] std::string text(const char* name) const { return (*values_)[name].as<std::string>(); }
  // Empty where it was not given.
  [[nodiscard]] std::vector<std::string> texts(const char* name) const {
    return has(name) ? (*values_)[name].as<std::vector<std::string>>() : std::vector<std::string>{};
  }

 private:
  const boost::program_options::variables_map* values_;
};

// Parses `arguments`; with --help prints usage, options and `examples`, and returns false. `positional`: the name of the
// option that takes what stands without a dash, "" for none. Throws BadInput.
bool parse(const std::vector<std::string>& arguments, const boost::program_options::options_description& options,
           const std::string& positional, const std::string& usage, const std::string& examples,
           boost::program_options::variables_map& values);

// PATH=VALUE texts and a seed ("": none) as changes to a config.
std::vector<spec::Override> read_overrides(const std::vector<std::string>& sets, const std::string& seed,
                                           Diagnostics& diagnostics);

// Reads every config with its --set and --seed ("": none), and then `more` changes; throws BadInput with all mistakes, in the
// order of their places.
std::vector<spec::Experiment> read_experiments(const std::vector<std::string>& files, const std::vector<std::string>& sets,
                                               const std::string& seed, spec::Misfits misfits = spec::Misfits::refused,
                                               const std::vector<spec::Override>& more = {});

// All cells of the experiments, in order.
std::vector<const spec::Cell*> cells_of(const std::vector<spec::Experiment>& experiments);

// Throws BadInput, at `file`, where this machine lacks the memory to prepare the cells' contexts, each with `draws` draws of the
// distributions.
void check_tables(const std::vector<const spec::Cell*>& cells, unsigned threads, const std::string& file, unsigned draws = 1);
std::string bytes_text(std::size_t bytes);

// Throws BadInput, at the option that names it, where a file that is to be written is one that was read.
void check_not_read(const std::string& path, const std::string& option, const FilesRead& read);

// Prints on standard output, as wide as the terminal is.
void print_table(const report::Table& table);

// On standard error, unless --quiet is given.
void print_warning(const std::string& warning);
// Prints what the cells' cost models warn of, each warning once.
void print_warnings(const std::vector<const spec::Cell*>& cells);

// A bar with rate and time left on a terminal that can draw one, a line every ten seconds elsewhere.
class Progress {
 public:
  explicit Progress(std::string unit = "rounds");
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  ~Progress() { finish(); }
  void show(double done, double all);
  void clear() const;  // the bar leaves its line to what is printed next
  void finish();

 private:
  std::string unit_;
  double started_;
  double last_shown_ = 0.0;
  bool draws_;
  bool shown_ = false;
};

double wall_clock();

// The identity of what a command makes, equal for what comes out the same from the same inputs: "specsim COMMAND" and a number
// of its options, but for those that change nothing (--out, --threads and the like) and those that name `inputs`, whose contents
// are compared. `more`: what else it depends on, such as the identity of its configs.
std::string command_identity(const std::string& command, const boost::program_options::variables_map& values,
                             const std::set<std::string>& inputs, const std::string& more = "");

// What a command that began at `started` by wall_clock() made of the experiments, with all their cells.
report::Manifest new_manifest(const std::vector<spec::Experiment>& experiments, unsigned threads, double started);

}  // namespace specsim::cli
