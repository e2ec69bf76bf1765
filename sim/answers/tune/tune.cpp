#include "sim/answers/tune/tune.h"

#include "sim/foundation/report/csv.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

namespace specsim::tune {

namespace {

constexpr int kLinearisations = 2;  // around the prior's mean, then around the posterior's
constexpr double kIn95 = 1.959963984540054;

std::vector<load::ServeExperiment> experiments_of(const TuneRequest& request, const std::vector<Run>& runs,
                                                  std::vector<double>& acceptance_errors) {
  std::vector<load::ServeExperiment> experiments;
  for (const Run& run : runs) {
    const Acceptance acceptance = acceptance_of(run, request.runs);
    experiments.push_back(experiment_of(request.server, run, acceptance.position_rates));
    acceptance_errors.push_back(acceptance.error);
  }
  return experiments;
}

std::vector<Evidence> evidence_of(const std::vector<Run>& runs, const std::vector<Prediction>& predictions,
                                  const std::vector<double>& acceptance_errors) {
  std::vector<Evidence> evidence;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    Evidence one{setting_of(runs[i], predictions[i]), predictions[i], {}};
    one.prediction.acceptance_error = acceptance_errors[i];
    for (std::size_t metric = 0; metric < kMetrics; ++metric)
      if (runs[i].measured[metric]) one.measured[metric] = std::log(*runs[i].measured[metric]);
    evidence.push_back(one);
  }
  return evidence;
}

}  // namespace

TuneResult tune(const TuneRequest& request) {
  TuneResult result;
  std::vector<double> run_errors;
  std::vector<double> cell_errors;
  const std::vector<load::ServeExperiment> runs = experiments_of(request, request.runs, run_errors);
  const std::vector<load::ServeExperiment> cells = experiments_of(request, request.cells, cell_errors);
  const std::vector<load::ServeExperiment>& any = cells.empty() ? runs : cells;
  // Of the server that speculates, where there is one: its draft counts as well.
  const auto with_draft = std::find_if(any.begin(), any.end(), [](const load::ServeExperiment& one) { return one.speculation.has_value(); });
  result.prior = (with_draft != any.end() ? *with_draft : any.front()).cost->uncertainty()->factors();
  result.belief = result.prior;
  for (int pass = 0; pass < (runs.empty() ? 1 : kLinearisations); ++pass) {
    const bool last = pass + 1 == kLinearisations || runs.empty();
    const std::vector<Evidence> evidence = evidence_of(request.runs, predict(runs, result.belief.mean, request.options), run_errors);
    if (pass == 0)
      for (const Evidence& one : evidence) result.prior_means.push_back(one.prediction.mean);
    std::vector<Evidence> others;
    if (last) others = evidence_of(request.cells, predict(cells, result.belief.mean, request.options), cell_errors);
    Learned learned = learn(result.prior, evidence, others, result.belief.mean);
    result.belief = learned.belief;
    result.fits = std::move(learned.fits);
    result.expected = std::move(learned.expected);
    result.covariance = std::move(learned.covariance);
    for (const Evidence& other : others) result.predictions.push_back(other.prediction);
  }
  return result;
}

std::string predictions_csv(const std::vector<Run>& cells, const std::vector<Learned::Expected>& expected) {
  std::vector<std::string> header(run_columns().begin(), run_columns().end() - kMetrics);
  for (const char* const name : metric_names())
    for (const char* const suffix : {"", "_low", "_high"}) header.push_back(fmt::format("{}{}", name, suffix));
  report::Csv csv(header);
  const auto number = [](const std::optional<double>& x) { return x ? report::csv_real(*x) : std::string(); };
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const Run& cell = cells[i];
    std::vector<std::string> fields = {cell.name,
                                       fmt::format("{}", cell.draft_length),
                                       number(cell.concurrency),
                                       number(cell.rate),
                                       number(cell.requests),
                                       number(cell.prompt_tokens),
                                       number(cell.output_tokens),
                                       fmt::format("{}", fmt::join(cell.position_rates, " ")),
                                       number(cell.acceptance_length)};
    for (std::size_t metric = 0; metric < kMetrics; ++metric)
      for (const double z : {0.0, -kIn95, kIn95})
        fields.push_back(report::csv_real(std::exp(expected[i].mean[metric] + z * expected[i].error[metric]), 6));
    csv.add(fields);
  }
  return csv.text();
}

}  // namespace specsim::tune
