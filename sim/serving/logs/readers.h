// The table of readers: which text is whose, and what each of its figures counts.
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
  running,            // requests that run at the time
  rounds,             // rounds that had a draft
  rounds_per_answer,  // their mean over the answers
  last_round,         // rounds of an answer, counted from 0
  drafted,
  accepted,
  rejected,
  emitted,          // tokens that the rounds emitted
  length,           // emitted tokens per round; follows from the counts beside it
  rough_length,     // the same over other rounds than the counts beside it, or a mean of means
  rate,             // accepted / drafted
  draft_length,     // as the server was told
  verified,         // tokens of a round that the target judges, the root included
  shares,           // of rounds that accepted each position
  histogram,        // rounds by how many draft tokens they accepted
  share_histogram,  // the same as shares of all rounds
  emitted_each,     // emitted tokens of each round
};
constexpr std::size_t kRoles = static_cast<std::size_t>(Role::emitted_each) + 1;

// What one line, one answer or one run's report says, each figure as it stands there.
class Report {
 public:
  [[nodiscard]] bool has(Role role) const { return !list(role).empty(); }
  // The last one said; NaN where none is.
  [[nodiscard]] double number(Role role) const;
  [[nodiscard]] double sum(Role role) const;
  [[nodiscard]] std::vector<double>& list(Role role) { return values_[static_cast<std::size_t>(role)]; }
  [[nodiscard]] const std::vector<double>& list(Role role) const { return values_[static_cast<std::size_t>(role)]; }
  void set(Role role, double value) { list(role) = {value}; }
  [[nodiscard]] bool empty() const;
  // Takes a number that stands at place `at` of a list. False where no server can have counted it.
  bool take(Role role, double value, std::size_t at);
  // Takes what the other says and this one does not.
  void merge(const Report& other);

  std::string name;        // what tells it from others of its kind
  std::string id;          // of an answer that comes in pieces, each of which counts from its beginning
  std::string_view line;   // the line that it is from
  bool broken = false;     // of the line, spaces are left out
  bool counted = true;     // rounds are a count, not an estimate
  std::string bad_figure;  // the key of a figure that is no such number
  bool bad_list = false;   // or of a list of them

 private:
  std::array<std::vector<double>, kRoles> values_;
};

struct KeyedFigure {
  Role role = Role::answers;
  // What stands before it. A name alone or with that of its object, "parent.key", in JSON; "Position {}:" has the place of a list
  // for {}; "^text" is a number before the text.
  const char* key = nullptr;
  double scale = 1.0;
};

enum class Form {
  line,      // all figures on one line
  block,     // a figure a line, until one comes again
  object,    // an object of JSON, or of Python as it prints one, and what lies in it
  document,  // a whole one
};

struct Reader {
  Kind kind;
  Form form;
  // A line has this text before its figures; an object this key ("": any); a block ends with a line that has it ("": none has).
  const char* begins;
  const char* also;          // a line has this text too, or is not of this reader
  const char* closes;        // a line without it was cut, or broken by a terminal
  std::array<Role, 4> need;  // without the first it is not of this reader, without the others it cannot be read; none: no more
  std::array<KeyedFigure, 12> keyed;
  bool answers = false;         // each is one answer, whose last draft may be short
  double share_rounding = 0.0;  // how far a printed share may be from the one it stands for
  double length_rounding = 0.0051;
  void (LogReader::*take)(const Reader& reader, Report& report) = nullptr;  // where it is more than add_report()

  [[nodiscard]] std::span<const Role> needs() const { return {need.begin(), std::find(need.begin(), need.end(), Role::none)}; }
  [[nodiscard]] std::span<const KeyedFigure> figures() const {
    return {keyed.begin(), std::find_if(keyed.begin(), keyed.end(), [](const KeyedFigure& one) { return one.key == nullptr; })};
  }
};
std::span<const Reader> readers();

// What the line says by this reader; nothing where it is not of it. `broken`: it is without_spaces(), for a terminal or a page
// broke it anywhere.
std::optional<Report> read_line_by(const Reader& reader, std::string_view line, bool broken = false);
std::string without_spaces(std::string_view text);
// What a line says for a block that goes on from `before`. True where it begins another block, since it says again what that has.
bool read_block_line(const Reader& reader, std::string_view line, const Report& before, Report& now);
// Why the report cannot be read; "" where it can.
std::string missing_figures(const Reader& reader, const Report& report);

// Works out what the figures leave unsaid: rounds, accepted tokens. Returns why no server can have counted so; "" where one can.
std::string complete(Report& report);
// Printed figures that do not follow from each other; "" where all do.
std::string contradiction(const Reader& reader, const Report& report);

}  // namespace specsim::logs
