// How often a real target accepts a real draft: measured at each temperature, separately for each condition, and in the form that
// a plan needs.
#pragma once

#include "sim/answers/plan/acceptance_curve.h"
#include "sim/foundation/report/column.h"
#include "sim/foundation/report/intervals.h"
#include "sim/lab/calibrate/models.h"
#include "sim/lab/llm/acceptance.h"

#include <optional>
#include <string>
#include <vector>

namespace specsim::calibrate {

// Tokens per round of all requests, with the error from the spread over requests.
report::Estimate tokens_per_round(const llm::MeasuredAcceptance& acceptance);
// Tokens per round of a recorded trace at one draft length, with the error from the spread over the trace's parts; NaN if no
// request is as long as the draft.
report::Estimate tokens_per_round(const plan::AcceptanceCurve& curve, int draft_length);

// Decodes the prompts at one temperature and draft length, without timing. `draft` may be null.
llm::MeasuredAcceptance measure_acceptance(const LoadedModels& models, const CalibrationSettings& settings,
                                           const std::vector<llm::Prompt>& prompts, double temperature, int draft_length,
                                           std::uint64_t seed, const OnProgress& progress);

// The acceptance curve for all draft lengths up to the longest, from the overlaps of a measurement.
plan::AcceptanceCurve curve_of(const llm::MeasuredAcceptance& acceptance, const std::string& source, int longest);

// Acceptance at one temperature and the longest draft length.
struct TemperatureAcceptance {
  double temperature = 1.0;
  llm::MeasuredAcceptance measured;
  std::optional<plan::AcceptanceCurve> curve;  // none for rules that judge blocks or are not lossless
  std::vector<double> tokens_per_round;        // [draft length]: over all prompts; NaN if not measured
};
std::vector<TemperatureAcceptance> measure_acceptances(const LoadedModels& models, const CalibrationSettings& settings,
                                                       const std::vector<llm::Prompt>& prompts, const OnProgress& progress);

// A row of acceptance.csv: positions that were judged under one condition.
struct Condition {
  double temperature = 1.0;
  std::string name;  // "depth 1", ..., "after rejection", "after full"
  llm::Tally tally;
  std::uint64_t rounds = 0;  // all rounds at the temperature
  [[nodiscard]] double judged() const { return static_cast<double>(tally.judged); }
};
// Conditions with at least one judged position.
std::vector<Condition> conditions(const TemperatureAcceptance& acceptance);
const std::vector<report::Column<Condition>>& acceptance_columns();

// A row of accepted_distribution.csv: rounds that accepted this many draft tokens.
struct AcceptedCount {
  double temperature = 1.0;
  std::size_t accepted = 0;
  std::uint64_t rounds = 0;
};
std::vector<AcceptedCount> accepted_counts(const TemperatureAcceptance& acceptance);
const std::vector<report::Column<AcceptedCount>>& accepted_count_columns();

}  // namespace specsim::calibrate
