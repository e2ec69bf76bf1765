#include "sim/cli/validation.h"

#include "sim/base/whole_file.h"
#include "sim/theory/round_distribution.h"

#include <fmt/format.h>
#include <boost/math/distributions/students_t.hpp>

#include <algorithm>

namespace specsim::cli {

std::string errors_text(const std::vector<double>& errors) {
  if (errors.empty()) return "median error -, worst -";
  return fmt::format("median error {:.2f} %, worst {:.2f} %", 100.0 * llm::spread(errors).median,
                     100.0 * *std::max_element(errors.begin(), errors.end()));
}

Estimate tokens_per_round(const llm::Acceptance& acceptance) {
  return {acceptance.tokens_per_round(), acceptance.tokens_per_round_error(),
          static_cast<double>(acceptance.requests.size()) - 1.0};
}

Estimate tokens_per_round(const plan::AcceptanceCurve& curve, int draft_length) {
  if (draft_length > curve.longest()) return {NAN, NAN, 0.0};  // no request is as long
  const auto k = static_cast<std::size_t>(draft_length);
  const double mean = curve.tokens_per_round[k];
  const auto parts = static_cast<double>(curve.parts.size());
  double squares = 0.0;
  for (const auto& part : curve.parts) squares += (part[k] - mean) * (part[k] - mean);
  return {mean, parts > 1.0 ? std::sqrt(squares / (parts * (parts - 1.0))) : std::nan(""), parts - 1.0};
}

double half_of_95(const Estimate& estimate) {
  if (std::isnan(estimate.error)) return estimate.error;
  return boost::math::quantile(boost::math::students_t(estimate.freedom), 0.975) * estimate.error;
}

Apart apart(const Estimate& a, const Estimate& b) {
  const double error = std::hypot(a.error, b.error);
  const double difference = a.value - b.value;
  if (std::isnan(error)) return {};
  if (error < 1e-9 * b.value)  // both certain
    return {std::abs(difference) < 1e-9 * b.value ? 0.0 : std::copysign(INFINITY, difference), 0.0};
  const auto share = [](const Estimate& x) { return x.error > 0.0 ? std::pow(x.error, 4) / x.freedom : 0.0; };
  const double freedom = std::pow(error, 4) / (share(a) + share(b));
  return {difference / error, boost::math::quantile(boost::math::students_t(freedom), 0.995)};
}

llm::Acceptance measure_acceptance(llm::Model& target, llm::Model* draft, const llm::Method& method, const ModelOptions& options,
                                   const std::vector<llm::Prompt>& prompts, double temperature, int draft_length,
                                   std::uint64_t seed) {
  Progress progress("prompts");
  return llm::measure_acceptance(target, draft, method, prompts,
                                 {.temperature = temperature,
                                  .draft_length = draft_length,
                                  .tokens = options.tokens,
                                  .seed = seed,
                                  .distribution_tokens = options.distribution_tokens},
                                 [&](double done, double all) { progress.show(done, all); });
}

plan::AcceptanceCurve write_trace(const ModelOptions& options, double temperature, const llm::Acceptance& acceptance) {
  const std::string path = fmt::format("{}/trace_t{:g}.jsonl", options.out, temperature);
  write_whole_file(path, llm::overlap_trace(acceptance));
  return plan::trace_acceptance(path, options.draft_lengths.back());
}

Forecast forecast(llm::Model& target, llm::Model* draft, const llm::Method& method, const ModelOptions& options,
                  const std::vector<llm::Prompt>& prompts, double temperature) {
  const llm::Acceptance acceptance =
      measure_acceptance(target, draft, method, options, prompts, temperature, options.draft_lengths.back(), options.seed);
  double expected = 0.0;
  double judged = 0.0;
  for (const llm::Tally& tally : acceptance.by_depth) {
    expected += tally.expected;
    judged += static_cast<double>(tally.judged);
  }
  return {write_trace(options, temperature, acceptance), expected / judged};
}

void ValidationRow::set_forecast(const Forecast& forecast) {
  predicted_tokens_per_round = cli::tokens_per_round(forecast.curve, draft_length);
  iid_tokens_per_round = theory::tokens_per_round(forecast.alpha, draft_length);
}

const std::vector<Column<ValidationRow>>& validation_columns() {
  using Row = ValidationRow;
  static const std::vector<Column<Row>> list = {
      {"temperature", "1", "of both models", [](const Row& r) { return csv_number(r.temperature); }},
      {"batch", "sequences", "decoded together", [](const Row& r) { return std::to_string(r.batch); }},
      {"draft_length", "tokens", "drafted a round; 0: plain decoding",
       [](const Row& r) { return std::to_string(r.draft_length); }},
      {"measured_s", "s", "time of the runs", [](const Row& r) { return csv_number(r.measured); }},
      {"predicted_s", "s", "the cost table's, given the runs' own accepted counts",
       [](const Row& r) { return csv_number(r.predicted); }},
      {"timing_error", "1", "predicted_s / measured_s - 1", [](const Row& r) { return csv_number(r.timing_error(), 4); }},
      {"tokens_per_round", "tokens", "of held-out prompts", [](const Row& r) { return csv_number(r.tokens_per_round.value); }},
      {"tokens_per_round_se", "tokens", "its standard error, from the spread over sequences",
       [](const Row& r) { return csv_number(r.tokens_per_round.error, 4); }},
      {"predicted_tokens_per_round", "tokens", "from the other prompts' trace",
       [](const Row& r) { return csv_number(r.predicted_tokens_per_round.value); }},
      {"predicted_se", "tokens", "its standard error, from the spread over parts of the trace",
       [](const Row& r) { return csv_number(r.predicted_tokens_per_round.error, 4); }},
      {"acceptance_t", "1", "(tokens_per_round - predicted_tokens_per_round) / standard error of the difference",
       [](const Row& r) { return csv_number(r.acceptance().t, 4); }},
      {"acceptance_t_99", "1", "99.5 % quantile of Student's t (Welch's degrees of freedom)",
       [](const Row& r) { return csv_number(r.acceptance().limit, 4); }},
      {"inside_99", "0 or 1", "|acceptance_t| <= acceptance_t_99; empty where nothing is judged",
       [](const Row& r) {
         const Apart apart = r.acceptance();
         return !apart.judged() ? std::string() : apart.inside() ? "1" : "0";
       }},
      {"iid_tokens_per_round", "tokens", "predicted by one alpha of all positions instead of the trace",
       [](const Row& r) { return csv_number(r.iid_tokens_per_round); }},
      {"speedup", "1", "tokens per second over those of plain decoding, measured",
       [](const Row& r) { return csv_number(r.speedup); }},
      {"predicted_speedup", "1", "the same of predicted times and predicted tokens per round",
       [](const Row& r) { return csv_number(r.predicted_speedup); }},
      {"speedup_error", "1", "predicted_speedup / speedup - 1", [](const Row& r) { return csv_number(r.speedup_error(), 4); }},
  };
  return list;
}

void ValidationSummary::add(const ValidationRow& row, bool new_text) {
  const auto add = [](std::vector<double>& errors, double error) {
    if (std::isfinite(error)) errors.push_back(std::abs(error));
  };
  add(timing_, row.timing_error());
  if (row.draft_length == 0) return;
  add(speed_, row.speedup_error());
  iid_ = std::max(iid_, std::abs(row.iid_tokens_per_round / row.predicted_tokens_per_round.value - 1.0));
  if (const Apart apart = row.acceptance(); new_text && apart.judged()) {
    ++judged_;
    if (apart.inside()) ++inside_;
  }
}

std::string ValidationSummary::text() const {
  return fmt::format(
      "timing given the accepted counts: {} of {} points\n"
      "acceptance of other prompts: {} of {} points inside the 99 % interval\n"
      "alpha taken as one constant (iid) instead of the trace: up to {:.2f} % off\n"
      "speedup, both together: {}\n",
      errors_text(timing_), timing_.size(), judged_ > 0 ? std::to_string(inside_) : "-", judged_, 100.0 * iid_,
      errors_text(speed_));
}

}  // namespace specsim::cli
