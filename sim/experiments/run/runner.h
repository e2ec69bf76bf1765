// Runs every cell of a family of experiments on threads, chunk by chunk. A run can be stopped and resumed at any time.
#pragma once

#include "sim/experiments/run/identity.h"
#include "sim/experiments/run/prepare_cell.h"
#include "sim/experiments/spec/spec.h"
#include "sim/hardware/placement/placement.h"

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace specsim::run {

struct Shard {
  std::uint64_t index = 1;  // 1 .. of
  std::uint64_t of = 1;
};
std::string to_text(const Shard& shard);  // "1/4"

// Returns the observer of all cells that have `cell`'s preparation_key, or nullptr. Called from worker threads, one at a time
// per key; `cell` outlives the run.
using Observe = std::function<std::shared_ptr<Observer>(const spec::Cell& cell)>;

struct RunOptions {
  unsigned threads = 1;
  Shard shard;
  std::string journal;  // file of finished work; "": none
  bool resume = false;
  Observe observe;                                        // empty: no observer
  Origin origin;                                          // a journal with another origin is rejected
  std::function<void(const std::string&)> warn;           // receives warnings about the journal; called from worker threads
  const std::atomic<bool>* stop = nullptr;                // set: finish the work in hand and return
  std::function<void(double done, double all)> progress;  // rounds; called from worker threads, one at a time
};

struct RunResult {
  bool finished = false;
  std::string how_to_continue;         // if it is not finished and has a journal: see Journal
  std::vector<decode::Counts> counts;  // [cell]
  // [cell]: its simulated placement; none without a placement, and none for a shard
  std::vector<std::optional<placement::Comparison>> timed;
};

// All results depend on the cells alone: threads, resumption and shards (whose counts add up) change nothing. Each set of tables
// is built once. Throws IoError, BadInput.
RunResult run_cells(const std::vector<const spec::Cell*>& cells, const RunOptions& options);
// Prepares the cells as run_cells() does, without simulating. The counts are empty; the caller adds existing counts to them.
// Uses `threads`, `observe` and `stop` of the options.
RunResult prepare_cells(const std::vector<const spec::Cell*>& cells, const RunOptions& options);

// The contradiction within counts from any source, such as more tokens counted by class than were emitted; "" if there is none.
std::string inconsistency(const decode::Counts& counts);
// The part that is missing in counts which should cover all of the cell's work, such as rounds; "" if nothing is.
std::string incompleteness(const spec::Cell& cell, const decode::Counts& counts);

// The estimated cost of a run.
struct RunEstimate {
  std::size_t cells = 0;
  double rounds = 0.0;
  std::size_t largest_tables_bytes = 0;  // the largest set of contexts
  std::size_t memory_bytes = 0;          // peak, with `threads` threads
  double seconds = 0.0;                  // from the cells' sizes alone: wrong by orders of magnitude for trees
};
RunEstimate estimate(const std::vector<const spec::Cell*>& cells, unsigned threads);
// The estimated seconds of a run, without simulated placements, measured on samples of some cells. Measuring takes a few seconds
// itself. nullopt if a single distribution takes longer. Throws BadInput.
std::optional<double> measured_seconds(const std::vector<const spec::Cell*>& cells, unsigned threads);

}  // namespace specsim::run
