#include "sim/lab/llm/measure.h"

#include "sim/foundation/base/check.h"
#include "sim/foundation/base/error.h"
#include "sim/foundation/base/wide.h"
#include "sim/foundation/math/quantiles.h"
#include "sim/foundation/rng/address.h"
#include "sim/lab/llm/kernels.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <ctime>
#include <limits>
#include <numeric>

namespace specsim::llm {

double now(Clock clock) {
  timespec time{};
  clock_gettime(clock == Clock::wall ? CLOCK_MONOTONIC : CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

Quartiles quartiles_of(std::vector<double> samples) {
  SPECSIM_CHECK(!samples.empty(), "no sample");
  std::sort(samples.begin(), samples.end());
  const auto quantile = [&](double share) { return math::sample_quantile(samples, share); };
  Quartiles s{.median = quantile(0.5), .low = quantile(0.25), .high = quantile(0.75), .samples = samples.size(), .outliers = 0};
  const double reach = 3.0 * (s.high - s.low);
  for (const double x : samples)
    if (x < s.low - reach || x > s.high + reach) ++s.outliers;
  return s;
}

double Quartiles::median_error() const {
  constexpr double kMedianToMean = 1.2533;  // the standard error of many normal samples' median over that of their mean
  if (samples < 2) return std::numeric_limits<double>::quiet_NaN();
  // The expected upper quartile of this many normal samples, in standard deviations. For few samples it is closer to the median
  // than the distribution's. Order statistics by Blom's formula, interpolated as in quartiles_of().
  const auto n = static_cast<double>(samples);
  const auto blom = [&](double place) {  // from 0
    return math::normal_quantile((place + 0.625) / (n + 0.25));
  };
  const double place = 0.75 * (n - 1.0);
  const double below = std::floor(place);
  const double quartile = blom(below) + (place - below) * (blom(below + 1.0) - blom(below));
  return kMedianToMean * (high - low) / (2.0 * quartile) / std::sqrt(n);
}

std::vector<std::size_t> shuffled(std::size_t count, const char* purpose, std::uint64_t call) {
  rng::Stream random(rng::make_key(0, rng::hash_text(purpose)), rng::Purpose::start, 0, call);
  std::vector<std::size_t> order(count);
  std::iota(order.begin(), order.end(), std::size_t{0});
  for (std::size_t i = count; i > 1; --i) std::swap(order[i - 1], order[scale_bits(random(), i)]);
  return order;
}

std::vector<Token> filler_text(std::size_t count, std::size_t vocab) {
  std::vector<Token> tokens(count);
  for (std::size_t i = 0; i < count; ++i) tokens[i] = static_cast<Token>((i * 7919 + 13) % vocab);
  return tokens;
}

void interleave(std::vector<TimedTask>& tasks, int repetitions, const std::function<void(double, double)>& progress,
                const SampleStore& store) {
  const double all = static_cast<double>(tasks.size()) * (repetitions + 1);
  double done = 0.0;
  std::vector<std::size_t> parts(tasks.size());
  for (int repetition = -1; repetition < repetitions; ++repetition) {
    for (const std::size_t index : shuffled(tasks.size(), "order of tasks", static_cast<std::uint64_t>(repetition) + 1)) {
      TimedTask& task = tasks[index];
      std::vector<double> seconds;
      if (repetition >= 0 && store.kept) seconds = store.kept(repetition, index);
      if (seconds.empty()) {
        seconds = task.run();
        if (repetition >= 0 && store.keep) store.keep(repetition, index, seconds);
        if (repetition < 0) parts[index] = seconds.size();
      }
      if (seconds.size() != parts[index])
        throw BadInput({"", 0, 0},
                       fmt::format("{} has {} recorded timings and {} now, allowed: to resume the run that was stopped, on the "
                                   "same files, or to start over",
                                   task.name, seconds.size(), parts[index]));
      if (repetition >= 0) {
        task.parts.resize(seconds.size());
        for (std::size_t part = 0; part < seconds.size(); ++part) task.parts[part].push_back(seconds[part]);
      }
      if (progress) progress(++done, all);
    }
  }
}

MemoryReader::MemoryReader(ThreadTeam& team, std::size_t bytes) : team_(team), memory_(bytes / sizeof(std::uint64_t)) {
  constexpr std::size_t kPageWords = 512;
  for (std::size_t i = 0; i < memory_.size(); i += kPageWords)
    memory_.data()[i] = i;  // pages that were never written have no memory
}

void MemoryReader::read() {
  std::atomic<std::uint64_t> sum{0};
  constexpr std::size_t kGrain = 1 << 16;
  team_.split(memory_.size(), kGrain, [&](std::size_t first, std::size_t last) {
    sum += read_all({memory_.data() + first, last - first});
  });
  SPECSIM_CHECK(sum.load() > 0, "memory reads as zero");  // and the compiler keeps the loop
}

}  // namespace specsim::llm
