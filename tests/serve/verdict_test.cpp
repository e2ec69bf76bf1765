// Results from curves of servers: where they cross, which runs are too short, limits by draft length; from invented values.
#include "sim/answers/load/verdict.h"
#include "sim/answers/load/best_lengths.h"
#include "sim/answers/load/capacity.h"
#include "sim/answers/load/curve.h"
#include "sim/answers/load/outputs.h"
#include "sim/answers/load/single_verdict.h"
#include "sim/answers/load/slo.h"
#include "sim/foundation/base/whole_file.h"
#include "tests/serve/servers.h"
#include "tests/support/temporary_file.h"

#include <catch2/catch.hpp>

#include <atomic>
#include <cmath>
#include <string>
#include <vector>

namespace specsim::verdict_test {

namespace {

using load::Load;

// A point whose replications have these mean TPOT, in ms, and an output throughput of 1000 / TPOT.
load::CurvePoint point(double at, bool speculative, const std::vector<double>& tpot_ms) {
  load::CurvePoint own;
  own.load = at;
  own.speculative = speculative;
  for (const double value : tpot_ms) {
    serve::Summary& run = own.replications.emplace_back();
    run.tpot_ms.mean = value;
    run.output_throughput = 1000.0 / value;
    run.stable = true;
  }
  return own;
}

std::string joined(const std::vector<std::string>& lines) {
  std::string all;
  for (const std::string& line : lines) all += line + "\n";
  return all;
}

bool holds(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

load::LengthLimit limit(std::optional<int> length, double keeps, double fails) {
  load::LengthLimit own;
  own.draft_length = length;
  own.limit.keeps = keeps;
  own.limit.fails = fails;
  return own;
}

}  // namespace

TEST_CASE("two curves cross between the loads around it, on a straight line in logarithms", "[serve]") {
  // With speculation TPOT is .5, .8 and 2 times that without it at 1, 2 and 4 clients. Between the last two the logarithm of the
  // ratio goes from -.2231 to .6931 and is zero after .2435 of the way: 2 x 2^.2435 = 2.368. The replications differ by a factor
  // of both curves, which leaves the ratio, so that the interval has no width. Mutants: on a straight line without
  // logarithms, 2.33; between other loads; the first crossing taken for the second.
  const std::vector<load::CurvePoint> curve = {point(1, false, {10, 20}), point(1, true, {5, 10}),   point(2, false, {10, 20}),
                                               point(2, true, {8, 16}),   point(4, false, {10, 20}), point(4, true, {20, 40})};
  const std::string all = joined(load::verdict(curve, Load::concurrency));
  CHECK(holds(all, "speculation lowers the mean TPOT up to concurrency 2, no longer at 4"));
  CHECK(holds(all, "the curves cross at concurrency 2.368 ± 0"));
  CHECK(holds(all, "speculation raises output throughput up to concurrency 2, no longer at 4"));
  // Throughput is the inverse, and crosses at the same place. Mutant: a curve that falls is taken for one that rises.
  CHECK(all.find("cross at concurrency 2.368") != all.rfind("cross at concurrency 2.368"));
  CHECK_FALSE(holds(all, "too short"));
  // Speculation pays everywhere, nowhere, or at scattered loads: no crossing.
  const auto pays = [](const std::vector<double>& ratios) {
    std::vector<load::CurvePoint> points;
    for (std::size_t i = 0; i < ratios.size(); ++i) {
      points.push_back(point(static_cast<double>(i) + 1.0, false, {10}));
      points.push_back(point(static_cast<double>(i) + 1.0, true, {10 * ratios[i]}));
    }
    return joined(load::verdict(points, Load::concurrency));
  };
  CHECK(holds(pays({0.5, 0.9}), "lowers the mean TPOT at every load tried"));
  CHECK(holds(pays({1.5, 1.9}), "lowers the mean TPOT at no load tried"));
  CHECK(holds(pays({0.5, 1.9, 0.5}), "lowers the mean TPOT at concurrency 1, 3"));
  CHECK_FALSE(holds(pays({0.5, 1.9, 0.5}), "cross"));
}

TEST_CASE("runs that are too short are reported with the most requests that any of them needs", "[serve]") {
  std::vector<load::CurvePoint> curve = {point(1, false, {10}), point(1, true, {5}), point(2, false, {10}), point(2, true, {8})};
  curve[0].too_short = 700;
  curve[1].too_short = 300;
  const std::string all = joined(load::verdict(curve, Load::concurrency));
  CHECK(holds(all, "run too short for steady state at concurrency 1: use --requests 700 or more"));
}

TEST_CASE("a value's interval comes from its replications, or from batches of a single one", "[serve]") {
  // 10 and 14: mean 12, standard error 2, and Student's t with one degree of freedom at 95 %, 12.7062.
  load::CurvePoint own = point(1, false, {10, 14});
  const load::CurveFigure two = load::mean_latency(own, serve::Latency::tpot);
  CHECK(two.mean == Approx(12.0));
  CHECK(two.half_width == Approx(2.0 * 12.7062).epsilon(1e-5));
  own = point(1, false, {10});
  own.replications[0].spreads[static_cast<std::size_t>(serve::Latency::tpot)].mean_half_width = 0.25;
  const load::CurveFigure one = load::mean_latency(own, serve::Latency::tpot);
  CHECK(one.mean == 10.0);
  CHECK(one.half_width == 0.25);
}

TEST_CASE("the draft length that keeps the limits up to the largest load", "[serve]") {
  CHECK(holds(load::best_length_text({limit(0, 5, 6), limit(2, 9, 10), limit(4, 7, 8)}, Load::rate), "largest rate: 2"));
  // The config's own policy, if no single length is as good.
  CHECK(holds(load::best_length_text({limit({}, 11, 12), limit(2, 9, 10)}, Load::rate), "the config's own"));
  CHECK_FALSE(holds(load::best_length_text({limit({}, 9, 10), limit(2, 9, 10)}, Load::rate), "own"));
  // No tried load keeps them. Mutant: such a length keeps them up to rate 1.
  CHECK(load::best_length_text({limit(2, NAN, 1), limit(4, NAN, 1)}, Load::rate).empty());
  CHECK(holds(load::best_length_text({limit(2, NAN, 1), limit(4, 0.5, 1)}, Load::rate), ": 4"));
  // All tried values keep them: the limit is unknown.
  CHECK(
      holds(load::best_length_text({limit(2, 9, NAN), limit(4, 9, NAN), limit(6, 9, 10)}, Load::rate), "every rate tried: 2, 4"));
  load::LoadLimit text;
  text.keeps = 14.25;
  text.fails = 14.5;
  CHECK(load::limit_text(text) == "14.25 (14.5 does not)");
  text.half_width = 0.3;
  text.too_short = 900;
  CHECK(load::limit_text(text) == "14.25 ± 0.3 (14.5 does not); run too short, at least 900 requests");
  text.capacity = 14.4;
  CHECK(holds(load::limit_text(text), "its capacity is 14.4"));
}

TEST_CASE("the interval of a limit is that of its replications' own limits, on straight lines", "[serve]") {
  // Nine of ten requests must keep TPOT. At rate 4 95 of 100 do in both replications, at 8 85 and 75: the margins .05 and -.05
  // cross zero at 6, .05 and -.15 at 5. 6 and 5 have a standard error of .5, and Student's t with one degree of freedom
  // is 12.7062.
  load::ServeExperiment experiment = tests::server(R"(serve:
  scheduler: {kind: vllm_v1, async: false}
  arrivals: {process: deterministic, rate: 1, requests: 4}
  lengths: {prompt: 16, output: 5}
cost: {model: affine, target_fixed_ms: 10}
)");
  experiment.slo.tpot_ms = 10.0;
  experiment.slo.percentile = 90.0;
  const auto tried = [](double at, const std::vector<double>& within, double capacity = NAN) {
    load::CurvePoint own = point(at, false, std::vector<double>(within.size(), 10.0));
    own.capacity = {capacity, NAN, 0.0};
    for (std::size_t i = 0; i < within.size(); ++i) {
      own.replications[i].tpot_ms.count = 100.0;
      own.replications[i].within_limit[static_cast<std::size_t>(serve::Latency::tpot)] = within[i];
    }
    return own;
  };
  const std::atomic<bool> stop = true;  // nothing is run between the two
  load::SweepRunner::Options setting;
  setting.stop = &stop;
  load::SweepRunner runner(setting);
  const load::LoadLimit limit =
      load::largest_load(experiment, Load::rate, {tried(8, {85, 75}), tried(4, {95, 95})}, runner, "--sweep");
  CHECK(limit.keeps == 4.0);
  CHECK(limit.fails == 8.0);
  CHECK(limit.half_width == Approx(0.5 * 12.7062).epsilon(1e-4));
  // No rate above the capacity is run. From 8 the distance to 4 is halved, down to a sixty-fourth of it. Mutant: once more.
  load::SweepRunner goes_on{load::SweepRunner::Options()};
  CHECK(load::largest_load(experiment, Load::rate, {tried(4, {95}, 4.01), tried(8, {95}, 4.01)}, goes_on, "--sweep").fails ==
        4.0625);
}

TEST_CASE("limits by name are those of MLPerf's rules and of DistServe's paper", "[serve]") {
  // mlcommons/inference_policies, inference_rules.adoc: TTFT and TPOT in ms at the 99th percentile. DistServe (arXiv 2401.09670),
  // table 1: OPT-13B on ShareGPT, .2 s and .1 s, kept by 90 % of the requests, both at once.
  const auto is = [](const char* name, double ttft, double tpot, double percentile, bool jointly) {
    CAPTURE(name);
    const load::SloPreset* preset = load::find_slo_preset(name);
    REQUIRE(preset != nullptr);
    CHECK(preset->slo.ttft_ms == ttft);
    CHECK(preset->slo.tpot_ms == tpot);
    CHECK(preset->slo.percentile == percentile);
    CHECK(preset->slo.jointly == jointly);
  };
  is("mlperf:llama2-70b-interactive", 450, 40, 99, false);
  is("mlperf:llama2-70b-server", 2000, 200, 99, false);
  is("mlperf:llama3.1-405b-interactive", 4500, 80, 99, false);
  is("mlperf:llama3.1-8b-server", 2000, 100, 99, false);
  is("distserve:opt-13b-sharegpt", 200, 100, 90, true);
  CHECK(load::find_slo_preset("mlperf:none") == nullptr);
}

TEST_CASE("how many requests make a run long enough", "[serve]") {
  // 300 requests were sent in 10 s and stayed 500 ms: 15 in the system, of whom 40 in a row are 600. At three quarters of the
  // capacity a queue forgets within 1 / (1 - .75)^2 = 16 requests, of which 100 are asked: 1,600. Above .92 it is 15,625, rounded
  // up.
  serve::Summary run;
  run.requests = 300;
  run.sending_s = 10.0;
  run.e2el_ms.count = 300.0;
  run.e2el_ms.mean = 500.0;
  CHECK(load::requests_needed(run, 30.0, NAN) == 600);
  CHECK(load::requests_needed(run, 7.5, 10.0) == 1600);
  CHECK(load::requests_needed(run, 12.0, 10.0) == 16000);
  CHECK(load::requests_needed(run, 5.0, 10.0) == 600);
  run.mean_batch = 31.2;
  CHECK(load::requests_in_full_batches(run) == 1300);  // 1,248
}

TEST_CASE("a server without a draft counts as faster if it gains more than a hundredth", "[serve]") {
  load::BestLengths best;
  best.plain_gain = {-0.2, 0.01, 0.05, -0.1, 0.2, 0.3};
  CHECK_FALSE(load::baseline_is_faster(best, 1));
  CHECK_FALSE(load::baseline_is_faster(best, 2));
  CHECK(load::baseline_is_faster(best, 3));
  CHECK_FALSE(load::baseline_is_faster(best, 4));
  CHECK(load::baseline_is_faster(best, 60));
  CHECK_FALSE(load::baseline_is_faster(best));
  CHECK(holds(load::plain_text(best), "with 3 concurrent requests, from 5 concurrent requests on"));
  best.plain_gain = {0.2, 0.3};
  CHECK(load::baseline_is_faster(best));
  best.plain_gain.clear();
  CHECK_FALSE(load::baseline_is_faster(best, 1));
  best.ranges = {{1, 4, 3}, {5, 9, 1}};
  CHECK(load::length_at(best, 1) == 3);
  CHECK(load::length_at(best, 4.5) == 3);
  CHECK(load::length_at(best, 5) == 1);
  CHECK(load::length_at(best, 50) == 1);
}

TEST_CASE("the best draft length of every step that fits, and what a server without a draft would gain", "[serve]") {
  // Tokens per round over milliseconds: 1 / 10, 1.5 / 11 = .1364, 1.75 / 12 = .1458, 1.875 / 13 = .1442 whatever the number of
  // requests. Without a draft 1 / 10 remains, 31.4 % less. Mutants: steps of more requests than the scheduler runs; lengths
  // beyond the policy's; the steps of a neighbouring size.
  const auto table_of = [](const std::string& kv, int draft_length = 3, double alpha = 0.5) {
    const load::ServeExperiment own = tests::server(fmt::format(R"(serve:
  scheduler: {{kind: vllm_v1, max_num_seqs: 24, async: false}}
{}  arrivals: {{process: deterministic, rate: 1, requests: 4}}
  lengths: {{prompt: 103, output: 13}}
  speculation: {{policy: {{kind: fixed, draft_length: {}}}, acceptance: {{alpha: {}}}}}
cost: {{model: affine, target_fixed_ms: 10, draft_fixed_ms: 1}}
)",
                                                                kv, draft_length, alpha));
    return load::length_table(own, load::make_requests(own), plan::Rise::never);
  };
  const load::LengthTable table = table_of("");
  CHECK(table.cached == 109.5);
  CHECK(table.running == 24);
  CHECK(table.fitting == 0);
  REQUIRE(table.best.ranges.size() == 1);
  CHECK(table.best.ranges[0].from == 1);
  CHECK(table.best.ranges[0].to == 24);
  CHECK(table.best.ranges[0].draft_length == 2);
  CHECK(table.best.worst_loss == 0.0);
  REQUIRE(table.best.plain_gain.size() == 24);
  for (const double gain : table.best.plain_gain) CHECK(gain == Approx(0.1 / (1.75 / 12.0) - 1.0));
  // The policy's own length is the best one it allows, though a longer one would be better: nothing is lost. Mutant: 23 %.
  const load::LengthTable single = table_of("", 1, 0.9);
  REQUIRE(single.best.ranges.size() == 1);
  CHECK(single.best.ranges[0].draft_length == 1);
  CHECK(single.best.worst_loss == 0.0);
  CHECK(single.best.plain_gain[0] == Approx(0.1 / (1.9 / 11.0) - 1.0));
  // A request in the middle of its output has 110 whole tokens and three drafts in blocks of 16: eight blocks, of which 81 hold
  // ten requests. Mutant: 109 tokens, and seven blocks.
  const load::LengthTable small = table_of("  kv: {block: 16, blocks: 82}\n");
  CHECK(small.fitting == 10);
  CHECK(small.best.plain_gain.size() == 10);
}

TEST_CASE("one load's verdict is of the two servers' mean times", "[serve]") {
  // Four tokens after the first: 10 ms each without a draft; with one that is always accepted two rounds of 11 ms, 5.5 each.
  const auto run = [](const std::string& speculation) {
    return tests::run_server(tests::server(R"(serve:
  scheduler: {kind: vllm_v1, async: false}
  arrivals: {process: closed, concurrency: 1, requests: 4}
  lengths: {prompt: 16, output: 5}
)" + speculation + "cost: {model: affine, target_fixed_ms: 10, draft_fixed_ms: 1}\n"));
  };
  const load::ServeResult plain = run("");
  const load::ServeResult own = run("  speculation: {policy: {kind: fixed, draft_length: 1}, acceptance: {alpha: 1}}\n");
  const std::string text = load::single_verdict(plain.result, plain.summary, own.result, own.summary, true, 0.0);
  CAPTURE(text);
  CHECK(holds(text, "5.5 ms (-45.0 %"));
}

TEST_CASE("the throughput of clients that wait varies as their requests' lives do", "[serve]") {
  // 30 of 64 clients send a second request each. All outputs are equally long, so the server's throughput hardly varies. Mutant:
  // by the gaps between requests, of which all but 30 are 0, so that the half width is several times the throughput.
  const load::ServeResult own = tests::run_server(tests::server(R"(serve:
  scheduler: {kind: vllm_v1, max_num_seqs: 64, async: false}
  arrivals: {process: closed, concurrency: 64, requests: 94}
  lengths: {prompt: 16, output: 50}
cost: {model: affine, target_fixed_ms: 10}
)"));
  CHECK(own.summary.output_throughput_half_width < 0.1 * own.summary.output_throughput);
  CHECK(serve::bounds(own.summary, serve::Bounded::throughput).high < 1.1 * own.summary.output_throughput);
}

TEST_CASE("TPOT and throughput that say different things are both in the verdict", "[serve]") {
  const auto sequence = [](double first_ms, double each_ms) {
    serve::Sequence one;
    one.status = serve::Status::finished;
    one.emitted = 11;
    one.first_token = static_cast<arrivals::Picoseconds>(1e9 * first_ms);
    one.last_token = static_cast<arrivals::Picoseconds>(1e9 * (first_ms + 10 * each_ms));
    return one;
  };
  const auto server = [&](double each_ms, double throughput) {
    load::ServeResult made;
    for (int i = 0; i < 40; ++i) made.result.sequences.push_back(sequence(5, each_ms));
    made.summary.output_throughput = throughput;
    made.summary.last_tenth_s = NAN;
    return made;
  };
  const auto said = [&](double tpot, double throughput, double error) {
    const load::ServeResult plain = server(10, 1000);
    const load::ServeResult own = server(tpot, throughput);
    return load::single_verdict(plain.result, plain.summary, own.result, own.summary, true, error);
  };
  // Mutants: a change of TPOT of .2 % decides; no interval of the throughput.
  CHECK(said(10.02, 1057, 0.14).starts_with("speculation at this load is too close to call: P(pays) = 0.49, expected gain 0 %"));
  CHECK(said(5, 500, 0.1).starts_with("speculation at this load pays in TPOT but not in throughput:"));
  CHECK(said(20, 2000, 0.1).starts_with("speculation at this load pays in throughput but not in TPOT:"));
  CHECK(said(5, 1010, 0.1).starts_with("speculation at this load pays in TPOT, by throughput too close to call: P(pays) = 0.54"));
  CHECK(
      said(10, 2000, 0.1).starts_with("speculation at this load pays in throughput, by TPOT too close to call: P(pays) = 0.50"));
  CHECK(holds(said(5, 2000, 0.1), "output tokens/s 1000 -> 2000 (+100.0 %, 95 %: +64.4 to +143.3)"));
}

TEST_CASE("the verdict of a job is of its makespan", "[serve]") {
  // One request at a time, two of them: a prompt's step and four steps of 10 ms each without a draft. With one that is always
  // accepted, a prompt's step with the draft and two rounds of 11 ms. Mutant: TPOT decides, whose change is -45 %.
  const auto run = [](const std::string& speculation) {
    return tests::run_server(tests::server(R"(serve:
  scheduler: {kind: vllm_v1, max_num_seqs: 1, async: false}
  arrivals: {process: batch, requests: 2}
  lengths: {prompt: 16, output: 5}
)" + speculation + "cost: {model: affine, target_fixed_ms: 10, draft_fixed_ms: 1}\n"));
  };
  const load::ServeResult plain = run("");
  const load::ServeResult own = run("  speculation: {policy: {kind: fixed, draft_length: 1}, acceptance: {alpha: 1}}\n");
  const std::string text = load::single_verdict(plain.result, plain.summary, own.result, own.summary, false, 0.0);
  CAPTURE(text);
  CHECK(text.starts_with("speculation for this job pays: makespan 0.1 -> "));
  CHECK(own.summary.duration_s >= 2 * 0.032);
  CHECK(own.summary.duration_s <= 2 * 0.033);
  CHECK(holds(text, " s (-3"));
}

TEST_CASE("a request's waiting is drawn on its lane", "[serve]") {
  // Two requests at once, of which one runs at a time: the second waits for the first's five steps. Mutant: the wait is left out.
  const load::ServeExperiment experiment = tests::server(R"(serve:
  scheduler: {kind: vllm_v1, max_num_seqs: 1, async: false}
  arrivals: {process: closed, concurrency: 2, requests: 2}
  lengths: {prompt: 16, output: 5}
cost: {model: affine, target_fixed_ms: 10}
)");
  const tests::TemporaryFile file("");
  load::StepTimeline timeline(file.path(), 2);
  load::ServeOptions options;
  options.observer = &timeline;
  load::serve(experiment, load::make_requests(experiment), options);
  timeline.close();
  const std::string drawn = read_whole_file(file.path());
  CAPTURE(drawn);
  CHECK(holds(drawn, "\"name\":\"queue\""));
}

TEST_CASE("a warm-up must leave requests to count", "[serve]") {
  const auto run = [](int warm_up) {
    return tests::run_server(tests::server(fmt::format(R"(serve:
  scheduler: {{kind: vllm_v1, async: false}}
  arrivals: {{process: deterministic, rate: 1, requests: 4}}
  lengths: {{prompt: 16, output: 4}}
  warm_up: {}
cost: {{model: affine, target_fixed_ms: 10}}
)",
                                                       warm_up)));
  };
  CHECK(run(3).summary.warm_up_requests == 3);
  CHECK_THROWS_AS(run(4), BadInput);
}

TEST_CASE("the link between engines takes its milliseconds and its bytes", "[serve]") {
  const load::ServeExperiment own = tests::server(R"(serve:
  scheduler: {kind: vllm_v1, async: false}
  arrivals: {process: deterministic, rate: 1, requests: 2}
  lengths: {prompt: 16, output: 4}
  replicas: {count: 1, prefill: 1, first_token: decode, link_gb_per_s: 50, link_ms: 0.25, kv_bytes_per_token: 1e5}
cost: {model: affine, target_fixed_ms: 10}
)");
  CHECK(own.link_latency == 250'000'000);               // .25 ms in picoseconds
  CHECK(own.link_ps_per_token == Approx(2'000'000.0));  // 100 kB at 50 GB per second: 2 us
  CHECK(own.first_token_of_decode);
}

}  // namespace specsim::verdict_test
