// Whether the intervals of `specsim serve` hold the truth in 93 to 97 of 100 runs: means and percentiles of one run and of
// several replications, throughput, capacities, the load where two curves cross, and the largest load that keeps an SLO.
//
// The truth is that of a run of a million requests (throughput: of all runs together, since it includes the time of the last
// requests). Changes relative to no speculation: tests/slow/interval_coverage_test.py.
#include "tests/support/coverage.h"
#include "sim/answers/load/capacity.h"
#include "sim/answers/load/slo.h"
#include "sim/answers/load/verdict.h"
#include "tests/serve/servers.h"

#include <catch2/catch.hpp>

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace specsim::serve_coverage_test {

using namespace specsim::tests;

namespace {

constexpr int kSeeds = 300;
constexpr std::size_t kLong = 1000000;

load::ServeExperiment small_server(int seed, std::size_t requests) {
  return server(fmt::format(R"(seed: {}
serve:
  scheduler: {{kind: vllm_v1, max_num_seqs: 16, async: false}}
  arrivals: {{process: poisson, rate: 8, requests: {}}}
  lengths: {{prompt: {{lognormal: {{mean: 60, cv: 1, most: 400}}}}, output: {{lognormal: {{mean: 40, cv: 1, most: 300}}}}}}
  speculation: {{policy: {{kind: fixed, draft_length: 3}}, acceptance: {{position_rates: [0.7, 0.5, 0.35]}}}}
  slo: {{ttft_ms: 400}}
cost: {{model: affine, target_fixed_ms: 8, target_ms_per_token: 0.5, draft_fixed_ms: 0.5, draft_ms_per_token: 0.05}}
)",
                            seed, requests));
}

load::SweepRunner runner_of(int replications, bool capacity) {
  load::SweepRunner::Options options;
  options.replications = replications;
  options.capacity = capacity;
  return load::SweepRunner(options);
}

std::vector<load::CurvePoint> curve(int seed, std::size_t requests, int replications, const std::vector<double>& rates,
                                    bool capacity) {
  load::SweepRunner runner = runner_of(replications, capacity);
  return load::load_curve(small_server(seed, requests), load::Load::rate, rates, true, runner, "--sweep");
}

// "... cross at rate 12.5 ± 0.3" of the first line of a verdict.
std::optional<load::CurveFigure> crossing_in(const std::vector<load::CurvePoint>& points) {
  const std::string words = load::verdict(points, load::Load::rate).at(0);
  const std::string before = "cross at rate ";
  const std::size_t at = words.find(before);
  if (at == std::string::npos) return std::nullopt;
  const std::string rest = words.substr(at + before.size());
  const std::string sign = " ± ";
  const std::size_t error = rest.find(sign);
  return load::CurveFigure{std::stod(rest), error == std::string::npos ? NAN : std::stod(rest.substr(error + sign.size()))};
}

double throughput(const serve::Summary& summary) { return summary.output_throughput; }

// Servers at about half and at three quarters of their capacity.
const std::vector<double> kRates = {6, 9.5};

// `capacities`: of each point; NaN: unknown.
std::map<std::string, Coverage> latencies(int replications, std::size_t requests, const std::vector<load::CurvePoint>& truths,
                                          const std::vector<report::Estimate>& capacities) {
  std::map<std::string, Coverage> held;
  std::map<std::size_t, std::vector<load::CurveFigure>> tokens;
  for (int seed = 1; seed <= kSeeds; ++seed) {
    std::vector<load::CurvePoint> points = curve(seed, requests, replications, kRates, false);
    for (std::size_t i = 0; i < points.size(); ++i) {
      points[i].capacity = capacities[i];
      for (const auto& [name, which] : {std::pair("TTFT", serve::Latency::ttft), {"TPOT", serve::Latency::tpot}}) {
        const load::CurveFigure mean = load::mean_latency(points[i], which);
        const load::CurveFigure p99 = load::p99_latency(points[i], which);
        held[fmt::format("mean {}", name)].add(mean.mean - load::mean_latency(truths[i], which).mean, mean.half_width);
        held[fmt::format("p99 {}", name)].add(p99.mean - load::p99_latency(truths[i], which).mean, p99.half_width);
      }
      tokens[i].push_back(load::figure(points[i], throughput));
    }
  }
  if (replications > 1)
    for (const auto& [i, all] : tokens) {
      double truth = 0.0;
      for (const load::CurveFigure& one : all) truth += one.mean / static_cast<double>(all.size());
      for (const load::CurveFigure& one : all) held["tokens/s"].add(one.mean - truth, one.half_width);
    }
  return held;
}

}  // namespace

