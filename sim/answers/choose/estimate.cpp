#include "sim/answers/choose/estimate.h"

#include "sim/answers/plan/latency_noise.h"

#include "sim/foundation/base/error.h"
#include "sim/foundation/base/token.h"
#include "sim/hardware/latency/energy.h"
#include "sim/hardware/latency/roofline.h"
#include "sim/hardware/model/element_types.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

namespace specsim::choose {

namespace {

constexpr int kMostBatch = 1024;

Location at(const char* option) { return {option, 0, 0}; }

cost::PresetChoice model_choice(const std::string& name, const char* option, std::int64_t tensor_parallel) {
  return {name, at(option), {{"tensor_parallel", std::to_string(tensor_parallel), at("--tensor-parallel")}}};
}

}  // namespace

Engine make_engine(const Question& question, Engine engine) {
  Diagnostics diagnostics;
  cost::Deployment deployment;
  deployment.engine = cost::read_engine(cost::PresetChoice{question.engine, at("--engine"), {}}, diagnostics);
  const cost::PresetChoice gpu{engine.hardware, at("--hardware"), {}};
  deployment.hardware = cost::read_hardware(gpu, diagnostics);
  cost::PresetChoice target = model_choice(question.target, "--target", engine.tensor_parallel);
  if (!engine.type.empty()) target.changes.push_back({"dtype", engine.type, at("--dtype")});
  if (!engine.cache_bits.empty()) target.changes.push_back({"kv_bits", engine.cache_bits, at("--kv-bits")});
  if (engine.expert_parallel > 1)
    target.changes.push_back({"expert_parallel", std::to_string(engine.expert_parallel), at("--expert-parallel")});
  diagnostics.throw_if_any();  // names and figures that hold for every combination
  if (const auto changes = question.changes(engine.hardware); !changes.empty()) {
    deployment.hardware = cost::read_hardware(cost::PresetChoice{engine.hardware, at("--hardware"), changes}, diagnostics);
    if (!diagnostics.empty()) {
      engine.why = fmt::format("{}: {}", engine.hardware, diagnostics.list().front().message);
      return engine;
    }
  }
  deployment.target = cost::read_model(target, "target", diagnostics);
  if (diagnostics.empty()) cost::check_element_types(*deployment.target, "target", deployment.hardware, diagnostics);
  if (diagnostics.empty() && engine.draft->model != "none") {
    const cost::PresetChoice draft = model_choice(engine.draft->model, "--draft", engine.tensor_parallel);
    deployment.draft = cost::read_model(draft, "draft", diagnostics);
    if (diagnostics.empty()) {
      cost::take_types_of_target(*deployment.target, cost::to_config(draft, diagnostics), *deployment.draft);
      cost::check_element_types(*deployment.draft, "draft", deployment.hardware, diagnostics);
    }
  }
  if (!diagnostics.empty())
    engine.why = diagnostics.list().front().message;
  else if (static_cast<double>(engine.tensor_parallel) > deployment.hardware.linked_gpus)
    engine.why = fmt::format("{} GPUs, allowed: {:g}, which the links of {} join", engine.tensor_parallel,
                             deployment.hardware.linked_gpus, engine.hardware);
  else if (const int longest = std::min(
               engine.draft->curve.longest(),
               deployment.draft ? static_cast<int>(deployment.draft->longest_draft.value_or(kMaxDraftLength)) : kMaxDraftLength);
           engine.draft->drafts && !question.lengths.empty() &&
           std::none_of(question.lengths.begin(), question.lengths.end(), [&](std::int64_t length) { return length <= longest; }))
    engine.why = fmt::format("no draft length of {} is at most {}, the longest of {}", fmt::join(question.lengths, ", "), longest,
                             engine.draft->label);
  else
    engine.cost = cost::make_roofline(std::move(deployment));
  return engine;
}

EnginePlans::EnginePlans(const Engine& engine, const MeanLoad& load, std::vector<std::int64_t> lengths)
    : engine_(engine), load_(load), lengths_(std::move(lengths)), context_(load.prompt + 0.5 * load.output) {
  const bool drafts = engine.draft->drafts;
  largest_ = static_cast<int>(std::min<double>(kMostBatch, plan::largest_batch(*engine.cost, load.prompt + load.output, 1,
                                                                               drafts ? cost::Kept::both : cost::Kept::target)));
  if (largest_ < 1) return;
  const cost::Pass prompt{1.0, std::max(1.0, std::round(load.prompt)), 0.0, 1.0};
  prompt_ = engine.cost->pass(cost::Role::target, prompt);
  if (drafts) prompt_ += engine.cost->pass(cost::Role::draft, prompt);
}

const plan::PlanPoint& EnginePlans::at(int batch) {
  const auto [found, fresh] = plans_.try_emplace(batch);
  if (!fresh) return found->second;
  const cost::Workload workload{static_cast<double>(batch), context_};
  const plan::AcceptanceCurve& curve = engine_.draft->curve;
  const int longest = std::min(curve.longest(), engine_.cost->most_drafts());
  const int fitting = engine_.draft->drafts ? plan::longest_fitting(*engine_.cost, workload, longest).value_or(0) : 0;
  double best = 0.0;
  for (int k = engine_.draft->drafts ? 1 : 0; k <= fitting; ++k) {
    if (k > 0 && !lengths_.empty() && std::find(lengths_.begin(), lengths_.end(), k) == lengths_.end()) continue;
    const auto index = static_cast<std::size_t>(k);
    plan::PlanPoint point;
    point.draft_length = k;
    point.time = cost::round_time(*engine_.cost, workload, k, k > 0 ? curve.full_rate[index] : 0.0);
    point.tokens_per_round = k > 0 ? curve.tokens_per_round[index] : 1.0;
    point.tokens_per_second = workload.batch * point.tokens_per_round / point.time.total();
    if (point.tokens_per_second <= best) continue;
    best = point.tokens_per_second;
    found->second = point;
  }
  return found->second;
}

int EnginePlans::batch_for(double requests, double share) {
  const auto keeps_up = [&](int batch) { return share > 0.0 && at(batch).tokens_per_second * share >= requests * load_.output; };
  int high = 1;
  while (high < largest_ && !keeps_up(high)) high = std::min(2 * high, largest_);
  if (!keeps_up(high)) return 0;
  int low = high / 2;
  while (high - low > 1) {
    const int middle = (low + high) / 2;
    (keeps_up(middle) ? high : low) = middle;
  }
  return high;
}

Estimate EnginePlans::estimate(double replicas, double prefill_engines, const serve::Slo& slo) {
  Estimate result;
  result.gpus = (replicas + prefill_engines) * static_cast<double>(engine_.tensor_parallel);
  result.context = context_;
  result.longest = load_.longest;
  result.closed = load_.users > 0.0;
  if (largest_ < 1 || !(at(1).tokens_per_second > 0.0)) return result;
  const bool apart = prefill_engines > 0.0;
  const double prefill = prompt_.total();
  // Of an engine that decodes: time that a prompt takes from it, and the most requests per second whose prompts are computed.
  const double own_prefill = apart ? 0.0 : prefill;
  const double most = apart ? prefill_engines / (replicas * prefill) : 1.0 / prefill;
  double requests = 0.0;  // a second, of this engine
  int batch = 1;
  double waiting = 0.0;  // requests that do not fit
  if (load_.users > 0.0) {
    const double users = std::max(1.0, load_.users / replicas);
    batch = static_cast<int>(std::clamp(std::round(users), 1.0, static_cast<double>(largest_)));
    constexpr int kRounds = 3;  // prompts take some of the users out of the batch, fewer as it is settled
    for (int i = 0; i < kRounds; ++i) {
      const double decoded = at(batch).tokens_per_second / load_.output;
      requests = std::min(most, decoded / (1.0 + decoded * own_prefill));
      const double others = users - requests * prefill;
      batch = static_cast<int>(std::clamp(std::round(others), 1.0, static_cast<double>(largest_)));
      waiting = std::max(0.0, others - largest_);
    }
    const double decoded = at(batch).tokens_per_second / load_.output;
    requests = decoded / (1.0 + decoded * own_prefill);
    if (requests > most) {  // the others wait for the engines that compute prompts
      requests = most;
      batch = std::max(1, batch_for(requests, 1.0));
      waiting = std::max(0.0, users - batch - requests * prefill);
    }
    if (users < 1.5) requests = std::min(requests, users / (prefill + load_.output / at(1).tokens_per_second));
  } else {
    requests = load_.rate / replicas;
    const double needed = kEstimatesMiss * requests;
    batch = needed < most ? batch_for(needed, 1.0 - needed * own_prefill) : 0;
    if (batch == 0) {
      result.verdict = Estimate::Verdict::overloaded;
      return result;
    }
  }
  const plan::PlanPoint& point = at(batch);
  const double prompts = std::min(0.99, requests / most);  // share of the time of the engines that compute prompts
  result.point = point;
  result.draft_length = point.draft_length;
  result.batch = batch;
  result.tpot_ms = 1e3 * point.time.total() / point.tokens_per_round / (1.0 - (apart ? 0.0 : prompts));
  result.ttft_ms =
      1e3 * (prefill / (1.0 - (apart && result.closed ? 0.0 : prompts)) + (requests > 0.0 ? waiting / requests : 0.0));
  result.tokens_per_second = replicas * requests * load_.output;
  result.error = plan::estimate_error({engine_.cost.get(), {result.batch, context_}, point.draft_length + 1.0, point.time});
  const std::vector<double>& errors = engine_.draft->error;
  const auto length = static_cast<std::size_t>(point.draft_length);
  result.point.acceptance_error = length > 0 && length < errors.size() ? errors[length] : 0.0;
  result.joules_per_token = result.dollars_per_million = std::nan("");
  if (const cost::PowerDraw* const power = cost::power_of(*engine_.cost)) {
    const double rounds = requests * load_.output / (batch * point.tokens_per_round);
    const double watts = power->idle_w * (1.0 + prefill_engines / replicas) + requests * prompt_.work_joules +
                         rounds * (point.time.draft.work_joules + point.time.verify.work_joules);
    result.joules_per_token = static_cast<double>(engine_.tensor_parallel) * watts / (requests * load_.output);
    result.power_error = power->spread;
  }
  if (const std::optional<double> dollars = cost::dollars(*engine_.cost, 1.0))
    result.dollars_per_million = 1e6 * *dollars * (1.0 + prefill_engines / replicas) / (requests * load_.output);
  const bool kept = (!slo.tpot_ms || kEstimatesMiss * result.tpot_ms <= *slo.tpot_ms) &&
                    (!slo.ttft_ms || kEstimatesMiss * result.ttft_ms <= *slo.ttft_ms);
  result.verdict = kept ? Estimate::Verdict::kept : Estimate::Verdict::misses_slo;
  return result;
}

}  // namespace specsim::choose
