#include "sim/hardware/latency/round_time.h"

#include "sim/foundation/base/check.h"
#include "sim/hardware/latency/deployment.h"

#include <algorithm>
#include <cmath>

namespace specsim::cost {

void RoundTime::add(double share, const RoundTime& other) {
  plain = other.plain;
  draft.add(share, other.draft);
  verify.add(share, other.verify);
  draft_passes += share * other.draft_passes;
  catch_up += share * other.catch_up;
  overhead += share * other.overhead;
  link += share * other.link;
}

RoundTime round_time(const CostModel& model, const Workload& workload, int draft_length, double full_rate) {
  SPECSIM_CHECK(draft_length >= 0, "draft_length {}", draft_length);
  const std::vector<double> pass_rows = model.drafts_at_once() && draft_length > 0
                                            ? std::vector<double>{static_cast<double>(draft_length)}
                                            : std::vector<double>(static_cast<std::size_t>(draft_length), 1.0);
  return block_time(model, workload, pass_rows, draft_length + 1.0, full_rate);
}

PassTime catch_up_time(const CostModel& model, const Workload& workload, double first_rows, double full_rate) {
  SPECSIM_CHECK(full_rate >= 0.0 && full_rate <= 1.0, "full_rate {}", full_rate);
  // Rows are whole: with probability `some` at least one sequence catches up, and then full_rate / some of them on average.
  const double some = -std::expm1(workload.batch * std::log1p(-full_rate));
  PassTime time;
  if (some <= 0.0) return time;
  PassTime more = model.draft_level(workload, 0, first_rows, std::min(1.0, full_rate / some));
  more.add(-1.0, model.draft_level(workload, 0, first_rows, 0.0));
  time.add(some, more);
  return time;
}

PassTime draft_passes_time(const CostModel& model, const Workload& workload, const std::vector<double>& pass_rows) {
  PassTime time;
  for (std::size_t i = 0; i < pass_rows.size(); ++i) time += model.draft_level(workload, static_cast<int>(i), pass_rows[i], 0.0);
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
  time.draft = draft_passes_time(model, workload, pass_rows);
  for (std::size_t i = 0; i < pass_rows.size(); ++i)
    if (pass_rows[i] > 0.0 && model.makes_draft_pass(static_cast<int>(i))) time.draft_passes += 1.0;
  if (!pass_rows.empty()) {
    const PassTime more = catch_up_time(model, workload, pass_rows[0], full_rate);
    time.catch_up = more.total();
    time.draft += more;
  }
  time.verify = model.pass(Role::target, {workload.batch, verified_rows, workload.context, verified_rows});
  time.link = model.link_seconds(workload.batch, verified_rows);
  time.overhead = model.round_overhead(workload.batch) + time.link;
  const Deployment* const deployment = model.deployment();
  if (time.draft.total() == 0.0 && deployment != nullptr && deployment->engine.synchronous_ngrams)
    time.overhead += time.verify.overlapped;
  return time;
}

FactorVector round_slope(const RoundTime& time, const Workload& workload, double verified_rows) {
  constexpr double kMicro = 1e-6;
  const bool speculative = verified_rows > 1.0 || time.draft_passes > 0.0;
  ServerFactors slope{pass_slope(time.verify, Role::target, workload.batch, speculative,
                                 verified_rows > 1.0 ? workload.batch * verified_rows : 0.0)};
  const ServerFactors draft{pass_slope(time.draft, Role::draft, workload.batch, speculative, 0.0)};
  for (std::size_t i = 0; i < kFactors; ++i) slope.values[i] += draft.values[i];
  slope[Factor::draft_pass] = kMicro * time.draft_passes;
  if (speculative) {
    slope[Factor::round] = kMicro;
    slope[Factor::speculation] += time.overhead - time.link;
  }
  for (double& part : slope.values) part /= time.total();
  return slope.values;
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
  step("host", verify.host - time.plain.host + time.draft.host + time.overhead - time.link);
  if (time.link > 0.0) step("link", time.link);
  return steps;
}

}  // namespace specsim::cost
