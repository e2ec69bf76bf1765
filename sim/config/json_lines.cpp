#include "sim/config/json_lines.h"

#include "sim/base/whole_file.h"

#include <fmt/format.h>

#include <sstream>

namespace specsim::config {

void read_json_lines(const std::string& path, const Location& named, const std::string& allowed, Diagnostics& diagnostics,
                     const std::function<void(const Value& object, const Location& where)>& on_line) {
  std::string text;
  try {
    text = read_whole_file(path);
  } catch (const IoError& error) {
    diagnostics.add(named, fmt::format("{}, allowed: a readable JSONL file", error.what()));
    return;
  }
  constexpr std::size_t kMostMistakes = 20;
  const std::size_t before = diagnostics.list().size();
  std::istringstream lines(text);
  Location where{path, 0, 0};
  for (std::string line; std::getline(lines, line) && diagnostics.list().size() < before + kMostMistakes;) {
    ++where.line;
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    if (line.ends_with('\r')) line.pop_back();
    Diagnostics broken;  // its places are those of a text of one line
    const Value value = parse_text(line, path, broken);
    if (broken.empty() && value.is_map())
      on_line(value, where);
    else
      diagnostics.add(where, "this is no JSON object, allowed: " + allowed);
  }
}

}  // namespace specsim::config
