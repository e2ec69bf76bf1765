#include "sim/answers/load/experiment.h"

#include "sim/answers/plan/latency_noise.h"

#include <algorithm>

namespace specsim::load {

namespace {

// A round with drafts of this length at this batch, halfway through the outputs.
plan::RoundEstimate estimate_of(const ServeExperiment& experiment, int drafts, const serve::Summary& summary, double batch) {
  const cost::Workload workload{std::max(1.0, batch),
                                (summary.prompt_tokens + 0.5 * summary.output_tokens) / static_cast<double>(summary.completed)};
  return {experiment.cost.get(), workload, drafts + 1.0, cost::round_time(*experiment.cost, workload, drafts, 0.0)};
}

int drafts_of(const ServeExperiment& experiment) { return experiment.speculation ? experiment.speculation->longest : 0; }

}  // namespace

double latency_error(const ServeExperiment& experiment, const serve::Summary& summary) {
  if (summary.completed == 0 || experiment.cost->uncertainty() == nullptr) return 0.0;
  return plan::estimate_error(estimate_of(experiment, drafts_of(experiment), summary, summary.mean_batch));
}

double comparison_error(const ServeExperiment& experiment, const serve::Summary& speculative, const serve::Summary& plain) {
  const bool verifies = speculative.verifying_share > 0.0;
  if (!verifies || speculative.completed == 0 || plain.completed == 0 || experiment.cost->uncertainty() == nullptr) return 0.0;
  return speculative.verifying_share *
         plan::latency_noise(estimate_of(experiment, drafts_of(experiment), speculative, speculative.verifying_batch),
                             estimate_of(experiment, 0, plain, plain.mean_batch));
}

}  // namespace specsim::load
