#include "sim/hardware/latency/table.h"

#include "sim/foundation/base/check.h"
#include "sim/foundation/base/standard_library.h"
#include "sim/foundation/base/text_file.h"
#include "sim/hardware/latency/llama_bench.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <sstream>
#include <utility>

namespace specsim::cost {

namespace {

constexpr const char* kHeader = "model,tokens,batch,context,ms";
constexpr std::array<const char*, 3> kModels = {"target", "draft", "draft_first"};
constexpr std::array<const char*, 3> kAxes = {"tokens", "batch", "context"};
// Real tables dip where a larger shape reaches a better kernel; a larger dip than this is a mistake in the file.
constexpr double kLargestDip = 0.20;
enum class LargeDips { refused, kept };
constexpr std::size_t kMaxRows = 1'000'000;

using Point = std::array<double, 3>;  // tokens, batch, context

struct Measured {
  double ms = 0.0;
  int line = 0;
};

// One model's passes on a full grid.
class Grid {
 public:
  Grid() = default;
  Grid(std::string role, std::string file, const std::map<Point, Measured>& rows, LargeDips large_dips, Diagnostics& diagnostics,
       std::vector<std::string>& warnings)
      : role_(std::move(role)), file_(std::move(file)) {
    for (std::size_t a = 0; a < 3; ++a) {
      std::set<double> values;
      for (const auto& [point, row] : rows) values.insert(point[a]);
      axes_[a].assign(values.begin(), values.end());
    }
    constexpr std::size_t kShownHoles = 5;
    const double places =
        static_cast<double>(axes_[0].size()) * static_cast<double>(axes_[1].size()) * static_cast<double>(axes_[2].size());
    const double holes = places - static_cast<double>(rows.size());
    if (holes == 0.0) {
      for (const auto& [point, row] : rows) ms_.push_back(row.ms);  // in the order of flat()
      look_for_dips(rows, large_dips, diagnostics, warnings);
      return;
    }
    diagnostics.add({file_, 0, 0},
                    fmt::format("the {}'s table has {} {}: {}{}; allowed: every combination of the tokens, batches and contexts "
                                "that it names",
                                role_, holes, holes == 1.0 ? "hole" : "holes", fmt::join(first_holes(rows, kShownHoles), ", "),
                                holes > static_cast<double>(kShownHoles) ? ", ..." : ""));
  }

  [[nodiscard]] bool empty() const { return ms_.empty(); }

  // Linear between neighbours along every axis; throws BadInput outside the grid.
  [[nodiscard]] double ms(const Point& at) const {
    std::array<std::size_t, 3> below{};
    std::array<double, 3> share{};
    for (std::size_t a = 0; a < 3; ++a) {
      const std::vector<double>& axis = axes_[a];
      if (at[a] < axis.front() || at[a] > axis.back())
        throw BadInput({file_, 0, 0},
                       fmt::format("a {} pass at {} {:g} is asked for, allowed by the table: {:g} to {:g} (it is not "
                                   "extrapolated)",
                                   role_, kAxes[a], at[a], axis.front(), axis.back()));
      const auto above = std::upper_bound(axis.begin(), axis.end(), at[a]);
      below[a] = static_cast<std::size_t>(std::max<std::ptrdiff_t>(above - axis.begin() - 1, 0));
      if (below[a] + 1 < axis.size()) share[a] = (at[a] - axis[below[a]]) / (axis[below[a] + 1] - axis[below[a]]);
    }
    double sum = 0.0;
    for (unsigned corner = 0; corner < 8; ++corner) {
      double weight = 1.0;
      std::array<std::size_t, 3> index = below;
      for (std::size_t a = 0; a < 3; ++a) {
        const bool up = ((corner >> a) & 1U) != 0;
        weight *= up ? share[a] : 1.0 - share[a];
        if (up) ++index[a];
      }
      if (weight > 0.0) sum += weight * ms_[flat(index)];
    }
    return sum;
  }

 private:
  [[nodiscard]] std::size_t flat(const std::array<std::size_t, 3>& index) const {
    return (index[0] * axes_[1].size() + index[1]) * axes_[2].size() + index[2];
  }

