#include "sim/experiments/run/runner.h"

#include "sim/experiments/run/journal.h"
#include "sim/experiments/run/timed.h"
#include "sim/foundation/base/check.h"
#include "sim/foundation/base/parallel.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <set>
#include <utility>

namespace specsim::run {

std::string to_text(const Shard& shard) { return fmt::format("{}/{}", shard.index, shard.of); }

namespace {

constexpr std::uint64_t kSlabsPerCell = 64;  // work is scheduled and journalled in at least so many slabs per cell,
constexpr std::uint64_t kLargestSlab = std::uint64_t{1} << 27;  // and in slabs of at most so many rounds

decode::Simulator simulator_of(const spec::Cell& cell, const decode::Prepared& tables) {
  return {spec::plan_of(cell), tables, spec::draw_key(cell), cell.draft_length(), cell.sequence_rounds};
}

// Some of the chunks that a shard has of a cell.
struct Slab {
  std::uint64_t index = 0;
  std::uint64_t first_chunk = 0;
  std::uint64_t end_chunk = 0;
};

struct Task {
  std::size_t cell = 0;
  std::optional<Slab> slab;  // nullopt: the cell's placement simulation
};

// Expected rounds of a cell. For requests this is a guess: half of what the lowest acceptance would need.
double expected_rounds(const spec::Cell& cell) {
  const families::ContextShape& shape = cell.contexts->process->shape();
  if (!shape.ends()) return static_cast<double>(cell.rounds);
  const double tokens = shape.request_tokens > 0 ? static_cast<double>(shape.request_tokens)
                                                 : static_cast<double>(shape.contexts) / static_cast<double>(shape.starts.size());
  return 0.5 * static_cast<double>(cell.work()) * tokens;
}

std::uint64_t chunks_of(const spec::Cell& cell, std::uint64_t chunk_size) { return (cell.work() + chunk_size - 1) / chunk_size; }

// How many of a shard's `chunks` form a slab, the unit of work that is journalled.
std::uint64_t slab_size(std::uint64_t chunks, std::uint64_t chunk_size) {
  const std::uint64_t largest = std::max<std::uint64_t>(1, kLargestSlab / chunk_size);
  return std::clamp<std::uint64_t>((chunks + kSlabsPerCell - 1) / kSlabsPerCell, 1, largest);
}

// Core seconds of a cell, and of its tables. Measured on one ordinary core; right to the order of magnitude.
double simulated_seconds(const spec::Cell& cell) {
  constexpr double kNsPerRound = 40.0;
  constexpr double kNsPerFreshToken = 40.0;
  const bool fresh = cell.contexts->process->shape().contexts == 0;
  return 1e-9 * expected_rounds(cell) * (fresh ? cell.vocab * (1 + cell.draft_length()) * kNsPerFreshToken : kNsPerRound);
}
double prepared_seconds(const spec::Cell& cell) {
  constexpr double kNsPerPreparedToken = 60.0;
  const families::ContextShape& shape = cell.contexts->process->shape();
  return 1e-9 * static_cast<double>(cell.vocab) * std::max(shape.contexts, 1) * shape.depths * kNsPerPreparedToken;
}

std::uint64_t chunk_size_of(const spec::Cell& cell) {
  const decode::Prepared none;
  return simulator_of(cell, none).chunk_size();
}

// [cell]: the shard's first chunk of it; the next ones are shard.of apart, and there may be none. All shards get equally many
// chunks of each cell, plus a remainder. Remainders are dealt out in turn, most expensive cells first, so no shard has more work
// than another by more than one chunk of the most expensive cell. The order uses predicted cost, which is the same on every
// machine.
std::vector<std::uint64_t> first_chunks(const std::vector<const spec::Cell*>& cells, const Shard& shard) {
  std::vector<std::uint64_t> first(cells.size(), 0);
  if (shard.of == 1) return first;
  struct Remainder {
    double seconds = 0.0;  // seconds per chunk, in a shard that has to prepare the cell for it
    std::uint64_t chunks = 0;
    std::size_t cell = 0;
  };
  std::vector<Remainder> remainders;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const std::uint64_t chunks = chunks_of(*cells[i], chunk_size_of(*cells[i]));
    const double each = simulated_seconds(*cells[i]) / static_cast<double>(std::max<std::uint64_t>(chunks, 1));
    remainders.push_back({each + (chunks < shard.of ? prepared_seconds(*cells[i]) : 0.0), chunks % shard.of, i});
  }
  std::sort(remainders.begin(), remainders.end(), [](const Remainder& a, const Remainder& b) {
    return a.seconds != b.seconds ? a.seconds > b.seconds : a.cell < b.cell;
  });
  std::uint64_t turn = 0;  // the shard that gets the next chunk, from 0
  for (const Remainder& one : remainders) {
    first[one.cell] = (shard.index - 1 + shard.of - turn) % shard.of;
    turn = (turn + one.chunks) % shard.of;
  }
  return first;
}

// The shard's chunks of a cell, starting with `first`.
std::vector<Slab> slabs_of(const spec::Cell& cell, const Shard& shard, std::uint64_t first) {
  const std::uint64_t size = chunk_size_of(cell);
  const std::uint64_t chunks = chunks_of(cell, size);
  const std::uint64_t own = chunks / shard.of + (first < chunks % shard.of ? 1 : 0);
  const std::uint64_t slab = slab_size(own, size);
  std::vector<Slab> slabs;
  for (std::uint64_t begin = 0; begin < own; begin += slab) slabs.push_back({begin / slab, begin, std::min(own, begin + slab)});
  return slabs;
}

// The tables that cells with the same distributions share. The first task that needs them builds them; the last one frees them.
struct Group {
  std::mutex mutex;
  std::vector<std::size_t> cells;
  std::size_t tasks_left = 0;
  bool prepared = false;
  int strata = 1;
  int class_count = 0;
  std::shared_ptr<const decode::Prepared> tables;
};

// One run of cells, from its tasks to its result.
class Run {
 public:
  Run(const std::vector<const spec::Cell*>& cells, const RunOptions& options, bool simulate);
  RunResult execute();

