// Predictions from other prompts, and what is held against them, on either device.
#pragma once

#include "sim/cli/columns.h"
#include "sim/cli/models.h"
#include "sim/llm/acceptance.h"
#include "sim/plan/acceptance_curve.h"

#include <cmath>
#include <string>
#include <vector>

namespace specsim::cli {

// A mean, its standard error (not a number from fewer than two parts), and that one's degrees of freedom.
struct Estimate {
  double value = 1.0;
  double error = 0.0;
  double freedom = 0.0;
};
// Tokens per round of all requests.
Estimate tokens_per_round(const llm::Acceptance& acceptance);
// Of a trace, by the spread of its parts.
Estimate tokens_per_round(const plan::AcceptanceCurve& curve, int draft_length);

// Half of its 95 % interval (Student's t).
double half_of_95(const Estimate& estimate);

// How many standard errors two estimates are apart, and up to how many the 99 % interval goes (Welch's t test). Not numbers where
// one of them has no error.
struct Apart {
  double t = NAN;
  double limit = NAN;
  [[nodiscard]] bool judged() const { return !std::isnan(t); }
  [[nodiscard]] bool inside() const { return std::abs(t) <= limit; }
};
Apart apart(const Estimate& a, const Estimate& b);

// llm::measure_acceptance with the options' own, and progress.
llm::Acceptance measure_acceptance(llm::Model& target, llm::Model* draft, const llm::Method& method, const ModelOptions& options,
                                   const std::vector<llm::Prompt>& prompts, double temperature, int draft_length,
                                   std::uint64_t seed);
// Writes trace_tTEMPERATURE.jsonl into --out, and reads it as a plan does.
plan::AcceptanceCurve write_trace(const ModelOptions& options, double temperature, const llm::Acceptance& acceptance);

// What one temperature's acceptance says of every draft length.
struct Forecast {
  plan::AcceptanceCurve curve;
  double alpha = 0.0;  // of all positions' distributions
};
Forecast forecast(llm::Model& target, llm::Model* draft, const llm::Method& method, const ModelOptions& options,
                  const std::vector<llm::Prompt>& prompts, double temperature);

// Runs of held-out prompts beside what was predicted of them.
struct ValidationRow {
  double temperature = 1.0;
  std::size_t batch = 1;
  int draft_length = 0;
  // Timing, given the runs' own accepted counts; seconds.
  double measured = 0.0;
  double predicted = 0.0;
  // Acceptance, from other prompts.
  Estimate tokens_per_round;
  Estimate predicted_tokens_per_round;
  double iid_tokens_per_round = 1.0;
  // Both.
  double speedup = 1.0;
  double predicted_speedup = 1.0;

  void set_forecast(const Forecast& forecast);  // at the row's draft length
  [[nodiscard]] double timing_error() const { return predicted / measured - 1.0; }
  [[nodiscard]] double speedup_error() const { return predicted_speedup / speedup - 1.0; }
  [[nodiscard]] Apart acceptance() const {
    return draft_length > 0 ? apart(tokens_per_round, predicted_tokens_per_round) : Apart();
  }
};
const std::vector<Column<ValidationRow>>& validation_columns();
// Those, and behind them a device's own.
template <class Row>
std::vector<Column<Row>> validation_columns_and(const std::vector<Column<Row>>& own) {
  std::vector<Column<Row>> all;
  for (const Column<ValidationRow>& column : validation_columns())
    all.push_back({column.name, column.unit, column.meaning, column.text});
  all.insert(all.end(), own.begin(), own.end());
  return all;
}

// "median error X %, worst Y %"
std::string errors_text(const std::vector<double>& errors);

// What a validation comes to.
class ValidationSummary {
 public:
  // `new_text`: its tokens per round are no other row's.
  void add(const ValidationRow& row, bool new_text);
  [[nodiscard]] std::string text() const;

 private:
  std::vector<double> timing_;
  std::vector<double> speed_;
  std::size_t judged_ = 0;
  std::size_t inside_ = 0;
  double iid_ = 0.0;
};

}  // namespace specsim::cli
