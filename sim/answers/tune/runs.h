// Benchmark runs of a user's server: the requests, and the measurements.
#pragma once

#include "sim/foundation/base/error.h"

#include <array>
#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace specsim::tune {

// Measured metrics, each a mean over the run.
enum class Metric : std::size_t { ttft, tpot, throughput };
constexpr std::size_t kMetrics = 3;
// The columns of these metrics: "ttft_ms", "tpot_ms", "output_tokens_per_s".
const std::array<const char*, kMetrics>& metric_names();

struct Run {
  std::string name;
  Location where;
  int draft_length = 0;               // 0: without speculation
  std::optional<double> concurrency;  // clients that each wait for their answer; also the most requests at once
  std::optional<double> rate;         // requests per second; nullopt: clients send as soon as they are answered
  std::optional<double> requests;
  std::optional<double> prompt_tokens;  // mean per request
  std::optional<double> output_tokens;
  std::vector<double> position_rates;                    // share of rounds that accept at least so many drafts; empty: not stated
  std::optional<double> acceptance_length;               // tokens per round, including the bonus token
  std::array<std::optional<double>, kMetrics> measured;  // [Metric]: milliseconds, milliseconds, tokens per second
  [[nodiscard]] const std::optional<double>& metric(Metric which) const { return measured[static_cast<std::size_t>(which)]; }
  [[nodiscard]] bool speculates() const { return draft_length > 0; }
};

// Reads CSV text with a line per run: run, draft_length, concurrency, rate, requests, prompt_tokens, output_tokens,
// position_rates, acceptance_length, ttft_ms, tpot_ms, output_tokens_per_s. Cells may be empty and columns absent. Reports
// errors to `diagnostics`.
std::vector<Run> read_runs_csv(const std::string& path, const std::string& text, Diagnostics& diagnostics);
const std::vector<std::string>& run_columns();
// Sets the value of a column of numbers. Reports at `where` a value that the column does not allow; `found` is the message's
// first part: "rate is -1".
void set_number(Run& run, const std::string& column, double value, const Location& where, const std::string& found,
                Diagnostics& diagnostics);
// Reports missing and contradictory values of a run.
void check_run(const Run& run, Diagnostics& diagnostics);

// The runs in a file that a benchmark client saves or prints, in a server's log, or in a CSV file as above. The format is
// recognised from the content. PATH may end with values that the file does not state, as in "FILE@k=3" or
// "FILE@k=3,concurrency=8": k (draft_length) or any other column of numbers, for all runs of the file. Omitted results, such as
// runs whose requests all failed, are reported to `warnings`.
std::vector<Run> read_runs(const std::string& path, Diagnostics& diagnostics, std::vector<std::string>* warnings = nullptr);
// The same for a text. `stated`: values of columns for all of its runs; `name`: the text's name in messages.
std::vector<Run> read_runs_text(const std::string& name, const std::string& text, const std::map<std::string, double>& stated,
                                Diagnostics& diagnostics, std::vector<std::string>* warnings = nullptr);

}  // namespace specsim::tune
