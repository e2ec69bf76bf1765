// Runs every cell of a family of experiments on threads, chunk by chunk, and can stop and go on at any moment.
#pragma once

#include "sim/judge/prediction.h"
#include "sim/judge/rows.h"

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace specsim::run {

struct Shard {
  std::uint64_t index = 1;  // 1 .. of
  std::uint64_t of = 1;
};

struct RunOptions {
  unsigned threads = 1;
  Shard shard;
  std::string journal;  // file of finished work; "": none
  bool resume = false;
  bool facts = true;     // false: counts alone, without what theory needs to judge them; not with a journal or shards
  std::string identity;  // names configs, seed and shard; a journal of another run is refused
  const std::atomic<bool>* stop = nullptr;                // set: finish the work in hand and return
  std::function<void(double done, double all)> progress;  // rounds; called from worker threads, one at a time
};

struct RunResult {
  bool finished = false;
  std::vector<decode::Counts> counts;                                  // [cell]
  std::vector<std::shared_ptr<const judge::DistributionFacts>> facts;  // [cell]; empty pointers where none were asked for
};

// Everything simulated here is a function of the cells alone: threads, resumption and shards (whose counts add up) change
// nothing. Throws IoError, BadInput.
RunResult run_cells(const std::vector<const spec::Cell*>& cells, const RunOptions& options);

// The facts alone, for merging counts that exist.
std::vector<std::shared_ptr<const judge::DistributionFacts>> facts_of(const std::vector<const spec::Cell*>& cells);

decode::Counts empty_counts(const spec::Cell& cell, const judge::DistributionFacts& facts);
// SPECSIM_CHECKs that all of a cell's work is in its counts.
void check_complete(const spec::Cell& cell, const decode::Counts& counts);

// What a run would take.
struct RunEstimate {
  std::size_t cells = 0;
  double rounds = 0.0;
  std::size_t largest_tables_bytes = 0;  // of one set of contexts
  std::size_t memory_bytes = 0;          // at the worst moment, with `threads` threads
  double seconds = 0.0;                  // rough
};
RunEstimate estimate(const std::vector<const spec::Cell*>& cells, unsigned threads);

}  // namespace specsim::run
