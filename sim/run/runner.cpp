#include "sim/run/runner.h"

#include "sim/base/check.h"
#include "sim/base/parallel.h"
#include "sim/run/journal.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <set>

namespace specsim::run {

namespace {

constexpr std::uint64_t kSlabsPerCell = 64;  // work is handed out, and recorded, in at least so many slabs per cell,
constexpr std::uint64_t kLargestSlab = std::uint64_t{1} << 27;  // and in slabs of at most so many rounds

// Everything that cells with the same distributions share; built by the first that needs it, dropped after the last.
struct Group {
  std::mutex mutex;
  std::size_t cells_left = 0;
  std::vector<std::size_t> cells;
  const spec::Cell* owner = nullptr;
  std::shared_ptr<const judge::DistributionFacts> facts;
  std::shared_ptr<decode::Prepared> tables;
};

decode::Simulator simulator_of(const spec::Cell& cell, const decode::Prepared& tables) {
  return {spec::plan_of(cell), tables, spec::draw_key(cell), cell.chain.draft_length, cell.sequence_rounds};
}

struct Task {
  std::size_t cell = 0;
  std::uint64_t slab = 0;
  std::uint64_t first_chunk = 0;
  std::uint64_t end_chunk = 0;
};

// Rounds that a cell will take; for requests a guess, half of what the least acceptance would need.
double expected_rounds(const spec::Cell& cell) {
  const std::uint64_t request_tokens = cell.contexts->process->shape().request_tokens;
  return request_tokens == 0 ? static_cast<double>(cell.rounds)
                             : 0.5 * static_cast<double>(cell.work()) * static_cast<double>(request_tokens);
}

std::uint64_t chunks_of(const spec::Cell& cell, std::uint64_t chunk_size) { return (cell.work() + chunk_size - 1) / chunk_size; }

// Of a shard's `chunks`.
std::uint64_t slab_size(std::uint64_t chunks, std::uint64_t chunk_size) {
  const std::uint64_t largest = std::max<std::uint64_t>(1, kLargestSlab / chunk_size);
  return std::clamp<std::uint64_t>((chunks + kSlabsPerCell - 1) / kSlabsPerCell, 1, largest);
}

std::vector<Task> tasks_of(const spec::Cell& cell, std::size_t index, const Shard& shard) {
  const decode::Prepared none;
  const std::uint64_t size = simulator_of(cell, none).chunk_size();
  const std::uint64_t chunks = chunks_of(cell, size);
  // A shard takes every n-th chunk, so that each has a share of every cell.
  const std::uint64_t own = chunks / shard.of + (shard.index <= chunks % shard.of ? 1 : 0);
  const std::uint64_t slab = slab_size(own, size);
  std::vector<Task> tasks;
  for (std::uint64_t begin = 0; begin < own; begin += slab)
    tasks.push_back({index, begin / slab, begin, std::min(own, begin + slab)});
  return tasks;
}

}  // namespace

decode::Counts empty_counts(const spec::Cell& cell, const judge::DistributionFacts& facts) {
  return {cell.chain.draft_length, facts.classes.strata, facts.classes.class_count,
          cell.drafter != nullptr ? cell.drafter->shape().nodes : 0};
}

std::vector<std::shared_ptr<const judge::DistributionFacts>> facts_of(const std::vector<const spec::Cell*>& cells) {
  std::map<std::string, std::shared_ptr<const judge::DistributionFacts>> by_key;
  std::vector<std::shared_ptr<const judge::DistributionFacts>> facts;
  for (const spec::Cell* cell : cells) {
    std::shared_ptr<const judge::DistributionFacts>& own = by_key[cell->preparation_key];
    if (own == nullptr)
      own = std::make_shared<judge::DistributionFacts>(judge::gather_facts(*cell, spec::plan_of(*cell), nullptr));
    facts.push_back(own);
  }
  return facts;
}

void check_complete(const spec::Cell& cell, const decode::Counts& counts) {
  const bool requests = cell.contexts->process->shape().request_tokens > 0;
  const std::uint64_t done = requests ? counts.sequences : counts.rounds;
  SPECSIM_CHECK(done == cell.work(), "{} cell {}: {} of {} {}", cell.experiment, cell.index, done, cell.work(),
                requests ? "requests" : "rounds");
}

RunResult run_cells(const std::vector<const spec::Cell*>& cells, const RunOptions& options) {
  std::map<std::string, std::unique_ptr<Group>> groups;
  std::vector<Group*> group_of(cells.size());
  std::vector<Task> tasks;
  std::vector<std::uint64_t> tasks_left(cells.size(), 0);
  std::vector<std::vector<bool>> done(cells.size());
  double all_rounds = 0.0;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    std::unique_ptr<Group>& group = groups[cells[i]->preparation_key];
    if (group == nullptr) group = std::make_unique<Group>();
    if (group->owner == nullptr) group->owner = cells[i];
    ++group->cells_left;
    group_of[i] = group.get();
    group->cells.push_back(i);
    all_rounds += expected_rounds(*cells[i]) / static_cast<double>(options.shard.of);
  }
  // Group by group, whatever the order of the grid's axes: few sets of tables are alive at a time.
  for (std::size_t i = 0; i < cells.size(); ++i) {
    if (group_of[i]->cells.front() != i) continue;
    for (const std::size_t member : group_of[i]->cells) {
      const std::vector<Task> own = tasks_of(*cells[member], member, options.shard);
      tasks.insert(tasks.end(), own.begin(), own.end());
      tasks_left[member] = own.size();
      done[member].assign(own.size(), false);
    }
  }

