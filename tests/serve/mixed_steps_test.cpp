// The latency of a step over chunks of prompts and decoding sequences depends on the keys that each sequence reads, not on the
// mean sequence; here by the data sheet's arithmetic, which the tests count.
#include "sim/hardware/latency/deployment.h"
#include "sim/serving/serve/step_time.h"
#include "tests/serve/servers.h"

#include <fmt/format.h>
#include <catch2/catch.hpp>

#include <cmath>

namespace specsim::mixed_steps_test {

using namespace specsim::tests;

namespace {

std::shared_ptr<const cost::CostModel> roofline() {
  return server(R"(serve: {arrivals: {process: closed, concurrency: 1, requests: 1}, lengths: {prompt: 1, output: 1}}
cost: {model: roofline, hardware: h100-sxm, kernels: none, engine: vllm, target: llama-3.1-8b, draft: llama-3.2-1b}
)")
      .cost;
}

cost::Segment chunk(double rows, double cached) { return {1.0, rows, cached, rows * (cached + 0.5 * (rows + 1.0))}; }

double seconds(const cost::CostModel& cost, const cost::Segment& prompts, const cost::Segment& decoding) {
  return cost.mixed_pass(cost::Role::target, prompts, decoding, 1.0 + decoding.rows, {}).total();
}

}  // namespace

TEST_CASE("sequences that only decode take the time of the pass over the mean sequence", "[serve]") {
  const auto cost = roofline();
  const cost::Segment decoding = serve::decoding_alike(24.0, 4.0, 24.0 * 900.0);
  CHECK(cost->mixed_pass(cost::Role::target, {}, decoding, decoding.rows, {}).total() ==
        cost->pass(cost::Role::target, {24.0, 4.0, 900.0, 4.0}).total());
  CHECK(cost->mixed_draft_pass({}, decoding).total() == cost->draft_pass({24.0, 900.0}, 0, 3.0).total());
}

TEST_CASE("a chunk's attention does not depend on the sequences that decode in the same step", "[serve]") {
  const auto cost = roofline();
  const cost::ModelShape& model = *cost->deployment()->target;
  const cost::Hardware& hardware = cost->deployment()->hardware;
  // 2,000 rows after 28,000 tokens, next to 40 sequences of 500 tokens: the pairs of the chunk's rows and keys are arithmetic
  // that 41 mean sequences, of 50 rows after 1,171 tokens, would not do.
  const cost::Segment decoding = serve::decoding_alike(40.0, 1.0, 40.0 * 500.0);
  const double late = seconds(*cost, chunk(2000.0, 28000.0), decoding);
  const double early = seconds(*cost, chunk(2000.0, 0.0), decoding);
  const double pairs = 2000.0 * 28000.0;
  const double operations = 4.0 * model.layers * model.heads * model.head_dim * pairs;
  CHECK(late - early == Approx(cost->deployment()->engine.prompt_time * operations / hardware.flops).epsilon(0.1));
  const double mean = cost->pass(cost::Role::target, {41.0, 2040.0 / 41.0, 48000.0 / 41.0, 1.0}).total();
  CHECK(late > 1.1 * mean);
}

TEST_CASE("next to a chunk FlashAttention 2 reads a group's keys for each query head", "[serve]") {
  // LLMServingSim's RTX 4090, four heads in a group: 32 sequences of 952 keys take 507 us alone, 800 to 860 us next to a chunk.
  const auto attention = [](const char* hardware, double rows_of_chunk) {
    const load::ServeExperiment experiment = server(
        fmt::format(R"(serve: {{arrivals: {{process: closed, concurrency: 1, requests: 1}}, lengths: {{prompt: 1, output: 1}}}}
cost: {{model: roofline, hardware: {}, target: llama-3.1-8b, draft: none}}
)",
                    hardware));
    const auto kv = [&](const cost::Segment& prompts, double context) {
      return experiment.cost->mixed_pass(cost::Role::target, prompts, serve::decoding_alike(32.0, 1.0, 32.0 * context), 32.0, {})
          .kv;
    };
    const cost::Segment prompts = rows_of_chunk > 0.0 ? chunk(rows_of_chunk, 0.0) : cost::Segment{};
    return kv(prompts, 3000.0) - kv(prompts, 1000.0);
  };
  CHECK(attention("rtx-4090", 512.0) / attention("rtx-4090", 0.0) == Approx(std::pow(4.0, 0.45)).epsilon(0.01));
  CHECK(attention("h100-sxm", 512.0) / attention("h100-sxm", 0.0) == Approx(1.0).epsilon(0.01));
}

TEST_CASE("two chunks take the time of their own query-key pairs, not of their mean's", "[serve]") {
  const auto cost = roofline();
  cost::Segment uneven = chunk(8000.0, 0.0);
  const cost::Segment small = chunk(8.0, 0.0);
  uneven.sequences += small.sequences;
  uneven.rows += small.rows;
  uneven.pairs += small.pairs;
  cost::Segment even = chunk(4004.0, 0.0);
  even = {2.0, 2.0 * even.rows, 0.0, 2.0 * even.pairs};
  CHECK(seconds(*cost, uneven, {}) > 1.02 * seconds(*cost, even, {}));
}

TEST_CASE("a server's step over a late chunk takes longer than one over an early chunk", "[serve]") {
  // Both engines take a prompt of 8,192 tokens in chunks of 2,048; the last step of the prompt is longer than the first.
  class Steps final : public serve::StepObserver {
   public:
    void began(const serve::StepRecord& record) override {
      if (record.prefill_rows > 0) durations.push_back(record.time.target);
    }
    std::vector<arrivals::Picoseconds> durations;
  } steps;
  const load::ServeExperiment experiment = server(R"(serve:
  scheduler: {kind: vllm_v1, async: false, max_num_batched_tokens: 2048}
  arrivals: {process: closed, concurrency: 1, requests: 1}
  lengths: {prompt: 8192, output: 2}
cost: {model: roofline, hardware: h100-sxm, kernels: none, target: llama-3.1-8b, draft: none}
)");
  static_cast<void>(load::serve(experiment, load::make_requests(experiment), {&steps, nullptr, {}}));
  REQUIRE(steps.durations.size() == 4);
  for (std::size_t i = 1; i < 4; ++i) CHECK(steps.durations[i] > steps.durations[i - 1]);
  const cost::ModelShape& model = *experiment.cost->deployment()->target;
  const double operations =
      experiment.cost->deployment()->engine.prompt_time * 4.0 * model.layers * model.heads * model.head_dim * 2048.0 * 2048.0;
  CHECK(1e-12 * static_cast<double>(steps.durations[2] - steps.durations[1]) ==
        Approx(operations / experiment.cost->deployment()->hardware.flops).epsilon(0.05));
}

}  // namespace specsim::mixed_steps_test
