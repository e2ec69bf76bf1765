// Limits in which a server's run is known exactly, and quantities that every run conserves.
#include "sim/answers/load/curve.h"
#include "sim/answers/load/outputs.h"
#include "sim/answers/load/slo.h"
#include "tests/serve/servers.h"

#include <catch2/catch.hpp>

#include <atomic>
#include <cmath>
#include <numeric>

namespace specsim::limits_test {

using namespace specsim::tests;

namespace {

const std::vector<std::string> kSchedulers = {
    "kind: vllm_v1, async: false", "kind: vllm_v1, async: true",
    "kind: vllm_v1, async: true, max_num_batched_tokens: 160, long_prefill_token_threshold: 64",
    "kind: vllm_v1, policy: priority"};

class Rows final : public serve::StepObserver {
 public:
  void began(const serve::StepRecord& record) override {
    std::uint64_t rows = 0;
    for (const serve::Item& item : record.plan->items) rows += item.rows;
    CHECK(rows == record.prefill_rows + record.decode_rows + record.draft_rows);
    CHECK(record.start >= end_);
    end_ = record.start + record.time.total();
    all_ += rows;
  }
  [[nodiscard]] std::uint64_t all() const { return all_; }

 private:
  arrivals::Picoseconds end_ = 0;
  std::uint64_t all_ = 0;
};

}  // namespace

TEST_CASE("drafting nothing is the plain server, byte for byte", "[serve]") {
  for (const std::string& scheduler : kSchedulers) {
    const std::string plain = load::requests_csv(run_server(server(crowded("", scheduler))).result);
    for (const char* policy : {"kind: off", "kind: fixed, draft_length: 0", "kind: table, table: [[1, 8, 0]]"}) {
      CAPTURE(scheduler, policy);
      CHECK(load::requests_csv(run_server(server(crowded(drafting(policy, "alpha: 0.7"), scheduler))).result) == plain);
    }
  }
}

TEST_CASE("every draft accepted: a round emits the draft length and one", "[serve]") {
  const load::ServeResult served = run_server(server(crowded(drafting("kind: fixed, draft_length: 3", "alpha: 1"),
                                                             "kind: vllm_v1, async: false, max_num_batched_tokens: 100000")));
  for (const serve::Sequence& sequence : served.result.sequences)
    if (sequence.preemptions == 0) CHECK(sequence.rounds == (sequence.output - 1 + 3) / 4);
}

TEST_CASE("no draft accepted: the rounds emit one token each, and each takes the time of a round with drafts", "[serve]") {
  const std::string one = R"(serve:
  scheduler: {kind: vllm_v1, async: false}
  arrivals: {process: closed, concurrency: 1, requests: 5}
  lengths: {prompt: 100, output: 11}
  speculation: {policy: {kind: fixed, draft_length: 2}, acceptance: {alpha: 0}}
cost: {model: affine, target_fixed_ms: 6, target_ms_per_token: 0.02, draft_fixed_ms: 1, draft_ms_per_token: 0.004, overhead_ms: 0.5}
)";
  const load::ServeResult served = run_server(server(one));
  // A prompt's step drafts as well: the draft's pass over the prompt, one more, the overhead.
  const double prompt_ms = 6 + 0.02 * 100 + (1 + 0.004 * 100) + (1 + 0.004) + 0.5;
  const double round_ms = 6 + 0.02 * 3 + (1 + 0.004 * 3) + (1 + 0.004) + 0.5;
  for (const serve::Sequence& sequence : served.result.sequences) {
    CHECK(sequence.rounds == 10);
    CHECK(sequence.accepted == 0);
    CHECK(static_cast<double>(sequence.first_token - sequence.sent) == Approx(1e9 * prompt_ms).epsilon(1e-12));
    CHECK(static_cast<double>(sequence.last_token - sequence.first_token) == Approx(1e10 * round_ms).epsilon(1e-12));
  }
}