TEST_CASE("every interval of serve covers the truth", "[serve][.slow]") {
  const std::vector<load::CurvePoint> truths = curve(4711, kLong, 1, kRates, true);
  std::vector<report::Estimate> capacities;
  for (const load::CurvePoint& point : truths) capacities.push_back(point.capacity);
  for (const auto& [replications, requests] : {std::pair<int, std::size_t>(1, 9600), {5, 1920}})
    for (const auto& [name, one] : latencies(replications, requests, truths, capacities)) {
      INFO(replications << " of " << requests << " requests, " << name << ": " << one.text());
      CHECK(one.right());
    }
  // The mutant: runs that are too short state errors of waits.
  const std::vector<report::Estimate> unknown(truths.size(), {NAN, NAN, 0.0});
  const Coverage mutant = latencies(1, 800, truths, unknown).at("p99 TTFT");
  INFO("of runs that are too short: " << mutant.text());
  CHECK_FALSE(mutant.right());
}

TEST_CASE("runs too short for the queue's long waits state no error of them", "[serve]") {
  std::vector<load::CurvePoint> points = curve(1, 500, 5, {9.5}, true);
  for (const load::CurvePoint& point : points) {
    CHECK_FALSE(load::waits_measurable(point));
    CHECK(std::isnan(load::mean_latency(point, serve::Latency::ttft).half_width));
    CHECK(std::isnan(load::p99_latency(point, serve::Latency::ttft).half_width));
    CHECK(load::mean_latency(point, serve::Latency::tpot).half_width > 0.0);
  }
  // At half the capacity a relaxation time is (1 - .5)^-2 = 4 requests.
  CHECK_FALSE(load::waits_measurable(2399, 5, 10));
  CHECK(load::waits_measurable(2400, 5, 10));
  CHECK_FALSE(load::waits_measurable(1e9, 10, 10));
  CHECK(load::waits_measurable(100, 10, NAN));
}

TEST_CASE("intervals of capacities, crossings and limits of an SLO cover the truth", "[serve][.slow]") {
  const std::vector<double> around = {9.2, 10.6};
  const std::vector<load::CurvePoint> truths = curve(4711, kLong, 1, around, true);
  const double cross = crossing_in(truths).value().mean;
  const auto limit_of = [](int seed, std::size_t requests, int replications) {
    load::SweepRunner runner = runner_of(replications, true);
    const load::ServeExperiment own = small_server(seed, requests);
    const std::vector<load::CurvePoint> points = load::load_curve(own, load::Load::rate, {8, 10}, false, runner, "--sweep");
    return load::largest_load(own, load::Load::rate, points, runner, "--sweep");
  };
  const double limit = limit_of(4712, kLong, 1).keeps;
  Coverage crossings;
  Coverage capacities;
  Coverage limits;
  double capacity[2] = {0.0, 0.0};
  std::vector<report::Estimate> found[2];
  for (int seed = 1; seed <= kSeeds; ++seed) {
    const std::vector<load::CurvePoint> points = curve(seed, 4200, 5, around, true);
    if (const auto own = crossing_in(points); own && !std::isnan(own->half_width))
      crossings.add(own->mean - cross, own->half_width);
    for (const std::size_t i : {0, 1}) {
      found[i].push_back(points[i].capacity);
      capacity[i] += points[i].capacity.value / kSeeds;
    }
    const load::LoadLimit own = limit_of(seed, 1500, 5);
    if (!std::isnan(own.half_width)) limits.add(own.keeps - limit, own.half_width);
  }
  for (const std::size_t i : {0, 1})
    for (const report::Estimate& one : found[i]) capacities.add(one.value - capacity[i], report::half_width(one));
  INFO("crossing " << cross << ": " << crossings.text() << "; capacity: " << capacities.text() << "; SLO " << limit << ": "
                   << limits.text());
  CHECK(crossings.runs > kSeeds / 2);
  CHECK(limits.runs > kSeeds / 2);
  CHECK(crossings.right());
  CHECK(capacities.right());
  CHECK(limits.right());
}

}  // namespace specsim::serve_coverage_test
