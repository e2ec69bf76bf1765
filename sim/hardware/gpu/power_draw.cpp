#include "sim/hardware/gpu/power_draw.h"

#include "sim/foundation/base/bisect.h"
#include "sim/foundation/config/fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <tuple>

namespace specsim::cost {

namespace {

// Shares of the limit where nothing was measured, and the error that this leaves. The idle share is that of the two measured
// GPUs. Reading weights of 4 bits draws 1.1 to 1.2 of the limit on these, and weights of 16 bits about half of it on an H100 (300
// W at batch 1 by the ML.ENERGY benchmark, as the vLLM semantic router's power model cites it).
constexpr double kIdleShare = 0.16;
constexpr double kMemoryShare = 0.85;
constexpr double kComputeShare = 1.5;
constexpr double kSpreadByLimit = 0.3;
constexpr double kLeastClock = 0.25;  // of the full one: boards hold no lower one under load
constexpr double kLeastCapShare = 0.3;

const config::Fields<PowerDraw>& power_fields() {
  using P = PowerDraw;
  const config::Interval watts = config::above(0, 1e5);
  static const config::Fields<P> list = {
      {"limit_w", &P::limit_w, "power limit of the board, by the data sheet, watts", watts, config::required},
      {"idle_w", &P::idle_w, "power with clocks up and no kernel; default: 0.16 of the limit", config::between(0, 1e5),
       config::optional},
      {"memory_w", &P::memory_w, "power of reading weights and keys at the full bandwidth and clock; default: 0.85 of the limit",
       watts, config::optional},
      {"compute_w", &P::compute_w,
       "power of arithmetic at full rate and clock, which may be above the limit; default: 1.5 of the limit", watts,
       config::optional},
      {"cap_w", &P::cap_w, "a lower power limit that the user sets (nvidia-smi --power-limit)", watts},
      {"spread", &P::spread,
       "standard deviation of the logarithm of an estimate; default: 0.3 if the powers are shares of the limit",
       config::between(0, 2), config::optional},
      {"clock_exponent", &P::clock_exponent, "exponent of the cores' power by their clock", config::between(1, 4)},
      {"memory_core_share", &P::memory_core_share, "share of the power of reading, beyond idle, that the cores draw",
       config::between(0, 1)},
      {"memory_clock_exponent", &P::memory_clock_exponent, "reading takes the clock to the power of minus this longer",
       config::between(0, 1)},
      {"source", &P::source, "where the figures come from"}};
  return list;
}

// By how much work of each kind takes longer at a clock.
BoardTime slowing(const PowerDraw& power, double clock) {
  const double reading = std::pow(clock, -power.memory_clock_exponent);
  return {reading, 1.0 / clock, reading, 1.0};
}

BoardTime times(const BoardTime& time, const BoardTime& by) {
  return {time.memory * by.memory, time.compute * by.compute, time.small * by.small, time.idle * by.idle};
}
BoardTime over(const BoardTime& time, const BoardTime& by) {
  return {time.memory / by.memory, time.compute / by.compute, time.small / by.small, time.idle / by.idle};
}

// Joules of these seconds, spent at a clock.
double joules(const PowerDraw& power, const BoardTime& time, double clock) {
  const double cores = std::pow(clock, power.clock_exponent);
  const double reading = (power.memory_w - power.idle_w) * (1.0 - power.memory_core_share + power.memory_core_share * cores);
  const double arithmetic = (power.compute_w - power.idle_w) * cores;
  return power.idle_w * time.total() + reading * time.memory + arithmetic * time.compute;
}

// The clock at which these seconds take `limit_w`, up to rounding: joules() solved for its power of the clock.
double solved_clock(const PowerDraw& power, const BoardTime& time, double limit_w) {
  const double reading = (power.memory_w - power.idle_w) * time.memory;
  const double by_cores = power.memory_core_share * reading + (power.compute_w - power.idle_w) * time.compute;
  const double rest = (limit_w - power.idle_w) * time.total() - (1.0 - power.memory_core_share) * reading;
  return std::pow(rest / by_cores, 1.0 / power.clock_exponent);
}

// The highest clock at which `watts` of it is at most the limit. `solved`: the clock at which it is the limit, if it is known:
// halvings that are far from it need no evaluation.
template <class Watts>
double clock_at(double limit_w, const Watts& watts, std::optional<double> solved) {
  if (watts(kLeastClock) > limit_w) return kLeastClock;
  constexpr int kHalvings = 40;
  constexpr double kRounding = 1e-10;  // relative, far above that of the solution
  const auto keeps = [&](double clock) {
    const bool known = solved && std::abs(clock - *solved) > kRounding;
    return !(known ? clock > *solved : watts(clock) > limit_w);
  };
  return bisect(kLeastClock, 1.0, keeps, kHalvings).low;
}

}  // namespace

BoardUse board_use(const PowerDraw& power, const BoardTime& uncapped) {
  const double seconds = uncapped.total();
  if (!(seconds > 0.0)) return {uncapped, 0.0, 1.0};
  const auto uncapped_watts = [&](double clock) { return joules(power, uncapped, clock) / seconds; };
  const double usual = uncapped_watts(1.0) <= power.limit_w
                           ? 1.0
                           : clock_at(power.limit_w, uncapped_watts, solved_clock(power, uncapped, power.limit_w));
  if (power.cap() >= power.limit_w) return {uncapped, joules(power, uncapped, usual), usual};
  const BoardTime full = over(uncapped, slowing(power, usual));
  const auto at = [&](double clock) { return times(full, slowing(power, clock)); };
  const auto watts = [&](double clock) { return joules(power, at(clock), clock) / at(clock).total(); };
  const double capped = watts(1.0) <= power.cap() ? 1.0 : clock_at(power.cap(), watts, std::nullopt);
  const double clock = std::min(usual, capped);
  return {at(clock), joules(power, at(clock), clock), clock};
}

const std::vector<config::Parameter>& power_parameters() { return power_fields().parameters(); }

PowerDraw read_power_draw(const config::Value& value, Diagnostics& diagnostics) {
  const std::size_t before = diagnostics.list().size();
  const config::Arguments arguments = config::read_arguments(value, power_fields(), {}, "power", diagnostics);
  if (diagnostics.list().size() != before) return {};
  PowerDraw power = power_fields().read(arguments);
  power.by_limit = !arguments.has("idle_w") || !arguments.has("memory_w");
  if (!arguments.has("idle_w")) power.idle_w = kIdleShare * power.limit_w;
  if (!arguments.has("memory_w")) power.memory_w = kMemoryShare * power.limit_w;
  if (!arguments.has("compute_w")) power.compute_w = kComputeShare * power.limit_w;
  if (!arguments.has("spread")) power.spread = kSpreadByLimit;
  for (const auto& [key, lower, upper] :
       {std::tuple{"idle_w", power.idle_w, power.memory_w}, {"memory_w", power.memory_w, power.compute_w}})
    if (lower > upper)
      diagnostics.add(arguments.has(key) ? arguments.where(key) : value.where,
                      fmt::format("{} is {:g}, allowed: idle_w at most memory_w ({:g}), and that at most compute_w ({:g})", key,
                                  lower, power.memory_w, power.compute_w));
  const double least = std::ceil(std::max(kLeastCapShare * power.limit_w, power.idle_w));
  if (power.cap_w && (*power.cap_w < least || *power.cap_w > power.limit_w))
    diagnostics.add(arguments.where("cap_w"), fmt::format("a power cap of {:g} W, allowed: {:g} to {:g} W on this GPU",
                                                          *power.cap_w, least, power.limit_w));
  return power;
}

}  // namespace specsim::cost
