#include "sim/hardware/latency/cost_model.h"

#include <algorithm>
#include <limits>

namespace specsim::cost {

FactorVector pass_slope(const PassTime& time, Role role, double sequences, bool speculates, double verified_rows) {
  constexpr double kMicro = 1e-6;
  ServerFactors slope;
  slope[Factor::products] = time.weights + time.compute - time.experts + time.launch + time.sampling;
  slope[Factor::arithmetic] = time.compute;
  slope[Factor::experts] = time.experts;
  slope[Factor::routing] = time.routing;
  slope[Factor::attention] = time.kv;
  if (verified_rows > 0.0) slope[Factor::verification] = time.kv;
  slope[Factor::communication] = time.communication;
  if (speculates) slope[Factor::speculation] = time.total();
  if (role == Role::target) {
    slope[Factor::step] = kMicro;
    slope[Factor::sequence] = kMicro * sequences;
    slope[Factor::row] = kMicro * verified_rows;
  } else {
    slope[Factor::draft_pass] = kMicro;
  }
  return slope.values;
}

PassTime CostModel::draft_pass(const Workload& workload, int index, double extra) const {
  if (!makes_draft_pass(index)) return {};
  return pass(Role::draft, {workload.batch, 1.0 + extra, workload.context + index, 1.0, true, index > 0});
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
  return pass(Role::draft, {workload.batch, rows + extra, workload.context + index, rows, true, index > 0});
}

bool CostModel::makes_draft_pass(int index) const {
  const std::optional<int> heads = draft_form().heads;
  return !heads || index % *heads == 0;
}

int CostModel::most_drafts() const {
  constexpr int kNone = std::numeric_limits<int>::max();
  return std::min(draft_form().heads.value_or(kNone), draft_form().longest.value_or(kNone));
}

double CostModel::kernel_error(Role role, const Pass& pass) const {
  return uncertainty() != nullptr ? uncertainty()->kernel_error(role, pass) : 0.0;
}
double CostModel::relative_error(Role role, const Pass& pass) const {
  if (uncertainty() == nullptr) return 0.0;
  const double kernels = kernel_error(role, pass);
  double variance = (1.0 - shared_variance(role, pass)) * kernels * kernels;
  const std::optional<FactorBelief> belief = uncertainty()->factors();
  const PassTime time = this->pass(role, pass);
  if (belief && time.total() > 0.0) {
    const bool verifies = pass.tokens > 1.0 && pass.logits >= pass.tokens;
    FactorVector slope =
        pass_slope(time, role, pass.batch, role == Role::draft || verifies, verifies ? pass.batch * pass.tokens : 0.0);
    for (double& part : slope) part /= time.total();
    variance += ratio_variance(*belief, slope) + uncertainty()->discrepancy() * uncertainty()->discrepancy();
  }
  return std::sqrt(variance);
}
double CostModel::shared_variance(Role role, const Pass& pass) const {
  return uncertainty() != nullptr ? uncertainty()->shared_variance(role, pass) : Uncertainty::kSharedByMeasured;
}

const Deployment* CostModel::deployment() const { return deployed() != nullptr ? &deployed()->deployment() : nullptr; }
std::optional<MemoryBudget> CostModel::memory_budget(const Workload& workload, int look_ahead, Kept kept) const {
  if (deployed() == nullptr) return std::nullopt;
  return deployed()->memory_budget(workload, look_ahead, kept);
}
std::unique_ptr<CostModel> CostModel::with_twice_the_gpus() const {
  return deployed() != nullptr ? deployed()->with_twice_the_gpus() : nullptr;
}
std::unique_ptr<CostModel> CostModel::scaled(double bandwidth, double host) const {
  return deployed() != nullptr ? deployed()->scaled(bandwidth, host) : nullptr;
}
std::vector<std::string> CostModel::beyond_measured(Role role, const Pass& pass) const {
  return deployed() != nullptr ? deployed()->beyond_measured(role, pass) : std::vector<std::string>();
}

}  // namespace specsim::cost
