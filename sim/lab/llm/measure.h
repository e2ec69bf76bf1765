// Timing that can be trusted on a noisy machine: everything that is compared is run in turn, over and over, and the middle of
// its times is taken.
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
  std::size_t outliers = 0;  // beyond the quartiles by more than three times their distance

  // Standard error of the median, as far as the quartiles of normal samples tell it. Of one sample: not a number.
  [[nodiscard]] double median_error() const;
};
[[nodiscard]] Quartiles quartiles_of(std::vector<double> samples);

// Something to time: every call does the same and returns the seconds of each of its parts.
struct TimedTask {
  std::string name;
  std::function<std::vector<double>()> run;
  std::vector<std::vector<double>> parts = {};  // [part][repetition]
};

// Samples that outlive the process, so that a run that was killed goes on.
struct SampleStore {
  std::function<std::vector<double>(int repetition, std::size_t task)> kept;  // empty: not timed yet
  std::function<void(int repetition, std::size_t task, const std::vector<double>&)> keep;
};

// 0 .. count - 1 in a random order, another one for each purpose and call.
[[nodiscard]] std::vector<std::size_t> shuffled(std::size_t count, const char* purpose, std::uint64_t call);
// Tokens that differ, so that no row of the embedding stays in a register.
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