  SPECSIM_CHECK(options.facts || options.journal.empty(), "a journal of counts whose facts are not gathered");
  RunResult result;
  result.counts.resize(cells.size());
  result.facts.resize(cells.size());
  std::vector<std::vector<std::string>> replayed(cells.size());
  std::unique_ptr<Journal> journal;
  if (!options.journal.empty()) {
    journal = std::make_unique<Journal>(options.journal, options.identity, options.resume,
                                        [&](std::uint64_t cell, std::uint64_t slab, const std::string& counts) {
                                          if (cell >= cells.size() || slab >= done[cell].size() || done[cell][slab]) return;
                                          done[cell][slab] = true;
                                          replayed[cell].push_back(counts);
                                        });
  }

  std::mutex results_mutex;
  std::mutex progress_mutex;
  double done_rounds = 0.0;

  // Tables and facts of a cell's group; facts alone once all its work is done.
  const auto acquire = [&](std::size_t cell) {
    Group& group = *group_of[cell];
    const std::lock_guard lock(group.mutex);
    if (group.tables == nullptr) {
      auto tables = std::make_shared<decode::Prepared>();
      if (options.facts) {
        auto facts = std::make_shared<judge::DistributionFacts>(
            judge::gather_facts(*group.owner, spec::plan_of(*group.owner), tables.get(), options.stop));
        if (group.facts == nullptr) group.facts = std::move(facts);
      } else {
        *tables = decode::prepare(spec::plan_of(*group.owner), {}, true, options.stop);
      }
      group.tables = std::move(tables);
    }
    return group.tables;
  };
  const auto stopped = [&] { return options.stop != nullptr && *options.stop; };
  for_each(tasks.size(), std::max(options.threads, 1U), [&](std::size_t at) {
    if (stopped()) return;
    const Task& task = tasks[at];
    const spec::Cell& cell = *cells[task.cell];
    Group& group = *group_of[task.cell];
    if (!done[task.cell][task.slab]) {
      std::shared_ptr<decode::Prepared> tables;
      try {
        tables = acquire(task.cell);
      } catch (const decode::Interrupted&) {
        return;
      }
      const decode::Simulator simulator = simulator_of(cell, *tables);
      decode::Counts counts = simulator.empty_counts();
      for (std::uint64_t i = task.first_chunk; i < task.end_chunk; ++i) {
        if (stopped()) return;  // a slab that is not whole is not kept
        simulator.run(i * options.shard.of + options.shard.index - 1, cell.work(), counts);
      }
      const std::string packed = journal ? pack_counts(counts) : "";
      const std::lock_guard lock(results_mutex);
      if (result.counts[task.cell] == decode::Counts()) result.counts[task.cell] = simulator.empty_counts();
      result.counts[task.cell].add(counts);
      if (journal) journal->append(task.cell, task.slab, packed);
    }
    {
      const std::lock_guard lock(results_mutex);
      if (--tasks_left[task.cell] == 0) {
        const std::lock_guard group_lock(group.mutex);
        if (--group.cells_left == 0) group.tables.reset();
      }
    }
    if (options.progress) {
      const std::lock_guard lock(progress_mutex);
      done_rounds += expected_rounds(cell) / static_cast<double>(options.shard.of) / static_cast<double>(done[task.cell].size());
      options.progress(done_rounds, all_rounds);
    }
  });
  if (std::any_of(tasks_left.begin(), tasks_left.end(), [](std::uint64_t left) { return left > 0; })) return result;  // stopped

  for (std::size_t i = 0; i < cells.size(); ++i) {
    Group& group = *group_of[i];
    try {
      if (group.facts == nullptr && options.facts)
        group.facts = std::make_shared<judge::DistributionFacts>(
            judge::gather_facts(*group.owner, spec::plan_of(*group.owner), nullptr, options.stop));
    } catch (const decode::Interrupted&) {
      return result;
    }
    result.facts[i] = group.facts;
    if (result.counts[i] == decode::Counts()) result.counts[i] = empty_counts(*cells[i], *group.facts);
    for (const std::string& counts : replayed[i]) unpack_counts(counts, result.counts[i]);
    if (options.shard.of == 1) check_complete(*cells[i], result.counts[i]);
  }
  result.finished = true;
  return result;
}

RunEstimate estimate(const std::vector<const spec::Cell*>& cells, unsigned threads) {
  // Measured on one ordinary core; a promise to the order of magnitude.
  constexpr double kNsPerRound = 40.0;
  constexpr double kNsPerPreparedToken = 60.0;
  constexpr double kNsPerFreshToken = 40.0;
  RunEstimate result;
  result.cells = cells.size();
  std::set<std::string> groups;
  for (const spec::Cell* cell : cells) {
    const double rounds = expected_rounds(*cell);
    result.rounds += rounds;
    const families::ContextShape& shape = cell->contexts->process->shape();
    const std::size_t bytes = decode::prepared_bytes(spec::plan_of(*cell));
    result.largest_tables_bytes = std::max(result.largest_tables_bytes, bytes);
    if (shape.contexts == 0)
      result.seconds += rounds * cell->vocab * (1 + cell->chain.draft_length) * kNsPerFreshToken * 1e-9;
    else
      result.seconds += rounds * kNsPerRound * 1e-9;
    if (groups.insert(cell->preparation_key).second)
      result.seconds +=
          static_cast<double>(cell->vocab) * std::max(shape.contexts, 1) * shape.depths * kNsPerPreparedToken * 1e-9;
  }
  // Cells run in order, so at most one set of contexts per thread is alive, and no more sets than there are.
  result.memory_bytes =
      result.largest_tables_bytes * std::min<std::size_t>(groups.size(), std::max(threads, 1U)) + (std::size_t{64} << 20);
  result.seconds /= std::max(threads, 1U);
  return result;
}

}  // namespace specsim::run
