// Steps that go on without the scheduler, and times that are kept, change no bit of a run. An observer of steps switches the
// former off.
#include "sim/answers/load/sweep_runner.h"
#include "sim/serving/serve/step_time.h"
#include "tests/serve/servers.h"

#include <catch2/catch.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <tuple>
#include <vector>

namespace specsim::same_steps_test {

namespace {

class Nothing final : public serve::StepObserver {
 public:
  void began(const serve::StepRecord& /*record*/) override { ++steps; }
  std::uint64_t steps = 0;
};

auto figures_of(const serve::Sequence& one) {
  return std::tie(one.emitted, one.computed, one.held, one.status, one.rounds, one.drafted, one.accepted, one.last_token,
                  one.first_token, one.spent, one.spent_first, one.first_scheduled, one.preemptions, one.recomputed);
}

auto totals_of(const serve::ServerTotals& one) {
  return std::tie(one.steps, one.prefill_steps, one.rows, one.draft_rows, one.rounds, one.uniform_steps, one.mixed_steps,
                  one.eager_steps, one.largest_batch, one.fewest_free_blocks, one.batch_ps, one.busy, one.drafting,
                  one.verifying_ps, one.verifying_batch_ps, one.work_joules);
}

bool same(const load::ServeResult& a, const load::ServeResult& b) {
  if (load::pack_summary(a.summary) != load::pack_summary(b.summary) || a.result.end != b.result.end ||
      a.result.gaps.size() != b.result.gaps.size())
    return false;
  for (std::size_t i = 0; i < a.result.sequences.size(); ++i)
    if (figures_of(a.result.sequences[i]) != figures_of(b.result.sequences[i])) return false;
  for (std::size_t i = 0; i < a.result.gaps.size(); ++i) {
    const serve::Gap& x = a.result.gaps[i];
    const serve::Gap& y = b.result.gaps[i];
    if (std::tie(x.length, x.tokens, x.count) != std::tie(y.length, y.tokens, y.count)) return false;
  }
  return totals_of(a.result.totals.front()) == totals_of(b.result.totals.front());
}

// A server with random limits: small pools preempt, low loads decode alone, and outputs end at the model's length.
class Settings {
 public:
  explicit Settings(std::uint64_t seed) : bits_(seed) {}
  std::string next() {
    const std::string scheduler = one_of({"kind: vllm_v1", "kind: vllm_v1, async: false", "kind: sglang",
                                          "kind: sglang, scheduler_recv_interval: 3", "kind: trtllm"});
    const std::string limit = scheduler.find("vllm") == std::string::npos ? "max_running_requests" : "max_num_seqs";
    const std::string longest = number(0, 1) == 0 ? "" : fmt::format(", max_model_len: {}", number(500, 900));
    const std::string limits =
        scheduler.find("trtllm") != std::string::npos ? "" : fmt::format(", {}: {}{}", limit, number(1, 20), longest);
    const std::string policy =
        one_of({"", "kind: off", "kind: fixed, draft_length: 1", "kind: fixed, draft_length: 4",
                "kind: fixed, draft_length: 3, disable_above_batch: 2", "kind: table, table: [[1, 2, 4], [3, 6, 2], [7, 99, 0]]",
                "kind: table, table: [[1, 99, 0, 150, 3], [1, 99, 151, 400, 1]]"});
    const std::string drafts =
        policy.empty() ? ""
                       : fmt::format("  speculation: {{policy: {{{}}}, acceptance: {{alpha: 0.{}}}}}\n", policy, number(1, 9));
    return fmt::format(R"(seed: {}
serve:
  scheduler: {{{}{}}}
  kv: {{block: {}, blocks: {}}}
  arrivals: {{process: {}, rate: {}, requests: 60}}
  lengths: {{prompt: {{lognormal: {{mean: 60, cv: 1, most: 250}}}}, output: {{uniform: {{from: 1, to: 240}}}}}}
{}cost: {}
)",
                       number(1, 1 << 20), scheduler, limits, one_of({"16", "1", "64"}), number(1000, 1400),
                       one_of({"poisson", "deterministic"}), one_of({"1", "4", "10", "20", "40"}), drafts,
                       one_of({"{model: affine, target_fixed_ms: 5, target_ms_per_token: 0}",  // steps end with arrivals
                               "{model: affine, target_fixed_ms: 6, target_ms_per_token: 0.02, target_ms_per_kv_token: 0.0001, "
                               "draft_fixed_ms: 1, draft_ms_per_token: 0.004}",
                               "{model: roofline, hardware: h100-sxm, target: llama-3.1-8b, draft: eagle3-llama-3.1-8b}"}));
  }

 private:
  std::uint32_t number(std::uint32_t from, std::uint32_t to) {
    return std::uniform_int_distribution<std::uint32_t>(from, to)(bits_);
  }
  std::string one_of(const std::vector<std::string>& words) {
    return words[number(0, static_cast<std::uint32_t>(words.size()) - 1)];
  }
  std::mt19937_64 bits_;
};

}  // namespace

// Mutants: a sequence may also end in these steps; their blocks are not counted; a step that ends with an arrival is one of them;
// SGLang's ratio stands still in them; a policy that looks at contexts does not count as one.
TEST_CASE("steps of the same sequences change no bit", "[serve]") {
  Settings settings(11);
  std::uint64_t steps = 0;
  for (int i = 0; i < 150; ++i) {
    const std::string yaml = settings.next();
    const load::ServeExperiment experiment = tests::server(yaml);
    const arrivals::RequestTrace requests = load::make_requests(experiment);
    Nothing nothing;
    load::ServeOptions observed;
    observed.observer = &nothing;
    const load::ServeResult one_by_one = load::serve(experiment, requests, observed);
    INFO(yaml);
    CHECK(nothing.steps == one_by_one.result.totals.front().steps);
    REQUIRE(same(load::serve(experiment, requests, {}), one_by_one));
    steps += nothing.steps;
  }
  CHECK(steps > 100000);
}