 private:
  [[nodiscard]] bool stopped() const { return options_->stop != nullptr && *options_->stop; }
  [[nodiscard]] Group& group_of(std::size_t cell) { return *groups_[group_of_[cell]]; }
  void open_journal();
  RunResult stopped_result();
  void record(std::size_t cell, const Slab& slab, const std::string& packed);
  // Reads the journal's counts of a cell. Throws BadInput if they are impossible.
  [[nodiscard]] decode::Counts replay(std::size_t cell);
  // Draws the group's distributions for its observer, and builds its tables if `tables`.
  void prepare(Group& group, bool tables);
  std::shared_ptr<const decode::Prepared> tables_of(Group& group);
  [[nodiscard]] bool has_work(const Group& group) const {
    return std::any_of(group.cells.begin(), group.cells.end(), [&](std::size_t cell) { return !done_[cell].empty(); });
  }
  [[nodiscard]] decode::Counts empty_counts(std::size_t cell);
  void perform(const Task& task);
  void simulate(std::size_t cell, const Slab& slab);
  void time(std::size_t cell);
  void report_progress(std::size_t cell);

  const std::vector<const spec::Cell*>* cells_;
  const RunOptions* options_;
  std::vector<std::unique_ptr<Group>> groups_;
  std::vector<std::size_t> group_of_;       // [cell]
  std::vector<std::uint64_t> first_chunk_;  // [cell]: of the shard
  std::vector<Task> tasks_;
  std::vector<std::vector<bool>> done_;        // [cell][slab]: according to the journal
  std::vector<std::vector<Record>> replayed_;  // [cell]: from the journal
  std::unique_ptr<Journal> journal_;
  RunResult result_;
  bool told_of_loss_ = false;  // of the journal
  std::mutex results_mutex_;
  std::mutex time_mutex_;  // cost models remember passes
  std::mutex progress_mutex_;
  double done_rounds_ = 0.0;
  double all_rounds_ = 0.0;
};

Run::Run(const std::vector<const spec::Cell*>& cells, const RunOptions& options, bool simulate)
    : cells_(&cells),
      options_(&options),
      group_of_(cells.size()),
      first_chunk_(first_chunks(cells, options.shard)),
      done_(cells.size()),
      replayed_(cells.size()) {
  std::map<std::string, std::size_t> by_key;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const auto [at, fresh] = by_key.try_emplace(cells[i]->preparation_key, groups_.size());
    if (fresh) groups_.push_back(std::make_unique<Group>());
    group_of_[i] = at->second;
    groups_[at->second]->cells.push_back(i);
    all_rounds_ += expected_rounds(*cells[i]) / static_cast<double>(options.shard.of);
  }
  // Runs group by group, whatever the order of the grid's axes, so that few sets of tables are in memory at a time.
  for (const std::unique_ptr<Group>& group : groups_) {
    const std::size_t before = tasks_.size();
    for (const std::size_t cell : group->cells) {
      if (simulate) {
        const std::vector<Slab> slabs = slabs_of(*cells[cell], options.shard, first_chunk_[cell]);
        for (const Slab& slab : slabs) tasks_.push_back({cell, slab});
        done_[cell].assign(slabs.size(), false);
      }
      if (options.shard.of == 1 && is_timed(*cells[cell])) tasks_.push_back({cell, std::nullopt});
    }
    group->tasks_left = tasks_.size() - before;
  }
  result_.counts.resize(cells.size());
  result_.timed.resize(cells.size());
}

