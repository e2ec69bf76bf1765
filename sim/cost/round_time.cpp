#include "sim/cost/round_time.h"

#include "sim/base/check.h"

namespace specsim::cost {

std::optional<Ledger> CostModel::ledger(const Workload& /*workload*/, int /*look_ahead*/) const { return std::nullopt; }

void RoundTime::add(double share, const RoundTime& other) {
  plain = other.plain;
  draft += share * other.draft;
  verify += share * other.verify;
  catch_up += share * other.catch_up;
  overhead += share * other.overhead;
}

RoundTime round_time(const CostModel& model, const Workload& workload, int draft_length, double full_rate) {
  SPECSIM_CHECK(draft_length >= 0 && full_rate >= 0.0 && full_rate <= 1.0, "draft_length {}, full_rate {}", draft_length,
                full_rate);
  RoundTime time;
  time.plain = model.pass(Role::target, {workload.batch, 1.0, workload.context, 1.0});
  if (draft_length == 0) {
    time.verify = time.plain;
    return time;
  }
  for (int i = 0; i < draft_length; ++i) {
    const double extra = i == 0 ? full_rate : 0.0;
    const PassTime pass = model.draft_pass(workload, i, extra);
    if (extra > 0.0) time.catch_up = pass.total() - model.draft_pass(workload, i, 0.0).total();
    time.draft += pass;
  }
  const double tokens = draft_length + 1.0;
  time.verify = model.pass(Role::target, {workload.batch, tokens, workload.context, tokens});
  time.overhead = model.round_overhead(workload.batch);
  return time;
}

RoundTime block_time(const CostModel& model, const Workload& workload, const std::vector<double>& pass_rows, double verified_rows,
                     double full_rate) {
  RoundTime time;
  time.plain = model.pass(Role::target, {workload.batch, 1.0, workload.context, 1.0});
  if (pass_rows.empty() && verified_rows == 1.0) {
    time.verify = time.plain;
    return time;
  }
  for (std::size_t i = 0; i < pass_rows.size(); ++i) {
    const double rows = pass_rows[i];
    const auto pass = [&](double extra) {
      const auto index = static_cast<int>(i);
      if (rows == 1.0) return model.draft_pass(workload, index, extra);
      return model.pass(Role::draft, {workload.batch, rows + extra, workload.context + index, rows});
    };
    const double extra = i == 0 ? full_rate : 0.0;
    if (extra > 0.0) time.catch_up = pass(extra).total() - pass(0.0).total();
    time.draft += pass(extra);
  }
  time.verify = model.pass(Role::target, {workload.batch, verified_rows, workload.context, verified_rows});
  time.overhead = model.round_overhead(workload.batch);
  return time;
}

double speedup(const RoundTime& time, double tokens_per_round) { return tokens_per_round * time.plain.total() / time.total(); }

std::vector<WaterfallStep> waterfall(const RoundTime& time, double tokens_per_round) {
  const double plain = time.plain.total();
  std::vector<WaterfallStep> steps = {{"tokens_per_round", plain, tokens_per_round}};
  double spent = plain;
  const auto step = [&](const char* name, double seconds) {
    spent += seconds;
    steps.push_back({name, seconds, tokens_per_round * plain / spent});
  };
  const PassTime& verify = time.verify;
  step("draft passes", time.draft.total() - time.draft.host - time.draft.sampling - time.catch_up);
  step("draft catch-up", time.catch_up);
  step("verify weights", verify.weights - time.plain.weights);
  step("verify compute", verify.compute - time.plain.compute);
  step("verify kv", verify.kv - time.plain.kv);
  step("communication", verify.communication - time.plain.communication);
  step("launches", verify.launch - time.plain.launch);
  step("sampling", verify.sampling - time.plain.sampling + time.draft.sampling);
  step("host", verify.host - time.plain.host + time.draft.host + time.overhead);
  return steps;
}

}  // namespace specsim::cost
