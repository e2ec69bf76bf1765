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

double gpus_of(const CostModel& cost) {
  const Deployment* const deployment = cost.deployment();
  return deployment != nullptr && deployment->target ? deployment->target->tensor_parallel : 1.0;
}

std::optional<Spent> spent_in(const CostModel& cost, const RoundTime& round) {
  const PowerDraw* const power = power_of(cost);
  if (power == nullptr || !(round.total() > 0.0)) return std::nullopt;
  const double joules = round.draft.work_joules + round.verify.work_joules + power->idle_w * round.total();
  return Spent{gpus_of(cost) * joules, joules / round.total(), power->spread};
}

std::optional<double> dollars(const CostModel& cost, double seconds) {
  const Deployment* const deployment = cost.deployment();
  if (deployment == nullptr || !deployment->hardware.price) return std::nullopt;
  constexpr double kSecondsPerHour = 3600.0;
  return gpus_of(cost) * deployment->hardware.price->dollars_per_hour * seconds / kSecondsPerHour;
}

}  // namespace specsim::cost