TEST_CASE("a request keeps its limits if it keeps each of them", "[serve]") {
  // Every step takes 10 ms: TTFT 10, TPOT 10, and 50 for five tokens. Mutant: keeping one limit is enough.
  const auto within = [](const std::string& slo) {
    return run_server(server(fmt::format(R"(serve:
  scheduler: {{kind: vllm_v1, async: false}}
  arrivals: {{process: closed, concurrency: 1, requests: 4}}
  lengths: {{prompt: 16, output: 5}}
  slo: {{{}}}
cost: {{model: affine, target_fixed_ms: 10}}
)",
                                         slo)))
        .summary.within_all;
  };
  CHECK(within("ttft_ms: 11, tpot_ms: 11") == within("ttft_ms: 11"));
  CHECK(within("ttft_ms: 11") > 0.0);
  CHECK(within("ttft_ms: 9, tpot_ms: 11") == 0.0);
  CHECK(within("ttft_ms: 11, tpot_ms: 9") == 0.0);
  CHECK(within("ttft_ms: 11, e2el_ms: 49") == 0.0);
}

TEST_CASE("SGLang looks for new requests at every n-th decoding step, and while idle", "[serve]") {
  // Requests at 0 and 25 ms; every step takes 10 ms. The first is received while the server is idle, and its prompt's step ends
  // at 10 ms, when the server looks again. Decoding steps begin at 10, 20, ... ms, and it looks at those that begin 10 n ms
  // later. Mutants: the server looks at each step; it waits while idle; it does not look after a batch of prompts.
  const auto first_token_ms = [](int interval, std::size_t request) {
    const load::ServeResult served = run_server(server(fmt::format(R"(serve:
  scheduler: {{kind: sglang, scheduler_recv_interval: {}}}
  arrivals: {{process: deterministic, rate: 40, requests: 2}}
  lengths: {{prompt: 16, output: 100}}
cost: {{model: affine, target_fixed_ms: 10}}
)",
                                                                   interval)));
    const auto& sequence = served.result.sequences[request];
    return 1e-9 * static_cast<double>(sequence.first_token - served.result.sequences[0].sent);
  };
  for (const int interval : {1, 4, 10}) CHECK(first_token_ms(interval, 0) == Approx(10.0));
  CHECK(first_token_ms(1, 1) == Approx(40.0));  // sent at 25, begun at 30
  CHECK(first_token_ms(4, 1) == Approx(60.0));  // begun at 50
  CHECK(first_token_ms(10, 1) == Approx(120.0));
}

TEST_CASE("tokens, rows, blocks and seconds are conserved", "[serve]") {
  for (const char* scheduler : {"kind: vllm_v1, async: false", "kind: vllm_v1, async: true", "kind: sglang", "kind: trtllm",
                                "kind: trtllm, capacity: max_utilization"}) {
    for (const std::string& speculation :
         {std::string(), drafting("kind: fixed, draft_length: 3", "position_rates: [0.8, 0.6, 0.4]"),
          drafting("kind: goodput, longest: 5", "alpha: 0.6")}) {
      CAPTURE(scheduler, speculation);
      std::string text = crowded(speculation, scheduler);
      const auto own_name = text.find(", max_num_seqs: 24");
      if (std::string(scheduler).find("vllm") == std::string::npos)
        text.erase(own_name, std::string(", max_num_seqs: 24").size());
      const load::ServeExperiment experiment = server(text);
      Rows rows;
      load::ServeOptions options;
      options.observer = &rows;
      const load::ServeResult served = load::serve(experiment, load::make_requests(experiment), options);
      CHECK(served.result.reached_end);
      if (speculation.empty() && std::string(scheduler).find("vllm") != std::string::npos) CHECK(served.summary.preemptions > 10);
      CHECK(rows.all() == served.result.totals[0].rows);
      std::uint64_t rounds = 0;
      std::uint64_t drafted = 0;
      for (const serve::Sequence& sequence : served.result.sequences) {
        CHECK(sequence.status == serve::Status::finished);
        CHECK(sequence.emitted == sequence.output);
        CHECK(sequence.held == 0);
        CHECK(std::accumulate(sequence.spent.begin(), sequence.spent.end(), std::int64_t{0}) ==
              sequence.last_token - sequence.sent);
        CHECK(std::accumulate(sequence.spent_first.begin(), sequence.spent_first.end(), std::int64_t{0}) ==
              sequence.first_token - sequence.sent);
        CHECK(sequence.accepted <= sequence.drafted);
        rounds += sequence.rounds;
        drafted += sequence.drafted;
      }
      const serve::Summary& summary = served.summary;
      const auto sum = [](const std::array<double, serve::kCauses>& parts) {
        return std::accumulate(parts.begin(), parts.end(), 0.0);
      };
      CHECK(sum(summary.ttft_by_cause_ms) == Approx(summary.ttft_ms.mean).epsilon(1e-9));
      CHECK(sum(summary.tpot_by_cause_ms) == Approx(summary.tpot_ms.mean).epsilon(1e-9));
      CHECK(summary.ttft_by_cause_ms[static_cast<std::size_t>(serve::Cause::decode)] == 0.0);
      CHECK(summary.tpot_by_cause_ms[static_cast<std::size_t>(serve::Cause::queue)] == 0.0);
      // An asynchronous scheduler also computes steps of requests that have just ended.
      CHECK(rounds <= served.result.totals[0].rounds);
      CHECK(drafted <= served.result.totals[0].draft_rows);
      if (std::string(scheduler).find("async: true") == std::string::npos) {
        CHECK(rounds == served.result.totals[0].rounds);
        CHECK(drafted == served.result.totals[0].draft_rows);
      }
    }
  }
}

