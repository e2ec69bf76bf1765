#include "sim/cost/round_time.h"

#include "sim/base/check.h"

#include <algorithm>
#include <cmath>

namespace specsim::cost {

std::optional<Ledger> CostModel::ledger(const Workload& /*workload*/, int /*look_ahead*/, Kept /*kept*/) const {
  return std::nullopt;
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
  for (int i = 0; i < draft_length; ++i) time.draft += model.draft_pass(workload, i, 0.0);
  // Rows come whole: some sequence catches up with probability `some`, and then full_rate / some of them on average.
  const double some = -std::expm1(workload.batch * std::log1p(-full_rate));
  if (some > 0.0) {
    PassTime more = model.draft_pass(workload, 0, std::min(1.0, full_rate / some));
    more.add(-1.0, model.draft_pass(workload, 0, 0.0));
    time.catch_up = some * more.total();
    time.draft.add(some, more);
  }
  const double tokens = draft_length + 1.0;
  time.verify = model.pass(Role::target, {workload.batch, tokens, workload.context, tokens});
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
