// The table of readers: which text belongs to which server, and what each of its figures counts.
#pragma once

#include "sim/serving/logs/server_log.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace specsim::logs {

enum class Role {
  none,
  answers,            // requests that the other figures are of
  running,            // requests running at that time
  rounds,             // rounds that had a draft
  rounds_per_answer,  // their mean over the answers
  last_round,         // rounds of an answer, counted from 0
  drafted,
  accepted,
  rejected,
  emitted,          // tokens that the rounds emitted
  length,           // emitted tokens per round; follows from the counts next to it
  rough_length,     // the same over other rounds than the counts next to it, or a mean of means
  rate,             // accepted / drafted
  draft_length,     // as configured in the server
  verified,         // tokens of a round that the target judges, the root included
  shares,           // of rounds that accepted each position
  histogram,        // rounds by how many draft tokens they accepted
  share_histogram,  // the same as shares of all rounds
  emitted_each,     // emitted tokens of each round
};
constexpr std::size_t kRoles = static_cast<std::size_t>(Role::emitted_each) + 1;

// The figures of one line, one answer or one run's report, as they are written there.
class Report {
 public:
  [[nodiscard]] bool has(Role role) const { return !list(role).empty(); }
  // The last value; NaN if there is none.
  [[nodiscard]] double number(Role role) const;
  [[nodiscard]] double sum(Role role) const;
  [[nodiscard]] std::vector<double>& list(Role role) { return values_[static_cast<std::size_t>(role)]; }
  [[nodiscard]] const std::vector<double>& list(Role role) const { return values_[static_cast<std::size_t>(role)]; }
  void set(Role role, double value) { list(role) = {value}; }
  [[nodiscard]] bool empty() const;
  // Stores a number at place `at` of a list. False if no server can have counted it.
  bool take(Role role, double value, std::size_t at);
  // Adds the other report's figures that this one does not have.
  void merge(const Report& other);

  std::string name;        // distinguishes it from others of its kind
  std::string id;          // id of an answer that comes in pieces, each of which counts from its beginning
  std::string_view line;   // line number in the text
  bool broken = false;     // length of the line, without spaces
  bool counted = true;     // rounds are a count, not an estimate
  std::string bad_figure;  // key of a figure whose number is invalid
  bool bad_list = false;   // key of a list with an invalid number

 private:
  std::array<std::vector<double>, kRoles> values_;
};

struct KeyedFigure {
  Role role = Role::answers;
  // The text before the value. In JSON, a name alone or with that of its object, "parent.key"; in "Position {}:", {} is the place
  // in a list; "^text" is a number before the text.
  const char* key = nullptr;
  double scale = 1.0;
};

enum class Form {
  line,      // all figures on one line
  block,     // one figure per line, until a figure is repeated
  object,    // an object of JSON, or of Python as it prints one, including nested values
  document,  // a whole one
};

struct Reader {
  LogKind kind;
  Form form;
  // A line has this text before its figures; an object has this key ("": any); a block ends with a line that has it ("": no end
  // line).
  const char* begins;
  const char* also;    // a line must have this text too
  const char* closes;  // a line without it was cut, or broken by a terminal
  // without the first key it is not of this reader, without the others it cannot be read; none: no more
  std::array<Role, 4> need;
  std::array<KeyedFigure, 12> keyed;
  bool answers = false;         // each is one answer, whose last draft may be short
  double share_rounding = 0.0;  // largest rounding error of a printed share
  double length_rounding = 0.0051;
  void (LogReader::*take)(const Reader& reader, Report& report) = nullptr;  // used if more than add_report() is needed

  [[nodiscard]] std::span<const Role> needs() const { return {need.begin(), std::find(need.begin(), need.end(), Role::none)}; }
  [[nodiscard]] std::span<const KeyedFigure> figures() const {
    return {keyed.begin(), std::find_if(keyed.begin(), keyed.end(), [](const KeyedFigure& one) { return one.key == nullptr; })};
  }
};
std::span<const Reader> readers();

// The figures of the line for this reader; nothing if the line is not of this reader. `broken`: without_spaces() of the line,
// because a terminal or a page may have broken it anywhere.
std::optional<Report> read_line_by(const Reader& reader, std::string_view line, bool broken = false);
std::string without_spaces(std::string_view text);
// Reads the line as a continuation of the block `before`. True if it begins another block, because it repeats a figure of that
// block.
bool read_block_line(const Reader& reader, std::string_view line, const Report& before, Report& now);
// Why the report cannot be read; "" if it can.
std::string missing_figures(const Reader& reader, const Report& report);

// Derives missing figures: rounds, accepted tokens. Returns why no server can have counted so; "" if one can.
std::string complete(Report& report);
// Printed figures that contradict each other; "" if none do.
std::string contradiction(const Reader& reader, const Report& report);

}  // namespace specsim::logs
