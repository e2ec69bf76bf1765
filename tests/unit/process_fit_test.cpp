// Recorded acceptance and its models: the replay of the trace, and processes with fitted parameters.
#include "sim/experiments/fit/process_fit.h"
#include "sim/foundation/base/error.h"
#include "sim/foundation/base/whole_file.h"
#include "tests/support/cells.h"
#include "tests/support/coverage.h"

#include <catch2/catch.hpp>

#include <fmt/format.h>

#include <unistd.h>
#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdio>
#include <random>

namespace specsim::process_fit_test {

using fit::FittedProcess;
using fit::Process;
using fit::RecordedRequest;

namespace {

const std::string kRounds = "tests/data/acceptance/rounds_t1.jsonl";

constexpr std::uint64_t kTokens = 60;  // that each request is to emit

// Requests that the simulator makes from an experiment: a sequence is a request, up to the round that reaches kTokens.
std::vector<RecordedRequest> simulated(const std::string& context, int draft_length, std::uint64_t requests) {
  class Recorder final : public decode::RoundSink {
   public:
    explicit Recorder(std::size_t size) : requests(size), emitted(size, 0) {}
    void accepted(std::uint32_t lane, std::uint32_t /*round*/, std::uint32_t count) override {
      if (first + lane >= requests.size() || emitted[first + lane] >= kTokens) return;
      requests[first + lane].rounds.push_back({static_cast<int>(count), draft_length});
      emitted[first + lane] += count + 1;
    }
    void round(std::uint32_t, std::uint32_t, std::span<const Token>, std::uint32_t) override {}
    std::vector<RecordedRequest> requests;
    std::vector<std::uint64_t> emitted;
    std::size_t first = 0;
    int draft_length = 0;
  };
  const tests::ReadyCell ready(
      fmt::format("{{experiment: fit, seed: 5, rounds: 100000, pair: {{vocab: 9, target: {{family: uniform}}, draft: {{from: "
                  "target, transform: overlap, value: .7, shape: disjoint_tail}}}}, context: {}, decode: {{verifier: token, "
                  "drafter: {{kind: chain, draft_length: {}}}}}}}",
                  context, draft_length));
  const bool ends = ready.cell().contexts->process->shape().request_tokens > 0;
  const decode::Simulator simulator = ready.simulator();
  Recorder recorder(requests);
  recorder.draft_length = draft_length;
  decode::Counts counts = simulator.empty_counts();
  const std::uint64_t total = ends ? requests : requests * ready.cell().sequence_rounds;
  for (std::uint64_t chunk = 0; chunk * simulator.chunk_size() < total; ++chunk) {
    recorder.first = chunk * decode::kLanes;
    simulator.run(chunk, total, counts, &recorder);
  }
  return recorder.requests;
}

std::string drafted(double alpha) {
  return fmt::format("{{from: target, transform: overlap, value: {}, shape: disjoint_tail}}", alpha);
}

const fit::ProcessReport& report_of(const fit::FitReport& report, Process process) {
  return *std::find_if(report.processes.begin(), report.processes.end(),
                       [&](const auto& one) { return one.model.process == process; });
}

}  // namespace

TEST_CASE("the fit finds the parameters that the simulator was given, and rejects the processes that it was not", "[fit][stat]") {
  // Margins: about four standard errors for this number of requests.
  constexpr std::uint64_t kRequests = 250;
  SECTION("constant") {
    const fit::FitReport report = fit::fit_processes(simulated("{process: fixed}", 4, kRequests), {.seed = 1});
    CHECK(report.processes[report.best].model.process == Process::constant);
    CHECK(report.processes[0].model.alpha[0][0] == Approx(0.7).margin(0.015));
    CHECK_FALSE(report.processes[0].rejected());
  }
  SECTION("by_depth") {
    const fit::FitReport report = fit::fit_processes(
        simulated(fmt::format("{{process: by_depth, drafts: [{}, {}, {}]}}", drafted(0.5), drafted(0.8), drafted(0.9)), 3,
                  kRequests),
        {.seed = 1});
    CHECK(report.processes[report.best].model.process == Process::by_depth);
    const fit::ProcessReport& own = report_of(report, Process::by_depth);
    for (const auto& [depth, alpha] : {std::pair(0, 0.5), std::pair(1, 0.8), std::pair(2, 0.9)})
      CHECK(own.model.acceptance(0, depth) == Approx(alpha).margin(0.028));
    CHECK_FALSE(own.rejected());
    CHECK(report_of(report, Process::constant).rejected());
    CHECK(report_of(report, Process::constant).p_by_depth < 0.0025);
  }
  SECTION("kept_state") {
    const fit::FitReport report = fit::fit_processes(
        simulated(fmt::format("{{process: requests, request_tokens: 60, types: [{{weight: 2, draft: {}}}, {{weight: "
                              "1, draft: {}}}]}}",
                              drafted(0.55), drafted(0.9)),
                  4, kRequests),
        {.seed = 1});
    CHECK(report.processes[report.best].model.process == Process::kept_state);
    const fit::ProcessReport& own = report_of(report, Process::kept_state);
    REQUIRE(own.model.start.size() == 2);
    const std::size_t low = own.model.alpha[0][0] < own.model.alpha[1][0] ? 0 : 1;
    CHECK(own.model.alpha[low][0] == Approx(0.55).margin(0.022));
    CHECK(own.model.alpha[1 - low][0] == Approx(0.9).margin(0.03));
    CHECK(own.model.start[low] == Approx(2.0 / 3.0).margin(0.08));
    CHECK_FALSE(own.rejected());
    for (const Process wrong : {Process::constant, Process::by_depth}) {
      CHECK(report_of(report, wrong).rejected());
      CHECK(report_of(report, wrong).p_requests < 0.0025);
    }
  }
  SECTION("regimes") {
    const fit::FitReport report = fit::fit_processes(
        simulated(fmt::format("{{process: regimes, states: [{{draft: {}}}, {{draft: {}}}], transition: [[.9, .1], "
                              "[.2, .8]]}}",
                              drafted(0.95), drafted(0.3)),
                  4, kRequests),
        {.seed = 1});
    CHECK(report.processes[report.best].model.process == Process::regimes);
    const fit::ProcessReport& own = report_of(report, Process::regimes);
    REQUIRE(own.model.start.size() == 2);
    const std::size_t easy = own.model.alpha[0][0] > own.model.alpha[1][0] ? 0 : 1;
    CHECK(own.model.alpha[easy][0] == Approx(0.95).margin(0.02));
    CHECK(own.model.alpha[1 - easy][0] == Approx(0.3).margin(0.04));
    CHECK(own.model.transition[easy][easy] == Approx(0.9).margin(0.03));
    CHECK(own.model.transition[1 - easy][1 - easy] == Approx(0.8).margin(0.05));
    CHECK_FALSE(own.rejected());
    for (const Process wrong : {Process::constant, Process::by_depth, Process::kept_state})
      CHECK(report_of(report, wrong).rejected());
    CHECK(report_of(report, Process::constant).p_runs < 0.0025);
  }
}

TEST_CASE("a large record is fitted to its end, and its p-values look at a part of it", "[fit][stat]") {
  // Every third request has far higher acceptance: a cross-validation part of every third request, or a fit that kept a part's
  // values, would be off.
  FittedProcess truth = fit::fit_process(Process::constant, 1, simulated("{process: fixed}", 2, 10));
  std::vector<RecordedRequest> requests;
  for (std::uint64_t i = 0; i < 6000; ++i) {
    rng::Stream random(rng::make_key(3, 0), rng::Purpose::start, 0, i);
    truth.alpha[0][0] = i % 3 == 0 ? 0.9 : 0.5;
    requests.push_back(truth.simulate(2, {8}, random));
  }
  const FittedProcess constant = fit::fit_process(Process::constant, 1, requests);
  double accepted = 0.0;
  double judged = 0.0;
  for (const RecordedRequest& request : requests)
    for (const fit::RecordedRound& round : request.rounds) {
      accepted += round.accepted;
      judged += round.accepted + (round.accepted < round.drafted ? 1 : 0);
    }
  CHECK(constant.alpha[0][0] == Approx(accepted / judged).margin(2e-4));
  const FittedProcess kept = fit::fit_process(Process::kept_state, 2, requests);
  const std::size_t low = kept.alpha[0][0] < kept.alpha[1][0] ? 0 : 1;
  CHECK(kept.alpha[low][0] == Approx(0.5).margin(0.01));
  CHECK(kept.alpha[1 - low][0] == Approx(0.9).margin(0.01));
  CHECK(kept.start[low] == Approx(2.0 / 3.0).margin(0.025));
  const std::vector<RecordedRequest> some(requests.begin(), requests.begin() + 2100);
  CHECK(fit::fit_processes(some, {.seed = 1}).checked == Approx(2000).margin(5));
}

TEST_CASE("requests that all went alike have no standard error, and no z", "[fit]") {
  // Mutant: a standard error of 1e-12 in its place, and z in the billions. 5 tokens per round, and 29 in 7, whose quotient is
  // rounded.
  for (const std::vector<int>& counts : {std::vector<int>{4, 4, 4}, {4, 4, 4, 4, 4, 2, 0}}) {
    RecordedRequest request;
    for (const int accepted : counts) request.rounds.push_back({accepted, 4});
    const fit::FitReport report = fit::fit_processes(std::vector<RecordedRequest>(20, request), {.seed = 1});
    REQUIRE(report.short_length == 2);
    for (const fit::ProcessReport& one : report.processes) CHECK(std::isnan(one.extrapolated_z));
  }
}

TEST_CASE("regimes whose acceptance falls with depth are found, and only they predict longer drafts than recorded",
          "[fit][stat]") {
  // Alphas by depth of an easy and a hard regime; the decline continues beyond the record of draft length 4.
  const auto drafts = [](double level) {
    std::string list;
    for (int depth = 0; depth < 8; ++depth)
      list += fmt::format("{}{}", depth == 0 ? "" : ", ", drafted(1.0 / (1.0 + std::exp(-(level - 0.7 * std::log1p(depth))))));
    return list;
  };
  const std::string context =
      fmt::format("{{process: regimes, states: [{{drafts: [{}]}}, {{drafts: [{}]}}], transition: [[.9, .1], [.2, .8]]}}",
                  drafts(2.5), drafts(0.0));
  const std::vector<RecordedRequest> requests = simulated(context, 4, 400);
  const fit::FitReport report =
      fit::fit_processes(requests, {.seed = 1, .held_out = {{8, simulated(context, 8, 400)}}, .threads = 2});
  CHECK(report.processes[report.best].model.process == Process::regimes_by_depth);
  const fit::ProcessReport& own = report_of(report, Process::regimes_by_depth);
  CHECK_FALSE(own.rejected());
  REQUIRE(own.model.start.size() == 2);
  CHECK(own.model.rates.slope == Approx(-0.7).margin(0.2));
  CHECK(report.short_length == 2);
  CHECK(std::abs(own.extrapolated_z) < 3.0);
  for (const fit::ProcessReport& one : report.processes) REQUIRE(one.predicted.size() == 1);
  CHECK(own.predicted[0].draft_length == 8);
  CHECK(own.predicted[0].recorded_error < 0.02 * own.predicted[0].recorded);
  CHECK(std::abs(own.predicted[0].relative_error()) < 0.03);
  CHECK(report_of(report, Process::by_depth).predicted[0].relative_error() > 0.03);
  CHECK(fit::to_text(report.processes[report.nearest].model.process) != std::string("by_depth"));
  // Mutant: a slope of 0, which is the process regimes.
  for (const Process wrong : {Process::constant, Process::by_depth, Process::kept_state, Process::regimes})
    CHECK(report_of(report, wrong).rejected());
  // At draft length 8, which is not in the record.
  rng::Stream random(rng::make_key(3, 3), rng::Purpose::start, 0, 0);
  const auto at_eight = [&](const FittedProcess& model) {
    std::vector<RecordedRequest> longer;
    for (int i = 0; i < 4000; ++i) longer.push_back(model.simulate(8, {kTokens}, random));
    return fit::tokens_per_round(longer);
  };
  const double truth = fit::tokens_per_round(simulated(context, 8, 4000));
  CHECK(at_eight(own.model) == Approx(truth).epsilon(0.025));
  CHECK(at_eight(report_of(report, Process::regimes).model) > 1.03 * truth);
}

TEST_CASE("requests of two kinds with regimes in each are found", "[fit][stat]") {
  const std::string context = fmt::format(
      "{{process: regimes, states: [{{draft: {}}}, {{draft: {}}}, {{draft: {}}}, {{draft: {}}}], start: [.35, .15, .3, .2], "
      "transition: [[.9, .1, 0, 0], [.2, .8, 0, 0], [0, 0, .9, .1], [0, 0, .2, .8]]}}",
      drafted(0.97), drafted(0.6), drafted(0.7), drafted(0.15));
  const fit::FitReport report = fit::fit_processes(simulated(context, 4, 400), {.seed = 1, .threads = 2});
  CHECK_FALSE(report_of(report, Process::requests_and_regimes).rejected());
  // Mutants: one chain for all requests, or a kept state without stretches.
  CHECK(report_of(report, Process::regimes).behind_best > 2.0 * report_of(report, Process::regimes).behind_error);
  CHECK(report_of(report, Process::kept_state).rejected());
}

TEST_CASE("the theory of regimes with a rate for each depth is what the simulator gives", "[fit][stat]") {
  const tests::ReadyCell ready(
      fmt::format("{{experiment: both, seed: 3, rounds: 100000, pair: {{vocab: 9, target: {{family: uniform}}, draft: {{from: "
                  "target, transform: "
                  "overlap, value: .7, shape: disjoint_tail}}}}, context: {{process: regimes, sequence_rounds: 50, states: "
                  "[{{drafts: [{}, {}, "
                  "{}]}}, {{draft: {}}}], start: [.5, .5], transition: [[.8, .2], [.3, .7]]}}, decode: {{verifier: token, "
                  "drafter: {{kind: chain, "
                  "draft_length: 5}}}}}}",
                  drafted(0.95), drafted(0.7), drafted(0.4), drafted(0.6)));
  const decode::Simulator simulator = ready.simulator();
  decode::Counts counts = simulator.empty_counts();
  const std::uint64_t total = 64 * simulator.chunk_size();
  for (std::uint64_t chunk = 0; chunk < 64; ++chunk) simulator.run(chunk, total, counts);
  // By enumeration: at a round's start, over the states of the text's positions.
  FittedProcess model;
  model.process = Process::regimes;
  model.start = {0.5, 0.5};
  model.transition = {{0.8, 0.2}, {0.3, 0.7}};
  model.alpha = {{0.95, 0.7, 0.4}, {0.6, 0.6, 0.6}};
  rng::Stream random(rng::make_key(4, 4), rng::Purpose::start, 0, 0);
  double emitted = 0.0;
  double rounds = 0.0;
  for (int i = 0; i < 20000; ++i) {
    const RecordedRequest request = model.simulate(5, {300}, random);
    for (std::size_t r = 0; r < std::min<std::size_t>(request.rounds.size(), 50); ++r) {
      emitted += request.rounds[r].accepted + 1.0;
      rounds += 1.0;
    }
  }
  const double whole = static_cast<double>(counts.emitted) / static_cast<double>(counts.rounds);
  CHECK(whole == Approx(emitted / rounds).epsilon(0.006));  // mutant: the first depth's rate at all depths, 20 % above
}

TEST_CASE("a fitted process is an experiment with the tokens per round of the fit", "[fit][stat]") {
  const fit::FitReport report = fit::fit_processes(fit::read_rounds(kRounds, ""), {.seed = 1});
  CHECK(report.draft_length == 8);
  for (const fit::ProcessReport& one : report.processes) {
    INFO(to_text(one.model.process));
    const tests::ReadyCell ready(one.model.yaml(8, {report.tokens}, report.rounds));
    const decode::Simulator simulator = ready.simulator();
    decode::Counts counts = simulator.empty_counts();
    const std::uint64_t total = 16 * simulator.chunk_size();
    for (std::uint64_t chunk = 0; chunk < 16; ++chunk) simulator.run(chunk, total, counts);
    // Mutants: requests that end within a round, 4 % below; types by their requests in place of their rounds, 2 % above.
    const double whole = static_cast<double>(counts.emitted) / static_cast<double>(counts.rounds);
    // Regimes of equally many rounds instead of tokens see a little more of the easy ones.
    CHECK(whole == Approx(one.tokens_per_round)
                       .epsilon(one.model.start.size() > 1 && one.model.process != Process::kept_state ? 0.015 : 0.006));
  }
}

TEST_CASE("requests of unequal length are no spread of their acceptance", "[fit][stat]") {
  FittedProcess model;
  model.start = {1.0};
  model.transition = {{1.0}};
  model.alpha = {{0.7}};
  rng::Stream random(rng::make_key(9, 9), rng::Purpose::start, 0, 0);
  std::vector<RecordedRequest> requests;
  for (const std::uint64_t tokens : {6U, 10U, 20U, 150U})
    for (int i = 0; i < 60; ++i) requests.push_back(model.simulate(4, {tokens}, random));
  const fit::FitReport report = fit::fit_processes(requests, {.seed = 1, .threads = 3});
  // Mutant: all requests are as long as the longest; short requests differ more than long ones do.
  CHECK_FALSE(report.processes[0].rejected());
  CHECK(report.processes[0].p_requests > 0.05);
  CHECK(report.processes[report.best].model.process == Process::constant);
  CHECK(report.tokens == 46);  // the mean, plus half a token for the uncertainty of the record
  // The result does not depend on the threads.
  const fit::FitReport alone = fit::fit_processes(requests, {.seed = 1});
  for (std::size_t f = 0; f < report.processes.size(); ++f) {
    CHECK(report.processes[f].held_out == alone.processes[f].held_out);
    CHECK(report.processes[f].tokens_per_round == alone.processes[f].tokens_per_round);
    CHECK(report.processes[f].p_runs == alone.processes[f].p_runs);
  }
}

TEST_CASE("requests that were cut after equally many rounds are simulated so", "[fit][stat]") {
  FittedProcess truth;
  truth.process = Process::kept_state;
  truth.start = {0.5, 0.5};
  truth.transition = {{1.0, 0.0}, {0.0, 1.0}};
  truth.alpha = {{0.9}, {0.3}};
  rng::Stream random(rng::make_key(9, 10), rng::Purpose::start, 0, 0);
  std::vector<RecordedRequest> requests;
  for (int i = 0; i < 200; ++i) requests.push_back(truth.simulate(4, {.rounds = 60}, random));
  const fit::FitReport report = fit::fit_processes(requests, {.seed = 1, .threads = 2});
  CHECK(report.cut_by_rounds);
  const fit::ProcessReport& kept = report_of(report, Process::kept_state);
  // Mutant: replicates have as many tokens as their requests, so a likely kind has fewer rounds; every process is rejected.
  CHECK_FALSE(kept.rejected());
  CHECK(report_of(report, Process::constant).rejected());
  CHECK(kept.tokens_per_round == Approx(report.tokens_per_round).epsilon(0.005));
  // Mutant: kinds by the rounds that requests of equally many tokens would have, 15 % below.
  const tests::ReadyCell ready(kept.model.yaml(4, {report.tokens, report.rounds}, report.rounds));
  const decode::Simulator simulator = ready.simulator();
  decode::Counts counts = simulator.empty_counts();
  for (std::uint64_t chunk = 0; chunk < 16; ++chunk) simulator.run(chunk, 16 * simulator.chunk_size(), counts);
  CHECK(static_cast<double>(counts.emitted) / static_cast<double>(counts.rounds) == Approx(kept.tokens_per_round).epsilon(0.01));
}

TEST_CASE("a fit that is stopped returns nothing", "[fit]") {
  std::atomic<bool> stop{false};
  double shown = 0.0;
  const fit::FitReport report = fit::fit_processes(fit::read_rounds(kRounds, ""), {.progress =
                                                                                       [&](double done, double all) {
                                                                                         shown = done / all;
                                                                                         stop = done > 400.0;
                                                                                       },
                                                                                   .stop = &stop});
  CHECK(report.processes.empty());
  CHECK(shown < 0.2);
}

TEST_CASE("the replayed trace gives the tokens per round that real decoding gave", "[llm][trace]") {
  const std::vector<RecordedRequest> recorded = fit::read_rounds(kRounds, "");
  double rounds = 0.0;
  double tokens = 0.0;
  for (const RecordedRequest& request : recorded) {
    rounds += static_cast<double>(request.rounds.size());
    for (const fit::RecordedRound& round : request.rounds) tokens += round.accepted + 1.0;
  }
  const double measured = tokens / rounds;
  double squares = 0.0;
  for (const RecordedRequest& request : recorded) {
    double own = -measured * static_cast<double>(request.rounds.size());
    for (const fit::RecordedRound& round : request.rounds) own += round.accepted + 1.0;
    squares += own * own;
  }
  const double error = std::sqrt(squares) / rounds;
  const auto replayed = [](const std::string& file) {
    const tests::ReadyCell ready(
        fmt::format("{{experiment: trace, seed: 7, rounds: 1000000, pair: {{vocab: 12, target: {{family: "
                    "uniform}}, draft: {{family: uniform}}}}, context: {{process: trace, file: {}}}, "
                    "decode: {{verifier: token, drafter: {{kind: chain, draft_length: 8}}}}}}",
                    file));
    const decode::Simulator simulator = ready.simulator();
    decode::Counts counts = simulator.empty_counts();
    const std::uint64_t total = 64 * simulator.chunk_size();
    for (std::uint64_t chunk = 0; chunk < 64; ++chunk) simulator.run(chunk, total, counts);
    return static_cast<double>(counts.emitted) / static_cast<double>(counts.rounds);
  };
  const double simulated = replayed("tests/data/acceptance/trace_t1.jsonl");
  CAPTURE(measured, error, simulated);
  constexpr double kZ99 = 2.576;
  CHECK(std::abs(simulated - measured) < kZ99 * error);
  CHECK(kZ99 * error < 0.08 * measured);  // an interval narrow enough to be missed
  // A trace whose overlaps are a tenth too low is outside.
  std::string low = read_whole_file("tests/data/acceptance/trace_t1.jsonl");
  for (std::size_t at = 0; (at = low.find("\"overlap\": [", at)) != std::string::npos;) {
    at += 12;
    const std::size_t end = low.find(']', at);
    std::string scaled;
    for (std::size_t from = at; from < end;) {
      std::size_t used = 0;
      scaled += fmt::format("{}{:.5g}", scaled.empty() ? "" : ", ", 0.9 * std::stod(low.substr(from, end - from), &used));
      from = std::min(end, low.find(',', from + used)) + 1;
    }
    low.replace(at, end - at, scaled);
  }
  const std::string path = fmt::format("tests_low_trace_{}.jsonl", getpid());
  write_whole_file(path, low);
  CHECK(std::abs(replayed(path) - measured) > kZ99 * error);
  std::remove(path.c_str());
}

TEST_CASE("accepted prefixes hold the rounds at their draft length", "[fit]") {
  const std::string path = fmt::format("tests_prefixes_{}.jsonl", getpid());
  std::string text;
  for (int i = 0; i < 10; ++i) text += "{\"draft_length\": 2, \"accepted\": [1, 2, 0, 0, 2, 2, 1, 0]}\n";
  write_whole_file(path, text);
  const std::vector<RecordedRequest> requests = fit::read_rounds(path, "");
  std::remove(path.c_str());
  REQUIRE(requests.size() == 10);
  std::vector<int> accepted;
  for (const fit::RecordedRound& round : requests[0].rounds) accepted.push_back(round.accepted);
  CHECK(accepted == std::vector<int>{1, 0, 0, 2});  // at 0, 2, 3, 4; at 7 the record could cut it
}

TEST_CASE("records of rounds that are broken are refused by line", "[fit]") {
  const std::string path = fmt::format("tests_rounds_{}.jsonl", getpid());
  const auto says = [&](const std::string& text) {
    write_whole_file(path, text);
    std::string said;
    try {
      fit::read_rounds(path, "");
    } catch (const BadInput& bad) {
      said = std::string(bad.what()).substr(path.size());
    }
    std::remove(path.c_str());
    return said;
  };
  std::string good;
  for (int i = 0; i < 10; ++i) good += "{\"request\": 0, \"draft_length\": 3, \"rounds\": [3, 0, 1]}\n";
  CHECK(says(good).empty());
  CHECK(says("{\"draft_length\": 3, \"rounds\": [1]}\n") == ": 1 requests, allowed: at least 10");
  CHECK(says(good + "{\"draft_length\": 3, \"rounds\": [4]}\n") ==
        ":11: round 1 accepted 4, allowed: an integer up to the number of drafted tokens");
  CHECK(says(good + "{\"draft_length\": 3, \"rounds\": [1], \"drafted\": [0]}\n").find(":11: round 1 accepted 1") == 0);
  CHECK(says(good + "{\"draft_length\": 0, \"rounds\": [0]}\n").find(":11: no record of rounds") == 0);
  CHECK(says(good + "{\"overlap\": [0.5, 1]}\n")
            .find(":11: acceptance probabilities by position, without depth, which specsim plan --trace, specsim fit and context "
                  "process trace of specsim run take, allowed here: {\"draft_length\", \"rounds\": [...]}, or {") == 0);
  CHECK(says(good + "{\"draft_length\": 3, \"accepted\": [1, 0]}\n")
            .find(":11: accepted prefixes by position after accepted tokens by") == 0);
  CHECK(says(good + "nonsense\n").find(":11:2: this is not JSON") == 0);
}

TEST_CASE("rounds of three drafted tokens predict ten if acceptance comes in stretches: prompt lookup on real text", "[fit]") {
  const std::vector<fit::RecordedLength> lengths = fit::read_draft_lengths("tests/data/acceptance/lookup_prefixes.jsonl", "");
  REQUIRE(lengths.size() == 10);
  const auto tokens_at = [&](int draft_length) {
    return fit::tokens_per_round(lengths[static_cast<std::size_t>(draft_length) - 1].requests);
  };
  for (int length = 1; length <= 10; ++length) CHECK(lengths[static_cast<std::size_t>(length) - 1].draft_length == length);
  CHECK(tokens_at(3) == Approx(1.5605).margin(0.0001));  // from another program's walk over the file
  CHECK(tokens_at(10) == Approx(1.7047).margin(0.0001));
  const std::vector<RecordedRequest>& seen = lengths[2].requests;
  const auto error_at_ten = [&](Process process, std::size_t states) {
    const FittedProcess model = fit::fit_process(process, states, seen);
    rng::Stream random(rng::make_key(5, 5), rng::Purpose::start, 0, 0);
    std::vector<RecordedRequest> longer;
    for (int i = 0; i < 3000; ++i) longer.push_back(model.simulate(10, {340}, random));
    return fit::tokens_per_round(longer) / tokens_at(10) - 1.0;
  };
  CHECK(std::abs(error_at_ten(Process::regimes_by_depth, 3)) < 0.02);
  CHECK(std::abs(error_at_ten(Process::requests_and_regimes, 4)) < 0.02);
  // Mutants: processes without stretches. Rates by depth continue with the last one; a single rate is too low at depth.
  CHECK(error_at_ten(Process::by_depth, 1) > 0.035);
  CHECK(error_at_ten(Process::constant, 1) < -0.03);
  CHECK(error_at_ten(Process::kept_state, 3) < -0.025);
}

TEST_CASE("a ratio over groups, by hand") {
  // Leaving out each group in turn: 4 / 2, 5 / 3 and 3 / 3; the jackknife's spread around their mean, with the ratio 6 / 4.
  const std::vector<double> y = {2, 1, 3};
  const std::vector<double> x = {2, 1, 1};
  const report::Estimate ratio = fit::ratio_of(y, x);
  CHECK(ratio.value == Approx(1.5));
  const double squares = std::pow(4.0 / 2 - 1.5, 2) + std::pow(5.0 / 3 - 1.5, 2) + std::pow(3.0 / 3 - 1.5, 2);
  CHECK(ratio.error == Approx(std::sqrt(2.0 / 3 * squares)));
  CHECK(ratio.freedom == Approx(16.0 / 6 - 1));
}

// Requests that accept half or nine tenths of their drafts; the longest are a hundred times as long as the shortest.
TEST_CASE("errors of ratios over groups cover the truth", "[.slow]") {
  std::mt19937_64 random(20261128);
  std::uniform_real_distribution<double> uniform(0.0, 1.0);
  tests::Coverage all;
  for (const int requests : {10, 40})
    for (const bool unequal : {false, true}) {
      tests::Coverage own;
      tests::Coverage apart;  // the mutant: rounds as independent
      for (int seed = 0; seed < 300; ++seed) {
        std::vector<double> tokens;
        std::vector<double> rounds;
        double accepted = 0.0;
        double total = 0.0;
        for (int i = 0; i < requests; ++i) {
          const double alpha = uniform(random) < 0.5 ? 0.5 : 0.9;
          const int length = unequal ? std::min(static_cast<int>(30.0 * std::pow(1.0 - uniform(random), -0.5)), 3000) : 60;
          int kept = 0;
          for (int round = 0; round < length; ++round) kept += uniform(random) < alpha ? 1 : 0;
          tokens.push_back(length + kept);
          rounds.push_back(length);
          accepted += kept;
          total += length;
        }
        const report::Estimate ratio = fit::ratio_of(tokens, rounds);
        own.add(ratio.value - 1.7, report::half_width(ratio));
        const double rate = accepted / total;
        apart.add(ratio.value - 1.7, 1.96 * std::sqrt(rate * (1.0 - rate) / total));
      }
      INFO(requests << " requests, unequal " << unequal << ": " << own.text() << "; rounds as independent " << apart.text());
      CHECK(own.right());
      CHECK_FALSE(apart.right());
      all.add(own);
    }
  INFO(all.text());
  CHECK(all.share() >= tests::kLeastCoverage);
  CHECK(all.share() <= tests::kMostCoverage);
}

}  // namespace specsim::process_fit_test