TEST_CASE("acceptance belongs to the text: another draft length accepts the same prefix", "[serve]") {
  const load::ServeExperiment experiment = server(crowded(drafting("kind: fixed, draft_length: 3", "alpha: 0.6")));
  const auto acceptance = serve::make_acceptance(*experiment.speculation->stated(), rng::make_key(1, 2));
  std::uint32_t cut = 0;
  for (arrivals::RequestId request = 0; request < 50; ++request)
    for (std::uint32_t emitted = 0; emitted < 50; ++emitted) {
      const std::uint32_t whole = acceptance->accepted(request, emitted, 8);
      for (std::uint32_t drafted = 0; drafted <= 8; ++drafted)
        CHECK(acceptance->accepted(request, emitted, drafted) == std::min(whole, drafted));
      // The run from the next position is the rest of this one.
      if (whole > 0) CHECK(acceptance->accepted(request, emitted + 1, 7) == whole - 1);
      cut += whole < 8 ? 1 : 0;
    }
  CHECK(cut > 100);
}

TEST_CASE("a target that is trained further accepts fewer drafts at each position", "[serve]") {
  const auto tokens = [](const std::string& rates) {
    const load::ServeExperiment one = server(crowded(drafting("kind: fixed, draft_length: 2", rates)));
    return serve::make_acceptance(*one.speculation->stated(), rng::make_key(1, 2), {{50}, 100.0})->tokens_per_round(2);
  };
  // Two steps take a tenth each: .81 of the rates .8 and .5 of those that reach the position.
  const std::string drift = ", drift: {decay: 0.1, steps: 2}";
  const double wanted = 1.0 + 0.81 * 0.8 + 0.81 * 0.8 * 0.81 * 0.5;
  CHECK(tokens("position_rates: [0.8, 0.4]" + drift) == Approx(wanted));
  CHECK(tokens("conditional_rates: [0.8, 0.5]" + drift) == Approx(wanted));
  CHECK(tokens("alpha: 0.8" + drift) == Approx(1.0 + 0.648 + 0.648 * 0.648));
  CHECK(tokens("classes: [{share: 1, position_rates: [0.8, 0.4]}]" + drift) == Approx(wanted));
  CHECK(tokens("by_context: [{context: 100, position_rates: [0.8, 0.4]}, {context: 200, alpha: 0.1}]" + drift) == Approx(wanted));
  CHECK(wanted != Approx(1.0 + 0.81 * 0.8 + 0.81 * 0.4));  // mutant: shares of all rounds are multiplied
  CHECK(tokens("alpha: 0.8, drift: {decay: 0.1, steps: 0}") == Approx(1.0 + 0.8 + 0.64));
  CHECK_THROWS_WITH(tokens("alpha: 0.8, drift: {decay: 1.1, steps: 2}"),
                    Catch::Contains("test:7:97: decay is 1.1, allowed: a number in [0, 1]"));
  CHECK_THROWS_WITH(tokens("alpha: 0.8, drift: {decay: 0.1}"), Catch::Contains("steps"));
}

