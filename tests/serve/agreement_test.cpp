// At a constant batch a server takes the time that `specsim plan` estimates and that a lockstep placement simulates.
#include "sim/hardware/latency/round_time.h"
#include "sim/serving/serve/step_time.h"
#include "tests/placement/batches.h"
#include "tests/serve/servers.h"

#include <catch2/catch.hpp>

#include <fmt/format.h>

#include <cmath>

namespace specsim::agreement_test {

using namespace specsim::tests;

namespace {

constexpr double kPs = 1e-12;

// `requests` equal ones at once, and no later ones: every step decodes all of them.
std::string saturated(int requests, int prompt, int output, int draft_length, const std::string& alpha, const std::string& cost,
                      const std::string& method = "eagle", bool async = false) {
  return fmt::format(R"(serve:
  scheduler: {{kind: vllm_v1, async: {7}, max_num_batched_tokens: 100000}}
  arrivals: {{process: closed, concurrency: {0}, requests: {0}}}
  lengths: {{prompt: {1}, output: {2}}}
  speculation: {{policy: {{kind: fixed, draft_length: {3}}}, acceptance: {{alpha: {4}}}, method: {6}}}
cost: {5}
)",
                     requests, prompt, output, draft_length, alpha, cost, method, async);
}

}  // namespace

TEST_CASE("saturated at a batch, the server emits the tokens of the plan's round", "[serve]") {
  constexpr int batch = 12;
  constexpr int prompt = 500;
  for (const int draft_length : {1, 4}) {
    for (const bool accepted : {true, false}) {
      // Draft rows are free, except in rounds with the same number of rows in both: two at draft length 1, all accepted. The
      // plan's draft reads the token that it has not seen; the server's first draft pass reads all rows of the step.
      const bool rows_agree = draft_length == 1 && accepted;
      const int rounds = 60;
      const int a_round = accepted ? draft_length + 1 : 1;
      CAPTURE(draft_length, accepted);
      const load::ServeExperiment experiment = server(saturated(
          batch, prompt, 1 + rounds * a_round, draft_length, accepted ? "1" : "0",
          fmt::format("{{model: affine, target_fixed_ms: 6, target_ms_per_token: 0.02, target_ms_per_kv_token: 0.00004, "
                      "draft_fixed_ms: 0.7, draft_ms_per_token: {}, overhead_ms: 0.5}}",
                      rows_agree ? 0.004 : 0.0)));
      const load::ServeResult served = run_server(experiment);
      double plan = 0.0;
      for (int round = 0; round < rounds; ++round) {
        const cost::Workload workload{double{batch}, prompt + static_cast<double>(a_round) * round};
        plan += cost::round_time(*experiment.cost, workload, draft_length, accepted ? 1.0 : 0.0).total();
      }
      for (const serve::Sequence& sequence : served.result.sequences)
        CHECK(kPs * static_cast<double>(sequence.last_token - sequence.first_token) == Approx(plan).epsilon(1e-10));
      // The mutant that drops the bonus token would need more rounds.
      CHECK(served.result.sequences[0].rounds == static_cast<std::uint32_t>(rounds));
    }
  }
}

TEST_CASE("the roofline gives a server's round and a plan's round the same latency", "[serve]") {
  const std::string cost = "{model: roofline, hardware: h100-sxm, target: llama-3.1-8b, draft: none, engine: vllm}";
  const int rounds = 40;
  const load::ServeExperiment experiment = server(saturated(24, 800, 1 + rounds * 4, 3, "1", cost, "ngram"));
  const load::ServeResult served = run_server(experiment);
  double plan = 0.0;
  for (int round = 0; round < rounds; ++round)
    plan += cost::round_time(*experiment.cost, {24.0, 800.0 + 4.0 * round}, 3, 1.0).total();
  CHECK(kPs * static_cast<double>(served.result.sequences[3].last_token - served.result.sequences[3].first_token) ==
        Approx(plan).epsilon(1e-9));
}

TEST_CASE("vLLM schedules one step at a time with drafts of n-grams", "[serve]") {
  const auto config = [](const char* scheduler, const char* method, const char* draft = "none") {
    return fmt::format(R"(serve:
  scheduler: {{kind: vllm_v1{}}}
  arrivals: {{process: closed, concurrency: 2, requests: 2}}
  lengths: {{prompt: 10, output: 10}}
  speculation: {{policy: {{kind: fixed, draft_length: 2}}, acceptance: {{alpha: 0.5}}, method: {}}}
cost: {{model: roofline, hardware: h100-sxm, target: llama-3.1-8b, draft: {}, engine: vllm}}
)",
                       scheduler, method, draft);
  };
  const load::ServeExperiment ngrams = server(config("", "ngram"));
  CHECK_FALSE(ngrams.scheduler()->asynchronous());
  CHECK(load::without_speculation(ngrams).scheduler()->asynchronous());
  CHECK(server(config(", async: true", "ngram")).scheduler()->asynchronous());
  CHECK(server(config("", "eagle", "eagle3-llama-3.1-8b")).scheduler()->asynchronous());
  // The plan knows it, too: its round shows the host's 1.207 ms, which other rounds hide.
  const auto round_of = [](const char* ngrams_wait) {
    const load::ServeExperiment one = server(fmt::format(R"(serve:
  arrivals: {{process: closed, concurrency: 2, requests: 2}}
  lengths: {{prompt: 10, output: 10}}
cost: {{model: roofline, hardware: h100-sxm, target: llama-3.1-8b, draft: none, engine: {{preset: vllm, synchronous_ngrams: {}}}}}
)",
                                                         ngrams_wait));
    return cost::block_time(*one.cost, {4.0, 1000.0}, {}, 4.0, 0.0).total();
  };
  CHECK(round_of("true") - round_of("false") == Approx(1.207e-3).epsilon(1e-9));
}

