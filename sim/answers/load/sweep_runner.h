// Runs a sweep on several threads: each point's replications, except those that an earlier process has finished.
#pragma once

#include "sim/answers/load/experiment.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace specsim::load {

// The experiment with the random numbers of one of its replications. The first replication has the experiment's own. No other
// seed's run shares the numbers of the others.
ServeExperiment replicated(ServeExperiment experiment, std::size_t replication);

class SweepRunner {
 public:
  struct Options {
    int replications = 1;  // runs per point with different seeds, the same for all points
    unsigned threads = 1;
    const std::atomic<bool>* stop = nullptr;
    std::function<void(std::size_t finished)> progress;   // never called concurrently
    bool capacity = true;                                 // find the server's saturated rate, by a separate run that may be long
    std::function<void(double share)> capacity_progress;  // finished share of that run; never called concurrently
    // Returns a run's known result; receives the result of a run that has just ended. Called from worker threads, one at a time.
    // Points are numbered in the order in which they are run.
    std::function<std::optional<serve::Summary>(std::uint64_t point, std::uint64_t replication)> known;
    std::function<void(std::uint64_t point, std::uint64_t replication, const serve::Summary& summary)> done;
  };
  explicit SweepRunner(Options setting) : setting_(std::move(setting)) {}

  // [point][replication]. Speculating points may differ only in their load and number of requests, since they share one
  // acceptance. After a stop, missing results are empty.
  std::vector<std::vector<serve::Summary>> run(const std::vector<ServeExperiment>& points);
  [[nodiscard]] const Options& setting() const { return setting_; }
  [[nodiscard]] bool stopped() const { return setting_.stop != nullptr && setting_.stop->load(); }

 private:
  Options setting_;
  std::uint64_t points_ = 0;  // points of earlier calls
  std::atomic<std::size_t> finished_ = 0;
};

// A summary as text, exact to the bit, and back; nullopt for invalid text.
std::string pack_summary(const serve::Summary& summary);
std::optional<serve::Summary> unpack_summary(std::string_view text);

}  // namespace specsim::load
