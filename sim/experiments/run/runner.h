// Runs every cell of a family of experiments on threads, chunk by chunk, and can stop and go on at any moment.
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

// The observer of all cells that have `cell`'s preparation_key, or nullptr. Called from worker threads, one at a time for each
// key; `cell` outlives the run.
using Observe = std::function<std::shared_ptr<Observer>(const spec::Cell& cell)>;

struct RunOptions {
  unsigned threads = 1;
  Shard shard;
  std::string journal;  // file of finished work; "": none
  bool resume = false;
  Observe observe;                                        // empty: nobody looks
  Origin origin;                                          // a journal of another is refused
  std::function<void(const std::string&)> warn;           // what happens to the journal; called from worker threads
  const std::atomic<bool>* stop = nullptr;                // set: finish the work in hand and return
  std::function<void(double done, double all)> progress;  // rounds; called from worker threads, one at a time
};

struct RunResult {
  bool finished = false;
  bool journal_lost = false;                                // somebody removed it: nothing can be resumed
  std::vector<decode::Counts> counts;                       // [cell]
  std::vector<std::optional<placement::Comparison>> timed;  // [cell]: its placement in time; none without one, and of a shard
};

// Everything simulated here is a function of the cells alone: threads, resumption and shards (whose counts add up) change
// nothing. Each set of tables is built once. Throws IoError, BadInput.
RunResult run_cells(const std::vector<const spec::Cell*>& cells, const RunOptions& options);
// Prepares the cells as run_cells() does and simulates nothing: the counts are empty, for counts that exist to be added to them.
// Takes `threads`, `observe` and `stop` of the options.
RunResult prepare_cells(const std::vector<const spec::Cell*>& cells, const RunOptions& options);

// What contradicts itself in counts, wherever they come from, such as more tokens counted by class than were emitted; "" where
// nothing does.
std::string inconsistency(const decode::Counts& counts);
// What is wrong with counts that should hold all of the cell's work, such as rounds that are missing; "" where nothing is.
std::string incompleteness(const spec::Cell& cell, const decode::Counts& counts);

// What a run would take.
struct RunEstimate {
  std::size_t cells = 0;
  double rounds = 0.0;
  std::size_t largest_tables_bytes = 0;  // the largest set of contexts
  std::size_t memory_bytes = 0;          // at the worst moment, with `threads` threads
  double seconds = 0.0;                  // estimated from the cells' sizes alone: off by orders of magnitude for trees
};
RunEstimate estimate(const std::vector<const spec::Cell*>& cells, unsigned threads);
// The seconds that a run would take, without simulating placements in time, measured on pieces of some cells, which takes a few
// seconds itself; nullopt where a single distribution takes longer. Throws BadInput.
std::optional<double> measured_seconds(const std::vector<const spec::Cell*>& cells, unsigned threads);

}  // namespace specsim::run
