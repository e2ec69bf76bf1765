// Benchmark runs of a user's server: what was asked of it, and what it answered.
#pragma once

#include "sim/foundation/base/error.h"

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace specsim::tune {

// What a run measures, each a mean over the run.
enum class Metric : std::size_t { ttft, tpot, throughput };
constexpr std::size_t kMetrics = 3;
// The columns of these metrics: "ttft_ms", "tpot_ms", "output_tokens_per_s".
const std::array<const char*, kMetrics>& metric_names();

struct Run {
  std::string name;
  Location where;
  int draft_length = 0;               // 0: without speculation
  std::optional<double> concurrency;  // clients that each wait for their answer, and the most requests at once
  std::optional<double> rate;         // requests per second; none: clients send as soon as they are answered
  std::optional<double> requests;
  std::optional<double> prompt_tokens;  // mean per request
  std::optional<double> output_tokens;
  std::vector<double> position_rates;       // share of rounds that accept at least that many drafts; empty: not stated
  std::optional<double> acceptance_length;  // tokens per round, the bonus token included
  std::array<std::optional<double>, kMetrics> measured;  // [Metric]: milliseconds, milliseconds, tokens per second
  [[nodiscard]] const std::optional<double>& metric(Metric which) const { return measured[static_cast<std::size_t>(which)]; }
  [[nodiscard]] bool speculates() const { return draft_length > 0; }
};

// A CSV file with a line for each run: run, draft_length, concurrency, rate, requests, prompt_tokens, output_tokens, position_rates,
// acceptance_length, ttft_ms, tpot_ms, output_tokens_per_s. Cells may be empty and columns absent. Mistakes go to `diagnostics`.
std::vector<Run> read_runs_csv(const std::string& path, Diagnostics& diagnostics);
const std::vector<std::string>& run_columns();
// The runs of any file that a benchmark client saves, or of a CSV file as above, by what the file holds.
std::vector<Run> read_runs(const std::string& path, Diagnostics& diagnostics);

}  // namespace specsim::tune
