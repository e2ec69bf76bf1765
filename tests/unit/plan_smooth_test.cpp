// The recommendation over batches and the noise of two latency estimates, compared with values calculated by hand.
#include "sim/answers/plan/latency_noise.h"
#include "sim/answers/plan/schedule.h"
#include "sim/hardware/latency/deployment.h"
#include "sim/hardware/latency/roofline.h"
#include "tests/support/costs.h"

#include <catch2/catch.hpp>

#include <cmath>
#include <vector>

namespace specsim::plan_smooth_test {

namespace {

// A plan with these speedups, [draft length].
plan::ScanPoint point(double batch, const std::vector<double>& speedups) {
  plan::ScanPoint own;
  own.at = batch;
  for (std::size_t k = 0; k < speedups.size(); ++k) {
    plan::PlanPoint& length = own.plan.points.emplace_back();
    length.draft_length = static_cast<int>(k);
    length.speedup = speedups[k];
    if (speedups[k] > own.plan.best_point().speedup) own.plan.best = static_cast<int>(k);
  }
  own.smooth = own.plan.best;
  return own;
}

std::vector<int> smoothed(std::vector<plan::ScanPoint>& points) {
  plan::smooth(points);
  std::vector<int> lengths;
  for (const plan::ScanPoint& own : points) lengths.push_back(own.smooth);
  return lengths;
}

cost::Deployment deployment(const std::string& draft) {
  cost::Deployment d;
  d.hardware = tests::hardware_of("h100-sxm");
  d.target = tests::shape_of("{preset: llama-3.1-8b}");
  d.draft = tests::shape_of("{preset: llama-3.2-1b, name: " + draft + "}");
  return d;
}

}  // namespace

TEST_CASE("the smoothed draft length rises once if never rising loses a twentieth more", "[plan][schedule]") {
  // Lost shares of the best: 0, .02, .12, .25 at batch 1; .2, .15, .03, 0 at 2; .2, .2, 0, .06 at 4. Of all lengths that never
  // rise 2, 2, 2 lose least: the logarithms of .88 and .97 add up to .158, those of .75 and .94 for 3, 3, 3 to .350, those of
  // .98, .85 and .8 for 1, 1, 1 to .406. They lose .12 at batch 1; with one rise nothing is lost. Mutant: lengths never rise.
  std::vector<plan::ScanPoint> points = {point(1, {1.0, 0.98, 0.88, 0.75}), point(2, {1.0, 1.0625, 1.2125, 1.25}),
                                         point(4, {1.0, 1.0, 1.25, 1.175})};
  CHECK(smoothed(points) == std::vector<int>{0, 3, 2});
  for (const plan::ScanPoint& own : points) CHECK(own.loss == 0.0);
  const auto rise = plan::smooth_rise(points);
  REQUIRE(rise.has_value());
  CHECK(rise->at == 2.0);
  CHECK(rise->loss == Approx(0.12));
  CHECK(rise->worst == 1.0);
  CHECK(plan::rises(points));
  const std::vector<plan::LengthRange> ranges = plan::ranges_of(points);
  CHECK(plan::ranges_text(ranges) == "[[1, 1, 0], [2, 2, 3], [4, 4, 2]]");

  // A rise needs a gain of at least a twentieth: 2, 2 loses .04 at batch 1, and 3, 3 loses .1 there. Mutant: any gain is enough.
  std::vector<plan::ScanPoint> near = {point(1, {1.0, 0.98, 0.96, 0.90}), point(2, {1.0, 1.0, 1.25, 1.24})};
  CHECK(smoothed(near) == std::vector<int>{2, 2});
  CHECK(near[0].loss == Approx(0.04));
  CHECK(near[1].loss == 0.0);
  CHECK_FALSE(plan::smooth_rise(near).has_value());

  // A length that does not fit at a batch, where its plan ends earlier, is not chosen there.
  std::vector<plan::ScanPoint> full = {point(1, {1.0, 1.5, 2.0}), point(2, {1.0, 1.2})};
  CHECK(smoothed(full) == std::vector<int>{2, 1});
  CHECK_FALSE(plan::rises(full));
}

TEST_CASE("batches of a grid: powers of two, and finer between them", "[plan][schedule]") {
  CHECK(plan::doubling(1, 20) == std::vector<double>{1, 2, 4, 8, 16});
  CHECK(plan::doubling(3, 12) == std::vector<double>{3, 6, 12});
  // The batches of 8 to search: 8, one above it, a quarter, a half and one above that, three quarters.
  CHECK(plan::fine_batches(8, 15) == std::vector<double>{8, 9, 10, 12, 13, 14});
  CHECK(plan::fine_batches(8, 12) == std::vector<double>{8, 9, 10, 12});
}

TEST_CASE("errors of two draft models are independent, those of one are shared", "[plan]") {
  // The same shape under another name: every estimate is the same, and so is the verification's error, which cancels. The rest
  // are two independent errors of the same size. Mutants: they subtract, and nothing remains; they add without squares, a factor
  // of 2.
  const auto first = cost::make_roofline(deployment("one"));
  const auto same = cost::make_roofline(deployment("one"));
  const auto other = cost::make_roofline(deployment("another"));
  const cost::Workload workload{8, 1024};
  const auto price = [&](const cost::CostModel& model) -> plan::RoundEstimate {
    return {&model, workload, 4.0, cost::round_time(model, workload, 3, 0.5)};
  };
  const cost::RoundTime time = cost::round_time(*first, workload, 3, 0.5);
  const double error = first->kernel_error(cost::Role::draft, {8, 1, 1024, 1}) * time.draft.total() / time.total();
  REQUIRE(error > 0.0);
  CHECK(plan::latency_noise(price(*first), price(*other)) == Approx(std::sqrt(2.0) * error));
  CHECK(plan::latency_noise(price(*first), price(*same)) == 0.0);
  CHECK(plan::latency_noise(price(*first), price(*first)) == 0.0);
  // Given times have no error, and their draft is not another model's.
  const auto stated = tests::make_cost("affine", "{target_fixed_ms: 10, draft_fixed_ms: 1}");
  CHECK(plan::latency_noise(price(*first), price(*stated)) >= error);
  CHECK(plan::latency_noise(price(*stated), price(*first)) >= error);
}

}  // namespace specsim::plan_smooth_test
