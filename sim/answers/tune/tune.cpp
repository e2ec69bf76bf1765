#include "sim/answers/tune/tune.h"

#include "sim/foundation/report/csv.h"
#include "sim/foundation/report/intervals.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

namespace specsim::tune {

namespace {

constexpr int kLinearisations = 2;  // around the prior's mean, then around the posterior's

std::vector<Benchmark> benchmarks_of(const TuneRequest& request, const std::vector<Run>& runs,
                                     std::vector<Acceptance>& acceptances) {
  std::vector<Benchmark> benchmarks;
  for (const Run& run : runs) {
    acceptances.push_back(acceptance_of(run, request.runs));
    benchmarks.push_back(benchmark_of(request.server, run, acceptances.back().position_rates));
  }
  return benchmarks;
}

std::vector<Evidence> evidence_of(const std::vector<Run>& runs, const std::vector<Prediction>& predictions,
                                  const std::vector<Acceptance>& acceptances) {
  std::vector<Evidence> evidence;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    Evidence one{runs[i], setting_of(runs[i], predictions[i]), predictions[i], acceptances[i], {}};
    for (std::size_t metric = 0; metric < kMetrics; ++metric)
      if (runs[i].measured[metric] && std::isfinite(predictions[i].mean[metric]))
        one.measured[metric] = std::log(*runs[i].measured[metric]);
    evidence.push_back(one);
  }
  return evidence;
}

}  // namespace

TuneResult tune(const TuneRequest& request) {
  Diagnostics diagnostics;
  for (const Run& run : request.runs)
    if (std::none_of(run.measured.begin(), run.measured.end(), [](const auto& one) { return one.has_value(); }))
      diagnostics.add(run.where, fmt::format("run {} states no measurement, allowed: {}, or several of them", run.name,
                                             fmt::join(metric_names(), ", ")));
  diagnostics.throw_if_any();
  TuneResult result;
  std::vector<Acceptance> run_acceptances;
  std::vector<Acceptance> cell_acceptances;
  const std::vector<Benchmark> runs = benchmarks_of(request, request.runs, run_acceptances);
  const std::vector<Benchmark> cells = benchmarks_of(request, request.cells, cell_acceptances);
  const std::vector<Benchmark>& any = cells.empty() ? runs : cells;
  // Uses the server that speculates, if there is one, since its draft has factors too.
  const auto with_draft =
      std::find_if(any.begin(), any.end(), [](const Benchmark& one) { return one.experiment.speculation.has_value(); });
  result.acceptances = cell_acceptances;
  result.prior = (with_draft != any.end() ? *with_draft : any.front()).experiment.cost->uncertainty()->factors().value();
  result.belief = result.prior;
  for (int pass = 0; pass < (runs.empty() ? 1 : kLinearisations); ++pass) {
    const bool last = pass + 1 == kLinearisations || runs.empty();
    const std::vector<Evidence> evidence =
        evidence_of(request.runs, predict(runs, result.belief.mean, request.options), run_acceptances);
    if (pass == 0)
      for (const Evidence& one : evidence) result.prior_means.push_back(one.prediction.mean);
    std::vector<Evidence> others;
    if (last) others = evidence_of(request.cells, predict(cells, result.belief.mean, request.options), cell_acceptances);
    LearnedFactors learned = learn(result.prior, evidence, others, result.belief.mean);
    result.belief = learned.belief;
    result.fits = std::move(learned.fits);
    result.expected = std::move(learned.expected);
    result.covariance = std::move(learned.covariance);
    for (const Evidence& other : others) result.predictions.push_back(other.prediction);
  }
  return result;
}