void Run::open_journal() {
  if (options_->journal.empty()) return;
  const auto replay = [&](const Record& record) {
    if (record.cell >= done_.size() || record.slab >= done_[record.cell].size())
      throw BadInput(
          {options_->journal, record.line, 0},
          fmt::format("cell {} has no slab {} in this run, allowed: --force to delete the journal", record.cell, record.slab));
    if (done_[record.cell][record.slab]) return;  // ignore repeated records
    done_[record.cell][record.slab] = true;
    replayed_[record.cell].push_back(record);
  };
  journal_ = std::make_unique<Journal>(options_->journal, options_->origin, options_->resume, replay);
  if (journal_->damaged() > 0 && options_->warn)
    options_->warn(fmt::format("{}:{}: damaged, like {} of its lines; their work is computed again", options_->journal,
                               journal_->first_damaged(), journal_->damaged()));
}

void Run::record(std::size_t cell, const Slab& slab, const std::string& packed) {
  journal_->append(cell, slab.index, packed);
  if (!journal_->is_lost() || std::exchange(told_of_loss_, true)) return;
  if (options_->warn) options_->warn(fmt::format("{} was removed: the run continues, but cannot be resumed", options_->journal));
}

decode::Counts Run::replay(std::size_t cell) {
  decode::Counts sum = empty_counts(cell);
  for (const Record& record : replayed_[cell]) {
    decode::Counts counts = empty_counts(cell);
    std::string wrong = unpack_counts(record.counts, counts) ? "" : "these are no counts of the cell";
    if (wrong.empty()) wrong = inconsistency(counts);
    if (!wrong.empty()) throw BadInput({options_->journal, record.line, 0}, wrong + ", allowed: --force to delete the journal");
    sum.add(counts);
  }
  return sum;
}

void Run::prepare(Group& group, bool tables) {
  if (group.prepared) return;
  const spec::Cell& cell = *(*cells_)[group.cells.front()];
  const std::shared_ptr<Observer> observer = options_->observe ? options_->observe(cell) : nullptr;
  auto prepared = std::make_shared<decode::Prepared>(prepare_cell(cell, observer.get(), tables, options_->stop));
  group.strata = prepared->strata;
  group.class_count = prepared->class_count;
  if (tables) group.tables = std::move(prepared);
  group.prepared = true;
}

std::shared_ptr<const decode::Prepared> Run::tables_of(Group& group) {
  const std::lock_guard lock(group.mutex);
  prepare(group, true);
  return group.tables;
}

decode::Counts Run::empty_counts(std::size_t cell) {
  const Group& group = group_of(cell);
  const spec::Cell& own = *(*cells_)[cell];
  return {own.draft_length(), group.strata, group.class_count, own.judges_blocks() ? own.drafted_nodes() : 0,
          own.judges_blocks() ? draft::counted_passes(*own.block()->drafter) : 0};
}

void Run::simulate(std::size_t cell, const Slab& slab) {
  const spec::Cell& own = *(*cells_)[cell];
  const Shard& shard = options_->shard;
  const std::shared_ptr<const decode::Prepared> tables = tables_of(group_of(cell));
  const decode::Simulator simulator = simulator_of(own, *tables);
  decode::Counts counts = simulator.empty_counts();
  for (std::uint64_t i = slab.first_chunk; i < slab.end_chunk; ++i) {
    if (stopped()) throw decode::Interrupted{};  // an unfinished slab is discarded
    simulator.run(i * shard.of + first_chunk_[cell], own.work(), counts);
  }
  const std::string packed = journal_ ? pack_counts(counts) : "";
  const std::lock_guard lock(results_mutex_);
  if (result_.counts[cell] == decode::Counts()) result_.counts[cell] = simulator.empty_counts();
  result_.counts[cell].add(counts);
  if (journal_) record(cell, slab, packed);
}

