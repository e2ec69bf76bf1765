#include "sim/experiment/results.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <sstream>

namespace specsim::experiment {

namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

double sum_of(const std::vector<std::uint64_t>& values) {
  double sum = 0.0;
  for (const std::uint64_t value : values) sum += static_cast<double>(value);
  return sum;
}

// Standard error of sum y / sum x over independent sequences, by the delta method, from integers alone.
double ratio_error(std::uint64_t sequences, std::uint64_t sum_x, std::uint64_t sum_y, std::uint64_t sum_xx, std::uint64_t sum_xy, std::uint64_t sum_yy) {
  if (sequences < 2 || sum_x == 0) return kNaN;
  const auto n = static_cast<double>(sequences);
  const double ratio = static_cast<double>(sum_y) / static_cast<double>(sum_x);
  const double spread = static_cast<double>(sum_yy) - 2.0 * ratio * static_cast<double>(sum_xy) + ratio * ratio * static_cast<double>(sum_xx);
  return std::sqrt(std::max(spread, 0.0) * n / (n - 1.0)) / static_cast<double>(sum_x);
}

std::string csv_text(const std::string& text) {
  if (text.find_first_of(",\"\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + "\"";
}

std::string count_text(double n) { return fmt::format("{:.0f}", n); }

std::vector<std::string> axes_of(const std::vector<Row>& rows) {
  std::vector<std::string> axes;
  for (const Row& row : rows)
    for (const auto& [path, value] : row.cell->axes)
      if (std::find(axes.begin(), axes.end(), path) == axes.end()) axes.push_back(path);
  return axes;
}

std::string axis_value(const Row& row, const std::string& path) {
  for (const auto& [own, value] : row.cell->axes)
    if (own == path) return value;
  return "";
}

std::string theory_text(const Prediction& prediction, double value) { return prediction.known ? real_text(value) : ""; }

double speedup_theory(const Row& row) {
  return row.judged_by.speedup ? *row.judged_by.speedup : row.judged_by.tokens_per_round * row.speedup_per_token();
}

}  // namespace

double Row::drafted() const { return static_cast<double>(counts.rounds + counts.cut_rounds) * cell->chain.draft_length; }
double Row::accepted() const { return sum_of(counts.accepted); }
double Row::tries() const { return sum_of(counts.reached); }
double Row::alpha() const { return tries() > 0.0 ? accepted() / tries() : kNaN; }
double Row::alpha_error() const { return ratio_error(counts.sequences, counts.sum_tries, counts.sum_accepted, counts.sum_tries_squared, counts.sum_tries_accepted, counts.sum_accepted_squared); }
double Row::tokens_per_round() const { return static_cast<double>(counts.emitted) / static_cast<double>(counts.rounds); }

double Row::tokens_per_round_error() const {
  return ratio_error(counts.sequences, counts.rounds, counts.emitted, counts.sum_rounds_squared, counts.sum_rounds_emitted, counts.sum_emitted_squared);
}

double Row::speedup_per_token() const { return 1.0 / cell->cost->round_time(cell->chain.draft_length); }

std::string real_text(double x) {
  if (std::isnan(x)) return "";
  if (std::isinf(x)) return x > 0.0 ? "inf" : "-inf";
  return fmt::format("{:.10g}", x);
}

const std::vector<Column>& columns() {
  static const std::vector<Column> list = {
      {"rounds", "1", "whole rounds simulated", [](const Row& r) { return std::to_string(r.counts.rounds); }},
      {"drafted", "tokens", "draft_length for each round", [](const Row& r) { return count_text(r.drafted()); }},
      {"accepted", "tokens", "sum of accepted_pos_i", [](const Row& r) { return count_text(r.accepted()); }},
      {"emitted", "tokens", "accepted + 1 for each whole round", [](const Row& r) { return std::to_string(r.counts.emitted); }},
      {"cut_rounds", "1", "rounds cut by a request's end, in neither rounds nor emitted", [](const Row& r) { return std::to_string(r.counts.cut_rounds); }},
      {"accepted_pos_i", "rounds", "rounds that accepted draft position i", nullptr},
      {"alpha_theory", "1", "try-weighted expected acceptance at a position that is reached", [](const Row& r) { return theory_text(r.exact, r.exact.alpha); }},
      {"alpha", "1", "accepted / (accepted + rejections)", [](const Row& r) { return real_text(r.alpha()); }},
      {"alpha_se", "1", "from the spread of independent sequences", [](const Row& r) { return real_text(r.alpha_error()); }},
      {"tokens_per_round_theory", "tokens", "by the closed form in column theory", [](const Row& r) { return theory_text(r.judged_by, r.judged_by.tokens_per_round); }},
      {"tokens_per_round", "tokens", "emitted / rounds", [](const Row& r) { return real_text(r.tokens_per_round()); }},
      {"tokens_per_round_se", "tokens", "from the spread of independent sequences", [](const Row& r) { return real_text(r.tokens_per_round_error()); }},
      {"speedup_theory", "1", "tokens_per_round_theory / round time", [](const Row& r) { return theory_text(r.judged_by, speedup_theory(r)); }},
      {"speedup", "1", "tokens_per_round / (draft_length cost_ratio + verify_inflation + overhead)",
       [](const Row& r) { return real_text(r.tokens_per_round() * r.speedup_per_token()); }},
      {"speedup_se", "1", "tokens_per_round_se / round time", [](const Row& r) { return real_text(r.tokens_per_round_error() * r.speedup_per_token()); }},
      {"z_tokens_per_round", "1", "(tokens_per_round - theory) / standard deviation by theory", [](const Row& r) { return real_text(r.agreement.z_tokens_per_round); }},
      {"p_accepted_law", "1", "G-test of the law of accepted, by context at the round's start", [](const Row& r) { return real_text(r.agreement.p_accepted_law); }},
      {"p_output_law", "1", "emitted tokens against the target's law: G-tests by class and by neighbours, score test for a leak of the draft; Sidak over them",
       [](const Row& r) { return real_text(r.agreement.p_output_law); }},
      {"smallest_leak", "1", "smallest leak of the draft's law into the output that would be rejected with power .99", [](const Row& r) { return real_text(r.agreement.smallest_leak); }},
      {"kl", "nats", "KL(target || draft), mean over contexts", [](const Row& r) { return real_text(r.kl); }},
      {"chi_squared", "1", "chi2(draft || target), mean over contexts", [](const Row& r) { return real_text(r.chi_squared); }},
      {"theory", "", "closed form that judged the cell", [](const Row& r) { return r.cell->theory.name; }},
      {"verdict", "", "agree, disagree, refuted_as_expected or no_theory", [](const Row& r) { return std::string(to_text(r.verdict)); }}};
  return list;
}

void judge_rows(std::vector<Row>& rows, const std::function<const LawFacts&(const Row&)>& facts) {
  const double level = check_level(rows.size() * kChecksPerCell);
  for (Row& row : rows) {
    const LawFacts& own = facts(row);
    const std::uint64_t work = row.cell->contexts->process->shape().request_tokens > 0 ? row.counts.sequences : row.counts.rounds;
    row.exact = predict_exact(*row.cell, own, work);
    row.judged_by = row.cell->theory.name == "exact"  ? row.exact
                    : row.cell->theory.name == "none" ? Prediction{}
                                                      : predict_named(*row.cell, own, row.exact);
    row.agreement = judge_cell(*row.cell, own, row.judged_by, row.counts, level);
    const Agreement exact = judge_cell(*row.cell, own, row.exact, row.counts, level);
    row.verdict = decide(*row.cell, row.judged_by, exact, row.agreement, level);
    row.could_have_failed = could_have_failed(own, row.agreement);
    row.chi_squared = own.chi_squared;
    row.kl = own.kl;
  }
}

std::string data_csv(const std::vector<Row>& rows) {
  const std::vector<std::string> axes = axes_of(rows);
  std::size_t positions = 0;
  for (const Row& row : rows) positions = std::max(positions, row.counts.accepted.size());
  std::string text = "experiment,cell,seed";
  for (const std::string& axis : axes) text += "," + csv_text(axis);
  for (const Column& column : columns()) {
    if (column.text) {
      text += "," + column.name;
    } else {
      for (std::size_t i = 1; i <= positions; ++i) text += fmt::format(",accepted_pos_{}", i);
    }
  }
  text += "\n";
  for (const Row& row : rows) {
    text += fmt::format("{},{},{}", csv_text(row.cell->experiment), row.cell->index, row.cell->seed);
    for (const std::string& axis : axes) text += "," + csv_text(axis_value(row, axis));
    for (const Column& column : columns()) {
      if (column.text) {
        text += "," + column.text(row);
      } else {
        for (std::size_t i = 0; i < positions; ++i) text += "," + (i < row.counts.accepted.size() ? std::to_string(row.counts.accepted[i]) : "");
      }
    }
    text += "\n";
  }
  return text;
}

std::string counts_csv(const std::vector<Row>& rows) {
  std::string text = "experiment,cell,name,index,value\n";
  for (const Row& row : rows) {
    row.counts.each([&](const char* name, std::size_t index, std::uint64_t value) {
      if (value != 0) text += fmt::format("{},{},{},{},{}\n", csv_text(row.cell->experiment), row.cell->index, name, index, value);
    });
  }
  return text;
}

void add_counts_csv(const std::string& path, const std::string& text,
                    const std::map<std::pair<std::string, std::size_t>, decode::Counts*>& counts) {
  std::istringstream lines(text);
  std::string line;
  int number = 0;
  while (std::getline(lines, line)) {
    if (++number == 1) continue;
    const Location where{path, number, 0};
    std::vector<std::string> cells;
    std::istringstream parts(line);
    for (std::string part; std::getline(parts, part, ',');) cells.push_back(part);
    const auto read = [&](const std::string& digits) {
      std::uint64_t value = 0;
      const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
      if (error != std::errc() || end != digits.data() + digits.size()) throw BadInput(where, fmt::format("\"{}\" is no count", digits));
      return value;
    };
    if (cells.size() != 5) throw BadInput(where, fmt::format("{} fields, allowed: experiment,cell,name,index,value", cells.size()));
    const auto found = counts.find({cells[0], read(cells[1])});
    if (found == counts.end()) throw BadInput(where, fmt::format("cell {} of {} is not in the manifest's experiments", cells[1], cells[0]));
    const std::uint64_t index = read(cells[3]);
    const std::uint64_t value = read(cells[4]);
    bool placed = false;
    found->second->each([&](const char* name, std::size_t at, std::uint64_t& total) {
      if (at == index && cells[2] == name) {
        total += value;
        placed = true;
      }
    });
    if (!placed) throw BadInput(where, fmt::format("no count {}[{}] in this cell", cells[2], index));
  }
}

namespace {

std::string table_of_one(const std::vector<Row>& rows) {
  const std::vector<std::string> axes = axes_of(rows);
  std::vector<std::vector<std::string>> cells;
  std::vector<std::string> head = {"cell"};
  for (const std::string& axis : axes) head.push_back(axis.substr(axis.rfind('.') == std::string::npos ? 0 : axis.rfind('.') + 1));
  for (const char* name : {"alpha", "tokens/round", "+-95%", "theory", "z", "speedup", "p accepted", "p output", "leak seen", "verdict"}) head.emplace_back(name);
  cells.push_back(head);
  const auto short_real = [](double x, const char* format) { return std::isnan(x) ? std::string("-") : fmt::format(fmt::runtime(format), x); };
  for (const Row& row : rows) {
    std::vector<std::string> line = {std::to_string(row.cell->index)};
    for (const std::string& axis : axes) {
      std::string value = axis_value(row, axis);
      if (value.size() > 28) value = value.substr(0, 25) + "...";
      line.push_back(value);
    }
    const bool known = row.judged_by.known;
    line.push_back(short_real(row.alpha(), "{:.4f}"));
    line.push_back(short_real(row.tokens_per_round(), "{:.4f}"));
    line.push_back(short_real(1.96 * row.tokens_per_round_error(), "{:.4f}"));
    line.push_back(known ? short_real(row.judged_by.tokens_per_round, "{:.4f}") : "-");
    line.push_back(known ? short_real(row.agreement.z_tokens_per_round, "{:+.2f}") : "-");
    line.push_back(short_real(row.tokens_per_round() * row.speedup_per_token(), "{:.3f}"));
    line.push_back(short_real(row.agreement.p_accepted_law, "{:.2g}"));
    line.push_back(short_real(row.agreement.p_output_law, "{:.2g}"));
    line.push_back(std::isnan(row.agreement.smallest_leak) ? "-" : fmt::format("{:.2g}%", 100.0 * row.agreement.smallest_leak));
    line.emplace_back(to_text(row.verdict));
    cells.push_back(line);
  }
  std::vector<std::size_t> width(head.size(), 0);
  for (const auto& line : cells)
    for (std::size_t i = 0; i < line.size(); ++i) width[i] = std::max(width[i], line[i].size());
  std::string text;
  for (const auto& line : cells) {
    std::string out;
    for (std::size_t i = 0; i < line.size(); ++i) out += fmt::format("{:>{}}  ", line[i], width[i]);
    out.erase(out.find_last_not_of(' ') + 1);
    text += out + "\n";
  }
  return text;
}

}  // namespace

std::string table(const std::vector<Row>& rows) {
  std::string text;
  for (std::size_t begin = 0; begin < rows.size();) {
    std::size_t end = begin;
    while (end < rows.size() && rows[end].cell->experiment == rows[begin].cell->experiment) ++end;
    if (end - begin < rows.size()) text += fmt::format("{}{}\n", begin > 0 ? "\n" : "", rows[begin].cell->experiment);
    text += table_of_one({rows.begin() + static_cast<std::ptrdiff_t>(begin), rows.begin() + static_cast<std::ptrdiff_t>(end)});
    begin = end;
  }
  return text;
}

}  // namespace specsim::experiment
