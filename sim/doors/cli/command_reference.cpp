#include "sim/doors/cli/command_reference.h"

#include "sim/doors/cli/command.h"
#include "sim/foundation/config/value.h"
#include "specsim_version.h"

#include <nlohmann/json.hpp>

#include <cmath>
#include <cstdlib>

namespace specsim::cli {

namespace {

using Node = nlohmann::ordered_json;

constexpr const char* kSchema = "http://json-schema.org/draft-07/schema#";

// A default as the value that the option's type makes of it.
Node default_of(const OptionInfo& option) {
  if (option.fallback.empty()) return nullptr;
  if (option.type != "number" && option.type != "integer") return option.fallback;
  const double number = std::strtod(option.fallback.c_str(), nullptr);
  return option.type == "integer" ? Node(static_cast<std::int64_t>(number)) : Node(number);
}

Node option_json(const OptionInfo& option, const std::vector<NamedPart>& parts) {
  Node json = {{"name", "--" + option.name}, {"type", option.type}};
  if (option.type != "flag") json["default"] = default_of(option);
  if (option.required) json["required"] = true;
  if (option.repeats) json["repeats"] = true;
  if (option.interval) {
    const config::Interval& allowed = *option.interval;
    if (std::isfinite(allowed.low)) json[allowed.low_open ? "above" : "minimum"] = allowed.low;
    if (std::isfinite(allowed.high)) json[allowed.high_open ? "below" : "maximum"] = allowed.high;
  }
  if (const std::vector<std::string> words = words_of(option, parts); !words.empty())
    json[option.type == "word" || option.name == "format" || option.name == "server" ? "allowed" : "names"] = words;
  json["help"] = option.help;
  return json;
}

Node command_json(const Command& command, const std::vector<NamedPart>& parts) {
  const CommandInfo info = command_info(command);
  Node options = Node::array();
  for (const OptionInfo& option : info.options) {
    options.push_back(option_json(option, parts));
    if (command.name == "cluster" && option.name == "format") options.back()["allowed"] = {"table"};  // its script prints text
  }
  return {{"name", command.name},      {"summary", command.summary},    {"usage", info.usage},
          {"words", info.takes_files}, {"options", std::move(options)}, {"examples", info.examples}};
}

// The output of --format json, for every command (docs/output.md).
Node output_schema() {
  const Node text = {{"type", "string"}};
  const Node texts = {{"type", "array"}, {"items", text}};
  const Node cell = {{"type", {"number", "string", "boolean", "null"}}};
  const Node table = {
      {"type", "object"},
      {"required", {"columns", "rows"}},
      {"properties",
       {{"title", text}, {"columns", texts}, {"rows", {{"type", "array"}, {"items", {{"type", "array"}, {"items", cell}}}}}}}};
  return {{"$schema", kSchema},
          {"type", "object"},
          {"required", {"schema", "program", "version", "commit", "command", "exit_status", "tables", "text"}},
          {"properties",
           {{"schema", {{"const", "specsim-output/2"}}},
            {"program", {{"const", "specsim"}}},
            {"version", text},
            {"commit", text},
            {"command", texts},
            {"exit_status", {{"type", "integer"}, {"minimum", 0}, {"maximum", 6}}},
            {"tables", {{"type", "array"}, {"items", table}}},
            {"text", texts}}}};
}

Node columns_json() {
  Node files = Node::object();
  for (const report::FileInfo& file : written_files()) {
    Node columns = Node::array();
    for (const report::ColumnInfo& column : file.columns)
      columns.push_back({{"name", column.name}, {"unit", column.unit}, {"meaning", column.meaning}});
    files[file.name] = std::move(columns);
  }
  return files;
}

}  // namespace

std::string command_reference() {
  const std::vector<NamedPart> parts = named_parts();
  Node list = Node::array();
  for (const Command& command : commands()) list.push_back(command_json(command, parts));
  const Node statuses = {{"0", "fine"},
                         {"1", "simulation and theory disagree, or a claim does not hold"},
                         {"2", "bad input"},
                         {"3", "nothing disagrees, but not every cell was tested as it should be"},
                         {"4", "the machine refused"},
                         {"5", "a defect of the program"},
                         {"6", "interrupted"}};
  const Node all = {{"schema", "specsim-reference/1"},  {"program", "specsim"},
                    {"version", build_info::version},   {"commit", build_info::commit},
                    {"commands", std::move(list)},      {"exit_statuses", statuses},
                    {"output_schema", output_schema()}, {"config_schema", "printed by specsim schema"},
                    {"files", columns_json()}};
  return all.dump(1) + "\n";
}

}  // namespace specsim::cli
