#include "sim/experiments/judge/draw_spread.h"

#include "sim/foundation/report/intervals.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace specsim::judge {

namespace {

constexpr double kMostDrawnTokens = 0x1p25;         // in all tables that are drawn: about two seconds
constexpr std::uint64_t kMostRoundsOfDraw = 65536;  // per draw
constexpr std::uint64_t kFewestGroups = 16;         // of sequences in a draw: fewer give no error

spec::Cell drawn_again(const spec::Cell& cell, int draw) {
  const bool tied = cell.policy() != nullptr && (*cell.policy())->ties_sequences();
  const std::uint64_t group = std::uint64_t{cell.sequence_rounds} * (tied ? static_cast<std::uint64_t>(cell.workload.batch) : 1);
  const std::uint64_t rounds = std::max(std::min(cell.rounds / kDraws, kMostRoundsOfDraw), kFewestGroups * group);
  return spec::reseeded(cell, rng::hash_text(fmt::format("seed {} draw {}", cell.seed, draw)), rounds);
}

// The standard deviation of the true values that were estimated: the estimates' spread, less the part due to their own errors.
double spread_of(const std::vector<report::Estimate>& estimates) {
  std::vector<double> values;
  double errors = 0.0;
  for (const report::Estimate& one : estimates) {
    values.push_back(one.value);
    errors += one.error * one.error / static_cast<double>(estimates.size());
  }
  const double error = report::mean_of(values).error;
  const double variance = error * error * static_cast<double>(estimates.size()) - errors;
  return std::isnan(variance) ? variance : std::sqrt(std::max(variance, 0.0));
}

}  // namespace

std::vector<const spec::Cell*> cells_to_draw_again(const std::vector<Row>& rows) {
  std::vector<const spec::Cell*> cells;
  for (std::size_t begin = 0; begin < rows.size();) {
    std::size_t end = begin;
    while (end < rows.size() && rows[end].cell->experiment == rows[begin].cell->experiment) ++end;
    const std::vector<const Row*> order = by_speedup(rows.data() + begin, rows.data() + end);
    const spec::Cell& cell = order.empty() ? *rows[begin].cell : *order[0]->cell;
    const families::ContextShape& shape = cell.contexts->process->shape();
    if (drawn_once(cell) && kDraws * static_cast<double>(cell.vocab) * shape.contexts * shape.depths <= kMostDrawnTokens)
      cells.push_back(&cell);
    begin = end;
  }
  return cells;
}

std::vector<DrawSpread> draw_spreads(const std::vector<const spec::Cell*>& cells, const run::RunOptions& options) {
  std::vector<spec::Cell> drawn;
  for (const spec::Cell* cell : cells)
    for (int draw = 0; draw < kDraws; ++draw) drawn.push_back(drawn_again(*cell, draw));
  std::vector<const spec::Cell*> pointers;
  for (const spec::Cell& cell : drawn) pointers.push_back(&cell);
  run::RunOptions own;
  own.threads = options.threads;
  own.stop = options.stop;
  run::RunResult result = run::run_cells(pointers, own);
  if (!result.finished) return {};
  std::vector<DrawSpread> spreads;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    std::vector<report::Estimate> tokens;
    std::vector<report::Estimate> speedups;
    for (std::size_t at = i * kDraws; at < (i + 1) * kDraws; ++at) {
      Row row;
      row.cell = pointers[at];
      row.counts = std::move(result.counts[at]);
      tokens.push_back(row.tokens_per_round_estimate());
      speedups.push_back(row.speedup_estimate());
    }
    spreads.push_back({cells[i], kDraws, spread_of(tokens), spread_of(speedups)});
  }
  return spreads;
}

}  // namespace specsim::judge
