#include "sim/hardware/latency/cost_model.h"

#include <limits>

namespace specsim::cost {

PassTime CostModel::draft_pass(const Workload& workload, int index, double extra) const {
  return makes_draft_pass(index) ? pass(Role::draft, {workload.batch, 1.0 + extra, workload.context + index, 1.0}) : PassTime();
}

PassTime CostModel::mixed_pass(Role role, const Segment& prompts, const Segment& decoding, double logits,
                               const OtherEngines& /*peers*/) const {
  const double n = prompts.sequences + decoding.sequences;
  return pass(role, {n, (prompts.rows + decoding.rows) / n, (prompts.cached + decoding.cached) / n, logits / n});
}

PassTime CostModel::mixed_draft_pass(const Segment& prompts, const Segment& decoding) const {
  const double n = prompts.sequences + decoding.sequences;
  return draft_pass({n, (prompts.cached + decoding.cached) / n}, 0, (prompts.rows + decoding.rows) / n - 1.0);
}

PassTime CostModel::draft_level(const Workload& workload, int index, double rows, double extra) const {
  if (rows == 1.0) return draft_pass(workload, index, extra);
  if (rows == 0.0 || !makes_draft_pass(index)) return {};
  return pass(Role::draft, {workload.batch, rows + extra, workload.context + index, rows});
}

bool CostModel::makes_draft_pass(int index) const {
  const std::optional<int> heads = draft_form().heads;
  return !heads || index % *heads == 0;
}

int CostModel::most_drafts() const { return draft_form().heads.value_or(std::numeric_limits<int>::max()); }

double CostModel::kernel_error(Role role, const Pass& pass) const {
  return uncertainty() != nullptr ? uncertainty()->kernel_error(role, pass) : 0.0;
}
double CostModel::server_error(Role role) const { return uncertainty() != nullptr ? uncertainty()->server_error(role) : 0.0; }
double CostModel::round_error() const { return uncertainty() != nullptr ? uncertainty()->round_error() : 0.0; }
double CostModel::shared_variance(Role role) const {
  return uncertainty() != nullptr ? uncertainty()->shared_variance(role) : Uncertainty::kSharedByMeasured;
}

const Deployment* CostModel::deployment() const { return deployed() != nullptr ? &deployed()->deployment() : nullptr; }
std::optional<MemoryBudget> CostModel::memory_budget(const Workload& workload, int look_ahead, Kept kept) const {
  if (deployed() == nullptr) return std::nullopt;
  return deployed()->memory_budget(workload, look_ahead, kept);
}
std::unique_ptr<CostModel> CostModel::on_twice_the_gpus() const {
  return deployed() != nullptr ? deployed()->on_twice_the_gpus() : nullptr;
}
std::unique_ptr<CostModel> CostModel::scaled(double bandwidth, double host) const {
  return deployed() != nullptr ? deployed()->scaled(bandwidth, host) : nullptr;
}
std::vector<std::string> CostModel::beyond_measured(Role role, const Pass& pass) const {
  return deployed() != nullptr ? deployed()->beyond_measured(role, pass) : std::vector<std::string>();
}

}  // namespace specsim::cost
