// Reliable timing on a noisy machine: everything to be compared is run in turn, many times, and the median of its times is used.
#pragma once

#include "sim/foundation/base/huge_array.h"
#include "sim/foundation/base/token.h"
#include "sim/lab/llm/thread_team.h"

#include <functional>
#include <string>
#include <vector>

namespace specsim::llm {

enum class Clock { wall, cpu };         // cpu: of the whole process, for one thread on a machine that has other work
[[nodiscard]] double now(Clock clock);  // seconds

struct Quartiles {
  double median = 0.0;
  double low = 0.0;  // quartiles
  double high = 0.0;
  std::size_t samples = 0;
  std::size_t outliers = 0;  // further from the quartiles than three times their distance

  // Standard error of the median, estimated from the quartiles as for normal samples. NaN for one sample.
  [[nodiscard]] double median_error() const;
};
[[nodiscard]] Quartiles quartiles_of(std::vector<double> samples);

// A task to time: every call does the same and returns the seconds of each of its parts.
struct TimedTask {
  std::string name;
  std::function<std::vector<double>()> run;
  std::vector<std::vector<double>> parts = {};  // [part][repetition]
};

// Samples that are kept longer than the process, so that a killed run can resume.
struct SampleStore {
  std::function<std::vector<double>(int repetition, std::size_t task)> kept;  // empty: not timed yet
  std::function<void(int repetition, std::size_t task, const std::vector<double>&)> keep;
};

// 0 .. count - 1 in a random order, which differs for each purpose and call.
[[nodiscard]] std::vector<std::size_t> shuffled(std::size_t count, const char* purpose, std::uint64_t call);
// Distinct tokens, so that no row of the embedding stays in a cache.
[[nodiscard]] std::vector<Token> filler_text(std::size_t count, std::size_t vocab);

// One round to warm up, then `repetitions` rounds over all tasks, each round in another order.
void interleave(std::vector<TimedTask>& tasks, int repetitions, const std::function<void(double done, double all)>& progress,
                const SampleStore& store = {});

// Reads far more memory than caches hold, once, with all threads.
class MemoryReader {
 public:
  MemoryReader(ThreadTeam& team, std::size_t bytes);
  [[nodiscard]] std::size_t bytes() const { return memory_.size() * sizeof(std::uint64_t); }
  void read();

 private:
  ThreadTeam& team_;
  HugeArray memory_;
};

}  // namespace specsim::llm
