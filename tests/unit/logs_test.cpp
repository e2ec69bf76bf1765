// Lines of servers' logs as counts, and values derived from counts, each calculated by hand.
#include "sim/serving/logs/findings.h"
#include "sim/serving/logs/server_log.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <string>

namespace specsim::logs_test {

namespace {

logs::ReportedAcceptance read(const std::string& text) {
  logs::LogReader reader;
  reader.add_text(text);
  const logs::LogContents contents = reader.finish();
  REQUIRE(contents.found.size() == 1);
  CHECK(contents.unread == 0);
  return contents.found[0];
}

const logs::Check* check_named(const logs::Findings& findings, const std::string& what) {
  const auto found =
      std::find_if(findings.checks.begin(), findings.checks.end(), [&](const logs::Check& one) { return one.what == what; });
  return found == findings.checks.end() ? nullptr : &*found;
}

bool holds(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("a line of vLLM: rounds, accepted tokens and the tokens that were judged", "[logs]") {
  // Ten rounds of two drafts: nine accepted the first, seven both. The judged tokens are 16 accepted ones and one rejected token
  // in each of the three rounds that did not accept all.
  const auto all = read(
      "SpecDecoding metrics: Mean acceptance length: 2.60, Accepted: 16 tokens, Drafted: 20 tokens, Per-position acceptance "
      "rate: "
      "0.900, 0.700, Avg Draft acceptance rate: 80.0%");
  CHECK(all.draft_length == 2);
  CHECK(all.drafts_whole);
  CHECK(all.accepted_at == std::vector<double>{9, 7});
  REQUIRE(all.samples.size() == 1);
  CHECK(all.samples[0].rounds == 10.0);
  CHECK(all.samples[0].accepted == 16.0);
  CHECK(all.samples[0].judged == 19.0);
  CHECK(all.contradictions == 0);
}

TEST_CASE("if drafts were cut short, the rates determine the number of rounds", "[logs]") {
  // 643 tokens and a length of 2.29 fit 497 to 500 rounds; of these only 500 gives whole numbers for .716, .428 and .142.
  const auto all = read(
      "SpecDecoding metrics: Mean acceptance length: 2.29, Accepted: 643 tokens, Drafted: 1200 tokens, Per-position acceptance "
      "rate: 0.716, 0.428, 0.142, Avg Draft acceptance rate: 53.6%");
  CHECK(all.rounds == 500.0);
  CHECK(all.accepted_at == std::vector<double>{358, 214, 71});
  CHECK_FALSE(all.drafts_whole);
}

TEST_CASE("a line of SGLang has the weight of the rounds of its requests and interval", "[logs]") {
  // 4 requests for 40 steps, each of 2.5 tokens: 160 rounds, 240 accepted tokens.
  const auto all =
      read("Decode batch. #running-req: 4, #token: 2041, token usage: 0.06, accept len: 2.50, gen throughput (token/s): 9");
  CHECK(all.rounds == 160.0);
  CHECK(all.accepted == 240.0);
  CHECK_FALSE(all.rounds_counted);
  REQUIRE(all.samples.size() == 1);
  CHECK(all.samples[0].rounds == 160.0);
  CHECK(all.samples[0].accepted == 240.0);
  CHECK(all.samples[0].judged == 0.0);
}

TEST_CASE("totals of llama.cpp are what they grew by, line by line", "[logs]") {
  const auto all = read(
      "statistics draft-mtp: #gen drafts = 10, #acc drafts = 9, #gen tokens = 20, #acc tokens = 15, #acc rate/pos = (0.9, 0.6)\n"
      "statistics draft-mtp: #gen drafts = 30, #acc drafts = 27, #gen tokens = 60, #acc tokens = 45, #acc rate/pos = (0.9, "
      "0.6)\n");
  CHECK(all.rounds == 30.0);
  CHECK(all.drafted == 60.0);
  CHECK(all.accepted == 45.0);
  CHECK(all.accepted_at == std::vector<double>{27, 18});
  REQUIRE(all.samples.size() == 2);
  CHECK(all.samples[1].rounds == 20.0);
  CHECK(all.samples[1].accepted == 30.0);
}

TEST_CASE("steps of TensorRT-LLM that say neither requests nor a length count no rounds", "[logs]") {
  const auto counted = read(
      R"({"iter": 2, "specDecodingStats": {"numDraftTokens": 20, "numAcceptedTokens": 15, "numRequestsWithDraftTokens": 5, "acceptanceLength": 4.0}})");
  CHECK(counted.rounds == 5.0);
  CHECK(counted.rounds_counted);
  const auto derived =
      read(R"({"iter": 2, "specDecodingStats": {"numDraftTokens": 20, "numAcceptedTokens": 15, "acceptanceLength": 4.0}})");
  CHECK(derived.rounds == 5.0);  // 15 / (4 - 1)
  const auto silent = read(R"({"iter": 2, "specDecodingStats": {"numDraftTokens": 20, "numAcceptedTokens": 15}})");
  CHECK(silent.rounds == 0.0);
  CHECK_FALSE(silent.rounds_counted);
}

TEST_CASE("a report of trtllm-bench that fits several draft lengths reports none", "[logs]") {
  // Nothing was accepted: every draft length makes a rate of 0 a length of 1.
  const auto none =
      read("Number of requests: 4\n[DT] AVERAGE: 12.00\n[ADT] AVERAGE: 0.00\n[DAR] AVERAGE: 0.00\n[AL] AVERAGE: 1.00\n");
  CHECK(none.draft_length == 0);
  CHECK_FALSE(none.rounds_counted);
  CHECK(none.drafted == 48.0);
  // Half of three: 1 + 3 x .5. Rounds of a request: 12 / 3.
  const auto three =
      read("Number of requests: 4\n[DT] AVERAGE: 12.00\n[ADT] AVERAGE: 6.00\n[DAR] AVERAGE: 0.50\n[AL] AVERAGE: 2.50\n");
  CHECK(three.draft_length == 3);
  CHECK(three.drafts_whole);
  CHECK(three.rounds == 16.0);
  CHECK(three.accepted == 24.0);
  // The longest draft length that is searched, which the median request's draft tokens distinguish from its neighbours.
  const auto longest = read(
      "Number of requests: 1\n[DT] AVERAGE: 128.00\n[DT] P50 : 128.00\n[ADT] AVERAGE: 64.00\n[DAR] AVERAGE: 0.50\n[AL] AVERAGE: "
      "65.00\n");
  CHECK(longest.draft_length == 128);
}

TEST_CASE("a benchmark's report that contradicts itself is reported with both values", "[logs]") {
  // 100 drafts of 2, 150 accepted: 2.5, and rates that sum to .9 + .8.
  const auto all = read(
      "---------------Speculative Decoding---------------\nAcceptance rate (%): 75.00\nAcceptance length: 2.50\nDrafts: "
      "100\nDraft "
      "tokens: 200\nAccepted tokens: 150\nPer-position acceptance (%):\n  Position 0: 90.00\n  Position 1: 80.00\n"
      "==================================================\n");
  CHECK(all.contradictions == 1);
  CHECK(holds(all.first_contradiction, "acceptance length 2.50, but rates that add up to 2.700"));
}

TEST_CASE("alpha of tokens that were judged each for itself has a binomial's interval", "[logs]") {
  // 600 of 1000: .6, and 1.96 times the square root of .6 x .4 / 1000 = .030364 to each side.
  logs::ReportedAcceptance all;
  all.kind = logs::LogKind::vllm_v0_log;
  all.draft_length = 3;
  all.drafted = 1000.0;
  all.alone_accepted = 600.0;
  const logs::Findings findings = logs::find(all);
  CHECK(findings.alpha.value == Approx(0.6));
  CHECK(findings.alpha.low == Approx(0.6 - 0.030364).epsilon(1e-5));
  CHECK(findings.alpha.high == Approx(0.6 + 0.030364).epsilon(1e-5));
  CHECK_FALSE(findings.mean_length.known());
}

TEST_CASE("one alpha for all positions is tested by chi-squared with one degree less than positions", "[logs]") {
  // 70 of 100 and 38 of 70, together .635294: squares of 6.4706 over 23.170 and over 16.219 add up to 4.389, whose p is .036 with
  // one degree of freedom. Mutants: two or three degrees, p above .1.
  logs::ReportedAcceptance all;
  all.draft_length = 2;
  all.drafts_whole = true;
  all.rounds = 100.0;
  all.drafted = 200.0;
  all.accepted = 108.0;
  all.accepted_at = {70.0, 38.0};
  const logs::Findings unlike = logs::find(all);
  const logs::Check* alpha = check_named(unlike, "one alpha for all positions");
  REQUIRE(alpha != nullptr);
  CHECK_FALSE(alpha->holds);
  CHECK(holds(alpha->told, "p = 0.036"));
  // Alpha over both: 108 accepted of the 100 + 70 judged.
  CHECK(unlike.alpha.value == Approx(108.0 / 170.0));
  CHECK(unlike.mean_length.value == Approx(2.08));
  CHECK(unlike.acceptance_rate.value == Approx(0.54));
  CHECK(unlike.conditional_rates[1] == Approx(38.0 / 70.0));
  // 70 and 49: the same rate twice.
  all.accepted_at = {70.0, 49.0};
  all.accepted = 119.0;
  const logs::Findings alike = logs::find(all);
  alpha = check_named(alike, "one alpha for all positions");
  REQUIRE(alpha != nullptr);
  CHECK(alpha->holds);
}

TEST_CASE("a draft length from the user is compared with the one in the log", "[logs]") {
  logs::ReportedAcceptance all;
  all.draft_length = 2;
  all.rounds = 100.0;
  all.drafted = 200.0;
  all.accepted = 108.0;
  CHECK(check_named(logs::find(all, 2), "draft length") == nullptr);
  CHECK(check_named(logs::find(all, 0), "draft length") == nullptr);
  const logs::Findings other = logs::find(all, 3);
  const logs::Check* told = check_named(other, "draft length");
  REQUIRE(told != nullptr);
  CHECK_FALSE(told->holds);
  CHECK(other.draft_length == 2);
  // If the lines do not give it, the user's value applies.
  all.draft_length = 0;
  CHECK(logs::find(all, 4).draft_length == 4);
  CHECK(logs::find(all, 0).draft_length == 2);  // 200 drafted in 100 rounds
}

}  // namespace specsim::logs_test
