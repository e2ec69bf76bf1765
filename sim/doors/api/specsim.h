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

// What is wrong with a config, a setting or a file that they name; what() has a line for each mistake, "file:line:col: what was
// found, what is allowed".
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
  std::optional<std::uint64_t> seed;  // in place of the config's
  unsigned threads = 1;               // at least 1; results do not depend on it
  std::function<void(double done, double all)> progress;  // rounds; called from worker threads, one at a time; may be empty
  const std::atomic<bool>* stop = nullptr;                // once set, the run ends early and throws Stopped
};

class Stopped : public std::runtime_error {
 public:
  Stopped();
};

struct ColumnInfo {
  std::string name;
  std::string unit;     // "1" for a plain number, "" for text
  std::string meaning;  // or its formula; empty for axes of the sweep
};

// One cell of an experiment: a line of data.csv.
struct Row {
  std::vector<std::pair<std::string, std::string>> values;  // column and field, in the order of the file

  // The field of a column. Throws std::out_of_range for a column that there is not.
  [[nodiscard]] const std::string& text(const std::string& column) const;
  // The same as a number: NaN where the field is empty or holds words.
  [[nodiscard]] double number(const std::string& column) const;
};

struct Results {
  std::vector<ColumnInfo> columns;
  std::vector<Row> rows;  // a row for each cell, the last axis of the sweep changes fastest
  std::string csv;        // the same as data.csv has it, byte for byte as `specsim run --out` writes it
};

// Simulates every cell of an experiment file and holds it against theory where there is some. The result is a function of the
// config, the settings and the seed alone. Throws InputError, FileError, Stopped.
Results run_file(const std::string& path, const Options& options = {});
// The same for a config that is at hand as YAML text; `name` stands for the file in messages and names the experiment.
Results run_text(const std::string& yaml, const std::string& name, const Options& options = {});

// "0.1.0", and the commit that the library was built from.
std::string version();
std::string commit();

}  // namespace specsim::api
