// Compares runs of held-out prompts with predictions from other prompts, on either device.
#pragma once

#include "sim/lab/calibrate/acceptance.h"

#include <string>
#include <vector>

namespace specsim::calibrate {

// The forecast for all draft lengths from other prompts' acceptance at one temperature.
struct Forecast {
  plan::AcceptanceCurve curve;
  double alpha = 0.0;  // mean over all positions, by their distributions
  std::string trace;   // the overlaps, as JSON lines
};
Forecast forecast_of(const llm::MeasuredAcceptance& acceptance, int longest);

struct ValidationRow {
  double temperature = 1.0;
  std::size_t batch = 1;
  int draft_length = 0;
  // Timing, given the runs' own accepted counts; seconds.
  double measured = 0.0;
  double predicted = 0.0;
  // Acceptance, from other prompts.
  report::Estimate tokens_per_round = {1.0, 0.0, 0.0};
  report::Estimate predicted_tokens_per_round = {1.0, 0.0, 0.0};
  double iid_tokens_per_round = 1.0;
  // Both.
  double speedup = 1.0;
  double predicted_speedup = 1.0;

  void set_forecast(const Forecast& forecast);  // at the row's draft length
  [[nodiscard]] double timing_error() const { return predicted / measured - 1.0; }
  [[nodiscard]] double speedup_error() const { return predicted_speedup / speedup - 1.0; }
  // Welch's test of the two figures of tokens per round; there is no test without drafts.
  [[nodiscard]] report::WelchTest acceptance() const {
    return draft_length > 0 ? report::welch_test(tokens_per_round, predicted_tokens_per_round) : report::WelchTest();
  }
};
const std::vector<report::Column<ValidationRow>>& validation_columns();
// The columns of every validation, followed by the device's own.
template <class Row>
std::vector<report::Column<Row>> validation_columns_and(const std::vector<report::Column<Row>>& own) {
  std::vector<report::Column<Row>> all;
  for (const report::Column<ValidationRow>& column : validation_columns())
    all.push_back({column.name, column.unit, column.meaning, column.text});
  all.insert(all.end(), own.begin(), own.end());
  return all;
}

// Relative errors of several predictions, signed.
struct Errors {
  std::vector<double> values;
  void add(double error);  // ignores NaN and infinity
  // The absolute errors: "median error X %, worst Y %".
  [[nodiscard]] std::string text() const;
  // The mean of the signed errors, and how many are above 0: "+1.8 % on average, 44 of 54 too large".
  [[nodiscard]] std::string bias_text() const;
};

// The summary of a validation.
class ValidationSummary {
 public:
  // `new_text`: whether the row's tokens per round count. Rows that differ only in the batch decode the same text, so only one of
  // them counts.
  void add(const ValidationRow& row, bool new_text);
  [[nodiscard]] std::string text() const;

 private:
  Errors timing_;
  Errors speed_;
  std::size_t judged_ = 0;
  std::size_t inside_ = 0;
  double iid_ = 0.0;
};

}  // namespace specsim::calibrate
