// From counts to what a user reads: rows, data.csv, the table on the terminal.
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

// One cell with all that is known of it.
struct Row {
  const spec::Cell* cell = nullptr;
  decode::Counts counts;
  Prediction exact;
  Prediction judged_by;  // the closed form that `theory:` names; the exact one by default
  Agreement agreement;   // how the counts agree with judged_by
  Verdict verdict = Verdict::no_theory;
  std::optional<Blindness> blindness;  // why the cell could not have failed; nullopt: it could
  double chi_squared = 0.0;
  double kl = 0.0;
  std::optional<placement::Comparison> timed;  // where the config has a placement and the cost model knows seconds

  [[nodiscard]] double drafted() const;
  [[nodiscard]] double accepted() const;
  [[nodiscard]] double tries() const;
  [[nodiscard]] double draft_efficiency() const;  // accepted / drafted; NaN without drafts
  [[nodiscard]] double alpha() const;             // NaN without tries
  [[nodiscard]] double tokens_per_round() const;
  [[nodiscard]] double full_rate() const;      // share of rounds that accept every draft
  [[nodiscard]] double verified_rows() const;  // tokens per sequence in the target's pass, mean over rounds
  [[nodiscard]] cost::RoundTime round_time() const;
  [[nodiscard]] double speedup_per_token() const;  // speedup / tokens_per_round
  [[nodiscard]] double tokens_per_second() const;  // the whole batch's; means something where the cost is in seconds
  // The figures with their standard errors, from the spread between groups of sequences that are independent of each other
  // (decode::GroupTotals). Errors are NaN below two groups, a speedup's below three. They hold for the distributions at hand.
  [[nodiscard]] report::Estimate alpha_estimate() const;
  [[nodiscard]] report::Estimate tokens_per_round_estimate() const;
  [[nodiscard]] report::Estimate speedup_estimate() const;
};

// For rows that name a cell: a column for each of these axes, with its value in the row's cell.
template <class Line>
std::vector<report::Column<Line>> axis_columns(const std::vector<std::string>& paths) {
  std::vector<report::Column<Line>> list;
  for (const std::string& path : paths)
    list.push_back({path, "", "the axis in the cell", [path](const Line& line) { return spec::axis_value(*line.cell, path); }});
  return list;
}

// Every column of data.csv once. Axes and accepted_pos_* come in between.
const std::vector<report::Column<Row>>& columns();

// Judges all rows of one command together: the more cells there are, the stricter is the level of each test (check_level).
void judge_rows(std::vector<Row>& rows, const FactsOfCells& facts);

// The text of data.csv: a header and a line for each row, with the axes that the rows differ in, and columns().
std::string data_csv(const std::vector<Row>& rows);
// From tokens per round down to the speedup, step by step, for the cells whose cost model knows seconds; empty without any.
std::string waterfall_csv(const std::vector<Row>& rows);
// A line of waterfall.csv: one step from tokens per round down to the speedup, of one cell.
struct WaterfallLine {
  const spec::Cell* cell = nullptr;
  std::size_t index = 0;  // the cell's place among those that the file tells of
  int draft_length = 0;
  cost::WaterfallStep step;
};
// The columns of a line that come from its step; those that name the cell stand before them.
const std::vector<report::Column<WaterfallLine>>& waterfall_step_columns();

// The files that rows of cells go to, for the reference page.
std::vector<report::FileInfo> described_files();

// Standard deviations of a cell's true figures over draws of its random distributions; NaN where they are not known.
struct DrawSpread {
  const spec::Cell* cell = nullptr;
  int draws = 0;
  double tokens_per_round = 0.0;
  double speedup = 0.0;
};
// Whether a cell's distributions are random and were drawn once for the whole run, so that errors hold for that draw.
bool drawn_once(const spec::Cell& cell);
// The rows of one experiment that somebody could choose, the fastest first; a policy that knows the future is none.
std::vector<const Row*> by_speedup(const Row* begin, const Row* end);

// The terminal's table: axes, measured figures and their intervals, the fastest cell; with checks, theory and p-values as well.
// `spreads`: what draws of the distributions add to the errors, for cells of some experiments.
std::string table(const std::vector<Row>& rows, bool with_checks, const std::vector<DrawSpread>& spreads);

}  // namespace specsim::judge