std::vector<std::string> findings(const TuneResult& result) {
  std::vector<std::string> sentences;
  const auto factor = [&](cost::Factor which) {
    const auto i = static_cast<std::size_t>(which);
    return std::pair{result.belief.mean.values[i], std::sqrt(result.belief.covariance[i][i])};
  };
  const auto clear = [](const std::pair<double, double>& one) { return std::abs(one.first) > one.second; };
  const auto scaled = [&](cost::Factor which, const char* what) {
    if (const auto one = factor(which); clear(one))
      sentences.push_back(fmt::format("{} {:.0f} % {} than estimated ({:+.0f} to {:+.0f} %)", what,
                                      100.0 * std::abs(std::expm1(one.first)), one.first > 0.0 ? "slower" : "faster",
                                      100.0 * std::expm1(one.first - report::kIn95 * one.second),
                                      100.0 * std::expm1(one.first + report::kIn95 * one.second)));
  };
  const auto added = [&](cost::Factor which, const char* per) {
    if (const auto one = factor(which); clear(one))
      sentences.push_back(fmt::format("your host {} {:.2g} ms per {} ({:.2g} to {:.2g})", one.first > 0.0 ? "adds" : "saves",
                                      1e-3 * std::abs(one.first), per, 1e-3 * (one.first - report::kIn95 * one.second),
                                      1e-3 * (one.first + report::kIn95 * one.second)));
  };
  scaled(cost::Factor::speculation, "speculative steps are");
  scaled(cost::Factor::products, "matrix products are");
  scaled(cost::Factor::arithmetic, "passes over many rows are");
  scaled(cost::Factor::experts, "experts are");
  if (const auto one = factor(cost::Factor::routing); clear(one))
    sentences.push_back(
        fmt::format("tokens of a pass choose {} experts than independent tokens", one.first < 0.0 ? "fewer" : "more"));
  scaled(cost::Factor::attention, "attention is");
  scaled(cost::Factor::verification, "attention of several tokens is");
  scaled(cost::Factor::prefill, "prompts are");
  scaled(cost::Factor::communication, "communication between GPUs is");
  added(cost::Factor::step, "step");
  added(cost::Factor::sequence, "step and sequence");
  added(cost::Factor::row, "row of a verification");
  added(cost::Factor::round, "speculative round");
  added(cost::Factor::draft_pass, "draft pass");
  scaled(cost::Factor::request, "the host's work before a request is queued is");
  return sentences;
}

std::string server_yaml(const TuneRequest& request, const TuneResult& result) {
  std::string text = "# Written by specsim tune from the runs below. Use it with --engine, or as cost.engine of a config.\n";
  for (const Run& run : request.runs) text += fmt::format("#   {} ({})\n", run.name, run.where.file);
  text += fmt::format("preset: {}\n", request.server.engine.value_or("vllm"));
  text += fmt::format("source: {}\n", "\"specsim tune\"");
  return text + "tuned:\n" + cost::belief_text(result.belief, 2);
}

std::string slopes_csv(const std::vector<Run>& cells, const std::vector<Prediction>& predictions,
                       const std::vector<Acceptance>& acceptances) {
  std::vector<std::string> header = {"run",   "draft_length",  "metric",         "simulated",
                                     "batch", "prompt_tokens", "sampling_error", "acceptance_error"};
  for (const cost::FactorInfo& info : cost::factor_infos()) header.emplace_back(info.key);
  report::Csv csv(header);
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const Prediction& one = predictions[i];
    for (std::size_t metric = 0; metric < kMetrics; ++metric) {
      std::vector<std::string> fields = {cells[i].name,
                                         fmt::format("{}", cells[i].draft_length),
                                         metric_names()[metric],
                                         report::csv_real(std::exp(one.mean[metric]), 8),
                                         report::csv_real(one.batch, 6),
                                         report::csv_real(one.prompt_tokens, 6),
                                         report::csv_real(one.sampling[metric], 4),
                                         report::csv_real(acceptances[i].error, 4)};
      for (const double slope : one.slope[metric]) fields.push_back(report::csv_real(slope, 6));
      csv.add(fields);
    }
  }
  return csv.text();
}

std::string predictions_csv(const std::vector<Run>& cells, const std::vector<LearnedFactors::Expected>& expected) {
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
      for (const double z : {0.0, -report::kIn95, report::kIn95})
        fields.push_back(report::csv_real(std::exp(expected[i].mean[metric] + z * expected[i].error[metric]), 6));
    csv.add(fields);
  }
  return csv.text();
}

}  // namespace specsim::tune