  // The search stops early: a few rows can span a grid larger than memory.
  [[nodiscard]] std::vector<std::string> first_holes(const std::map<Point, Measured>& rows, std::size_t count) const {
    std::vector<std::string> holes;
    for (const double tokens : axes_[0])
      for (const double batch : axes_[1])
        for (const double context : axes_[2]) {
          if (rows.contains({tokens, batch, context})) continue;
          holes.push_back(fmt::format("tokens {} batch {} context {}", tokens, batch, context));
          if (holes.size() == count) return holes;
        }
    return holes;
  }

  void look_for_dips(const std::map<Point, Measured>& rows, LargeDips large_dips, Diagnostics& diagnostics,
                     std::vector<std::string>& warnings) const {
    std::size_t kept = 0;
    double largest = 0.0;
    for (const auto& [point, row] : rows) {
      for (std::size_t a = 0; a < 3; ++a) {
        const auto next = std::upper_bound(axes_[a].begin(), axes_[a].end(), point[a]);
        if (next == axes_[a].end()) continue;
        Point further = point;
        further[a] = *next;
        const Measured& more = rows.at(further);
        const double dip = 1.0 - more.ms / row.ms;
        if (dip > kLargestDip && large_dips == LargeDips::refused) {
          diagnostics.add(
              {file_, more.line, 0},
              fmt::format("a {} pass takes {:g} ms at {} {:g} and {:g} ms at {:g}, allowed: a dip of at most {:.0f} %", role_,
                          row.ms, kAxes[a], point[a], more.ms, further[a], 100.0 * kLargestDip));
        } else if (dip > 0.0) {
          ++kept;
          largest = std::max(largest, dip);
        }
      }
    }
    if (kept > 0)
      warnings.push_back(fmt::format("{}: the {}'s times dip in {} {}, by up to {:.1f} %; kept as measured", file_, role_, kept,
                                     kept == 1 ? "place" : "places", 100.0 * largest));
  }

  std::string role_;
  std::string file_;
  std::array<std::vector<double>, 3> axes_;
  std::vector<double> ms_;
};

class TableCost final : public CostModel {
 public:
  TableCost(Grid target, Grid draft, Grid draft_first, double overhead_ms, std::vector<std::string> warnings)
      : target_(std::move(target)),
        draft_(std::move(draft)),
        draft_first_(std::move(draft_first)),
        overhead_ms_(overhead_ms),
        warnings_(std::move(warnings)) {}
  [[nodiscard]] PassTime pass(Role role, const Pass& pass) const override {
    return time(role == Role::target ? target_ : draft_, pass);
  }
  [[nodiscard]] PassTime draft_pass(const Workload& workload, int index, double extra) const override {
    if (index > 0 || draft_first_.empty()) return CostModel::draft_pass(workload, index, extra);
    return time(draft_first_, {workload.batch, 1.0 + extra, workload.context, 1.0});
  }
  [[nodiscard]] double round_overhead(double /*batch*/) const override { return 1e-3 * overhead_ms_; }
  [[nodiscard]] std::vector<std::string> warnings() const override { return warnings_; }

 private:
  static PassTime time(const Grid& grid, const Pass& pass) {
    PassTime time;
    time.weights = 1e-3 * grid.ms({pass.tokens, pass.batch, pass.context});
    return time;
  }

