// Estimates the time of a run from a short sample. Trees and fresh distributions differ by orders of magnitude, and no formula
// of their sizes predicts it.
#include "sim/experiments/run/runner.h"

#include <algorithm>
#include <ctime>
#include <map>
#include <optional>
#include <thread>

namespace specsim::run {

namespace {

constexpr std::size_t kSampledGroups = 6;      // at most so many sets of tables are built
constexpr std::size_t kSampledCells = 4;       // at most so many cells of each set are run
constexpr double kPreparationSeconds = 0.4;    // a longer preparation is cut short
constexpr double kSampleSeconds = 0.03;        // a sample of a cell ends after this time
constexpr std::uint32_t kSampledSequence = 4;  // rounds: a whole sequence with fresh distributions may take seconds

// Measures processor time of the program, which stops while other programs run. With wall time, one interruption of a sample of
// a hundredth of a second would inflate the estimate a hundredfold.
class Clock {
 public:
  [[nodiscard]] double seconds() const {
    return static_cast<double>(std::clock() - start_) / static_cast<double>(CLOCKS_PER_SEC);
  }

 private:
  std::clock_t start_ = std::clock();
};

// Counts the distributions as they are drawn, and stops the preparation if it takes too long.
class Watch final : public Observer {
 public:
  void see(int /*context*/, int /*depth*/, const verify::PositionDistributions& /*distributions*/,
           const decode::OutputClasses& /*classes*/) override {
    ++seen_;
    if (clock_.seconds() > kPreparationSeconds) stop_ = true;
  }
  void finish(const decode::Prepared& /*prepared*/) override {}
  [[nodiscard]] const std::atomic<bool>* stop() const { return &stop_; }
  [[nodiscard]] double seen() const { return seen_; }
  [[nodiscard]] double seconds() const { return clock_.seconds(); }

 private:
  Clock clock_;
  double seen_ = 0.0;
  std::atomic<bool> stop_{false};
};

// Seconds per round of the cell, or per request if it has requests.
double seconds_of_work(const spec::Cell& cell, const decode::Prepared& tables) {
  const std::uint32_t sequence = std::min(kSampledSequence, cell.sequence_rounds);
  const decode::Simulator simulator(spec::plan_of(cell), tables, spec::draw_key(cell), cell.draft_length(), sequence);
  const bool requests = cell.contexts->process->shape().ends();
  const std::uint64_t most = std::min(cell.work(), simulator.chunk_size());
  for (std::uint64_t work = std::min(most, requests ? std::uint64_t{1} : sequence);; work = std::min(most, 4 * work)) {
    decode::Counts counts = simulator.empty_counts();
    const Clock clock;
    simulator.run(0, work, counts);
    const double seconds = clock.seconds();
    if (seconds >= kSampleSeconds || work >= most) return seconds / static_cast<double>(work);
  }
}

// `wanted` of `count` indices, spread evenly.
std::vector<std::size_t> spread(std::size_t count, std::size_t wanted) {
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < std::min(count, wanted); ++i) places.push_back(i * count / std::min(count, wanted));
  return places;
}

}  // namespace

std::optional<double> measured_seconds(const std::vector<const spec::Cell*>& cells, unsigned threads) {
  std::map<std::string, std::vector<std::size_t>> by_key;
  for (std::size_t i = 0; i < cells.size(); ++i) by_key[cells[i]->preparation_key].push_back(i);
  std::vector<std::vector<std::size_t>> groups;
  for (auto& [key, members] : by_key) groups.push_back(std::move(members));
  double preparation = 0.0;
  std::map<std::size_t, double> sampled;  // [cell]: seconds for its work
  const std::vector<std::size_t> chosen = spread(groups.size(), kSampledGroups);
  for (const std::size_t at : chosen) {
    const spec::Cell& first = *cells[groups[at].front()];
    Watch watch;
    try {
      const decode::Prepared tables = prepare_cell(first, &watch, true, watch.stop());
      preparation += watch.seconds();
      for (const std::size_t i : spread(groups[at].size(), kSampledCells))
        sampled[groups[at][i]] = seconds_of_work(*cells[groups[at][i]], tables);
    } catch (const decode::Interrupted&) {
      const families::ContextShape& shape = first.contexts->process->shape();
      if (watch.seen() == 0.0) return std::nullopt;
      preparation += watch.seconds() * static_cast<double>(shape.contexts) * shape.depths / watch.seen();
    }
  }
  const unsigned cores = std::clamp(threads, 1U, std::max(1U, std::thread::hardware_concurrency()));
  // One thread makes the tables of a group. Other threads can only work on other groups.
  const double makers = std::min(static_cast<double>(cores), static_cast<double>(groups.size()));
  const double tables = preparation * static_cast<double>(groups.size()) / static_cast<double>(chosen.size()) / makers;
  // all samples were cut short: estimate the rounds from their sizes alone
  if (sampled.empty()) return tables + estimate(cells, cores).seconds;
  double rounds = 0.0;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const auto next = sampled.lower_bound(i);
    const double each = next == sampled.end() ? sampled.rbegin()->second : next->second;
    rounds += each * static_cast<double>(cells[i]->work());
  }
  return tables + rounds / cores;
}

}  // namespace specsim::run
