#include "sim/doors/api/specsim.h"

#include "sim/experiments/judge/rows.h"
#include "sim/experiments/run/runner.h"
#include "sim/experiments/spec/spec.h"
#include "sim/foundation/base/check.h"
#include "sim/foundation/base/error.h"
#include "sim/foundation/config/value.h"
#include "sim/foundation/report/csv.h"
#include "specsim_version.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <sstream>

namespace specsim::api {

namespace {

std::vector<spec::Override> overrides_of(const Options& options, Diagnostics& diagnostics) {
  std::vector<spec::Override> overrides;
  for (const auto& [path, value] : options.set)
    if (auto change = spec::read_override(path, value, path, diagnostics)) overrides.push_back(*std::move(change));
  if (options.seed) overrides.push_back({"seed", config::scalar(std::to_string(*options.seed), {"seed", 0, 0}), {"seed", 0, 0}});
  return overrides;
}

// Columns and rows parsed from the text of data.csv, so that both agree.
Results results_of(std::string csv) {
  Results results;
  std::istringstream lines(csv);
  std::string line;
  while (std::getline(lines, line)) {
    const std::optional<std::vector<std::string>> fields = report::csv_fields(line);
    SPECSIM_CHECK(fields.has_value(), "data.csv has a line with quotes out of place: {}", line);
    if (results.columns.empty()) {
      for (const std::string& name : *fields) {
        const auto& known = judge::columns();
        const auto about = std::find_if(known.begin(), known.end(), [&](const auto& column) { return column.name == name; });
        results.columns.push_back(about == known.end() ? ColumnInfo{name, "", ""}
                                                       : ColumnInfo{name, about->unit, about->meaning});
      }
      continue;
    }
    SPECSIM_CHECK(fields->size() == results.columns.size(), "data.csv has lines of different lengths");
    Row row;
    for (std::size_t i = 0; i < fields->size(); ++i) row.values.emplace_back(results.columns[i].name, (*fields)[i]);
    results.rows.push_back(std::move(row));
  }
  results.csv = std::move(csv);
  return results;
}

Results run(const spec::Experiment& experiment, const Options& options) {
  std::vector<const spec::Cell*> cells;
  for (const spec::Cell& cell : experiment.cells) cells.push_back(&cell);
  judge::FactsOfCells facts;
  run::RunOptions how;
  how.threads = std::max(options.threads, 1U);
  how.observe = facts.observe();
  how.stop = options.stop;
  how.progress = options.progress;
  run::RunResult run = run::run_cells(cells, how);
  if (!run.finished) throw Stopped();
  std::vector<judge::Row> rows;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    judge::Row row;
    row.cell = cells[i];
    row.counts = std::move(run.counts[i]);
    row.timed = run.timed[i];
    rows.push_back(std::move(row));
  }
  judge::judge_rows(rows, facts);
  return results_of(judge::data_csv(rows));
}

// Reads the experiment with `read` and runs it. Converts internal errors to those that the library's header declares.
template <class Read>
Results read_and_run(const Read& read, const Options& options) {
  try {
    Diagnostics diagnostics;
    const spec::Experiment experiment = read(diagnostics);
    if (!diagnostics.empty()) throw BadInput(by_place(diagnostics.list()));
    return run(experiment, options);
  } catch (const BadInput& bad) {
    throw InputError(bad.what());
  } catch (const IoError& failure) {
    throw FileError(failure.what());
  }
}

}  // namespace

Stopped::Stopped() : std::runtime_error("stopped before the end") {}

const std::string& Row::text(const std::string& column) const {
  for (const auto& [name, value] : values)
    if (name == column) return value;
  throw std::out_of_range("no column " + column);
}

double Row::number(const std::string& column) const {
  const std::string& field = text(column);
  double x = 0.0;
  const auto [end, error] = std::from_chars(field.data(), field.data() + field.size(), x);
  return error == std::errc() && end == field.data() + field.size() ? x : std::numeric_limits<double>::quiet_NaN();
}

Results run_file(const std::string& path, const Options& options) {
  return read_and_run(
      [&](Diagnostics& diagnostics) { return spec::read_experiment(path, overrides_of(options, diagnostics), diagnostics); },
      options);
}

Results run_text(const std::string& yaml, const std::string& name, const Options& options) {
  return read_and_run(
      [&](Diagnostics& diagnostics) {
        return spec::read_experiment_text(yaml, name, overrides_of(options, diagnostics), diagnostics);
      },
      options);
}

std::string version() { return build_info::version; }
std::string commit() { return build_info::commit; }

}  // namespace specsim::api
