// Speed goals of serving. Rates depend on the machine, so the goals in steps per second are only printed. The test asserts the
// ratio to a loop over the batch that only decodes, in the same run, as the best of interleaved repetitions.
#include "tests/serve/servers.h"
#include "tests/support/temporary_file.h"

#include <fmt/format.h>
#include <catch2/catch.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

using namespace specsim;
using namespace specsim::tests;

namespace {

double seconds_of(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// The simplest loop: so many steps of so many sequences. In each step every sequence gets a token, and a block if its last one is
// full.
std::uint64_t plain_loop(std::uint32_t batch, std::uint64_t steps) {
  struct Plain {
    std::uint32_t computed = 10;
    std::uint32_t held = 1;
    std::uint32_t emitted = 0;
    std::uint64_t last = 0;
  };
  std::vector<Plain> sequences(batch);
  std::uint64_t now = 0;
  for (std::uint64_t step = 0; step < steps; ++step) {
    std::uint64_t cached = 0;
    for (Plain& one : sequences) {
      cached += one.computed;
      one.held = std::max(one.held, (++one.computed + 15) / 16);
    }
    now += 6000 + 20 * batch + cached / 1000;
    for (Plain& one : sequences) {
      ++one.emitted;
      one.last = now;
    }
  }
  return now + sequences[0].last + sequences[batch - 1].held;
}

load::ServeExperiment closed(std::uint32_t batch, std::uint32_t output) {
  return server(fmt::format(R"(serve:
  scheduler: {{kind: vllm_v1, async: false, max_num_seqs: 512, max_num_batched_tokens: 100000}}
  kv: {{blocks: 1000000}}
  arrivals: {{process: closed, concurrency: {0}, requests: {0}}}
  lengths: {{prompt: 10, output: {1}}}
cost: {{model: affine, target_fixed_ms: 6, target_ms_per_token: 0.02}}
)",
                            batch, output));
}

}  // namespace

TEST_CASE("steps of a small batch and of a large one", "[perf]") {
  constexpr int kRepetitions = 5;
  struct Setting {
    std::uint32_t batch;
    std::uint32_t output;
    double goal;  // sequence-steps per second, in millions
    double most;  // largest multiple of the plain loop's time
  };
  for (const Setting& one : {Setting{8, 100000, 8, 60}, Setting{256, 8000, 30, 50}}) {
    const load::ServeExperiment experiment = closed(one.batch, one.output);
    const arrivals::RequestTrace workload = load::make_requests(experiment);
    double own = 1e9;
    double plain = 1e9;
    volatile std::uint64_t kept = 0;
    for (int i = 0; i < kRepetitions; ++i) {
      own = std::min(own, seconds_of([&] { kept = kept + load::serve(experiment, workload, {}).summary.completed; }));
      plain = std::min(plain, seconds_of([&] { kept = kept + plain_loop(one.batch, one.output); }));
    }
    const double million = 1e-6 * one.batch * one.output;
    fmt::print(
        "batch {}: {:.2f} million steps/s, {:.1f} million sequence-steps/s (goal {:g}); {:.1f} times a plain loop's time\n",
        one.batch, 1e-6 * one.output / own, million / own, one.goal, own / plain);
    CHECK(own < one.most * plain);
  }
}