TEST_CASE("acceptance by context: a request's own tokens decide", "[serve]") {
  // Everything is accepted up to 100 cached tokens, nothing from 101 on.
  const std::string steps = "by_context: [{context: 100, alpha: 1}, {context: 101, alpha: 0}]";
  const load::ServeExperiment step = server(crowded(drafting("kind: fixed, draft_length: 3", steps)));
  REQUIRE(serve::needs_contexts(*step.speculation->stated()));
  const auto acceptance = serve::make_acceptance(*step.speculation->stated(), rng::make_key(1, 2), {{90, 200}, 145.0});
  CHECK(acceptance->accepted(0, 10, 3) == 3);
  CHECK(acceptance->accepted(0, 11, 3) == 0);
  CHECK(acceptance->accepted(1, 1, 3) == 0);
  CHECK(acceptance->tokens_per_round(3) == 1.0);  // at the mean context
  // Halfway between .8 and .4 the first token is accepted with .6, the second with .5 of that (.6 and .4 of those that are
  // reached).
  const load::ServeExperiment line = server(
      crowded(drafting("kind: fixed, draft_length: 2",
                       "by_context: [{context: 0, position_rates: [0.8, 0.48]}, {context: 200, position_rates: [0.4, 0.16]}]")));
  constexpr std::uint32_t kRequests = 40000;
  const auto drawn = serve::make_acceptance(*line.speculation->stated(), rng::make_key(3, 4),
                                            {std::vector<std::uint32_t>(kRequests, 99), 100.0});
  double sum = 0.0;
  for (arrivals::RequestId request = 0; request < kRequests; ++request) sum += drawn->accepted(request, 1, 2);
  const double mean = 0.6 + 0.6 * 0.5;
  const double error = std::sqrt((0.6 * 0.5 + 0.6 * 0.5 * 4.0 - mean * mean) / kRequests);
  CHECK(std::abs(sum / kRequests - mean) < 5.0 * error);     // 6e-7 of all seeds fail
  CHECK(std::abs(mean - (0.8 + 0.8 * 0.6)) > 20.0 * error);  // mutant: the first context's rates
  CHECK(drawn->tokens_per_round(2) == Approx(1.0 + mean));
  // The server of the first rates alone emits more tokens per round than the one whose requests grow out of them.
  CHECK_FALSE(
      serve::needs_contexts(*server(crowded(drafting("kind: fixed, draft_length: 3", "alpha: 0.6"))).speculation->stated()));
}

TEST_CASE("a sweep does not depend on the threads", "[serve]") {
  const load::ServeExperiment experiment = server(crowded(drafting("kind: fixed, draft_length: 2", "alpha: 0.6")));
  const auto curve = [&](unsigned threads) {
    load::SweepRunner::Options setting;
    setting.replications = 3;
    setting.threads = threads;
    load::SweepRunner runner(setting);
    return load::curve_csv(load::load_curve(experiment, load::Load::rate, {5, 20, 60}, true, runner, "--sweep"),
                           load::Load::rate);
  };
  CHECK(curve(1) == curve(3));
}

TEST_CASE("the largest load of a slower server is found with the server itself", "[serve]") {
  // All coefficients of the latency are longer by a factor, so that nothing but the unit of time differs.
  const auto with_factor = [](double factor) {
    return server(fmt::format(R"(seed: 8
serve:
  scheduler: {{kind: vllm_v1, max_num_seqs: 32}}
  arrivals: {{process: poisson, rate: 10, requests: 2000}}
  lengths: {{prompt: 100, output: 50}}
  slo: {{ttft_ms: 400, tpot_ms: 10}}
cost: {{model: affine, target_fixed_ms: {}, target_ms_per_token: {}}}
)",
                              6 * factor, 0.08 * factor));
  };
  const auto limit_of = [](const load::ServeExperiment& experiment, const std::vector<double>& rates) {
    load::SweepRunner runner({});
    return load::largest_load(experiment, load::Load::rate,
                              load::load_curve(experiment, load::Load::rate, rates, false, runner, "--sweep"), runner, "--sweep");
  };
  const load::ServeExperiment own = with_factor(1.0);
  const load::LoadLimit limit = limit_of(own, {5, 80});
  REQUIRE(std::isfinite(limit.fails));
  for (const double factor : {1.25, 0.8}) {
    const double found = load::largest_load_if_slower(own, load::Load::rate, limit, factor, "--sweep");
    const load::LoadLimit slower = limit_of(with_factor(factor), {0.5 * found, 2.0 * found});
    CHECK(found == Approx(slower.keeps).epsilon(0.04));  // the steps of both searches
    // Mutants: the limits stay, so that the load has the factor alone; the load stays.
    CHECK(std::abs(std::log(found * factor / limit.keeps)) > 0.08);
  }
  load::LoadLimit none;
  load::add_range(own, load::Load::rate, none, "--sweep");
  CHECK(std::isnan(none.low));
  load::LoadLimit same = limit;
  load::add_range(own, load::Load::rate, same, "--sweep");  // this latency model states no error
  CHECK(std::isnan(same.low));
}

