#include "sim/hardware/latency/energy.h"

#include "sim/hardware/latency/deployment.h"

#include <algorithm>
#include <variant>

namespace specsim::cost {

PassWork work_of(const Operation& operation) {
  constexpr double kBitsPerByte = 8.0;
  if (const auto* const product = std::get_if<ProductWork>(&operation.work)) {
    const double weights = product->groups * product->inner * product->outer;
    return {weights * product->type.bits / kBitsPerByte, 2.0 * product->rows * weights};
  }
  if (const auto* const experts = std::get_if<ExpertsWork>(&operation.work)) {
    const double weights = (experts->gated ? 3.0 : 2.0) * experts->hidden * experts->width;
    return {experts->met * weights * experts->type.bits / kBitsPerByte, 2.0 * experts->rows * weights};
  }
  if (const auto* const attention = std::get_if<AttentionWork>(&operation.work)) {
    const double keys = attention->sequences * attention->tokens * attention->kind.looked_at(attention->cached, attention->pairs);
    return {attention->bytes(), attention->operations_per_key(attention->prompt) * attention->heads / attention->shards * keys};
  }
  return {};
}

PassTime with_energy(const Hardware& hardware, const PassTime& pass, const PassWork& work) {
  const PowerDraw& power = *hardware.power;
  const double kernels = pass.weights + pass.compute + pass.kv;
  // Of experts' products and of attention the parts of the pass do not hold the arithmetic by itself.
  const double compute = std::min(kernels, std::max(pass.compute, work.operations / hardware.flops));
  const double reading = std::min(kernels - compute, work.bytes / (hardware.bandwidth * hardware.calibration.memory_efficiency));
  const double others = kernels - compute - reading + pass.communication + pass.launch + pass.sampling;
  const BoardTime uncapped{reading, compute, others, pass.host};
  const BoardUse use = board_use(power, uncapped);
  PassTime time = pass;
  time.work_joules = use.joules - power.idle_w * use.time.total();
  if (power.cap() >= power.limit_w) return time;
  const auto slower = [](double part, double by) { return by > 0.0 ? part / by : 1.0; };
  const double all =
      slower(use.time.memory + use.time.compute + use.time.small, uncapped.memory + uncapped.compute + uncapped.small);
  for (double PassTime::*const part : {&PassTime::weights, &PassTime::compute, &PassTime::kv, &PassTime::communication,
                                       &PassTime::launch, &PassTime::sampling, &PassTime::experts})
    time.*part *= all;
  return time;
}

const PowerDraw* power_of(const CostModel& cost) {
  const Deployment* const deployment = cost.deployment();
  return deployment != nullptr && deployment->hardware.power ? &*deployment->hardware.power : nullptr;
}

namespace {

const DraftPlace* draft_place_of(const CostModel& cost, bool drafts) {
  const Deployment* const deployment = cost.deployment();
  return drafts && deployment != nullptr && deployment->draft_place ? &*deployment->draft_place : nullptr;
}

}  // namespace

double gpus_of(const CostModel& cost, bool drafts) {
  const Deployment* const deployment = cost.deployment();
  const double own = deployment != nullptr && deployment->target ? deployment->target->tensor_parallel : 1.0;
  return own + (draft_place_of(cost, drafts) != nullptr ? deployment->draft->tensor_parallel : 0.0);
}

double draft_gpus_per_target_gpu(const CostModel& cost) {
  return draft_place_of(cost, true) != nullptr ? cost.deployment()->draft->tensor_parallel / gpus_of(cost) : 1.0;
}

std::optional<double> idle_watts(const CostModel& cost, bool drafts) {
  const PowerDraw* const power = power_of(cost);
  if (power == nullptr) return std::nullopt;
  const double own = gpus_of(cost) * power->idle_w;
  const DraftPlace* const place = draft_place_of(cost, drafts);
  if (place == nullptr) return own;
  if (!place->hardware.power) return std::nullopt;
  return own + cost.deployment()->draft->tensor_parallel * place->hardware.power->idle_w;
}

std::optional<Spent> spent_in(const CostModel& cost, const RoundTime& round) {
  const bool drafts = round.draft_passes > 0.0;
  const std::optional<double> idle = idle_watts(cost, drafts);
  if (!idle || !(round.total() > 0.0)) return std::nullopt;
  const double work = round.verify.work_joules + draft_gpus_per_target_gpu(cost) * round.draft.work_joules;
  const double joules = gpus_of(cost) * work + *idle * round.total();
  return Spent{joules, joules / round.total() / gpus_of(cost, drafts), power_of(cost)->spread};
}

std::optional<double> dollars(const CostModel& cost, double seconds, bool drafts) {
  const Deployment* const deployment = cost.deployment();
  if (deployment == nullptr || !deployment->hardware.price) return std::nullopt;
  constexpr double kSecondsPerHour = 3600.0;
  double an_hour = gpus_of(cost) * deployment->hardware.price->dollars_per_hour;
  if (const DraftPlace* const place = draft_place_of(cost, drafts)) {
    if (!place->hardware.price) return std::nullopt;
    an_hour += deployment->draft->tensor_parallel * place->hardware.price->dollars_per_hour;
  }
  return an_hour * seconds / kSecondsPerHour;
}

}  // namespace specsim::cost