TEST_CASE("a trace like Azure's conversations, and mixed steps by the roofline", "[perf]") {
  const auto traffic = [](const std::string& cost) {
    return server(R"(serve:
  scheduler: {kind: vllm_v1, async: false}
  kv: {blocks: 20000}
  arrivals: {process: poisson, rate: 5.5, requests: 19366}
  lengths: {prompt: {lognormal: {mean: 1155, cv: 1.1, most: 14000}}, output: {lognormal: {mean: 211, cv: 0.8, most: 1000}}}
cost: )" + cost + "\n");
  };
  for (const auto& [name, cost] :
       {std::pair<std::string, std::string>{
            "affine",
            "{model: affine, target_fixed_ms: 5.886, target_ms_per_token: 0.02101, target_ms_per_kv_token: 0.00003926}"},
        {"roofline", "{model: roofline, hardware: h100-sxm, target: llama-3.1-8b, draft: none}"}}) {
    const load::ServeExperiment experiment = traffic(cost);
    const arrivals::RequestTrace workload = load::make_requests(experiment);
    double steps = 0.0;
    double best = 1e9;
    for (int i = 0; i < 3; ++i)
      best = std::min(best, seconds_of([&] { steps = load::serve(experiment, workload, {}).summary.steps; }));
    const double plain = seconds_of([&] { static_cast<void>(plain_loop(9, static_cast<std::uint64_t>(steps))); });
    fmt::print("{}: {:.0f} steps in {:.3f} s, {:.0f} thousand/s; {:.1f} times a plain loop's time\n", name, steps, best,
               1e-3 * steps / best, best / plain);
    CHECK(best < (name == "affine" ? 100.0 : 900.0) * plain);
  }
}

namespace {

class Nothing final : public serve::StepObserver {
 public:
  void began(const serve::StepRecord& /*record*/) override {}
};

}  // namespace

// An observer sees each step, which is therefore scheduled; without one, steps of the same sequences need no scheduler.
TEST_CASE("a replica of a fleet with one request at a time or two", "[perf]") {
  for (const auto& [draft, speculation, most] :
       {std::tuple{"none", "", 0.7},
        {"eagle3-llama-3.1-8b", "  speculation: {policy: {kind: fixed, draft_length: 3}, acceptance: {alpha: 0.7}}\n", 0.9}}) {
    const load::ServeExperiment experiment = server(fmt::format(R"(serve:
  scheduler: {{kind: vllm_v1, max_num_batched_tokens: 8192, max_num_seqs: 256}}
  kv: {{utilization: 0.9}}
  arrivals: {{process: poisson, rate: 1.16, requests: 60000}}
  lengths: {{prompt: {{lognormal: {{mean: 512, cv: 1}}}}, output: {{lognormal: {{mean: 100, cv: 1}}}}}}
{}cost: {{model: roofline, hardware: h100-sxm, target: llama-3.1-8b, draft: {}}}
)",
                                                                speculation, draft));
    const arrivals::RequestTrace workload = load::make_requests(experiment);
    Nothing nothing;
    load::ServeOptions observed;
    observed.observer = &nothing;
    observed.summarise = false;
    load::ServeOptions fast;
    fast.summarise = false;
    double scheduled = 1e9;
    double own = 1e9;
    for (int i = 0; i < 3; ++i) {
      scheduled = std::min(scheduled, seconds_of([&] { static_cast<void>(load::serve(experiment, workload, observed)); }));
      own = std::min(own, seconds_of([&] { static_cast<void>(load::serve(experiment, workload, fast)); }));
    }
    fmt::print("one request or two, draft {}: {:.0f} thousand requests/s, {:.2f} of the time with a scheduler\n", draft,
               60.0 / own, own / scheduled);
    CHECK(own < most * scheduled);
  }
}

TEST_CASE("a trace with four times as many columns takes at most eight times as long", "[perf]") {
  const auto seconds = [](std::size_t columns) {
    std::string names = "arrived_us,prompt,output";
    std::string request = "0,1,1";
    for (std::size_t i = 0; i < columns; ++i) {
      names += ",x";
      request += ",1";
    }
    const TemporaryFile file(names + "\n" + request + "\n");
    double best = 1e9;
    for (int i = 0; i < 3; ++i)
      best = std::min(best, seconds_of([&] {
                        const std::string trace = "{process: trace, file: " + file.path() + "}";
                        const load::ServeExperiment experiment =
                            server("serve:\n  arrivals: " + trace + "\ncost: {model: affine, target_fixed_ms: 6}\n");
                        CHECK(load::make_requests(experiment).requests.size() == 1);
                      }));
    return best;
  };
  const double few = seconds(40000);
  const double many = seconds(160000);
  fmt::print("a trace of 160,000 columns: {:.3f} s, {:.1f} times as long as one of 40,000\n", many, many / few);
  CHECK(many <= 8.0 * few);  // mutant: each column is compared with all before it, 16 times
}
