#include "sim/experiments/judge/rows.h"
#include "sim/foundation/base/output.h"
#include "sim/foundation/report/intervals.h"
#include "sim/foundation/report/short_text.h"
#include "sim/foundation/report/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <utility>

namespace specsim::judge {

namespace {

// Column heads of the axes: the last word of the path, or more words if needed to distinguish them.
std::vector<std::string> axis_heads(const std::vector<std::string>& axes) {
  std::vector<std::string> heads;
  for (const std::string& axis : axes) {
    std::size_t from = axis.rfind('.');
    const auto same = [&](const std::string& tail) {
      return std::count_if(axes.begin(), axes.end(), [&](const std::string& other) { return other.ends_with(tail); }) > 1;
    };
    while (from != std::string::npos && from > 0 && same(axis.substr(from))) from = axis.rfind('.', from - 1);
    heads.push_back(from == std::string::npos ? axis : axis.substr(from + 1));
  }
  return heads;
}

// Half the width of a figure's 95 % interval; NaN below five independent groups of sequences.
double half_width(const Row& row, const report::Estimate& estimate) {
  return row.counts.groups < 5 ? std::numeric_limits<double>::quiet_NaN() : report::half_width(estimate);
}

// The speedup of a round. If a placement was simulated: of the batch, from its first prefill to its last token.
double speedup_of(const Row& row) { return row.timed ? row.timed->speedup() : row.tokens_per_round() * row.speedup_per_token(); }

// The axes of one experiment, as its table shows them.
struct Axes {
  explicit Axes(const std::vector<Row>& rows) : paths(spec::axes_of(rows)), heads(axis_heads(paths)), values(paths.size()) {
    for (const Row& row : rows)
      for (std::size_t i = 0; i < paths.size(); ++i) values[i].push_back(spec::axis_value(*row.cell, paths[i]));
  }
  [[nodiscard]] std::string shown(const Row& row, std::size_t i) const {
    return report::short_value(spec::axis_value(*row.cell, paths[i]), values[i]);
  }
  // "draft_length 4, batch 8"
  [[nodiscard]] std::string name(const Row& row) const {
    std::string text;
    for (std::size_t i = 0; i < paths.size(); ++i) text += fmt::format("{}{} {}", i > 0 ? ", " : "", heads[i], shown(row, i));
    return text;
  }

