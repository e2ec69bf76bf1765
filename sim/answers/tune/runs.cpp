#include "sim/answers/tune/runs.h"

#include "sim/foundation/config/value.h"
#include "sim/foundation/report/csv.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <sstream>

namespace specsim::tune {

namespace {

constexpr double kMostTokens = 1e7;

// A column of numbers: its allowed values, and the field that it sets.
struct NumberColumn {
  double least;
  double most;
  bool whole;
  std::function<void(Run&, double)> set;
};

const std::map<std::string, NumberColumn>& number_columns() {
  const auto metric = [](Metric which) {
    return [which](Run& run, double x) { run.measured[static_cast<std::size_t>(which)] = x; };
  };
  static const std::map<std::string, NumberColumn> columns = {
      {"draft_length", {0, 1024, true, [](Run& run, double x) { run.draft_length = static_cast<int>(x); }}},
      {"concurrency", {1, 1e6, true, [](Run& run, double x) { run.concurrency = x; }}},
      {"rate", {1e-6, 1e6, false, [](Run& run, double x) { run.rate = x; }}},
      {"requests", {1, 1e8, true, [](Run& run, double x) { run.requests = x; }}},
      {"prompt_tokens", {1, kMostTokens, false, [](Run& run, double x) { run.prompt_tokens = x; }}},
      {"output_tokens", {1, kMostTokens, false, [](Run& run, double x) { run.output_tokens = x; }}},
      {"acceptance_length", {1, 1025, false, [](Run& run, double x) { run.acceptance_length = x; }}},
      {"ttft_ms", {1e-3, 1e8, false, metric(Metric::ttft)}},
      {"tpot_ms", {1e-4, 1e7, false, metric(Metric::tpot)}},
      {"output_tokens_per_s", {1e-4, 1e9, false, metric(Metric::throughput)}}};
  return columns;
}

// Shares that never rise, separated by spaces.
std::vector<double> read_rates(const std::string& text, const Location& where, Diagnostics& diagnostics) {
  std::vector<double> rates;
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    const std::optional<double> rate = config::as_number(word);
    if (!rate || *rate < 0.0 || *rate > 1.0 || (!rates.empty() && *rate > rates.back())) {
      diagnostics.add(where,
                      fmt::format("position_rates is {}, allowed: numbers from 0 to 1 that never rise, separated by spaces",
                                  config::quote_for_message(text)));
      return {};
    }
    rates.push_back(*rate);
  }
  return rates;
}

class RunsFile {
 public:
  RunsFile(std::string path, Diagnostics& diagnostics) : path_(std::move(path)), diagnostics_(diagnostics) {}

  bool header(const std::vector<std::string>& names) {
    const std::vector<std::string>& known = run_columns();
    for (std::size_t i = 0; i < names.size(); ++i)
      if (std::find(known.begin(), known.end(), names[i]) == known.end())
        diagnostics_.add({path_, 1, 0},
                         not_allowed(fmt::format("unknown column {}", config::quote_for_message(names[i])), names[i], known));
      else if (std::find(names.begin(), names.begin() + static_cast<std::ptrdiff_t>(i), names[i]) !=
               names.begin() + static_cast<std::ptrdiff_t>(i))
        diagnostics_.add({path_, 1, 0}, fmt::format("column {} is given twice, allowed: once", names[i]));
    names_ = names;
    return diagnostics_.empty();
  }

  void line(int number, const std::vector<std::string>& fields) {
    Run run;
    run.where = {path_, number, 0};
    run.name = fmt::format("line {}", number);
    if (fields.size() != names_.size()) {
      diagnostics_.add(run.where, fmt::format("{} fields, allowed: {}, as in the first line", fields.size(), names_.size()));
      return;
    }
    const std::size_t before = diagnostics_.list().size();
    for (std::size_t i = 0; i < fields.size(); ++i)
      if (!fields[i].empty()) field(run, names_[i], fields[i]);
    if (diagnostics_.list().size() == before) check_run(run, diagnostics_);
    if (diagnostics_.list().size() == before) runs.push_back(std::move(run));
  }

  std::vector<Run> runs;

 private:
  void field(Run& run, const std::string& name, const std::string& text) {
    if (name == "run") {
      run.name = text;
    } else if (name == "position_rates") {
      run.position_rates = read_rates(text, run.where, diagnostics_);
    } else {
      set_number(run, name, config::as_number(text).value_or(std::nan("")), run.where,
                 fmt::format("{} is {}", name, config::quote_for_message(text)), diagnostics_);
    }
  }

  std::string path_;
  Diagnostics& diagnostics_;
  std::vector<std::string> names_;
};

}  // namespace

const std::array<const char*, kMetrics>& metric_names() {
  static const std::array<const char*, kMetrics> names = {"ttft_ms", "tpot_ms", "output_tokens_per_s"};
  return names;
}

const std::vector<std::string>& run_columns() {
  static const std::vector<std::string> columns = {
      "run",           "draft_length",   "concurrency",       "rate",    "requests", "prompt_tokens",
      "output_tokens", "position_rates", "acceptance_length", "ttft_ms", "tpot_ms",  "output_tokens_per_s"};
  return columns;
}

void check_run(const Run& run, Diagnostics& diagnostics) {
  if (!run.concurrency && !run.rate)
    diagnostics.add(run.where, "the run states neither concurrency nor rate, allowed: at least one of them");
  if (!run.speculates() && (!run.position_rates.empty() || run.acceptance_length.value_or(1.0) > 1.0))
    diagnostics.add(run.where, "draft_length is 0, but the run states acceptance, allowed: none without speculation");
  if (static_cast<int>(run.position_rates.size()) > run.draft_length && run.speculates())
    diagnostics.add(run.where, fmt::format("{} position_rates for a draft_length of {}, allowed: one per position at most",
                                           run.position_rates.size(), run.draft_length));
  if (run.speculates() && run.acceptance_length.value_or(1.0) > run.draft_length + 1.0)
    diagnostics.add(run.where, fmt::format("acceptance_length is {:g}, allowed: at most draft_length + 1 = {}",
                                           *run.acceptance_length, run.draft_length + 1));
}

void set_number(Run& run, const std::string& column, double value, const Location& where, const std::string& found,
                Diagnostics& diagnostics) {
  const NumberColumn& allowed = number_columns().at(column);
  if (value >= allowed.least && value <= allowed.most && (!allowed.whole || value == std::floor(value)))
    allowed.set(run, value);
  else
    diagnostics.add(where, fmt::format("{}, allowed: a {}number from {:g} to {:g}, or nothing", found,
                                       allowed.whole ? "whole " : "", allowed.least, allowed.most));
}

std::vector<Run> read_runs_csv(const std::string& path, const std::string& text, Diagnostics& diagnostics) {
  std::istringstream lines(text);
  RunsFile file(path, diagnostics);
  int number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    if (!line.empty() && line.back() == '\r') line.pop_back();
    if (line.empty()) continue;
    const auto fields = report::csv_fields(line);
    if (!fields) {
      diagnostics.add({path, number, 0}, "misplaced quotes, allowed: a line of CSV");
    } else if (number == 1) {
      if (!file.header(*fields)) return {};
    } else {
      file.line(number, *fields);
    }
  }
  if (number == 0) diagnostics.add({path, 0, 0}, "the file is empty, allowed: a line of columns and a line for each run");
  return file.runs;
}

}  // namespace specsim::tune
