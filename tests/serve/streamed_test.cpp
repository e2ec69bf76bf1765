// Streamed runs: the same events as runs that keep their requests, exact counts, percentiles within the stated error, and the
// same bytes for any number of threads.
#include "sim/answers/load/sweep_runner.h"
#include "sim/foundation/math/quantile_sketch.h"
#include "tests/serve/servers.h"

#include <catch2/catch.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

namespace specsim::streamed_test {

namespace {

std::string fleet(const std::string& scheduler, const std::string& routing, int requests, const std::string& more = "",
                  const std::string& arrivals = "process: poisson, rate: 90") {
  return fmt::format(R"(seed: 3
serve:
  scheduler: {{{}}}
  kv: {{block: 16, blocks: 120}}
  arrivals: {{{}, requests: {}}}
  lengths: {{prompt: {{lognormal: {{mean: 60, cv: 1, most: 600}}}}, output: {{uniform: {{from: 1, to: 60}}}}}}
  replicas: {{count: 5, routing: {}}}
  warm_up: 20
  frontend_ms: 1.5
  slo: {{ttft_ms: 80, tpot_ms: 9}}
  metrics: streamed
{}cost: {{model: affine, target_fixed_ms: 6, target_ms_per_token: 0.02, target_ms_per_kv_token: 0.0001, draft_fixed_ms: 1, draft_ms_per_token: 0.004}}
)",
                     scheduler, arrivals, requests, routing, more);
}

constexpr const char* kDrafts = "  speculation: {policy: {kind: fixed, draft_length: 3}, acceptance: {alpha: 0.7}}\n";

// The sample of that rank among requests after the warm-up.
template <class Figure>
double ranked(const load::ServeResult& kept, double share, const Figure& figure) {
  std::vector<double> all;
  for (std::size_t i = 20; i < kept.result.sequences.size(); ++i)
    if (const double value = figure(kept.result.sequences[i]); !std::isnan(value)) all.push_back(value);
  std::sort(all.begin(), all.end());
  return all[static_cast<std::size_t>(std::floor(share * static_cast<double>(all.size() - 1)))];
}

void check_percentiles(const load::ServeResult& kept, const serve::Statistics& streamed,
                       double (*figure)(const serve::Sequence&)) {
  for (const auto& [share, value] :
       {std::pair(0.5, streamed.p50), {0.9, streamed.p90}, {0.95, streamed.p95}, {0.99, streamed.p99}})
    CHECK(value == Approx(ranked(kept, share, figure)).epsilon(math::QuantileSketch::kRelativeError * 1.000001));
}

void check_alike(const load::ServeExperiment& experiment) {
  const load::ServeResult kept = load::serve(experiment, load::make_requests(experiment), {});
  const load::ServeResult streamed = load::serve_streamed(experiment, {}, 2);
  const serve::Summary& a = kept.summary;
  const serve::Summary& b = streamed.summary;
  // Exact.
  CHECK(b.requests == a.requests);
  CHECK(b.completed == a.completed);
  CHECK(b.output_tokens == a.output_tokens);
  CHECK(b.prompt_tokens == a.prompt_tokens);
  CHECK(b.duration_s == a.duration_s);
  CHECK(b.sending_s == a.sending_s);
  CHECK(b.steps == a.steps);
  CHECK(b.drafted == a.drafted);
  CHECK(b.accepted == a.accepted);
  CHECK(b.preemptions == a.preemptions);
  CHECK(b.recomputed_tokens == a.recomputed_tokens);
  CHECK(b.within_limit == a.within_limit);
  CHECK(b.within_all == a.within_all);
  CHECK(b.overloaded == a.overloaded);
  CHECK(b.busy_share == Approx(a.busy_share).epsilon(1e-12));
  CHECK(b.mean_concurrency == Approx(a.mean_concurrency).epsilon(1e-12));
  CHECK(b.tokens_per_round == Approx(a.tokens_per_round).epsilon(1e-12));
  for (const auto figure : {&serve::Summary::ttft_ms, &serve::Summary::tpot_ms, &serve::Summary::e2el_ms,
                            &serve::Summary::queue_ms, &serve::Summary::itl_ms, &serve::Summary::itl_token_ms}) {
    CHECK((b.*figure).count == (a.*figure).count);
    CHECK((b.*figure).mean == Approx((a.*figure).mean).epsilon(1e-12));
    CHECK((b.*figure).max == (a.*figure).max);
  }
  for (std::size_t cause = 0; cause < serve::kCauses; ++cause)
    CHECK(b.life_ms[cause] == Approx(a.life_ms[cause]).epsilon(1e-11).margin(1e-12));
  // Within the stated error.
  check_percentiles(kept, b.ttft_ms,
                    [](const serve::Sequence& one) { return 1e-9 * static_cast<double>(one.first_token - one.sent); });
  check_percentiles(kept, b.e2el_ms,
                    [](const serve::Sequence& one) { return 1e-9 * static_cast<double>(one.last_token - one.sent); });
  check_percentiles(kept, b.tpot_ms, [](const serve::Sequence& one) {
    return one.emitted > 1 ? 1e-9 * static_cast<double>(one.last_token - one.first_token) / (one.emitted - 1.0) : NAN;
  });
}

}  // namespace

