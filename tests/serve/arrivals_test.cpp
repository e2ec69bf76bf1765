// Send times of requests, compared with the distributions that arrival processes are named after.
#include "sim/serving/arrivals/arrivals.h"
#include "sim/foundation/rng/address.h"
#include "sim/serving/arrivals/lengths.h"
#include "tests/support/diagnostics.h"
#include "tests/support/tails.h"
#include "tests/support/temporary_file.h"

#include <catch2/catch.hpp>

#include <fmt/format.h>

#include <atomic>
#include <cmath>
#include <map>
#include <numeric>
#include <string>
#include <vector>

namespace specsim::arrivals_test {

namespace {

std::unique_ptr<arrivals::ArrivalProcess> make(const std::string& name, const std::string& parameters) {
  Diagnostics diagnostics;
  const arrivals::ArrivalsEntry* entry = arrivals::arrival_processes().find(name);
  REQUIRE(entry != nullptr);
  const config::Value section = config::parse_text(parameters, "t", diagnostics);
  const config::Arguments arguments = config::read_arguments(section, entry->info.parameters, {}, name, diagnostics);
  auto process = diagnostics.empty() ? entry->make(arguments, diagnostics) : nullptr;
  INFO(tests::all_messages(diagnostics));
  REQUIRE(process != nullptr);
  return process;
}

arrivals::RequestTrace filled(const arrivals::ArrivalProcess& process) {
  arrivals::RequestTrace trace;
  process.fill(trace, rng::make_key(3, 7));
  return trace;
}

// Lengths of the given number of requests; empty if `text` is refused.
std::vector<double> lengths(const std::string& text, std::size_t count) {
  Diagnostics diagnostics;
  const auto distribution = arrivals::read_lengths(config::parse_text(text, "t", diagnostics), "prompt", diagnostics);
  std::vector<double> all;
  for (std::size_t i = 0; distribution != nullptr && i < count; ++i) {
    rng::Stream random_bits(rng::make_key(5, 7), rng::Purpose::length, 0, i);
    all.push_back(distribution->draw(i, random_bits));
  }
  return all;
}

double mean(const std::vector<double>& all) {
  return std::accumulate(all.begin(), all.end(), 0.0) / static_cast<double>(all.size());
}

// The first error for a trace file with this text, or a summary of the trace.
std::string refusal(const std::string& text) {
  const tests::TemporaryFile file(text);
  Diagnostics diagnostics;
  const arrivals::ArrivalsEntry* entry = arrivals::arrival_processes().find("trace");
  const config::Value section = config::parse_text("{file: " + file.path() + "}", "t", diagnostics);
  const config::Arguments arguments = config::read_arguments(section, entry->info.parameters, {}, "trace", diagnostics);
  const auto process = entry->make(arguments, diagnostics);
  return process != nullptr ? "" : tests::all_messages(diagnostics);
}

// Seconds between requests, the first counted from the start.
std::vector<double> gaps(const arrivals::ArrivalProcess& process, std::uint64_t seed = 1) {
  arrivals::RequestTrace trace;
  process.fill(trace, rng::make_key(seed, 7));
  std::vector<double> all;
  arrivals::Picoseconds before = 0;
  for (const arrivals::Request& request : trace.requests) {
    all.push_back(static_cast<double>(request.due - before) / arrivals::kPicosecondsPerSecond);
    before = request.due;
  }
  return all;
}

// Two-sided p of the sum of gaps that are gamma distributed with this shape and mean 1 / rate: 2 shape rate sum is chi-squared
// with 2 n shape degrees.
double p_of_sum(const std::vector<double>& all, double rate, double shape) {
  double sum = 0.0;
  for (const double gap : all) sum += gap;
  const double above = tests::chi_square_tail(2.0 * shape * rate * sum, 2.0 * shape * static_cast<double>(all.size()));
  return 2.0 * std::min(above, 1.0 - above);
}

// p that single gaps have this distribution, by twenty equally likely classes.
double p_of_shape(const std::vector<double>& all, double rate, double shape) {
  std::vector<double> bins(20, 0.0);
  for (const double gap : all) {
    const double above = tests::chi_square_tail(2.0 * shape * rate * gap, 2.0 * shape);
    ++bins[std::min<std::size_t>(19, static_cast<std::size_t>(20.0 * above))];
  }
  return tests::chi_square_p(bins, static_cast<double>(all.size()) / 20.0);
}

}  // namespace

TEST_CASE("gamma and Poisson gaps have the stated rate and shape", "[arrivals][stat]") {
  // Mutants: a rate that is 2 % off, with a relative error of .25 % to .7 % of the mean of 40,000 gaps; the shape of another
  // process.
  constexpr int kRequests = 40000;
  const std::string more = fmt::format(", requests: {}}}", kRequests);
  for (const double shape : {4.0, 1.0, 0.5}) {
    CAPTURE(shape);
    const auto process = make("gamma", fmt::format("{{rate: 8, burstiness: {}", shape) + more);
    CHECK(process->requests() == kRequests);
    CHECK(p_of_sum(gaps(*process), 8.0, shape) > 1e-3);
    CHECK(p_of_sum(gaps(*process), 8.0 * 1.02, shape) < 1e-3 * (shape < 1.0 ? 10.0 : 1.0));
    CHECK(p_of_shape(gaps(*process), 8.0, shape) > 1e-3);
    CHECK(p_of_shape(gaps(*process), 8.0, 1.2 * shape) < 1e-9);
    CHECK(p_of_sum(gaps(*process->with_rate(3.0)), 3.0, shape) > 1e-3);
    CHECK(gaps(*process->with_requests(5)).size() == 5);
    CHECK(gaps(*process, 1) != gaps(*process, 2));
  }
  const auto poisson = make("poisson", "{rate: 8" + more);
  CHECK(p_of_sum(gaps(*poisson), 8.0, 1.0) > 1e-3);
  CHECK(p_of_shape(gaps(*poisson), 8.0, 1.0) > 1e-3);
  CHECK(p_of_sum(gaps(*poisson->with_rate(3.0)), 3.0, 1.0) > 1e-3);
}

TEST_CASE("rescaled arrivals send the last request at requests / rate", "[arrivals]") {
  for (const char* parameters :
       {"{rate: 8, burstiness: 0.3, requests: 400, rescaled: true}", "{rate: 8, requests: 400, rescaled: true}"}) {
    double sum = 0.0;
    for (const double gap : gaps(*make("gamma", parameters))) sum += gap;
    CHECK(sum == Approx(50.0).epsilon(1e-9));
  }
  for (const double gap : gaps(*make("deterministic", "{rate: 8, requests: 10}"))) CHECK(gap == Approx(0.125).epsilon(1e-9));
}

TEST_CASE("clients of a closed loop keep their pause and their rate at another concurrency", "[arrivals]") {
  const auto own = make("closed", "{concurrency: 4, requests: 10, think_ms: 250, rate: 5}");
  const auto more = own->with_concurrency(9);
  CHECK(filled(*own).concurrency == 4);
  CHECK(filled(*more).concurrency == 9);
  CHECK(filled(*more).think == 250'000'000'000);
  CHECK(static_cast<double>(filled(*more).requests.back().due) == Approx(2e12));  // ten requests at 5 per second
  CHECK(static_cast<double>(filled(*own->with_rate(20.0)).requests.back().due) == Approx(0.5e12));
  CHECK(filled(*own->with_requests(3)).requests.size() == 3);
  CHECK(make("closed", "{concurrency: 4, requests: 10}")->with_rate(1.0) == nullptr);
}

TEST_CASE("a rate that cycles through its levels has their time-weighted mean", "[arrivals][stat]") {
  // 10 per second for 1 s in the mean, then none for 3 s: 2.5 per second. 2,000 rounds of both leave an error of about 2.5 %, and
  // four of these are allowed. Mutants: time without requests is left out or counts backwards; the levels' times are exchanged.
  const auto own = make("markov_modulated", "{rates: [10, 0], holding_s: [1, 3], requests: 20000}");
  const auto faster = own->with_rate(5.0);
  CHECK(1.0 / mean(gaps(*own)) == Approx(2.5).epsilon(0.1));
  CHECK(1.0 / mean(gaps(*faster)) == Approx(5.0).epsilon(0.1));
  for (const double gap : gaps(*own)) CHECK_FALSE(gap < 0.0);
  CHECK(1.0 / mean(gaps(*own)) != Approx(7.5).epsilon(0.1));
  // Bursts: a gap that spans a pause is rare, and long.
  const std::vector<double> all = gaps(*own);
  double squares = 0.0;
  for (const double gap : all) squares += gap * gap;
  CHECK(squares / static_cast<double>(all.size()) > 4.0 * mean(all) * mean(all));  // 2 of a Poisson process
}

TEST_CASE("arrivals of changing levels stop being made when the run is stopped", "[arrivals]") {
  // Mutant: the flag is looked at between requests only, so that an interruption waits for all of them.
  const std::atomic<bool> stopped{true};
  arrivals::RequestTrace workload;
  workload.stop = &stopped;
  make("markov_modulated", "{rates: [10, 0], holding_s: [1, 3], requests: 20000}")->fill(workload, rng::make_key(3, 7));
  CHECK(workload.requests.back().due == 0);  // none was drawn
}

TEST_CASE("levels that send nothing are passed over together", "[arrivals][stat]") {
  // A request in 2e9 s at levels of a microsecond: drawn stay by stay it would take 1e15 draws. A run refuses such a late time
  // anyway.
  const auto rare = make("markov_modulated", "{rates: [0, 1e-9], holding_s: [1e-6, 1e-6], requests: 3}");
  CHECK(static_cast<double>(filled(*rare).requests.back().due) >= arrivals::kLongestRun * arrivals::kPicosecondsPerSecond);
  // Levels change so often that the gaps are exponential, with the time-weighted mean: (3e-3 * 1 + 0 * 2) / 3 per second. 250
  // gaps leave an error of 6.3 %, and four of these are allowed. Mutants: the time of one level is left out (1/3 or 2/3 of the
  // mean); the levels' times are exchanged (half of it). An additional round changes nothing.
  const auto often = make("markov_modulated", "{rates: [3e-3, 0], holding_s: [1e-3, 2e-3], requests: 250}");
  CHECK(mean(gaps(*often)) == Approx(1000.0).epsilon(0.25));
  const std::vector<double> all = gaps(*often);
  double squares = 0.0;
  for (const double gap : all) squares += gap * gap;
  CHECK(squares / static_cast<double>(all.size()) == Approx(2.0 * mean(all) * mean(all)).epsilon(0.75));
}

TEST_CASE("a trace's hashes are counted before there is room for them", "[arrivals]") {
  // The last range would be one too many; a single range has its own bound.
  const std::string head = "arrived_us,prompt,output,block_hashes\n";
  std::string text = head;
  for (int i = 0; i < 6; ++i) text += "0,99999999,1,0-6249999\n";
  CHECK(refusal(text).find("makes over 33554432 hashes of blocks") != std::string::npos);
  CHECK(refusal(head + "0,99999999,1,0-99999999\n").find("block_hashes is \"0-99999999\"") != std::string::npos);
}

TEST_CASE("a session's turns follow one another and repeat the conversation before them", "[arrivals]") {
  const auto own = make("sessions", "{rate: 2, requests: 3000, turns: 3, gap_s: 5, prefix: 32, prompt: 10, output: 22}");
  const arrivals::RequestTrace trace = filled(*own);
  REQUIRE(trace.requests.size() == 3000);
  std::vector<double> starts;
  std::vector<double> pauses;
  for (const arrivals::Request& request : trace.requests) {
    CHECK(request.output == 22);
    CHECK(request.hashes == request.hashed / 16);
    if (request.follows == 0) {
      CHECK(request.prompt == 42);
      starts.push_back(static_cast<double>(request.due));
      continue;
    }
    const arrivals::Request& before = trace.requests[request.follows - 1];
    CHECK(request.prompt == before.prompt + 22 + 10);
    CHECK(request.due > before.due);
    pauses.push_back(static_cast<double>(request.due - before.due) / 1e12);
    // Its blocks begin with those of the turn before: all except a partly filled one.
    for (std::uint32_t block = 0; block < before.hashes; ++block)
      CHECK(trace.hashes[request.first_hash + block] == trace.hashes[before.first_hash + block]);
  }
  CHECK(static_cast<double>(starts.size()) == Approx(1000).epsilon(0.02));  // the last sessions are cut
  CHECK(mean(pauses) == Approx(5.0).epsilon(0.1));                          // 2,000 exponential ones: 2.2 %
  CHECK((starts.back() - starts.front()) / 1e12 / static_cast<double>(starts.size() - 1) == Approx(0.5).epsilon(0.13));
  // Two sessions share the prefix's two blocks and nothing else.
  std::map<std::uint64_t, int> seen;
  for (const arrivals::Request& request : trace.requests)
    if (request.follows == 0)
      for (std::uint32_t block = 0; block < request.hashes; ++block) ++seen[trace.hashes[request.first_hash + block]];
  int shared = 0;
  for (const auto& [hash, count] : seen) shared += count > 1 ? 1 : 0;
  CHECK(shared == 2);
  CHECK(std::is_sorted(trace.requests.begin(), trace.requests.end(), [](const auto& a, const auto& b) { return a.due < b.due; }));
  CHECK(filled(*own->with_requests(7)).requests.size() == 7);
  // The stated range of rates ends at 1e9.
  const auto mistakes = [](const std::string& rate) {
    Diagnostics diagnostics;
    const config::Value section = config::parse_text("{rate: " + rate + ", prompt: 1, output: 1}", "t", diagnostics);
    config::read_arguments(section, arrivals::arrival_processes().find("sessions")->info.parameters, {}, "sessions", diagnostics);
    return diagnostics.list().size();
  };
  CHECK(mistakes("1e9") == 0);
  CHECK(mistakes("1.05e9") == 1);
}

TEST_CASE("lengths have the stated distributions", "[arrivals][stat]") {
  // Geometric: k with probability 1/7 x (6/7)^(k - 1). Mutants: a mean of another parameter, lengths from 0 on, the other tail.
  constexpr std::size_t kCount = 20000;
  std::vector<double> observed(21, 0.0);
  std::vector<double> expected(21, 0.0);
  for (const double k : lengths("{geometric: {mean: 7}}", kCount)) {
    REQUIRE(k >= 1.0);
    ++observed[std::min<std::size_t>(20, static_cast<std::size_t>(k) - 1)];
  }
  double left = kCount;
  for (std::size_t k = 0; k < 20; ++k) left -= expected[k] = kCount / 7.0 * std::pow(6.0 / 7.0, static_cast<double>(k));
  expected[20] = left;
  CHECK(tests::chi_square_p(observed, expected) > 1e-3);
  for (const double k : lengths("{geometric: {mean: 1}}", 10)) CHECK(k == 1.0);
  // Lognormal: the mean and the coefficient of variation; their errors are 1 % and 3 %.
  const std::vector<double> lognormal = lengths("{lognormal: {mean: 1000, cv: 1.2}}", kCount);
  double squares = 0.0;
  for (const double k : lognormal) squares += (k - 1000.0) * (k - 1000.0);
  CHECK(mean(lognormal) == Approx(1000.0).epsilon(0.035));
  CHECK(std::sqrt(squares / kCount) == Approx(1200.0).epsilon(0.12));
  // Uniform: each of 3 to 12 equally often.
  std::vector<double> dice(10, 0.0);
  for (const double k : lengths("{uniform: {from: 3, to: 12}}", kCount)) ++dice.at(static_cast<std::size_t>(k) - 3);
  CHECK(tests::chi_square_p(dice, kCount / 10.0) > 1e-3);
  CHECK(lengths("{list: [3, 1, 4]}", 7) == std::vector<double>{3, 1, 4, 3, 1, 4, 3});
  CHECK(lengths("17", 2) == std::vector<double>{17, 17});
  for (const char* wrong : {"{}", "{geometric: {mean: 7}, fixed: 3}", "{list: [0]}", "{list: [3, 1e9]}", "{bell: 3}"}) {
    CAPTURE(wrong);
    CHECK(lengths(wrong, 1).empty());
  }
}

TEST_CASE("recorded requests come at the times in their file, by the calendar", "[arrivals]") {
  // A leap day between, and a second after midnight: 2024-02-28 23:59:59.5 to 2024-03-01 00:00:00.75 is a day and 1.25 s.
  const tests::TemporaryFile file(
      "TIMESTAMP,ContextTokens,GeneratedTokens\n2024-02-28 23:59:59.5000000,10,3\n2024-03-01 00:00:00.7500000,20,4\n"
      "2024-03-01 00:59:60.0000000,30,5\n");
  const auto own = make("trace", "{file: " + file.path() + "}");
  const arrivals::RequestTrace trace = filled(*own);
  REQUIRE(trace.requests.size() == 3);
  CHECK(trace.requests[0].due == 0);
  CHECK(trace.requests[1].due == 86401'250'000'000'000);
  CHECK(trace.requests[2].due == 86400'500'000'000'000 + 3600 * 1'000'000'000'000);
  CHECK(trace.requests[1].prompt == 20);
  CHECK(trace.requests[1].output == 4);
  // At another rate the last is sent at requests / rate, and the others in proportion.
  const arrivals::RequestTrace faster = filled(*own->with_rate(0.5));
  CHECK(static_cast<double>(faster.requests[2].due) == Approx(6e12));
  CHECK(static_cast<double>(faster.requests[1].due) == Approx(6e12 * 86401.25 / 90000.5));

  const std::string azure = "TIMESTAMP,ContextTokens,GeneratedTokens\n";
  CHECK(refusal(azure + "2024-01-31 23:59:59,10,3\n").empty());
  CHECK(refusal(azure + "2023-02-29 00:00:00,10,3\n") != "");
  CHECK(refusal(azure + "2024-01-31 23:60:00,10,3\n") != "");
  CHECK(refusal(azure + "2024-01-01 00:00:00,10,3\n2024-02-15 00:00:00,10,3\n").empty());
  CHECK(refusal(azure + "2024-01-01 00:00:00,10,3\n2024-02-20 00:00:00,10,3\n") != "");  // longer than the limit of a run
  CHECK(refusal("arrived_us,prompt,output,priority\n0,10,3,-1000000000\n5,10,3,1000000000\n").empty());
  CHECK(refusal("arrived_us,prompt,output,priority\n0,10,3,-1000000001\n") != "");
  CHECK(refusal("arrived_us,prompt,output\n5,10,3\n5,10,3\n").empty());
  CHECK(refusal("arrived_us,prompt,output\n5,10,3\n4,10,3\n") != "");
  CHECK(refusal("{\"timestamp\": 0, \"input_length\": 10, \"output_length\": 3}\n").empty());
  CHECK(refusal("{\"timestamp\": 0, \"input_length\": 10.5, \"output_length\": 3}\n") != "");
}

TEST_CASE("recorded requests in the forms of others keep their times, lengths and shared prefixes", "[arrivals]") {
  const auto read = [](const std::string& text, const std::string& more = "") {
    const tests::TemporaryFile file(text);
    auto own = make("trace", "{file: " + file.path() + more + "}");
    REQUIRE(own != nullptr);
    return own;
  };
  // Qwen-Bailian's trace: seconds, and a hash per 16 tokens. Mutants: milliseconds, 1.5 ms; a hash per 512 tokens, refused.
  const auto bailian = read(
      R"({"chat_id": 0, "parent_chat_id": -1, "timestamp": 0.0, "input_length": 33, "output_length": 5, "type": "text", "turn": 1, "hash_ids": [7, 8, 9]}
{"chat_id": 1, "parent_chat_id": 0, "timestamp": 1.5, "input_length": 16, "output_length": 6, "type": "text", "turn": 2, "hash_ids": [7]}
)");
  const arrivals::RequestTrace chats = filled(*bailian);
  CHECK(chats.requests[1].due == 1'500'000'000'000);
  CHECK(chats.hash_tokens == 16);
  CHECK(chats.hashes == std::vector<std::uint64_t>{7, 8, 9, 7});
  CHECK(bailian->notes().empty());
  const auto images = read(R"({"chat_id": 0, "timestamp": 0.0, "input_length": 3, "output_length": 5, "type": "image"})");
  CHECK(images->notes().size() == 1);
  // Half a millisecond may be meant as half a second: a note reports it.
  const auto halves = read(
      "{\"timestamp\": 0, \"input_length\": 3, \"output_length\": 5}\n{\"timestamp\": 0.5, \"input_length\": 3, "
      "\"output_length\": 5}\n");
  REQUIRE(halves->notes().size() == 1);
  CHECK(halves->notes()[0].find("read as milliseconds") != std::string::npos);
  // AIPerf's sessions: a turn comes `delay` ms after the answer before, and repeats the whole conversation. 100 + 40 + 10 tokens;
  // in order of due.
  const arrivals::RequestTrace turns = filled(*read(
      R"({"session_id": "a", "timestamp": 0, "input_length": 100, "output_length": 40}
{"session_id": "a", "delay": 2000, "input_length": 10, "output_length": 7}
{"session_id": "b", "timestamp": 1000, "input_length": 50, "output_length": 4}
)"));
  REQUIRE(turns.requests.size() == 3);
  CHECK(turns.answers_first);
  CHECK(turns.requests[1].prompt == 50);
  CHECK(turns.requests[2].prompt == 150);
  CHECK(turns.requests[2].due == 2'000'000'000'000);
  CHECK(turns.requests[2].follows == 1);
  // The first 8 blocks of 140 tokens are those of the first turn and its answer; session b shares none.
  CHECK(turns.requests[2].hashes == 9);
  for (std::uint32_t i = 0; i < 8; ++i)
    CHECK(turns.hashes[turns.requests[2].first_hash + i] == turns.hashes[turns.requests[0].first_hash + i]);
  CHECK(turns.hashes[turns.requests[1].first_hash] != turns.hashes[turns.requests[0].first_hash]);
  // vLLM's custom data set: 28 bytes are 7 tokens. All come at once, or at a rate: the last of 400 after 200 s, within 4 standard
  // errors of 10 s.
  std::string custom;
  for (int i = 0; i < 400; ++i) custom += "{\"prompt\": \"What is the capital of Iran\\n\", \"output_tokens\": 12}\n";
  const arrivals::RequestTrace at_once = filled(*read(custom));
  CHECK(at_once.requests[399].due == 0);
  CHECK(at_once.requests[399].prompt == 7);
  CHECK(at_once.requests[399].output == 12);
  const arrivals::RequestTrace spread = filled(*read(custom, ", rate: 2"));
  CHECK(std::abs(static_cast<double>(spread.requests[399].due) - 200e12) < 40e12);
  CHECK(std::abs(static_cast<double>(filled(*read(custom)->with_rate(4.0)).requests[399].due) - 100e12) < 20e12);
  // A list of lengths as CSV, and columns that are ignored.
  CHECK(read("num_prefill_tokens,num_decode_tokens,pd_ratio\n10,3,3.3\n")->notes().size() ==
        1);  // a warning that it has no times
  const auto azure = read("TIMESTAMP,NumImages,ContextTokens,GeneratedTokens\n2024-05-12 00:00:00.003908+00:00,1,1452,5\n");
  REQUIRE(azure->notes().size() == 1);
  CHECK(azure->notes()[0].find("NumImages") != std::string::npos);
  CHECK(refusal("{\"session_id\": 1, \"delay\": -1, \"input_length\": 10, \"output_length\": 3}\n")
            .empty());  // its first turn has none
  CHECK(refusal("{\"session_id\": 1, \"input_length\": 10, \"output_length\": 3}\n{\"session_id\": 1, \"delay\": -1, "
                "\"input_length\": 10, "
                "\"output_length\": 3}\n") != "");
  CHECK(
      refusal("{\"timestamp\": 0, \"input_length\": 10, \"output_length\": 3}\n{\"input_length\": 10, \"output_length\": 3}\n") !=
      "");
}

}  // namespace specsim::arrivals_test