  std::vector<std::string> paths;
  std::vector<std::string> heads;
  std::vector<std::vector<std::string>> values;  // [axis][row]
};

// The columns of an experiment's table.
struct ShownColumns {
  bool has_cost = false;
  bool timed = false;  // a placement was simulated
  bool checks = false;
};

// Cells that differ only in decode and cost use the same random numbers, so their z-scores are not independent. This maps to the
// first of each group.
std::map<std::pair<std::uint64_t, std::uint64_t>, const Row*> first_rows(const std::vector<Row>& rows) {
  std::map<std::pair<std::uint64_t, std::uint64_t>, const Row*> first;
  for (const Row& row : rows) first.try_emplace({row.cell->seed, row.cell->pairing_group}, &row);
  return first;
}

// `first`: the first row that uses the same random numbers as `row`.
void add_check_cells(const Row& first, const Row& row, std::vector<std::string>& line) {
  const bool known = row.judged_by.known;
  line.push_back(known ? report::cell_text(row.judged_by.tokens_per_round, "{:.4f}") : "-");
  line.push_back(&first == &row ? "own" : fmt::format("cell {}'s", first.cell->index));
  line.push_back(known ? report::cell_text(row.agreement.z_tokens_per_round, "{:+.2f}") : "-");
  line.push_back(report::cell_text(row.agreement.p_accepted_distribution, "{:.2g}"));
  line.push_back(report::cell_text(row.agreement.p_output_distribution, "{:.2g}"));
  line.push_back(std::isnan(row.agreement.smallest_leak) ? "-" : fmt::format("{:.2g}%", 100.0 * row.agreement.smallest_leak));
  line.emplace_back(to_text(row.verdict));
}

report::Table figures_of(const std::vector<Row>& rows, const Axes& axes, const ShownColumns& shown) {
  std::vector<report::Head> heads = {{"cell"}};
  const auto add_heads = [&](const auto& names) {
    for (const auto& name : names) heads.push_back({name});
  };
  add_heads(axes.heads);
  add_heads(std::array{"alpha", "acc/drafted", "tokens/round", "+-95%"});
  if (shown.has_cost) add_heads(std::array{"speedup", "+-95%"});
  if (shown.timed) add_heads(std::array{"e2e speedup", "TTFT ms", "TPOT p50 ms"});
  if (shown.checks) add_heads(std::array{"theory", "draws", "z", "p accepted", "p output", "leak seen", "verdict"});
  report::Table table(heads, {.keys = 1 + axes.paths.size()});
  const auto first_of = first_rows(rows);
  for (const Row& row : rows) {
    std::vector<std::string> line = {std::to_string(row.cell->index)};
    const auto add = [&](double x, const char* format) { line.push_back(report::cell_text(x, format)); };
    for (std::size_t i = 0; i < axes.paths.size(); ++i) line.push_back(axes.shown(row, i));
    add(row.alpha(), "{:.4f}");
    add(row.draft_efficiency(), "{:.4f}");
    add(row.tokens_per_round(), "{:.4f}");
    add(half_width(row, row.tokens_per_round_estimate()), "{:.4f}");
    if (shown.has_cost) {
      const report::Estimate speedup = row.speedup_estimate();
      add(speedup.value, "{:.4f}");
      add(half_width(row, speedup), "{:.4f}");
    }
    if (shown.timed && row.timed) {
      add(row.timed->speedup(), "{:.4f}");
      add(1e3 * row.timed->run.time_to_first_token.seconds(), "{:.2f}");
      add(1e3 * row.timed->run.time_per_output_token.p50, "{:.3f}");
    } else if (shown.timed) {
      line.insert(line.end(), 3, "-");
    }
    if (shown.checks) add_check_cells(*first_of.at({row.cell->seed, row.cell->pairing_group}), row, line);
    table.add(std::move(line));
  }
  return table;
}

// The answer that most sweeps are made for; "" if there is none. Policies that know the future are excluded.
std::string fastest_text(const std::vector<Row>& rows, const Axes& axes, bool timed) {
  const std::vector<const Row*> order = by_speedup(rows.data(), rows.data() + rows.size());
  if (order.size() < 2) return "";
  if (speedup_of(*order[0]) <= 1.0) return "no cell is faster than plain decoding: do not speculate\n";
  if (!(speedup_of(*order[0]) > speedup_of(*order[1]))) return "";
  // A second GPU would have sped up decoding without speculation too.
  const auto twice = order[0]->timed ? order[0]->timed->speedup_of_twice() : std::nullopt;
  return fmt::format("fastest: {} ({}speedup {:.4f}{}); next: {} ({:.4f})\n", axes.name(*order[0]), timed ? "e2e " : "",
                     speedup_of(*order[0]), twice ? fmt::format(", {:.4f} relative to plain decoding on both GPUs", *twice) : "",
                     axes.name(*order[1]), speedup_of(*order[1]));
}

// The variation that the intervals omit; "" if the distributions are all given, or are fresh at every position.
std::string draw_text(const std::vector<Row>& rows, const Axes& axes, const std::vector<DrawSpread>& spreads) {
  if (std::none_of(rows.begin(), rows.end(), [](const Row& row) { return drawn_once(*row.cell); })) return "";
  std::string text = "+-95% is the error of the simulated rounds, for the distributions as they were drawn";
  for (const Row& row : rows) {
    const auto own = std::find_if(spreads.begin(), spreads.end(), [&](const DrawSpread& one) { return one.cell == row.cell; });
    if (own == spreads.end() || std::isnan(own->tokens_per_round)) continue;
    const std::string name = axes.name(row);
    text += fmt::format("; over other draws (--seed), {}{}tokens/round has a standard deviation of {:.2g}", name,
                        name.empty() ? "" : "'s ", own->tokens_per_round);
    if (!std::isnan(own->speedup)) text += fmt::format(" and speedup one of {:.2g}", own->speedup);
    text += fmt::format(" (from {} draws)", own->draws);
  }
  if (rows.front().cell->contexts->process->shape().contexts == 1) text += "; context: {process: iid} averages over draws";
  return text + "\n";
}

std::string table_of_one(const std::vector<Row>& rows, bool with_checks, const std::vector<DrawSpread>& spreads) {
  const auto any = [&](const auto& holds) { return std::any_of(rows.begin(), rows.end(), holds); };
  const Axes axes(rows);
  const ShownColumns shown{any([](const Row& row) { return row.cell->cost_choice.has_value(); }),
                           any([](const Row& row) { return row.timed.has_value(); }), with_checks};
  std::string text = figures_of(rows, axes, shown).text(output_width());
  if (any([](const Row& row) { return row.timed && std::isnan(row.timed->run.time_per_output_token.p50); }))
    text += "TPOT -: no answer has a second token (output_tokens is 1, or an end token came first)\n";
  if (shown.has_cost)
    text += fastest_text(rows, axes, shown.timed);
  else
    text += "no speedup: the config names no cost (cost: {model: ...}), and tokens per round do not include the time of drafts\n";
  text += draw_text(rows, axes, spreads);
  return text;
}

}  // namespace

bool drawn_once(const spec::Cell& cell) {
  if (cell.contexts->process->shape().contexts == 0) return false;
  return std::any_of(cell.contexts->pairs.begin(), cell.contexts->pairs.end(),
                     [](const families::PairSource& pair) { return pair.random(); });
}

std::vector<const Row*> by_speedup(const Row* begin, const Row* end) {
  std::vector<const Row*> order;
  for (const Row* row = begin; row != end; ++row) {
    const spec::PolicyChoice* policy = row->cell->policy();
    if (row->counts.rounds > 0 && !std::isnan(speedup_of(*row)) && (policy == nullptr || !policy->part->uses_forecasts()))
      order.push_back(row);
  }
  std::stable_sort(order.begin(), order.end(), [](const Row* a, const Row* b) { return speedup_of(*a) > speedup_of(*b); });
  return order;
}

std::string table(const std::vector<Row>& rows, bool with_checks, const std::vector<DrawSpread>& spreads) {
  std::string text;
  for (std::size_t begin = 0; begin < rows.size();) {
    std::size_t end = begin;
    while (end < rows.size() && rows[end].cell->experiment == rows[begin].cell->experiment) ++end;
    if (end - begin < rows.size()) text += fmt::format("{}{}\n", begin > 0 ? "\n" : "", rows[begin].cell->experiment);
    text += table_of_one({rows.begin() + static_cast<std::ptrdiff_t>(begin), rows.begin() + static_cast<std::ptrdiff_t>(end)},
                         with_checks, spreads);
    begin = end;
  }
  return text;
}

}  // namespace specsim::judge
