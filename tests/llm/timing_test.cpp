// How timings are taken, with made-up times.
#include "sim/llm/timing.h"

#include <catch2/catch.hpp>

#include <functional>
#include <vector>

using namespace specsim;
using llm::Job;
using llm::PassPoint;

TEST_CASE("a spread: quartiles, and what lies far beyond them", "[llm][timing]") {
  const llm::Spread s = llm::spread({5.0, 1.0, 2.0, 4.0, 3.0, 30.0, 2.5, 3.5, 3.0});
  CHECK(s.median == 3.0);
  CHECK(s.low == 2.5);
  CHECK(s.high == 4.0);
  CHECK(s.samples == 9);
  CHECK(s.outliers == 1);
  CHECK(llm::spread({2.0, 4.0}).median == 3.0);
}

TEST_CASE("jobs are run in turn, once more than they are counted", "[llm][timing]") {
  std::vector<int> calls(3, 0);
  std::vector<Job> jobs;
  for (std::size_t i = 0; i < calls.size(); ++i)
    jobs.push_back({"", [&calls, i] {
                      for (const int other : calls) CHECK(calls[i] <= other);  // none runs ahead of the others
                      ++calls[i];
                      return std::vector<double>{1.0 * calls[i], 10.0};
                    }});
  llm::interleave(jobs, 4, {});
  for (const Job& job : jobs)
    CHECK(job.parts == std::vector<std::vector<double>>{{2.0, 3.0, 4.0, 5.0}, {10.0, 10.0, 10.0, 10.0}});
}

TEST_CASE("a dip that is noise is timed away, one that is real stays", "[llm][timing]") {
  const std::vector<PassPoint> points = {{.tokens = 1}, {.tokens = 2}, {.tokens = 4}, {.role = cost::Role::draft}};
  int slow = 4;  // calls of the first pass that something disturbed: the warm-up and all three that counted
  int others = 0;
  std::vector<Job> jobs = {{"", [&slow] { return std::vector<double>{slow-- > 0 ? 3.0 : 1.0}; }},
                           {"", [] { return std::vector<double>{1.5}; }},
                           {"", [] { return std::vector<double>{1.2}; }},
                           {"", [&others] {
                              ++others;
                              return std::vector<double>{0.5};
                            }}};
  llm::interleave(jobs, 3, {});
  const auto median = [&](std::size_t i) { return llm::spread(jobs[i].parts.at(0)).median; };
  CHECK(median(0) == 3.0);
  llm::settle_dips(points, jobs, 3);
  CHECK(median(0) == 1.0);
  CHECK(median(1) == 1.5);
  CHECK(median(2) == 1.2);  // 20 % below, each time
  CHECK(jobs[2].parts[0].size() == 12);
  CHECK(others == 4);  // nothing less than it, nothing it is less than: another model's pass is no measure
}