  Grid target_;
  Grid draft_;
  Grid draft_first_;  // a round's first draft pass; may be empty
  double overhead_ms_;
  std::vector<std::string> warnings_;
};

using Rows = std::array<std::map<Point, Measured>, kModels.size()>;  // one map for each of kModels

void read_rows(const std::string& file, const std::string& text, Rows& rows, Diagnostics& diagnostics) {
  constexpr std::size_t kMaxMistakes = 20;
  std::istringstream lines(text);
  std::string line;
  int number = 0;
  std::size_t mistakes = 0;
  while (std::getline(lines, line) && mistakes < kMaxMistakes) {
    const Location where{file, ++number, 0};
    if (!line.empty() && line.back() == '\r') line.pop_back();
    if (number == 1) {
      if (line != kHeader) {
        diagnostics.add(where, fmt::format("the header is {}, allowed: {}", config::quote_for_message(line), kHeader));
        return;
      }
      continue;
    }
    if (line.empty() || line[0] == '#') continue;
    std::vector<std::string> cells;
    std::istringstream parts(line);
    for (std::string part; std::getline(parts, part, ',');) cells.push_back(part);
    if (line.back() == ',') cells.emplace_back();
    const auto model = std::find(kModels.begin(), kModels.end(), cells.empty() ? "" : cells[0]);
    if (cells.size() != 5 || model == kModels.end()) {
      diagnostics.add(where, fmt::format("{}, allowed: {} with model {}", config::quote_for_message(line), kHeader,
                                         fmt::join(kModels, " or ")));
      ++mistakes;
      continue;
    }
    std::array<double, 4> x{};
    bool good = true;
    for (std::size_t i = 0; i < 4; ++i) {
      const std::string& cell = cells[i + 1];
      const auto [end, error] = from_chars(cell.data(), cell.data() + cell.size(), x[i]);
      const double least = i == 2 ? 0.0 : i == 3 ? 1e-9 : 1.0;
      if (good &&
          (error != std::errc() || end != cell.data() + cell.size() || !std::isfinite(x[i]) || x[i] < least || x[i] > 1e9)) {
        const char* const name = i == 3 ? "ms" : kAxes[i];
        diagnostics.add(where, fmt::format("{} is {}, allowed: a number {} to 1e9", name, config::quote_for_message(cell),
                                           i == 3 ? "above 0, up" : fmt::format("from {:g}", least)));
        good = false;
        ++mistakes;
      }
    }
    if (!good) continue;
    auto& own = rows[static_cast<std::size_t>(model - kModels.begin())];
    const auto [at, fresh] = own.insert({{x[0], x[1], x[2]}, {x[3], number}});
    if (!fresh) {
      diagnostics.add(where, fmt::format("this point is on line {} already, allowed: each once", at->second.line));
      ++mistakes;
    }
    if (own.size() > kMaxRows) {
      diagnostics.add(where, fmt::format("more than {} rows", kMaxRows));
      return;
    }
  }
}

// The model of these rows; nullptr after reporting.
std::unique_ptr<CostModel> model_of(const std::string& file, const Rows& rows, double overhead_ms, LargeDips large_dips,
                                    Diagnostics& diagnostics) {
  const std::size_t before = diagnostics.list().size();
  for (std::size_t i = 0; i < 2; ++i)
    if (rows[i].empty())
      diagnostics.add({file, 0, 0}, fmt::format("no {} pass in the table, allowed: rows of both models", kModels[i]));
  if (diagnostics.list().size() != before) return nullptr;
  std::vector<std::string> warnings;
  Grid target("target", file, rows[0], large_dips, diagnostics, warnings);
  Grid draft("draft", file, rows[1], large_dips, diagnostics, warnings);
  Grid draft_first;
  if (!rows[2].empty()) draft_first = Grid(kModels[2], file, rows[2], large_dips, diagnostics, warnings);
  if (diagnostics.list().size() != before) return nullptr;
  return std::make_unique<TableCost>(std::move(target), std::move(draft), std::move(draft_first), overhead_ms,
                                     std::move(warnings));
}

std::optional<std::string> read_named_file(const std::string& file, const Location& where, const char* kind,
                                           Diagnostics& diagnostics) {
  try {
    return read_text_file(file);
  } catch (const ReadError& error) {
    diagnostics.add(where, fmt::format("{}: {}{}", file, error.message(fmt::format("{} file", kind)), looked_for(where, file)));
    return std::nullopt;
  }
}

// Reads the output of llama-bench for one model, as rows of batch 1.
void read_bench(const config::Arguments& arguments, const char* key, std::map<Point, Measured>& rows, Diagnostics& diagnostics) {
  const std::string file = file_next_to(arguments.where(key), arguments.text(key));
  const auto text = read_named_file(file, arguments.where(key), "llama-bench", diagnostics);
  if (!text) return;
  for (const BenchedPass& pass : read_llama_bench(file, *text, diagnostics))
    if (!rows.insert({{pass.tokens, 1.0, pass.context}, {pass.ms, pass.line}}).second)
      diagnostics.add({file, pass.line, 0},
                      fmt::format("a second test of {:g} tokens at depth {:g}, allowed: each once", pass.tokens, pass.context));
}

// Fills in the rows, from the CSV or from two outputs of llama-bench. Returns the file for messages.
std::string read_measured(const config::Arguments& arguments, Rows& rows, Diagnostics& diagnostics) {
  const bool benched = arguments.has("target_bench") && arguments.has("draft_bench");
  if (arguments.has("file") == benched || arguments.has("target_bench") != arguments.has("draft_bench")) {
    diagnostics.add(
        arguments.where("file"),
        "cost model table takes its times from \"file\", or from \"target_bench\" and \"draft_bench\", allowed: one of "
        "the two ways");
    return {};
  }
  if (benched) {
    read_bench(arguments, "target_bench", rows[0], diagnostics);
    read_bench(arguments, "draft_bench", rows[1], diagnostics);
    return arguments.text("target_bench") + " and " + arguments.text("draft_bench");
  }
  std::string file = file_next_to(arguments.where("file"), arguments.text("file"));
  if (const auto text = read_named_file(file, arguments.where("file"), "CSV", diagnostics))
    read_rows(file, *text, rows, diagnostics);
  return file;
}

}  // namespace

std::unique_ptr<CostModel> cost_of_passes(const std::vector<MeasuredPass>& passes, const std::string& source) {
  Rows rows;
  for (const MeasuredPass& pass : passes) {
    const auto model = std::find(kModels.begin(), kModels.end(), pass.model);
    SPECSIM_CHECK(model != kModels.end() && pass.ms > 0.0, "a pass of {} in {} ms", pass.model, pass.ms);
    rows[static_cast<std::size_t>(model - kModels.begin())].insert({{pass.tokens, pass.batch, pass.context}, {pass.ms, 0}});
  }
  Diagnostics diagnostics;
  std::unique_ptr<CostModel> model = model_of(source, rows, 0.0, LargeDips::kept, diagnostics);
  diagnostics.throw_if_any();
  return model;
}

CostEntry table_cost() {
  struct P {
    double overhead_ms = 0.0;
  };
  using config::elsewhere;
  static const config::Fields<P> fields = {
      {"file", elsewhere<std::string>, "CSV with the columns model (target, draft, draft_first), tokens, batch, context, ms"},
      {"target_bench", elsewhere<std::string>,
       "instead: the output of llama.cpp's llama-bench for the target (-o csv, json, jsonl or md), batch 1"},
      {"draft_bench", elsewhere<std::string>, "with target_bench: the output of llama-bench for the draft"},
      {"overhead_ms", &P::overhead_ms, "host time of a speculative round in addition to its passes", config::between(0, 1e9)}};
  return {
      {"table", "measured times of passes, interpolated", "", fields,
       "Linear between measured points along tokens per sequence, batch and context; never beyond them. draft_first: a round's "
       "first draft pass, which finds the caches as the target's pass left them; without such rows it is like the others. "
       "Times that dip by up to 20 % from one point to the next are kept with a warning, larger dips and holes are refused. A "
       "plan up to draft length K at batches B and contexts C needs the following. Of the target: every combination of tokens "
       "1 and K + 1. Of the draft: tokens 1 and 2 (the one to catch up with). Each at the least and the greatest batch, and at "
       "the least context and the greatest + K. A template for K 4, batch 1 to 8, context 0 to 4096, with times to be filled "
       "in; write a line in place of each semicolon: `model,tokens,batch,context,ms; target,1,1,0,; target,5,1,0,; "
       "target,1,8,0,; target,5,8,0,; target,1,1,4100,; target,5,1,4100,; target,1,8,4100,; target,5,8,4100,; draft,1,1,0,; "
       "draft,2,1,0,; draft,1,8,0,; draft,2,8,0,; draft,1,1,4100,; draft,2,1,4100,; draft,1,8,4100,; draft,2,8,4100,`. "
       "llama-bench measures the same for one sequence: `llama-bench -m MODEL -p 1,2,3,4,5 -n 0 -d 0,4100 -o csv`, for target "
       "and draft."},
      [](const config::Arguments& arguments, Diagnostics& diagnostics) -> std::unique_ptr<CostModel> {
        const std::size_t before = diagnostics.list().size();
        Rows rows;
        const std::string file = read_measured(arguments, rows, diagnostics);
        if (diagnostics.list().size() != before) return nullptr;
        return model_of(file, rows, fields.read(arguments).overhead_ms, LargeDips::refused, diagnostics);
      }};
}

}  // namespace specsim::cost