TEST_CASE("plain_scheduler has the settings of the server without speculation", "[serve]") {
  const auto config = [](const char* speculation) {
    return fmt::format(R"(serve:
  scheduler: {{kind: vllm_v1, async: false, max_num_seqs: 7}}
  plain_scheduler: {{async: true}}
  arrivals: {{process: closed, concurrency: 2, requests: 2}}
  lengths: {{prompt: 10, output: 10}}
{}cost: {{model: affine, target_fixed_ms: 6, draft_fixed_ms: 0.7}}
)",
                       speculation);
  };
  const load::ServeExperiment speculating =
      server(config("  speculation: {policy: {kind: fixed, draft_length: 2}, acceptance: {alpha: 0.5}}\n"));
  CHECK_FALSE(speculating.scheduler()->asynchronous());
  const load::ServeExperiment plain = load::without_speculation(speculating);
  CHECK(plain.scheduler()->asynchronous());
  CHECK(plain.scheduler()->running_limit().requests == 7);
  CHECK(server(config("")).scheduler()->asynchronous());  // a config that never speculates is that server
}

TEST_CASE("the error of a comparison counts steps that verify drafts alone", "[serve]") {
  const load::ServeExperiment experiment = server(R"(serve:
  arrivals: {process: closed, concurrency: 8, requests: 16}
  lengths: {prompt: 100, output: 200}
  speculation: {policy: {kind: fixed, draft_length: 2}, acceptance: {alpha: 0.5}}
cost: {model: roofline, hardware: h100-sxm, target: llama-3.1-8b, draft: eagle3-llama-3.1-8b, engine: vllm}
)");
  const serve::Summary plain = run_server(load::without_speculation(experiment)).summary;
  serve::Summary own = run_server(experiment).summary;
  CHECK(plain.verifying_share == 0.0);
  CHECK(own.verifying_share > 0.9);
  CHECK(own.verifying_batch == Approx(own.mean_batch).epsilon(0.05));
  const double whole = load::comparison_error(experiment, own, plain);
  CHECK(whole > 0.0);
  own.verifying_share /= 4.0;
  CHECK(load::comparison_error(experiment, own, plain) == Approx(whole / 4.0));
}

TEST_CASE("a speculating batch equals a lockstep placement's, except for the unused drafts of its last step", "[serve]") {
  const int draft_length = 3;
  const int rounds = 20;
  const double draft_us = 700.0;
  for (const bool accepted : {true, false}) {
    const int a_round = accepted ? draft_length + 1 : 1;
    const int output = 1 + rounds * a_round;
    const LineCost cost({5886.37, 21.01, 0.03926}, {draft_us, 0.0, 0.0}, 300.0);
    placement::AcceptedCounts counts;
    counts.draft_length = draft_length;
    counts.of_sequence.assign(6, std::vector<std::uint8_t>(64, static_cast<std::uint8_t>(accepted ? draft_length : 0)));
    placement::Generation generation;
    generation.cost = &cost;
    generation.accepted = &counts;
    generation.prompt_tokens = 77;
    generation.output_tokens.assign(6, static_cast<std::uint64_t>(output));
    const placement::Result expected = make_placement("{kind: serial}")->simulate(generation, nullptr);
    const load::ServeResult served = run_server(server(
        saturated(6, 77, output, draft_length, accepted ? "1" : "0",
                  "{model: affine, target_fixed_ms: 5.88637, target_ms_per_token: 0.02101, target_ms_per_kv_token: 0.00003926, "
                  "draft_fixed_ms: 0.7, overhead_ms: 0.3}")));
    CAPTURE(accepted, served.result.totals[0].busy, served.result.totals[0].drafting, expected.target_busy.ps());
    CAPTURE(expected.time_to_first_token.ps(), served.result.sequences[0].first_token);
    // Time of the target's passes, exact to the picosecond; the placement also counts the part of a round outside the target's
    // passes.
    const std::int64_t beside = std::llround(1e6 * 300.0) * rounds;
    CHECK(served.result.totals[0].busy - served.result.totals[0].drafting + beside == expected.target_busy.ps());
    // The server drafts after every step, including the prompt's and the last: rounds + 1 times draft_length passes. The
    // placement reads the prompt once with the draft and drafts before every verification: rounds times draft_length passes, and
    // one.
    const auto more = static_cast<std::int64_t>(std::llround(1e6 * (draft_us * (draft_length - 1) + 300.0)));
    CHECK(served.result.sequences[5].last_token == expected.end.ps() + more);
  }
}

}  // namespace specsim::agreement_test
