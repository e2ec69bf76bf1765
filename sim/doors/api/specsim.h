// specsim as a library: read experiments, run their cells, get the rows of data.csv. Installed as <specsim/specsim.h>; it needs
// nothing but the standard library to be included.
//
//   specsim::api::Results results = specsim::api::run_file("quickstart.yaml", {.set = {{"rounds", "1e5"}}});
//   for (const specsim::api::Row& row : results.rows) use(row.number("tokens_per_round"), row.number("speedup"));
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace specsim::api {

// A mistake in a config, a setting or a file that they name. what() has a line per mistake, "file:line:col: what was found, what
// is allowed".
class InputError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};
// A file that cannot be read.
class FileError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

struct Options {
  std::vector<std::pair<std::string, std::string>>
      set;                            // paths of the config and their values as YAML; "sweep.PATH" sets an axis
  std::optional<std::uint64_t> seed;  // replaces the config's seed
  unsigned threads = 1;               // at least 1; does not change results
  std::function<void(double done, double all)> progress;  // called from worker threads, one at a time; may be empty
  const std::atomic<bool>* stop = nullptr;                // once set, the run ends early and throws Stopped
};

class Stopped : public std::runtime_error {
 public:
  Stopped();
};

struct ColumnInfo {
  std::string name;
  std::string unit;     // "1" for a plain number, "" for text
  std::string meaning;  // explanation or formula; empty for axes of the sweep
};

// One cell of an experiment: a line of data.csv.
struct Row {
  std::vector<std::pair<std::string, std::string>> values;  // column and field, in the order of the file

  // The field of a column. Throws std::out_of_range for an unknown column.
  [[nodiscard]] const std::string& text(const std::string& column) const;
  // The same as a number; NaN if the field is empty or a text.
  [[nodiscard]] double number(const std::string& column) const;
};

struct Results {
  std::vector<ColumnInfo> columns;
  std::vector<Row> rows;  // a row per cell, the last axis of the sweep changes fastest
  std::string csv;        // the text of data.csv, exactly as `specsim run --out` writes it
};

// Simulates every cell of an experiment file, and compares it with theory if there is one. The result depends only on the
// config, the settings and the seed. Throws InputError, FileError, Stopped.
Results run_file(const std::string& path, const Options& options = {});
// The same for a config given as YAML text. `name` replaces the file name in messages and names the experiment.
Results run_text(const std::string& yaml, const std::string& name, const Options& options = {});

// "0.1.0", and the commit that the library was built from.
std::string version();
std::string commit();

}  // namespace specsim::api
