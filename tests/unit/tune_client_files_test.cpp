// Files of benchmark clients as runs. The expected values are calculated by hand from the files in tests/data/tune.
#include "sim/answers/tune/runs.h"
#include "tests/support/temporary_file.h"

#include <catch2/catch.hpp>

#include <cmath>
#include <string>
#include <vector>

namespace specsim::client_files_test {

using tests::TemporaryFile;
using tune::Run;

namespace {

constexpr double kNone = -1.0;  // not stated

struct Expected {
  int draft_length;
  double concurrency, rate, requests, prompt_tokens, output_tokens, acceptance_length, ttft_ms, tpot_ms, output_tokens_per_s;
  std::vector<double> position_rates = {};
};

void check(const Run& run, const Expected& expected) {
  const auto same = [](const std::optional<double>& found, double wanted) {
    CHECK(found.has_value() == (wanted != kNone));
    if (found) CHECK(*found == Approx(wanted));
  };
  CHECK(run.draft_length == expected.draft_length);
  same(run.concurrency, expected.concurrency);
  same(run.rate, expected.rate);
  same(run.requests, expected.requests);
  same(run.prompt_tokens, expected.prompt_tokens);
  same(run.output_tokens, expected.output_tokens);
  same(run.acceptance_length, expected.acceptance_length);
  same(run.metric(tune::Metric::ttft), expected.ttft_ms);
  same(run.metric(tune::Metric::tpot), expected.tpot_ms);
  same(run.metric(tune::Metric::throughput), expected.output_tokens_per_s);
  CHECK(run.position_rates == expected.position_rates);
}

void check_file(const std::string& file, const std::vector<Expected>& expected, std::size_t warned = 0) {
  INFO(file);
  Diagnostics diagnostics;
  std::vector<std::string> warnings;
  const std::vector<Run> runs = tune::read_runs("tests/data/tune/" + file, diagnostics, &warnings);
  for (const Diagnostic& one : diagnostics.list()) UNSCOPED_INFO(to_string(one.where) + ": " + one.message);
  CHECK(diagnostics.empty());
  CHECK(warnings.size() == warned);
  REQUIRE(runs.size() == expected.size());
  for (std::size_t i = 0; i < runs.size(); ++i) check(runs[i], expected[i]);
}

// "line:column: message" of the first mistake.
std::string refused(const std::string& text, const std::string& stated = "") {
  const TemporaryFile file(text);
  Diagnostics diagnostics;
  std::vector<std::string> warnings;
  CHECK(tune::read_runs(file.path() + stated, diagnostics, &warnings).empty());
  REQUIRE(!diagnostics.empty());
  const Diagnostic& first = diagnostics.list().front();
  return std::to_string(first.where.line) + ":" + std::to_string(first.where.column) + ": " + first.message;
}

const std::string kServing =
    R"("completed": 10, "total_input_tokens": 1000, "total_output_tokens": 500, "max_concurrency": 2, "request_rate": "inf", )";

}  // namespace

TEST_CASE("vllm bench serve", "[tune][client_files]") {
  // 79,000 / 158 = 500 and 31,600 / 158 = 200: means over the successful requests. TPOT, not ITL, which is per chunk.
  check_file("vllm_k3.json", {{3, 8, kNone, 158, 500, 200, 2.5, 61.5, 9.25, 790, {0.75, 0.45, 0.3}}}, 1);
  // Without a limit and a rate all requests come at once: as many clients as requests. NaN if it does not matter.
  check_file("vllm_appended.json",
             {{0, kNone, 4.5, 100, 512, 256, kNone, 80, 12.5, 1024}, {0, 64, kNone, 64, 512, 256, kNone, 350, 20, 2048}});
  check_file("vllm_printed.txt", {{2, 8, kNone, 160, 500, 200, 1.9, 60, 9.5, 800, {0.6, 0.3}}});
}

TEST_CASE("sglang.bench_serving", "[tune][client_files]") {
  check_file("sglang.jsonl",
             {{3, 16, kNone, 128, 1024, 256, 2.25, 150, 14.5, 1024}, {0, kNone, 2, 128, 1024, 256, kNone, 90, 11, 512}});
  check_file("sglang_old.jsonl@k=4", {{4, 4, kNone, 40, 200, 250, 2.75, 40, 18, 200}});
}

TEST_CASE("AIPerf and GenAI-Perf", "[tune][client_files]") {
  // 40,000 drafts in 10,000 steps; the length is weighted by tokens, not by requests.
  check_file("profile_export_aiperf.json", {{4, 8, kNone, 96, 550.5, 250, 2.2, 105.5, 9.5, 800}}, 1);
  check_file("profile_export_genai_perf.json", {{0, kNone, 0.5, 20, 200, 99, kNone, 30, 20, 49.5}});
  check_file("profile_export_aiperf.csv@concurrency=4,k=2", {{2, 4, kNone, 64, 550, 128, kNone, 104.6, 10.2, 364}});
}

TEST_CASE("GuideLLM", "[tune][client_files]") {
  // ITL in this file leaves out the first token, as TPOT does in others; time_per_output_token includes it.
  check_file("guidellm.json",
             {{0, 1, kNone, 20, 256, 128, kNone, 25, 10, 99},
              {0, 4, kNone, 60, 256, 128, kNone, 40, 11, 350},
              {0, kNone, 2.5, 75, 256, 128, kNone, 33, 10.5, 320}},
             1);
}

TEST_CASE("llama.cpp's benchmarks", "[tune][client_files]") {
  // 512 tokens at 4,000 per second; a token at 100 per second after 1,024; 128 of 640 tokens at 400 per second.
  const std::vector<Expected> tests = {{0, 1, kNone, 1, 512, 1, kNone, 128, kNone, kNone},
                                       {0, 1, kNone, 1, 1024, 128, kNone, kNone, 10, kNone},
                                       {0, 1, kNone, 1, 512, 128, kNone, kNone, kNone, 80}};
  check_file("llama_bench.json", tests);
  check_file("llama_bench.md", tests);
  // 1.6 s for 128 steps of 4 sequences: 12.5 ms per token, 512 tokens in 2.04 s.
  check_file("batched_bench.jsonl", {{0, 1, kNone, 1, 512, 128, kNone, 125, 10, 128 / 1.405},
                                     {0, 4, kNone, 4, 512, 128, kNone, kNone, 12.5, 512 / 2.04}});
  // With a shared prompt, four sequences read it once: this is not a load of four requests.
  check_file("batched_bench.txt",
             {{0, 1, kNone, 1, 512, 128, kNone, 125, 10, 128 / 1.405}, {0, 4, kNone, 4, 512, 128, kNone, kNone, 12.5, kNone}});
  check_file("llama_benchy.json", {{0, 4, kNone, 4, 512, 128, kNone, 360, 25, kNone}}, 1);
}

TEST_CASE("Answers of llama-server", "[tune][client_files]") {
  // 2,000 ms for 100 tokens after the first, 3,000 ms for 200. 300 tokens after the first ones, 180 accepted: 120 rounds that
  // draft 360.
  check_file("llama_server.jsonl", {{3, 1, kNone, 2, 50, 151, 2.5, 60, 17.5, kNone}});
}

TEST_CASE("trtllm-bench", "[tune][client_files]") {
  // 1,024 - 649 = 375 rounds; 1,125 / 375 = 3 drafts each; 1,024 / 375 tokens each.
  const std::vector<Expected> runs = {{3, 8, kNone, 80, 412, 1024, 1024.0 / 375, 42.5, 5.625, 1365.3}};
  check_file("trtllm_bench.json", runs);
  check_file("trtllm_bench.txt", runs);
}

TEST_CASE("Logs of servers", "[tune][client_files]") {
  // The first line contains the start of the load, the line with one request its end.
  check_file("vllm_server.log", {{2, 8, kNone, kNone, kNone, kNone, 2.5, kNone, kNone, 620, {0.9, 0.6}}});
  // Equally many steps at 800 and 1,200 tokens per second: the harmonic mean.
  check_file("sglang_server.log", {{0, 16, kNone, kNone, kNone, kNone, kNone, kNone, kNone, 960}});
}

TEST_CASE("Files that are no results are refused with their place", "[tune][client_files]") {
  using Catch::Contains;
  using Catch::StartsWith;
  CHECK_THAT(refused(""), StartsWith("0:0: the file is empty, allowed: results of vllm bench serve"));
  CHECK_THAT(refused("\n  hello there\n"), StartsWith("2:1: "));
  CHECK_THAT(refused("{\"answer\": 42}\n"), StartsWith("1:1: no result of a known benchmark"));
  CHECK_THAT(refused("{" + kServing + "\"output_throughput\": 10.0}\n\n  {\"answer\": 42}\n"),
             StartsWith("3:3: no result of a known benchmark"));
  CHECK_THAT(refused("{" + kServing + "\"output_throughput\": NaN}\n"), Contains("output_throughput is NaN, allowed: a number"));
  CHECK_THAT(refused("{" + kServing + "\"output_throughput\": 10.0, \"mean_tpot_ms\": -Infinity}"),
             Contains("mean_tpot_ms is -Infinity, allowed: a number"));
  CHECK_THAT(refused("{" + kServing + "\"output_throughput\": 10.0, \"mean_tpot_ms\": -3}"),
             Contains("mean_tpot_ms is -3, allowed: a number from 0.0001"));
  CHECK_THAT(refused("{" + kServing + "\"output_throughput\": 10.0,\n"), Contains("this is not JSON"));
  CHECK_THAT(refused("{" + kServing + "\"output_throughput\": 10.0, \"itls\": [[1, 2"), Contains("this is not JSON"));
  CHECK_THAT(refused("{" + kServing + "\"output_throughput\": 10.0, \"accept_length\": 2.5}"),
             Contains("draft length is not stated, allowed: "));
  CHECK_THAT(refused("{" + kServing + "\"output_throughput\": 10.0, \"accept_length\": 2.5}", "@k=1"),
             Contains("acceptance_length is 2.5, allowed: at most"));
  CHECK_THAT(refused("{" + kServing + "\"output_throughput\": 10.0, \"spec_decode_per_position_acceptance_rates\": [0.5, NaN]}"),
             Contains("position is NaN"));
  CHECK_THAT(refused("{" + kServing + "\"output_throughput\": 10.0}", "@depth=1"), Contains("unknown column \"depth\""));
  CHECK_THAT(refused("{" + kServing + "\"output_throughput\": 10.0}", "@k=many"), Contains("allowed: COLUMN=NUMBER"));
  CHECK_THAT(refused("{\"completed\": 0, \"total_output_tokens\": 0, \"output_throughput\": 0.0}"),
             Contains("every run was omitted"));
  CHECK_THAT(refused("run,draft_length,concurrency,tpot_ms\nx,0,1,5\n", "@k=2"), Contains("CSV file that has columns"));
}

}  // namespace specsim::client_files_test
