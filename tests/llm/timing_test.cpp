// The method of timings, with invented times.
#include "sim/lab/llm/timing.h"

#include <catch2/catch.hpp>

#include <cmath>
#include <functional>
#include <random>
#include <vector>

namespace specsim::timing_test {

using llm::TimedTask;

TEST_CASE("a spread: quartiles, and outliers far beyond them", "[llm][timing]") {
  const llm::Quartiles s = llm::quartiles_of({5.0, 1.0, 2.0, 4.0, 3.0, 30.0, 2.5, 3.5, 3.0});
  CHECK(s.median == 3.0);
  CHECK(s.low == 2.5);
  CHECK(s.high == 4.0);
  CHECK(s.samples == 9);
  CHECK(s.outliers == 1);
  CHECK(llm::quartiles_of({2.0, 4.0}).median == 3.0);
  CHECK(std::isnan(llm::quartiles_of({2.0}).median_error()));  // mutant: 0, an interval without data
}

TEST_CASE("a median's error is the deviation of medians, of few samples too", "[llm][timing]") {
  std::mt19937_64 random(5);
  std::normal_distribution<double> normal(10.0, 2.0);
  for (const std::size_t size : {2U, 3U, 7U, 25U}) {
    constexpr int kSets = 20000;
    double errors = 0.0;
    double squares = 0.0;
    for (int i = 0; i < kSets; ++i) {
      std::vector<double> samples(size);
      for (double& x : samples) x = normal(random);
      const llm::Quartiles s = llm::quartiles_of(samples);
      errors += s.median_error() / kSets;
      squares += (s.median - 10.0) * (s.median - 10.0) / kSets;
    }
    CAPTURE(size);
    CHECK(errors / std::sqrt(squares) > 0.97);
    CHECK(errors / std::sqrt(squares) < 1.24);  // a median of two is a mean: 1.20
    if (size > 3) continue;
    // Mutant: the quartiles of many samples, 1.349 apart, used for few as well.
    const double blom = size == 2 ? 0.5895 : 0.846;
    CHECK(errors * blom / 1.349 / std::sqrt(squares) < 0.75);
  }
}

TEST_CASE("a run's error: a slowdown of a whole repetition is no error of a speedup", "[llm][timing]") {
  // Decoding without speculation takes two rounds of 1 s, with speculation one of 1.5 s; only the target's part takes time.
  llm::RunGroup group;
  group.runs.resize(2);
  group.runs[0] = {.draft_length = 0, .rounds = {{}, {}}, .emitted = 2};
  group.runs[1] = {.draft_length = 1, .rounds = {{}}, .emitted = 2};
  const auto task = [](const std::vector<double>& plain, const std::vector<double>& other) {
    llm::TimedTask made;
    made.parts.assign(12, std::vector<double>(plain.size(), 0.0));
    made.parts[2] = made.parts[6] = plain;
    made.parts[10] = other;
    return made;
  };
  const llm::TimedTask together = task({1.0, 1.2, 3.0}, {1.5, 1.8, 4.5});
  const llm::TimedRun plain = llm::timed_run(group, together, 0);
  const llm::TimedRun other = llm::timed_run(group, together, 1);
  CHECK(plain.seconds == Approx(2.4));
  CHECK(other.typical.target == Approx(1.8));
  CHECK(plain.error() > 0.1);
  const llm::Speedup speedup = llm::speedup_of(group, plain, other, 1);
  CHECK(speedup.value == Approx(2.4 / 1.8));
  CHECK(speedup.error < 1e-12);  // mutant: repetitions that are drawn separately for each run
  // Two repetitions drawn from 1 and 3: their median is 1, 2, 3 with probabilities 1/4, 1/2, 1/4; twice, for two rounds.
  const llm::TimedTask two = task({1.0, 3.0}, {1.0, 1.0});
  CHECK(llm::timed_run(group, two, 0).error() == Approx(2.0 * std::sqrt(0.5)).epsilon(0.15));
  CHECK(llm::speedup_of(group, llm::timed_run(group, two, 0), llm::timed_run(group, two, 1), 1).error ==
        Approx(2.0 * std::sqrt(0.5)).epsilon(0.15));
  CHECK(std::isnan(llm::timed_run(group, task({1.0}, {1.0}), 0).error()));
}

TEST_CASE("tasks are run in turn, once more than they are counted", "[llm][timing]") {
  std::vector<int> calls(3, 0);
  std::vector<TimedTask> tasks;
  for (std::size_t i = 0; i < calls.size(); ++i)
    tasks.push_back({"", [&calls, i] {
                       for (const int other : calls) CHECK(calls[i] <= other);  // no thread runs ahead of the others
                       ++calls[i];
                       return std::vector<double>{1.0 * calls[i], 10.0};
                     }});
  llm::interleave(tasks, 4, {});
  for (const TimedTask& task : tasks)
    CHECK(task.parts == std::vector<std::vector<double>>{{2.0, 3.0, 4.0, 5.0}, {10.0, 10.0, 10.0, 10.0}});
}

TEST_CASE("a repetition that was kept is not run again", "[llm][timing]") {
  int calls = 0;
  std::vector<TimedTask> tasks = {{"", [&calls] { return std::vector<double>{1.0 * ++calls}; }}};
  std::vector<double> handed_over;
  llm::interleave(tasks, 3, {},
                  {[](int repetition, std::size_t) { return repetition == 1 ? std::vector<double>{7.0} : std::vector<double>(); },
                   [&](int, std::size_t, const std::vector<double>& samples) { handed_over.push_back(samples.at(0)); }});
  CHECK(tasks[0].parts == std::vector<std::vector<double>>{{2.0, 7.0, 3.0}});  // the first call warms up
  CHECK(handed_over == std::vector<double>{2.0, 3.0});
}

TEST_CASE("a dip from noise disappears with more timings, a real one stays", "[llm][timing]") {
  int slow = 4;  // calls of the disturbed first pass: the warm-up and all three counted ones
  int others = 0;
  std::vector<TimedTask> tasks = {{"", [&slow] { return std::vector<double>{slow-- > 0 ? 3.0 : 1.0}; }},
                                  {"", [] { return std::vector<double>{1.5}; }},
                                  {"", [] { return std::vector<double>{1.2}; }},
                                  {"", [&others] {
                                     ++others;
                                     return std::vector<double>{0.5};
                                   }}};
  llm::interleave(tasks, 3, {});
  const auto rows = [&] {
    const std::vector<std::pair<std::string, std::size_t>> points = {{"target", 1}, {"target", 2}, {"target", 4}, {"draft", 1}};
    std::vector<llm::PassRow> all;
    for (std::size_t i = 0; i < tasks.size(); ++i)
      all.push_back({points[i].first, points[i].second, 1, 0, i, tasks[i].parts.at(0)});
    return all;
  };
  CHECK(rows()[0].seconds() == 3.0);
  const std::vector<llm::PassRow> settled = llm::remeasure_dips(rows, tasks, 3);
  CHECK(settled[0].seconds() == 1.0);
  CHECK(settled[1].seconds() == 1.5);
  CHECK(settled[2].seconds() == 1.2);  // 20 % below, each time
  CHECK(tasks[2].parts[0].size() == 12);
  CHECK(others == 4);  // none is less than the other in all parts: another model's pass is no measure
}

}  // namespace specsim::timing_test
