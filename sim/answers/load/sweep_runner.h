// The runs of a sweep on several threads: each point's replications, and what an earlier process has finished of them.
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

// The experiment with the random numbers of one of its replications. The first has the experiment's own; the others' are shared
// by no run of another seed.
ServeExperiment replicated(ServeExperiment experiment, std::size_t replication);

class SweepRunner {
 public:
  struct Options {
    int replications = 1;  // runs of every point, with seeds of their own, the same for all points
    unsigned threads = 1;
    const std::atomic<bool>* stop = nullptr;
    std::function<void(std::size_t finished)> progress;  // one call at a time
    bool capacity = true;  // what the server completes when saturated is looked for, by a run of its own, which may be long
    std::function<void(double share)> capacity_progress;  // share of that run that is done; one call at a time
    // What is known of a run already, and a run that has just ended; called from worker threads, one at a time. Points are
    // numbered in the order in which they are run.
    std::function<std::optional<serve::Summary>(std::uint64_t point, std::uint64_t replication)> known;
    std::function<void(std::uint64_t point, std::uint64_t replication, const serve::Summary& summary)> done;
  };
  explicit SweepRunner(Options setting) : setting_(std::move(setting)) {}

  // [point][replication]. Those of `points` that speculate must differ in their load and their number of requests alone: they
  // share one acceptance. After a stop what is missing is empty.
  std::vector<std::vector<serve::Summary>> run(const std::vector<ServeExperiment>& points);
  [[nodiscard]] const Options& setting() const { return setting_; }
  [[nodiscard]] bool stopped() const { return setting_.stop != nullptr && setting_.stop->load(); }

 private:
  Options setting_;
  std::uint64_t points_ = 0;  // points that were run before
  std::atomic<std::size_t> finished_ = 0;
};

// A summary as text, every bit of it, and back; nullopt for what is none.
std::string pack_summary(const serve::Summary& summary);
std::optional<serve::Summary> unpack_summary(std::string_view text);

}  // namespace specsim::load
