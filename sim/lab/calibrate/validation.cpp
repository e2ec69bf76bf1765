#include "sim/lab/calibrate/validation.h"

#include "sim/foundation/math/series.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace specsim::calibrate {

Forecast forecast_of(const llm::MeasuredAcceptance& acceptance, int longest) {
  double expected = 0.0;
  double judged = 0.0;
  for (const llm::Tally& tally : acceptance.by_depth) {
    expected += tally.expected;
    judged += static_cast<double>(tally.judged);
  }
  return {curve_of(acceptance, "--prompts", longest), expected / judged, llm::overlap_trace(acceptance)};
}

void ValidationRow::set_forecast(const Forecast& forecast) {
  predicted_tokens_per_round = calibrate::tokens_per_round(forecast.curve, draft_length);
  iid_tokens_per_round = math::geometric_sum(forecast.alpha, draft_length + 1);
}

const std::vector<report::Column<ValidationRow>>& validation_columns() {
  using Row = ValidationRow;
  using report::csv_real;
  static const std::vector<report::Column<Row>> list = {
      {"temperature", "1", "temperature of both models", report::field(&Row::temperature, 6)},
      {"batch", "sequences", "decoded together", report::field(&Row::batch)},
      {"draft_length", "tokens", "drafted per round; 0: no speculation", report::field(&Row::draft_length)},
      {"measured_s", "s", "time of the runs", report::field(&Row::measured, 6)},
      {"predicted_s", "s", "the cost table's, given the runs' own accepted counts", report::field(&Row::predicted, 6)},
      {"timing_error", "1", "predicted_s / measured_s - 1", [](const Row& r) { return csv_real(r.timing_error(), 4); }},
      {"tokens_per_round", "tokens", "tokens per round of held-out prompts",
       [](const Row& r) { return csv_real(r.tokens_per_round.value, 6); }},
      {"tokens_per_round_se", "tokens", "its standard error, from the spread over sequences",
       [](const Row& r) { return csv_real(r.tokens_per_round.error, 4); }},
      {"predicted_tokens_per_round", "tokens", "tokens per round by the other prompts' trace",
       [](const Row& r) { return csv_real(r.predicted_tokens_per_round.value, 6); }},
      {"predicted_se", "tokens", "its standard error, from the spread over parts of the trace",
       [](const Row& r) { return csv_real(r.predicted_tokens_per_round.error, 4); }},
      {"acceptance_t", "1", "(tokens_per_round - predicted_tokens_per_round) / standard error of the difference",
       [](const Row& r) { return csv_real(r.acceptance().t, 4); }},
      {"acceptance_t_99", "1", "99.5 % quantile of Student's t (Welch's degrees of freedom)",
       [](const Row& r) { return csv_real(r.acceptance().limit, 4); }},
      {"inside_99", "0 or 1", "|acceptance_t| <= acceptance_t_99; empty if nothing is judged",
       [](const Row& r) {
         const report::WelchTest test = r.acceptance();
         return !test.judged() ? std::string() : test.inside() ? "1" : "0";
       }},
      {"iid_tokens_per_round", "tokens", "predicted from one alpha for all positions instead of the trace",
       report::field(&Row::iid_tokens_per_round, 6)},
      {"speedup", "1", "tokens per second over those of plain decoding, measured", report::field(&Row::speedup, 6)},
      {"predicted_speedup", "1", "speedup by predicted times and predicted tokens per round",
       report::field(&Row::predicted_speedup, 6)},
      {"speedup_error", "1", "predicted_speedup / speedup - 1", [](const Row& r) { return csv_real(r.speedup_error(), 4); }},
  };
  return list;
}

void Errors::add(double error) {
  if (std::isfinite(error)) values.push_back(error);
}

std::string Errors::text() const {
  if (values.empty()) return "median error -, worst -";
  std::vector<double> sizes;
  for (const double error : values) sizes.push_back(std::abs(error));
  const double worst = *std::max_element(sizes.begin(), sizes.end());
  return fmt::format("median error {:.2f} %, worst {:.2f} %", 100.0 * llm::quartiles_of(std::move(sizes)).median, 100.0 * worst);
}

std::string Errors::bias_text() const {
  if (values.empty()) return "-";
  const auto above = std::count_if(values.begin(), values.end(), [](double error) { return error > 0.0; });
  return fmt::format("{:+.2f} % on average, {} of {} too large", 100.0 * report::mean_of(values).value, above, values.size());
}

void ValidationSummary::add(const ValidationRow& row, bool new_text) {
  timing_.add(row.timing_error());
  if (row.draft_length == 0) return;
  speed_.add(row.speedup_error());
  iid_ = std::max(iid_, std::abs(row.iid_tokens_per_round / row.predicted_tokens_per_round.value - 1.0));
  if (const report::WelchTest test = row.acceptance(); new_text && test.judged()) {
    ++judged_;
    if (test.inside()) ++inside_;
  }
}

std::string ValidationSummary::text() const {
  return fmt::format(
      "timing given the accepted counts: {} of {} points\n"
      "sign of the timing's errors: {}\n"
      "acceptance of other prompts: {} of {} points inside the 99 % interval\n"
      "one constant alpha (iid) instead of the trace: up to {:.2f} % off\n"
      "speedup, both together: {}\n",
      timing_.text(), timing_.values.size(), timing_.bias_text(), judged_ > 0 ? std::to_string(inside_) : "-", judged_,
      100.0 * iid_, speed_.text());
}

}  // namespace specsim::calibrate
