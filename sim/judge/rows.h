// From counts to what a user reads: rows, data.csv, the table on the terminal.
#pragma once

#include "sim/judge/agreement.h"
#include "sim/report/column.h"
#include "sim/spec/spec.h"

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
  bool could_have_failed = true;
  double chi_squared = 0.0;
  double kl = 0.0;
  std::optional<placement::Comparison> timed;  // where the config has a placement and the cost model knows seconds

  [[nodiscard]] double drafted() const;
  [[nodiscard]] double accepted() const;
  [[nodiscard]] double tries() const;
  [[nodiscard]] double draft_efficiency() const;  // accepted / drafted; NaN without drafts
  [[nodiscard]] double alpha() const;             // NaN without tries
  [[nodiscard]] double alpha_error() const;
  [[nodiscard]] double tokens_per_round() const;
  [[nodiscard]] double tokens_per_round_error() const;  // standard error, from the sequences' own spread
  [[nodiscard]] double full_rate() const;               // share of rounds that accept every draft
  [[nodiscard]] double verified_rows() const;           // tokens per sequence in the target's pass, mean over rounds
  [[nodiscard]] cost::RoundTime round_time() const;
  [[nodiscard]] double speedup_per_token() const;  // speedup / tokens_per_round
  [[nodiscard]] double tokens_per_second() const;  // the whole batch's; means something where the cost is in seconds
};

// Paths of the axes that the rows' cells are spread over, in the order in which they first appear.
std::vector<std::string> axes_of(const std::vector<Row>& rows);
// What an axis is set to in the row's cell; "" for one that it lacks.
std::string axis_value(const Row& row, const std::string& path);

// Every column of data.csv once. Axes and accepted_pos_* come in between.
const std::vector<report::Column<Row>>& columns();

// Judges every row of a family: levels depend on how many cells there are.
void judge_rows(std::vector<Row>& rows, const FactsOfCells& facts);

std::string data_csv(const std::vector<Row>& rows);
// From tokens per round down to the speedup, step by step, for the cells whose cost model knows seconds; empty without any.
std::string waterfall_csv(const std::vector<Row>& rows);
// Adds a line for each of its steps: these fields, then the step's name, ms and speedup_after.
void add_waterfall(const std::vector<std::string>& first_fields, const cost::RoundTime& time, double tokens_per_round,
                   report::Csv& file);
// The terminal's table: axes, measured figures and their intervals, the fastest cell; with checks, theory and p-values as well.
std::string table(const std::vector<Row>& rows, bool with_checks);

}  // namespace specsim::judge