TEST_CASE("rounds of the config's own distributions are executed", "[serve]") {
  const std::string text = R"(seed: 3
pair: {vocab: 50, target: {family: zipf, exponent: 1.1}, draft: {from: target, transform: overlap, value: 0.7}}
decode: {drafter: {kind: chain, draft_length: 4}, verifier: token}
serve:
  arrivals: {process: poisson, rate: 8, requests: 400}
  lengths: {prompt: 20, output: 201}
  speculation: {policy: {kind: fixed, draft_length: 4}}
cost: {model: affine, target_fixed_ms: 6, target_ms_per_token: 0.02}
)";
  const load::ServeResult served = run_server(server(text));
  // 1 + .7 + .7^2 + .7^3 + .7^4 tokens per round. About 28,900 rounds with a standard deviation of 1.6: five standard errors are
  // .047; alpha .68 in place of .7 gives 2.67 and is seen.
  CHECK(served.summary.tokens_per_round == Approx(2.7731).margin(0.047));
  CHECK(std::abs(served.summary.tokens_per_round - 2.6707) > 0.047);
  CHECK_THROWS_AS(server(text + "\ncontext: {process: nonsense}\n"), BadInput);
}

TEST_CASE("a pool of a model with windows holds contexts of usual lengths", "[serve]") {
  const auto blocks = [](const std::string& window) {
    const std::string text = fmt::format(R"(seed: 1
serve:
  kv: {{utilization: 0.9, block: 16, reserved_gib: 2}}
  arrivals: {{process: poisson, rate: 1, requests: 1}}
  lengths: {{prompt: 100, output: 10}}
cost:
  model: roofline
  hardware: h100-sxm
  target: {{layers: 4, hidden: 1024, heads: 8, kv_heads: 8, head_dim: 128, ffn: 4096, vocab: 1000{}}}
  draft: none
)",
                                         window);
    return static_cast<double>(server(text).pool.blocks);
  };
  // 4 layers of 4,096 bytes per token, in 90 % of the memory that the driver leaves, less the weights and 2 GiB.
  const double weights = 2.0 * (4.0 * (1024 * 3072 + 1024 * 1024 + 3 * 1024 * 4096) + 2.0 * 1000 * 1024);
  CHECK(blocks("") == std::floor(((85.52e9 - 0x1.0p29) * 0.9 - weights - 2.0 * 0x1.0p30) / (4 * 4096 * 16)));
  // Two layers see 1,024 tokens: at 4,096 tokens each token takes 2.5 layers' worth, not the 2 of endless contexts.
  CHECK(blocks(", kv_window: 1024, window_layers: 2") / blocks("") == Approx(4 / 2.5).epsilon(1e-4));
}

TEST_CASE("a run ends with the step in which it is asked to stop", "[serve]") {
  class Stops final : public serve::StepObserver {
   public:
    void began(const serve::StepRecord& /*record*/) override { stop = ++steps == 10; }
    std::atomic<bool> stop = false;
    int steps = 0;
  };
  const load::ServeExperiment experiment = server(crowded());
  Stops observer;
  load::ServeOptions options;
  options.observer = &observer;
  options.stop = &observer.stop;
  CHECK(load::serve(experiment, load::make_requests(experiment), options).result.interrupted);
  CHECK(observer.steps == 10);  // mutant: it looks every 4,096 steps
}

}  // namespace specsim::limits_test
