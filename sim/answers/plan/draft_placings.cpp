#include "sim/answers/plan/draft_placings.h"

#include "sim/answers/plan/latency_noise.h"
#include "sim/foundation/base/check.h"
#include "sim/hardware/latency/deployment.h"

#include <boost/math/distributions/binomial.hpp>

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

namespace specsim::plan {

namespace {

cost::PassTime block_of(const cost::CostModel& cost, const cost::Workload& workload, int draft_length) {
  cost::PassTime time;
  if (cost.drafts_at_once()) return cost.draft_level(workload, 0, draft_length, 0.0);
  for (int i = 0; i < draft_length; ++i) time += cost.draft_pass(workload, i, 0.0);
  return time;
}

// A placing's fastest draft length, and what its comparison with others needs.
struct Fastest {
  DraftPlacing placing;
  RoundEstimate estimate;
  double acceptance_error = 0.0;
};

void compare_with(const Fastest& first, Fastest& own) {
  own.placing.over_target_gpu = {
      std::log(own.placing.tokens_per_second / first.placing.tokens_per_second),
      std::hypot(latency_noise(own.estimate, first.estimate), std::abs(own.acceptance_error - first.acceptance_error))};
}

Fastest in_turn(const cost::CostModel& cost, const cost::Workload& workload, const Plan& plan, std::string gpu, std::string way) {
  Fastest own;
  own.placing.gpu = std::move(gpu);
  own.placing.way = std::move(way);
  const PlanPoint* const point = fastest_draft(plan);
  if (point == nullptr) {
    const auto memory = cost.memory_budget(workload, 2, cost::Kept::both);
    own.placing.why_not = "does not fit: " + (memory ? memory->tightest().to_text() : "no draft length");
    return own;
  }
  own.placing.draft_length = point->draft_length;
  own.placing.tokens_per_round = point->tokens_per_round;
  own.placing.tokens_per_second = point->tokens_per_second;
  own.placing.speedup = point->speedup;
  own.placing.gain = point->gain;
  own.estimate = {&cost, workload, point->draft_length + 1.0, point->time};
  own.acceptance_error = point->acceptance_error;
  return own;
}

Fastest overlapped(const cost::CostModel& cost, const cost::Workload& workload, const AcceptanceCurve& curve, const Plan& plan,
                   std::string gpu) {
  Fastest own;
  own.placing.gpu = std::move(gpu);
  own.placing.way = "overlapped";
  own.placing.why_not = "no draft length fits";
  for (const PlanPoint& point : plan.points) {
    if (point.draft_length == 0) continue;
    const double full = curve.full_rate[static_cast<std::size_t>(point.draft_length)];
    const cost::RoundTime time = overlapped_time(cost, workload, point.draft_length, full);
    const double tokens = point.tokens_per_round - full;
    const double speed = workload.batch * tokens / time.total();
    if (own.placing.draft_length > 0 && speed <= own.placing.tokens_per_second) continue;
    own.placing.why_not.clear();
    own.placing.draft_length = point.draft_length;
    own.placing.tokens_per_round = tokens;
    own.placing.tokens_per_second = speed;
    own.placing.speedup = cost::speedup(time, tokens);
    own.estimate = {&cost, workload, point.draft_length + 1.0, time};
    own.acceptance_error = point.acceptance_error;
  }
  if (own.placing.draft_length > 0)
    own.placing.gain = {
        std::log(own.placing.speedup),
        std::hypot(latency_noise(own.estimate, {&cost, workload, 1.0, plan.points.front().time}), own.acceptance_error)};
  return own;
}

}  // namespace

cost::RoundTime overlapped_time(const cost::CostModel& cost, const cost::Workload& workload, int draft_length, double full_rate) {
  SPECSIM_CHECK(draft_length > 0 && full_rate >= 0.0 && full_rate <= 1.0, "draft_length {}, full_rate {}", draft_length,
                full_rate);
  const double rows = draft_length + 1.0;
  cost::RoundTime time;
  time.plain = cost.pass(cost::Role::target, {workload.batch, 1.0, workload.context, 1.0});
  time.verify = cost.pass(cost::Role::target, {workload.batch, rows, workload.context, rows});
  time.overhead = cost.round_overhead(workload.batch);
  time.draft = block_of(cost, workload, draft_length);
  time.draft_passes = cost.drafts_at_once() ? 1.0 : draft_length;
  const double verify = time.verify.total() + time.overhead;
  const auto redraft = [&](double sequences) {
    return block_of(cost, {sequences, workload.context}, draft_length).total() + cost.link_seconds(sequences, rows);
  };
  const double ahead = block_of(cost, {workload.batch, workload.context + draft_length}, draft_length).total() +
                       cost.link_seconds(workload.batch, rows);
  const auto batch = static_cast<int>(std::lround(workload.batch));
  const boost::math::binomial accepting(batch, full_rate);  // sequences that accept all
  double expected = 0.0;
  for (int n = 0; n <= batch; ++n) {
    const double share = boost::math::pdf(accepting, n);
    if (share > 0.0) expected += share * ((n > 0 ? std::max(verify, ahead) : verify) + (n < batch ? redraft(batch - n) : 0.0));
  }
  cost::PassTime visible;
  visible.add((expected - verify) / time.draft.total(), time.draft);
  visible.work_joules = time.draft.work_joules;
  time.draft = visible;
  return time;
}

std::vector<DraftPlacing> draft_placings(const cost::CostModel& cost, const cost::Workload& workload,
                                         const AcceptanceCurve& curve, const Plan& plan) {
  const cost::Deployment* const deployment = cost.deployment();
  if (deployment == nullptr || !deployment->draft_place) return {};
  const std::unique_ptr<cost::CostModel> together = cost.deployed()->draft_with_target();
  Plan shared = make_plan(*together, workload, curve);
  add_errors(*together, workload, curve, shared);
  const std::string& own = deployment->draft_place->hardware.name;
  std::vector<Fastest> all = {in_turn(*together, workload, shared, deployment->hardware.name, "with the target"),
                              in_turn(cost, workload, plan, own, "in turn"), overlapped(cost, workload, curve, plan, own)};
  std::vector<DraftPlacing> placings;
  for (Fastest& one : all) {
    if (one.placing.why_not.empty() && all.front().placing.why_not.empty()) compare_with(all.front(), one);
    placings.push_back(one.placing);
  }
  return placings;
}

}  // namespace specsim::plan
