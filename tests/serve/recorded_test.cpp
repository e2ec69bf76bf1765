// Recorded requests and lengths: columns of other formats, and a column as a distribution of lengths.
#include "tests/serve/servers.h"
#include "tests/support/temporary_file.h"

#include <catch2/catch.hpp>

#include <algorithm>

namespace specsim::recorded_test {

using namespace specsim::tests;

namespace {

arrivals::RequestTrace requests_of(const std::string& arrivals, const std::string& lengths = "") {
  return load::make_requests(
      server(fmt::format("serve:\n  arrivals: {{{}}}\n{}cost: {{model: affine, target_fixed_ms: 1}}\n", arrivals, lengths)));
}

}  // namespace

TEST_CASE("BurstGPT's columns", "[serve]") {
  const TemporaryFile file(
      "Timestamp,Session ID,Elapsed time,Model,Request tokens,Response tokens,Total tokens,Log Type\n"
      "5,1,3.2,ChatGPT,472,18,490,Conversation log\n45.5,,7,GPT-4,1087,230,1317,API log\n");
  const arrivals::RequestTrace workload = requests_of("process: trace, file: " + file.path());
  REQUIRE(workload.requests.size() == 2);
  CHECK(workload.requests[0].due == 5'000'000'000'000);
  CHECK(workload.requests[1].due == 45'500'000'000'000);
  CHECK(workload.requests[1].prompt == 1087);
  CHECK(workload.requests[1].output == 230);
}

TEST_CASE("lengths of a file, whatever the arrivals are", "[serve]") {
  const TemporaryFile file("arrived_us,prompt,output\n0,10,3\n5,20,4\n7,30,5\n");
  const arrivals::RequestTrace workload = requests_of(
      "process: deterministic, rate: 1, requests: 5",
      fmt::format(
          "  lengths: {{prompt: {{file: {{path: {0}, column: prompt}}}}, output: {{file: {{path: {0}, column: output}}}}}}\n",
          file.path()));
  std::vector<std::uint32_t> lengths;
  for (const arrivals::Request& request : workload.requests) {
    lengths.push_back(request.prompt);
    lengths.push_back(request.output);
  }
  CHECK(lengths == std::vector<std::uint32_t>{10, 3, 20, 4, 30, 5, 10, 3, 20, 4});
}

TEST_CASE("turns that come before the answer they hold are counted", "[serve]") {
  const auto early = [](double gap, double step_ms) {
    const load::ServeExperiment experiment = server(fmt::format(
        "serve:\n  arrivals: {{process: sessions, rate: 1, requests: 60, gap_s: {}, turns: 4, prompt: 10, output: 20}}\n"
        "cost: {{model: affine, target_fixed_ms: {}}}\n",
        gap, step_ms));
    const arrivals::RequestTrace workload = load::make_requests(experiment);
    return serve::early_requests(workload, load::serve(experiment, workload, {}).result);
  };
  CHECK(early(100.0, 1e-3) == 0);
  CHECK(early(1e-4, 100.0) > 40);
}

TEST_CASE("closed sessions send a turn when the one before was answered", "[serve]") {
  const auto experiment = [](const char* more) {
    return server(
        fmt::format("serve:\n  scheduler: {{kind: vllm_v1, async: false}}\n  frontend_ms: 3\n"
                    "  arrivals: {{process: sessions, rate: 5, requests: 200, gap_s: 0.5, turns: 4, prompt: 10, output: 20{}}}\n"
                    "cost: {{model: affine, target_fixed_ms: 40}}\n",
                    more));
  };
  const load::ServeExperiment closed = experiment(", closed: true");
  const arrivals::RequestTrace workload = load::make_requests(closed);
  const load::ServeResult served = load::serve(closed, workload, {});
  CHECK(served.summary.requests == 200);
  CHECK(served.summary.completed == 200);
  CHECK(serve::early_requests(workload, served.result) == 0);
  bool in_order = true;
  for (std::size_t i = 0; i < workload.requests.size(); ++i) {
    const arrivals::Request& request = workload.requests[i];
    const serve::Sequence& sequence = served.result.sequences[i];
    in_order = in_order && (i == 0 || served.result.sequences[i - 1].sent <= sequence.sent);
    if (request.follows == 0) {
      CHECK(sequence.sent == request.due);
      continue;
    }
    const std::size_t before = request.follows - 1;  // the client's think time is the gap between the turns of the open loop
    CHECK(sequence.sent == served.result.sequences[before].last_token + request.due - workload.requests[before].due);
  }
  CHECK_FALSE(in_order);
  // The same requests in an open loop, in a way that no client could have sent them.
  const load::ServeExperiment open = experiment("");
  const arrivals::RequestTrace same = load::make_requests(open);
  CHECK(serve::early_requests(same, load::serve(open, same, {}).result) > 50);
  // A horizon leaves out the turns that were never sent.
  load::ServeExperiment cut = closed;
  cut.horizon = 4'000'000'000'000;
  const load::ServeResult some = run_server(cut);
  CHECK(some.summary.requests < 200);
  CHECK(some.summary.completed < some.summary.requests);
  const auto sent = std::count_if(some.result.sequences.begin(), some.result.sequences.end(),
                                  [](const serve::Sequence& one) { return one.sent != arrivals::kNever; });
  CHECK(some.summary.requests == static_cast<std::size_t>(sent));
}

TEST_CASE("how busy the link between engines is", "[serve]") {
  // A prompt's cache takes 0.1 s; four are sent in the first 4 s, and the last ends a step after its cache.
  const load::ServeResult served = run_server(
      server("serve:\n  scheduler: {kind: vllm_v1, async: false}\n  arrivals: {process: deterministic, rate: 1, requests: 4}\n"
             "  lengths: {prompt: 1000, output: 2}\n  replicas: {prefill: 1, link_gb_per_s: 1, kv_bytes_per_token: 1e5}\n"
             "cost: {model: affine, target_fixed_ms: 10}\n"));
  CHECK(served.result.link_busy == 4 * 100'000'000'000);
  CHECK(serve::link_busy_share(served.result) == Approx(0.4 / (1e-12 * static_cast<double>(served.result.end))));
}

TEST_CASE("a horizon leaves nobody out of the mean concurrency", "[serve]") {
  // Sent at 10 and 20 s; the first takes 10 s, and the horizon cuts off the second half of the second one.
  const load::ServeExperiment experiment = server(
      "serve:\n  scheduler: {kind: vllm_v1, async: false}\n  arrivals: {process: deterministic, rate: 0.1, requests: 2}\n"
      "  lengths: {prompt: 1, output: 10}\n  horizon_s: 25\ncost: {model: affine, target_fixed_ms: 1000}\n");
  const load::ServeResult served = run_server(experiment);
  REQUIRE(served.summary.completed == 1);
  CHECK(served.summary.mean_concurrency == Approx((10.0 + 5.0) / 15.0));
}

}  // namespace specsim::recorded_test