// Mutant: a replica may be late by 9 ms more.
TEST_CASE("replicas that are brought up to date later change no bit", "[serve]") {
  const auto fleet = [](const char* routing, std::uint32_t rate) {
    return tests::server(fmt::format(R"(seed: 4
serve:
  scheduler: {{kind: vllm_v1, max_num_seqs: 3}}
  kv: {{block: 16, blocks: 90}}
  arrivals: {{process: poisson, rate: {}, requests: 3000}}
  lengths: {{prompt: 50, output: 40}}
  replicas: {{count: 2, routing: {}}}
  metrics: streamed
  speculation: {{policy: {{kind: fixed, draft_length: 2}}, acceptance: {{alpha: 0.5}}}}
cost: {{model: affine, target_fixed_ms: 6, target_ms_per_token: 0.02, target_ms_per_kv_token: 0.0001, draft_fixed_ms: 1}}
)",
                                     rate, routing));
  };
  for (const std::uint32_t rate : {2U, 9U, 30U})
    for (const char* const routing : {"least_loaded", "join_shortest_queue"}) {
      const load::ServeExperiment experiment = fleet(routing, rate);
      const serve::Summary kept = load::serve(experiment, load::make_requests(experiment), {}).summary;
      const serve::Summary streamed = load::serve_streamed(experiment, {}, 1).summary;
      CHECK(streamed.duration_s == kept.duration_s);
      CHECK(streamed.steps == kept.steps);
      CHECK(streamed.accepted == kept.accepted);
      CHECK(streamed.e2el_ms.max == kept.e2el_ms.max);
      CHECK(streamed.e2el_ms.mean == Approx(kept.e2el_ms.mean).epsilon(1e-12));
      CHECK(streamed.ttft_ms.mean == Approx(kept.ttft_ms.mean).epsilon(1e-12));
    }
}

TEST_CASE("steps without a scheduler end where simulated time ends", "[serve]") {
  for (const char* const more : {"", "  replicas: {count: 2, routing: least_loaded}\n  metrics: streamed\n"}) {
    const load::ServeExperiment experiment = tests::server(fmt::format(R"(serve:
  scheduler: {{kind: vllm_v1}}
  arrivals: {{process: deterministic, rate: 1, requests: 2}}
  lengths: {{prompt: 10, output: 500}}
{}cost: {{model: affine, target_fixed_ms: 1e8}}
)",
                                                                       more));
    const auto run = [&] {
      if (experiment.streamed)
        static_cast<void>(load::serve_streamed(experiment, {}, 1));
      else
        static_cast<void>(tests::run_server(experiment));
    };
    CHECK_THROWS_WITH(run(), Catch::Contains("the run lasts longer than 4.5e+06 s"));
  }
}

// Mutant: passes of the draft are kept without their number.
TEST_CASE("a kept time is the estimated one", "[serve]") {
  const load::ServeExperiment experiment = tests::server(R"(serve:
  scheduler: {kind: vllm_v1}
  arrivals: {process: poisson, rate: 1, requests: 1}
  lengths: {prompt: 10, output: 10}
cost: {model: roofline, hardware: h100-sxm, target: llama-3.1-8b, draft: eagle3-llama-3.1-8b}
)");
  for (const auto method : {serve::DraftMethod::eagle, serve::DraftMethod::ngram}) {
    const serve::StepLatency kept(*experiment.cost, method, serve::HostTime::overlapped, true);
    std::mt19937_64 bits(5);
    const auto number = [&](std::uint32_t from, std::uint32_t to) {
      return std::uniform_int_distribution<std::uint32_t>(from, to)(bits);
    };
    for (int i = 0; i < 4000; ++i) {
      const std::uint32_t n = number(1, 70) % number(2, 70) + 1;
      const std::uint32_t rows = number(1, 4);
      const std::uint64_t cached = std::uint64_t{n} * number(1, 40);
      const std::uint64_t after = cached + n * number(1, rows);
      const int length = static_cast<int>(number(0, 4));
      serve::StepWork work;
      work.decoding = serve::decoding_alike(n, rows, static_cast<double>(cached));
      work.decoding.pairs = 0.5 * static_cast<double>(rows * (2 * cached + n * (rows + 1)));
      work.logits = work.decoding.rows;
      work.cached_after = static_cast<double>(after);
      serve::StepWork prompt;
      prompt.prompts = {1.0, static_cast<double>(n), 0.0, 0.5 * n * (n + 1.0)};
      prompt.logits = number(0, 1);
      prompt.cached_after = n;
      const serve::StepLatency fresh(*experiment.cost, method, serve::HostTime::overlapped, true);
      const auto alike = [](const serve::StepTime& a, const serve::StepTime& b) {
        return std::tie(a.target, a.draft, a.work_joules) == std::tie(b.target, b.draft, b.work_joules);
      };
      REQUIRE(alike(kept.decoding_time(n, rows, cached, after, length), fresh.time(work, length)));
      REQUIRE(alike(kept.time(prompt, length), fresh.time(prompt, length)));
    }
  }
}

}  // namespace specsim::same_steps_test
