// The output of llama-bench, in its four formats, as rows of a cost table.
#include "sim/hardware/latency/llama_bench.h"

#include "sim/hardware/latency/round_time.h"
#include "tests/support/costs.h"
#include "tests/support/temporary_file.h"

#include <catch2/catch.hpp>

#include <string>

namespace specsim::llama_bench_test {

using tests::TemporaryFile;

namespace {

std::vector<cost::BenchedPass> read(const std::string& text) {
  Diagnostics diagnostics;
  auto passes = cost::read_llama_bench("bench", text, diagnostics);
  diagnostics.throw_if_any();
  return passes;
}

// 8 tokens in 20 ms are 400 tokens per second; generation at 50 per second takes 20 ms per token.
void check(const std::vector<cost::BenchedPass>& passes) {
  REQUIRE(passes.size() == 2);
  CHECK(passes[0].tokens == 8.0);
  CHECK(passes[0].context == 4096.0);
  CHECK(passes[0].ms == Approx(20.0));
  CHECK(passes[1].tokens == 1.0);
  CHECK(passes[1].context == 0.0);
  CHECK(passes[1].ms == Approx(20.0));
}

std::string csv(const std::string& rows) {
  return "build_commit,model_filename,n_prompt,n_gen,n_depth,test_time,avg_ns,stddev_ns,avg_ts,stddev_ts\n" + rows;
}
std::string row(int prompt, int depth, double speed) {
  return fmt::format("\"b1\",\"m.gguf\",\"{}\",\"0\",\"{}\",\"t\",\"1\",\"1\",\"{}\",\"1\"\n", prompt, depth, speed);
}

}  // namespace

TEST_CASE("llama-bench in four formats", "[cost][llama_bench]") {
  check(read(csv(row(8, 4096, 400) + "\"b1\",\"m.gguf\",\"0\",\"128\",\"0\",\"t\",\"1\",\"1\",\"50.0\",\"1\"\n"
                                     "\"b1\",\"m.gguf\",\"512\",\"128\",\"0\",\"t\",\"1\",\"1\",\"90.0\",\"1\"\n")));
  check(read(
      "[{\"model_filename\": \"m\", \"n_prompt\": 8, \"n_gen\": 0, \"n_depth\": 4096, \"avg_ts\": 400.0, \"samples_ns\": [1]},\n"
      " {\"model_filename\": \"m\", \"n_prompt\": 0, \"n_gen\": 128, \"n_depth\": 0, \"avg_ts\": 50.0}]\n"));
  check(
      read("{\"n_prompt\": 8, \"n_gen\": 0, \"n_depth\": 4096, \"avg_ts\": 400.0}\n{\"n_prompt\": 0, \"n_gen\": 128, \"avg_ts\": "
           "50}\n"));
  check(read(
      "| model | size | test | t/s |\n| --- | ---: | --------: | -----: |\n| llama 8B | 15 GiB | pp8 @ d4096 | 400.00 ± 1.0 |\n"
      "| llama 8B | 15 GiB | tg128 | 50.00 ± 0.1 |\n| llama 8B | 15 GiB | pp512+tg128 | 90.0 ± 0.1 |\n\nbuild: b1 (1)\n"));
  CHECK_THROWS_WITH(read("{\"n_prompt\": 8, \"n_gen\": 0, \"avg_ts\": 400.0}\n{\"n_prompt\": 8, \"n_gen\": 0}\n"),
                    Catch::Contains("bench:2"));
  CHECK_THROWS_WITH(read("nothing here"), Catch::Contains("holds no test"));
  CHECK_THROWS_WITH(read(""), Catch::Contains("is empty"));
  CHECK_THROWS_WITH(read("[{\"n_prompt\": 8, \"n_gen\": 0}]"), Catch::Contains("no n_prompt, n_gen and avg_ts"));
}

TEST_CASE("a cost table from llama-bench gives the time of rounds", "[cost][llama_bench]") {
  std::string target;
  std::string draft;
  for (const int depth : {0, 4100})
    for (const int tokens : {1, 2, 5}) {
      target += row(tokens, depth, tokens / 0.020);  // 20 ms whatever the tokens
      draft += row(tokens, depth, tokens / 0.002);
    }
  const TemporaryFile of_target(csv(target));
  const TemporaryFile of_draft(csv(draft));
  const auto model = tests::make_cost("table", "{target_bench: " + of_target.path() + ", draft_bench: " + of_draft.path() + "}");
  const cost::RoundTime round = cost::round_time(*model, {1, 2048}, 4, 0.0);
  CHECK(round.total() == Approx(0.020 + 4 * 0.002));
  CHECK(cost::speedup(round, 2.8) == Approx(2.8 * 20.0 / 28.0));
}

}  // namespace specsim::llama_bench_test
