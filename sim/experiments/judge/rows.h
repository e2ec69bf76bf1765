// From counts to results: rows, data.csv, the table on the terminal.
#pragma once

#include "sim/experiments/judge/agreement.h"
#include "sim/experiments/spec/axes.h"
#include "sim/experiments/spec/spec.h"
#include "sim/foundation/report/column.h"
#include "sim/foundation/report/intervals.h"

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace specsim::judge {

// One cell with all its results.
struct Row {
  const spec::Cell* cell = nullptr;
  decode::Counts counts;
  Prediction exact;
  Prediction judged_by;  // the closed form that `theory:` names, by default the exact theory
  Agreement agreement;   // agreement of the counts with judged_by
  Verdict verdict = Verdict::no_theory;
  std::optional<Underpowered> underpowered;  // why the cell is underpowered; nullopt: it is not
  double chi_squared = 0.0;
  double kl = 0.0;
  std::optional<placement::Comparison> timed;  // if the config has a placement and the cost model is in seconds

  [[nodiscard]] double drafted() const;
  [[nodiscard]] double accepted() const;
  [[nodiscard]] double tries() const;
  [[nodiscard]] double draft_efficiency() const;  // accepted / drafted; NaN without drafts
  [[nodiscard]] double alpha() const;             // NaN if no token was judged
  [[nodiscard]] double tokens_per_round() const;
  [[nodiscard]] double full_rate() const;      // share of rounds that accept every draft
  [[nodiscard]] double verified_rows() const;  // tokens per sequence in the target's pass, mean over rounds
  [[nodiscard]] cost::RoundTime round_time() const;
  [[nodiscard]] double speedup_per_token() const;  // speedup / tokens_per_round
  [[nodiscard]] double tokens_per_second() const;  // of the whole batch; meaningful only if the cost is in seconds
  // The figures with their standard errors, from the spread between independent groups of sequences (decode::GroupTotals).
  // Errors are NaN below two groups, a speedup's below three. They hold for the distributions that were drawn.
  [[nodiscard]] report::Estimate alpha_estimate() const;
  [[nodiscard]] report::Estimate tokens_per_round_estimate() const;
  [[nodiscard]] report::Estimate speedup_estimate() const;
};

// For rows that name a cell: a column per axis with its value in the row's cell.
template <class Line>
std::vector<report::Column<Line>> axis_columns(const std::vector<std::string>& paths) {
  std::vector<report::Column<Line>> list;
  for (const std::string& path : paths)
    list.push_back({path, "", "the axis in the cell", [path](const Line& line) { return spec::axis_value(*line.cell, path); }});
  return list;
}

// Every column of data.csv, each once, without the axes and accepted_pos_* in between.
const std::vector<report::Column<Row>>& columns();

// Judges all rows of one command together, since the level of each test depends on the number of cells (check_level).
void judge_rows(std::vector<Row>& rows, const FactsOfCells& facts);

// The text of data.csv: a header and a line per row, with the axes in which the rows differ, and columns().
std::string data_csv(const std::vector<Row>& rows);
// The steps from tokens per round down to the speedup, for the cells whose cost model is in seconds; empty if there are none.
std::string waterfall_csv(const std::vector<Row>& rows);
// A line of waterfall.csv: one step from tokens per round down to the speedup, for one cell.
struct WaterfallLine {
  const spec::Cell* cell = nullptr;
  std::size_t index = 0;  // index of the cell among the cells in the file
  int draft_length = 0;
  cost::WaterfallStep step;
};
// The columns of a line that come from its step. They follow the columns that name the cell.
const std::vector<report::Column<WaterfallLine>>& waterfall_step_columns();

// The files that contain rows of cells, for the reference page.
std::vector<report::FileInfo> described_files();

// Standard deviations of a cell's true figures over draws of its random distributions; NaN if unknown.
struct DrawSpread {
  const spec::Cell* cell = nullptr;
  int draws = 0;
  double tokens_per_round = 0.0;
  double speedup = 0.0;
};
// Whether a cell's distributions are random and were drawn once for the whole run, so that errors hold for that draw.
bool drawn_once(const spec::Cell& cell);
// The rows of one experiment that a user could choose, the fastest first. Omits policies that know the future.
std::vector<const Row*> by_speedup(const Row* begin, const Row* end);

// The terminal's table: axes, measured figures and their intervals, the fastest cell; with checks, theory and p-values as well.
// `spreads`: the additional variation over draws of the distributions, for cells of some experiments.
std::string table(const std::vector<Row>& rows, bool with_checks, const std::vector<DrawSpread>& spreads);

}  // namespace specsim::judge
