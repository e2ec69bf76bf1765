#include "sim/lab/calibrate/acceptance.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>

namespace specsim::calibrate {

namespace {

constexpr double kNotMeasured = std::numeric_limits<double>::quiet_NaN();

}  // namespace

report::Estimate tokens_per_round(const llm::MeasuredAcceptance& acceptance) {
  return {acceptance.tokens_per_round(), acceptance.tokens_per_round_error(),
          static_cast<double>(acceptance.requests.size()) - 1.0};
}

report::Estimate tokens_per_round(const plan::AcceptanceCurve& curve, int draft_length) {
  if (draft_length > curve.longest()) return {kNotMeasured, kNotMeasured, 0.0};
  const auto k = static_cast<std::size_t>(draft_length);
  std::vector<double> parts;
  for (const std::vector<double>& part : curve.parts) parts.push_back(part[k]);
  report::Estimate estimate = report::mean_of(parts);  // the parts' mean equals the curve's, except for rounding
  estimate.value = curve.tokens_per_round[k];
  estimate.freedom = curve.freedom;
  return estimate;
}

llm::MeasuredAcceptance measure_acceptance(const LoadedModels& models, const CalibrationSettings& settings,
                                           const std::vector<llm::Prompt>& prompts, double temperature, int draft_length,
                                           std::uint64_t seed, const OnProgress& progress) {
  return llm::measure_acceptance(models.acceptance_target(), models.acceptance_draft(), models.method(settings), prompts,
                                 {.temperature = temperature,
                                  .draft_length = draft_length,
                                  .tokens = settings.tokens,
                                  .seed = seed,
                                  .distribution_tokens = settings.distribution_tokens},
                                 [&](double done, double all) { progress("prompts", done, all); });
}

plan::AcceptanceCurve curve_of(const llm::MeasuredAcceptance& acceptance, const std::string& source, int longest) {
  std::vector<std::vector<double>> overlaps;
  for (const llm::RequestAcceptance& request : acceptance.requests) overlaps.push_back(request.given_text);
  return plan::overlap_acceptance(overlaps, source, longest);
}

std::vector<TemperatureAcceptance> measure_acceptances(const LoadedModels& models, const CalibrationSettings& settings,
                                                       const std::vector<llm::Prompt>& prompts, const OnProgress& progress) {
  const int longest = settings.draft_lengths.back();
  std::vector<TemperatureAcceptance> all;
  for (const double temperature : settings.temperatures) {
    TemperatureAcceptance& own = all.emplace_back();
    own.temperature = temperature;
    own.measured = measure_acceptance(models, settings, prompts, temperature, longest, settings.seed, progress);
    if (!own.measured.requests.front().given_text.empty()) {
      own.curve = curve_of(own.measured, "prompts", longest);
      own.tokens_per_round = own.curve->tokens_per_round;
    }
    own.tokens_per_round.resize(static_cast<std::size_t>(longest) + 1, kNotMeasured);  // no request may be that long
    own.tokens_per_round.front() = 1.0;
    own.tokens_per_round.back() = own.measured.tokens_per_round();
  }
  return all;
}

std::vector<Condition> conditions(const TemperatureAcceptance& acceptance) {
  std::vector<Condition> list;
  const auto add = [&](const std::string& name, const llm::Tally& tally) {
    if (tally.judged > 0) list.push_back({acceptance.temperature, name, tally, acceptance.measured.rounds()});
  };
  for (std::size_t depth = 0; depth < acceptance.measured.by_depth.size(); ++depth)
    add(fmt::format("depth {}", depth + 1), acceptance.measured.by_depth[depth]);
  add("after rejection", acceptance.measured.after_rejection);
  add("after full", acceptance.measured.after_full);
  return list;
}

const std::vector<report::Column<Condition>>& acceptance_columns() {
  using Row = Condition;
  using report::csv_real;
  static const std::vector<report::Column<Row>> list = {
      {"temperature", "1", "temperature of both models", report::field(&Row::temperature, 6)},
      {"condition", "",
       "depth D: the D-th draft of a round, given that it is reached; after rejection, after full: the first one, by how the "
       "round before ended",
       report::field(&Row::name)},
      {"judged", "1", "positions judged", [](const Row& r) { return std::to_string(r.tally.judged); }},
      {"accepted", "1", "positions accepted", [](const Row& r) { return std::to_string(r.tally.accepted); }},
      {"accepted_per_round", "1", "accepted / all rounds",
       [](const Row& r) { return csv_real(static_cast<double>(r.tally.accepted) / static_cast<double>(r.rounds), 6); }},
      {"alpha_outcomes", "1", "accepted / judged", [](const Row& r) { return csv_real(r.tally.alpha(), 6); }},
      {"alpha_distributions", "1",
       "mean of how likely the rule accepts, given the two distributions; of rule token the sum over x of min(target(x), "
       "draft(x))",
       [](const Row& r) { return csv_real(r.tally.alpha_of_distributions(), 6); }},
      {"z", "1", "(alpha_outcomes - alpha_distributions) / its standard error",
       [](const Row& r) { return csv_real(r.tally.z(), 4); }},
      {"kl_nats_of_finite", "nats", "mean of KL(target, draft) over positions where it is finite",
       [](const Row& r) {
         const double finite = r.judged() - static_cast<double>(r.tally.kl_infinite);
         return finite > 0.0 ? csv_real(r.tally.kl / finite, 6) : "";
       }},
      {"kl_infinite", "1", "positions where it is infinite: the draft gives a token probability 0",
       [](const Row& r) { return std::to_string(r.tally.kl_infinite); }},
      {"target_entropy_nats", "nats", "mean entropy of the target's distributions",
       [](const Row& r) { return csv_real(r.tally.target_entropy / r.judged(), 6); }},
      {"draft_entropy_nats", "nats", "mean entropy of the draft's distributions",
       [](const Row& r) { return csv_real(r.tally.draft_entropy / r.judged(), 6); }},
  };
  return list;
}

std::vector<AcceptedCount> accepted_counts(const TemperatureAcceptance& acceptance) {
  std::vector<AcceptedCount> counts;
  for (const std::uint64_t rounds : acceptance.measured.accepted_counts)
    counts.push_back({acceptance.temperature, counts.size(), rounds});
  return counts;
}

const std::vector<report::Column<AcceptedCount>>& accepted_count_columns() {
  using Row = AcceptedCount;
  static const std::vector<report::Column<Row>> list = {
      {"temperature", "1", "temperature of both models", report::field(&Row::temperature, 6)},
      {"accepted", "tokens", "drafts accepted in a round", report::field(&Row::accepted)},
      {"rounds", "1", "rounds that accepted this many", report::field(&Row::rounds)},
  };
  return list;
}

}  // namespace specsim::calibrate