void Run::time(std::size_t cell) {
  const std::shared_ptr<const decode::Prepared> tables = tables_of(group_of(cell));
  const std::lock_guard lock(time_mutex_);
  result_.timed[cell] = time_cell(*(*cells_)[cell], *tables, nullptr);
}

void Run::perform(const Task& task) {
  if (stopped()) return;
  try {
    if (!task.slab)
      time(task.cell);
    else if (!done_[task.cell][task.slab->index])
      simulate(task.cell, *task.slab);
  } catch (const decode::Interrupted&) {
    return;
  }
  {
    Group& group = group_of(task.cell);
    const std::lock_guard lock(group.mutex);
    if (--group.tasks_left == 0) group.tables.reset();
  }
  if (task.slab && options_->progress) report_progress(task.cell);
}

void Run::report_progress(std::size_t cell) {
  const std::lock_guard lock(progress_mutex_);
  done_rounds_ +=
      expected_rounds(*(*cells_)[cell]) / static_cast<double>(options_->shard.of) / static_cast<double>(done_[cell].size());
  options_->progress(done_rounds_, all_rounds_);
}

RunResult Run::stopped_result() {
  if (journal_) result_.how_to_continue = journal_->how_to_continue();
  return std::move(result_);
}

RunResult Run::execute() {
  open_journal();
  for_each(tasks_.size(), std::max(options_->threads, 1U), [&](std::size_t at) { perform(tasks_[at]); });
  for (const std::unique_ptr<Group>& group : groups_)
    if (group->tasks_left > 0) return stopped_result();
  try {
    // Groups whose work was all in the journal; not groups of which this shard has no work.
    for (const std::unique_ptr<Group>& group : groups_)
      if (options_->shard.of == 1 || has_work(*group)) prepare(*group, false);
  } catch (const decode::Interrupted&) {
    return stopped_result();
  }
  for (std::size_t i = 0; i < cells_->size(); ++i) {
    if (!group_of(i).prepared) continue;  // no counts
    if (result_.counts[i] == decode::Counts()) result_.counts[i] = empty_counts(i);
    if (replayed_[i].empty()) continue;
    result_.counts[i].add(replay(i));
    const std::string wrong = options_->shard.of == 1 ? incompleteness(*(*cells_)[i], result_.counts[i]) : "";
    if (!wrong.empty()) throw BadInput({options_->journal, 0, 0}, wrong + ", allowed: --force to delete the journal");
  }
  result_.finished = true;
  return std::move(result_);
}

}  // namespace

RunResult run_cells(const std::vector<const spec::Cell*>& cells, const RunOptions& options) {
  RunResult result = Run(cells, options, true).execute();
  if (result.finished && options.shard.of == 1)
    for (std::size_t i = 0; i < cells.size(); ++i) {
      const std::string wrong = incompleteness(*cells[i], result.counts[i]);
      SPECSIM_CHECK(wrong.empty(), "{} cell {}: {}", cells[i]->experiment, cells[i]->index, wrong);
    }
  return result;
}

RunResult prepare_cells(const std::vector<const spec::Cell*>& cells, const RunOptions& options) {
  RunOptions own;
  own.threads = options.threads;
  own.observe = options.observe;
  own.stop = options.stop;
  return Run(cells, own, false).execute();
}

RunEstimate estimate(const std::vector<const spec::Cell*>& cells, unsigned threads) {
  RunEstimate result;
  result.cells = cells.size();
  std::set<std::string> groups;
  for (const spec::Cell* cell : cells) {
    result.rounds += expected_rounds(*cell);
    result.largest_tables_bytes = std::max(result.largest_tables_bytes, decode::prepared_bytes(spec::plan_of(*cell)));
    result.seconds += simulated_seconds(*cell);
    if (groups.insert(cell->preparation_key).second) result.seconds += prepared_seconds(*cell);
  }
  // Cells run in order, so there is at most one set of contexts in memory per thread, and no more than the number of sets.
  result.memory_bytes =
      result.largest_tables_bytes * std::min<std::size_t>(groups.size(), std::max(threads, 1U)) + (std::size_t{64} << 20);
  result.seconds /= std::max(threads, 1U);
  return result;
}

}  // namespace specsim::run
