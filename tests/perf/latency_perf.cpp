// Time of a latency estimate: a pass whose shapes repeat, and plans over many workloads.
#include "sim/answers/plan/acceptance_curve.h"
#include "sim/answers/plan/planner.h"
#include "tests/perf/sketch.h"
#include "tests/support/costs.h"

#include <fmt/format.h>
#include <catch2/catch.hpp>

#include <chrono>
#include <functional>

using namespace specsim;

namespace {

double seconds_of(const std::function<void()>& work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

}  // namespace

TEST_CASE("a pass whose shapes repeat: goal 1 us; 10,000 workloads planned: goal 5 s on two cores") {
  const auto cost = tests::make_cost("roofline", "{hardware: h100-sxm, target: llama-3.1-8b, draft: llama-3.2-1b}");
  constexpr int kPasses = 200000;
  double sum = 0.0;
  const auto passes = [&] {
    for (int i = 0; i < kPasses; ++i) {
      const double tokens = 1.0 + i % 8;
      sum += cost->pass(cost::Role::target, {8.0, tokens, 1000.0 + i % 500, tokens}).total();
    }
  };
  passes();
  const double pass = seconds_of(passes) / kPasses;
  CHECK(sum > 0.0);
  constexpr int kBatches = 100;
  constexpr int kContexts = 100;
  const plan::AcceptanceCurve curve = plan::constant_acceptance(0.7, 8);
  int drafting = 0;
  const double plans = seconds_of([&] {
    for (int batch = 1; batch <= kBatches; ++batch)
      for (int context = 1; context <= kContexts; ++context)
        drafting += plan::make_plan(*cost, {static_cast<double>(batch), 100.0 * context}, curve).best > 0 ? 1 : 0;
  });
  fmt::print(
      "{}\na pass: {:.0f} ns (goal 1000); {} workloads of 9 draft lengths: {:.2f} s on one core (goal 5 on two), {} draft\n",
      tests::machine(), 1e9 * pass, kBatches * kContexts, plans, drafting);
  CHECK(pass < 1e-6);
  CHECK(plans < 10.0);
}