TEST_CASE("a streamed run has the events of one that keeps its requests", "[serve]") {
  for (const char* const routing : {"round_robin", "least_loaded", "join_shortest_queue"})
    for (const char* const scheduler : {"kind: vllm_v1, max_num_seqs: 12", "kind: vllm_v1, async: false", "kind: sglang",
                                        "kind: trtllm", "kind: llama_cpp, slots: 2, context: 700"})
      check_alike(tests::server(fleet(scheduler, routing, 700, kDrafts)));
  for (const char* const arrivals : {"process: gamma, rate: 60, burstiness: 0.4", "process: deterministic, rate: 70"})
    check_alike(tests::server(fleet("kind: vllm_v1", "least_loaded", 700, "", arrivals)));
}

TEST_CASE("the bytes of a streamed run do not depend on threads", "[serve]") {
  // More requests than are made at a time.
  const load::ServeExperiment experiment =
      tests::server(fleet("kind: vllm_v1", "round_robin", 70000, "", "process: poisson, rate: 400"));
  const load::ServeResult one = load::serve_streamed(experiment, {}, 1);
  CHECK(one.summary.completed == 70000);
  for (const unsigned threads : {2U, 5U})
    CHECK(load::pack_summary(load::serve_streamed(experiment, {}, threads).summary) == load::pack_summary(one.summary));
  // Threads share the kept times of passes.
  const load::ServeExperiment drafting = tests::server(R"(serve:
  scheduler: {kind: vllm_v1}
  arrivals: {process: poisson, rate: 40, requests: 4000}
  lengths: {prompt: {lognormal: {mean: 200, cv: 1}}, output: {lognormal: {mean: 60, cv: 1}}}
  replicas: {count: 8, routing: round_robin}
  metrics: streamed
  speculation: {policy: {kind: fixed, draft_length: 3}, acceptance: {alpha: 0.7}}
cost: {model: roofline, hardware: h100-sxm, target: llama-3.1-8b, draft: eagle3-llama-3.1-8b}
)");
  CHECK(load::pack_summary(load::serve_streamed(drafting, {}, 3).summary) ==
        load::pack_summary(load::serve_streamed(drafting, {}, 1).summary));
  const load::ServeResult kept = load::serve(experiment, load::make_requests(experiment), {});
  CHECK(one.summary.steps == kept.summary.steps);
  CHECK(one.summary.duration_s == kept.summary.duration_s);
  CHECK(one.summary.ttft_ms.p99 == Approx(kept.summary.ttft_ms.p99).epsilon(1.2 * math::QuantileSketch::kRelativeError));
}

TEST_CASE("what cannot be streamed is refused", "[serve]") {
  const auto refused = [](const std::string& yaml, const char* words) {
    CHECK_THROWS_WITH(tests::server(yaml), Catch::Contains("metrics is streamed with ") && Catch::Contains(words));
  };
  refused(fleet("kind: vllm_v1", "round_robin", 10, "", "process: closed, concurrency: 3"), "these arrivals");
  refused(fleet("kind: vllm_v1", "round_robin", 10, "", "process: poisson, rate: 1, rescaled: true"), "these arrivals");
  refused(fleet("kind: vllm_v1, prefix_caching: true", "round_robin", 10), "a prefix cache");
  refused(fleet("kind: vllm_v1", "round_robin", 10, "  horizon_s: 4\n"), "horizon_s");
}

}  // namespace specsim::streamed_test
