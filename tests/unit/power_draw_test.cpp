// Energy is power times time, and a power cap holds.
#include "sim/hardware/gpu/power_draw.h"
#include "sim/foundation/config/value.h"
#include "sim/hardware/latency/energy.h"

#include <fmt/format.h>
#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <functional>

namespace specsim::power_draw_test {

using cost::BoardTime;
using cost::PowerDraw;

PowerDraw board(const std::string& yaml) {
  Diagnostics diagnostics;
  const PowerDraw power = cost::read_power_draw(config::parse_text(yaml, "test", diagnostics), diagnostics);
  diagnostics.throw_if_any();
  return power;
}

constexpr const char* kBoard = "{limit_w: 400, idle_w: 50, memory_w: 250, compute_w: 350}";

// Whether an account of a pass's energy agrees with the powers that the file gives, whatever the pass does.
bool is_power_times_time(const std::function<double(const PowerDraw&, const BoardTime&)>& joules) {
  const PowerDraw power = board(kBoard);
  for (const BoardTime& time : {BoardTime{2.0, 0.0, 0.0, 0.0}, BoardTime{0.0, 3.0, 0.0, 0.0}, BoardTime{0.0, 0.0, 0.0, 5.0},
                                BoardTime{1.0, 2.0, 0.5, 0.25}}) {
    const double expected = 250.0 * time.memory + 350.0 * time.compute + 50.0 * (time.small + time.idle);
    if (std::abs(joules(power, time) - expected) > 1e-9 * expected) return false;
  }
  return true;
}

TEST_CASE("energy is power times time") {
  CHECK(is_power_times_time([](const PowerDraw& power, const BoardTime& time) { return cost::board_use(power, time).joules; }));
  // Mutants: the limit for all of the time; no power while the host works.
  CHECK_FALSE(is_power_times_time([](const PowerDraw& power, const BoardTime& time) { return power.limit_w * time.total(); }));
  CHECK_FALSE(is_power_times_time([](const PowerDraw& power, const BoardTime& time) {
    return cost::board_use(power, time).joules - power.idle_w * time.idle;
  }));
}

TEST_CASE("a pass keeps what it draws beyond idle, so that the energy of any stretch of time follows") {
  cost::Hardware gpu;
  gpu.power = board(kBoard);
  gpu.bandwidth = 1e12;
  gpu.flops = 1e14;
  gpu.calibration.memory_efficiency = 0.8;
  cost::PassTime pass;
  pass.weights = 0.010;
  pass.kv = 0.002;
  pass.compute = 0.004;
  pass.launch = 0.001;
  pass.host = 0.003;
  // 6.4 GB take 8 ms at the full bandwidth, besides arithmetic. Arithmetic takes the pass's own time, or that of its rate if
  // longer.
  for (const double operations : {1e11, 5e11}) {
    const double compute = std::max(0.004, operations / 1e14);
    const cost::PassTime with = cost::with_energy(gpu, pass, {6.4e9, operations});
    CHECK(with.total() == pass.total());
    CHECK(with.work_joules + 50.0 * with.total() == Approx(250.0 * 0.008 + 350.0 * compute + 50.0 * (0.012 - compute)));
    cost::PassTime twice;
    twice.add(2.0, with);
    CHECK(twice.work_joules == Approx(2.0 * with.work_joules));
  }
}

TEST_CASE("the work of an operation is counted by hand") {
  cost::ProductWork product{4.0, 1000.0, 500.0, 2.0, {8.0, "", false}};
  const cost::PassWork work = cost::work_of({"product", 1.0, product});
  CHECK(work.bytes == 2.0 * 1000.0 * 500.0);
  CHECK(work.operations == 2.0 * 4.0 * 2.0 * 1000.0 * 500.0);
  cost::ExpertsWork experts;
  experts.met = 3.0;
  experts.rows = 8.0;
  experts.hidden = 100.0;
  experts.width = 50.0;
  experts.type.bits = 4.0;
  const cost::PassWork routed = cost::work_of({"experts", 1.0, experts});
  CHECK(routed.bytes == 3.0 * 3.0 * 100.0 * 50.0 / 2.0);
  CHECK(routed.operations == 2.0 * 8.0 * 3.0 * 100.0 * 50.0);
}

TEST_CASE("under a cap the mean power is the cap, and time grows with what the clock slows") {
  const BoardTime time{1.0, 1.0, 0.0, 0.0};
  const double uncapped = cost::board_use(board(kBoard), time).joules / time.total();
  CHECK(uncapped == Approx(300.0));
  double before = time.total();
  for (const double cap : {280.0, 240.0, 200.0}) {
    const cost::BoardUse use =
        cost::board_use(board(fmt::format("{{limit_w: 400, idle_w: 50, memory_w: 250, compute_w: 350, cap_w: {}}}", cap)), time);
    CHECK(use.joules / use.time.total() == Approx(cap).epsilon(1e-6));
    CHECK(use.time.total() > before);
    CHECK(use.time.compute == Approx(1.0 / use.clock));
    CHECK(use.time.memory == Approx(std::pow(use.clock, -0.11)));
    before = use.time.total();
  }
  // A cap above what is drawn changes nothing. Mutant: the cap itself as the power.
  const cost::BoardUse loose =
      cost::board_use(board("{limit_w: 400, idle_w: 50, memory_w: 250, compute_w: 350, cap_w: 390}"), time);
  CHECK(loose.time.total() == time.total());
  CHECK(loose.joules == Approx(600.0));
}

TEST_CASE("where full clock draws more than the limit, the estimated times hold and the power is the limit") {
  const PowerDraw power = board("{limit_w: 400, idle_w: 50, memory_w: 350, compute_w: 600}");
  const BoardTime time{1.0, 3.0, 0.0, 0.0};
  const cost::BoardUse use = cost::board_use(power, time);
  CHECK(use.time.total() == time.total());
  CHECK(use.clock < 1.0);
  CHECK(use.joules == Approx(400.0 * 4.0).epsilon(1e-6));
}

TEST_CASE("powers that cannot be are refused") {
  CHECK_THROWS_WITH(board("{limit_w: 400, idle_w: 300, memory_w: 250}"), Catch::Contains("idle_w is 300"));
  CHECK_THROWS_WITH(board("{limit_w: 400, cap_w: 90}"), Catch::Contains("a power cap of 90 W, allowed: 120 to 400 W"));
  CHECK_THROWS_WITH(board("{limit_w: 400, cap_w: 500}"), Catch::Contains("allowed: 120 to 400 W"));
  CHECK_THROWS_WITH(board("{idle_w: 40}"), Catch::Contains("limit_w"));
}

// Mutant: the solution's exponent is 1.
TEST_CASE("the clock under the limit is that of halvings without a solution", "[latency]") {
  const PowerDraw power = board("{limit_w: 400, idle_w: 50, memory_w: 380, compute_w: 900, clock_exponent: 2.2}");
  int lowered = 0;
  for (int i = 0; i < 400; ++i) {
    const BoardTime time{0.01 * (i % 20), 0.002 * i, 0.003 * (i % 7), 0.001 * (i % 3)};
    const auto watts = [&](double clock) {
      const double cores = std::pow(clock, power.clock_exponent);
      const double reading = (power.memory_w - power.idle_w) * (1.0 - power.memory_core_share + power.memory_core_share * cores);
      const double arithmetic = (power.compute_w - power.idle_w) * cores;
      return (power.idle_w * time.total() + reading * time.memory + arithmetic * time.compute) / time.total();
    };
    if (!(watts(1.0) > power.limit_w)) continue;
    ++lowered;
    double low = 0.25;
    double high = 1.0;
    for (int halving = 0; halving < 40; ++halving) {
      const double middle = 0.5 * (low + high);
      (watts(middle) > power.limit_w ? high : low) = middle;
    }
    CHECK(cost::board_use(power, time).clock == low);
  }
  CHECK(lowered > 100);
}

}  // namespace specsim::power_draw_test
