// specsim schema: the JSON Schema of configs, from the same tables as the reader and the reference page.
//
// Editors complete and check YAML with it. It covers sections, parts, keys, types and intervals. Conditions on several values at
// once (a draft length and a vocabulary, a cost model that a placement needs) are left to the program.
#include "sim/answers/load/experiment.h"
#include "sim/doors/cli/command.h"
#include "sim/doors/cli/named_parts.h"
#include "sim/doors/cli/options.h"
#include "sim/experiments/spec/sections.h"
#include "sim/foundation/base/output.h"
#include "specsim_version.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <map>

namespace specsim::cli {

namespace {

using Json = nlohmann::ordered_json;

// A place where a part is chosen: the section, the key that names it, the kind, and further keys of the same map that others
// read.
struct Choice {
  const char* path;
  const char* key;
  const char* kind;
  bool name_alone = false;  // "verifier: token" means {kind: token}
  std::vector<std::string> beside = {};
};
const std::vector<Choice>& choices() {
  static const std::vector<Choice> list = {{"pair.target", "family", "family"},
                                           {"context", "process", "context"},
                                           {"decode.drafter", "kind", "drafter", true},
                                           {"decode.verifier", "kind", "verifier", true},
                                           {"decode.policy", "kind", "policy", true, {"round_cost"}},
                                           {"cost", "model", "cost"},
                                           {"placement", "kind", "placement", false, {"shrink"}},
                                           {"serve.scheduler", "kind", "scheduler", true},
                                           {"serve.arrivals", "process", "arrivals"},
                                           {"serve.speculation.policy", "kind", "server_policy"}};
  return list;
}

void limit(Json& schema, const config::Interval& interval) {
  if (std::isfinite(interval.low)) schema[interval.low_open ? "exclusiveMinimum" : "minimum"] = interval.low;
  if (std::isfinite(interval.high)) schema[interval.high_open ? "exclusiveMaximum" : "maximum"] = interval.high;
}

Json type_schema(const config::Parameter& parameter) {
  Json number = {{"type", "number"}};
  limit(number, parameter.interval);
  switch (parameter.type) {
    case config::Type::integer:
      number["type"] = "integer";
      return number;
    case config::Type::number:
      if (std::isfinite(parameter.interval.high) || parameter.interval.high_open) return number;
      return number;
    case config::Type::text: {
      if (parameter.choices.empty()) return {{"type", Json::array({"string", "number", "boolean"})}};
      return {{"enum", parameter.choices}};
    }
    case config::Type::boolean:
      return {{"type", "boolean"}};
    case config::Type::number_list:
      return {{"type", "array"}, {"items", number}};
    case config::Type::number_table:
      return {{"type", "array"}, {"items", {{"type", "array"}, {"items", number}}}};
    case config::Type::value:
      return Json::object();
    case config::Type::value_list:
      return {{"type", "array"}};
  }
  return Json::object();
}

// Adds a fallback as a typed value; nothing if it is not a plain scalar.
void add_default(Json& schema, const config::Parameter& parameter) {
  if (!parameter.fallback || parameter.fallback->empty()) return;
  const Json value = Json::parse(*parameter.fallback, nullptr, false);
  schema["default"] = value.is_discarded() ? Json(*parameter.fallback) : value;
}

Json parameter_schema(const config::Parameter& parameter) {
  Json schema = type_schema(parameter);
  schema["description"] = parameter.summary;
  add_default(schema, parameter);
  return schema;
}

bool required(const config::Parameter& parameter) { return !parameter.fallback.has_value(); }

// Sections by path. A section that both readers share has the keys of both.
using Sections = std::map<std::string, std::vector<config::Parameter>>;
Sections all_sections() {
  Sections sections;
  const auto add = [&](const std::string& path, const std::vector<config::Parameter>& parameters) {
    std::vector<config::Parameter>& known = sections[path];
    for (const config::Parameter& one : parameters)
      if (std::none_of(known.begin(), known.end(), [&](const config::Parameter& other) { return other.name == one.name; }))
        known.push_back(one);
  };
  for (const spec::SectionInfo& section : spec::config_sections()) {
    std::string paths = section.path + ", ";
    for (std::size_t at = 0; at < paths.size();) {  // "pair.target_sampling, pair.draft_sampling"
      const std::size_t end = paths.find(", ", at);
      add(paths.substr(at, end - at), section.parameters);
      at = end + 2;
    }
  }
  for (const spec::SectionInfo& section : load::serve_sections())
    add(section.path.front() == '(' ? "" : section.path, section.parameters);
  return sections;
}

class SchemaMaker {
 public:
  SchemaMaker() : sections_(all_sections()), parts_(named_parts()) {}

  Json make() {
    Json schema = section("");
    schema.erase("required");
    schema["required"] = {"experiment"};
    schema["properties"]["sweep"] = {{"type", "object"},
                                     {"description", "the grid: path: list, or range {from, to, step | count, scale}"}};
    Json all = {{"$schema", "http://json-schema.org/draft-07/schema#"},
                {"$id", "https://specsim.invalid/config.schema.json"},
                {"title", "an experiment of specsim"},
                {"$comment", fmt::format("written by specsim schema, version {}", build_info::version)}};
    all.update(schema);
    return all;
  }

 private:
  // Keys and types of a section, with the sections and parts below it.
  Json section(const std::string& path) {
    Json schema = {{"type", "object"}, {"properties", Json::object()}, {"additionalProperties", false}};
    Json needed = Json::array();
    const auto known = sections_.find(path);
    if (known != sections_.end()) {
      for (const config::Parameter& one : known->second) {
        schema["properties"][one.name] = below(path.empty() ? one.name : path + "." + one.name, one);
        if (required(one)) needed.push_back(one.name);
      }
    }
    if (!needed.empty()) schema["required"] = needed;
    for (const Choice& choice : choices())
      if (path == choice.path) add_parts(schema, choice);
    return schema;
  }

  Json below(const std::string& path, const config::Parameter& parameter) {
    const bool chosen = std::any_of(choices().begin(), choices().end(), [&](const Choice& one) { return path == one.path; });
    if (path == "pair.target" || path == "pair.draft") return distribution(parameter);
    if (parameter.type != config::Type::value || (!chosen && sections_.find(path) == sections_.end()))
      return parameter_schema(parameter);
    Json schema = section(path);
    schema["description"] = parameter.summary;
    for (const Choice& choice : choices())
      if (path == choice.path && choice.name_alone) return either(schema, names_of(choice.kind), parameter);
    if (path == "serve.replicas") return either(schema, {{"type", "integer"}, {"minimum", 1}}, parameter);
    return schema;
  }

  static Json either(Json map, Json scalar, const config::Parameter& parameter) {
    return {{"anyOf", Json::array({std::move(scalar), std::move(map)})}, {"description", parameter.summary}};
  }

  Json names_of(const std::string& kind) const {
    Json names = Json::array();
    for (const NamedPart& part : parts_)
      if (part.kind == kind) names.push_back(part.info.name);
    return {{"enum", names}};
  }

  // {family: NAME, ...} or {from: target | DISTRIBUTION, transform: NAME, ...}; nested ones are left to the program.
  Json distribution(const config::Parameter& parameter) const {
    Json family = {{"type", "object"}, {"properties", Json::object()}, {"additionalProperties", false}, {"required", {"family"}}};
    add_parts(family, {"", "family", "family"});
    Json transform = {
        {"type", "object"}, {"properties", Json::object()}, {"additionalProperties", false}, {"required", {"transform"}}};
    add_parts(transform, {"", "transform", "transform", false, {"from"}});
    return {{"description", parameter.summary},
            {"if", {{"type", "object"}, {"required", {"transform"}}}},
            {"then", transform},
            {"else", family}};
  }

  // Adds the parts of a kind to the section's own keys: any of their keys, and those of the named part with their types.
  void add_parts(Json& schema, const Choice& choice) const {
    Json beside = Json::array({choice.key});
    for (const auto& [key, value] : schema["properties"].items())
      if (key != choice.key) beside.push_back(key);
    for (const std::string& key : choice.beside) {
      beside.push_back(key);
      if (!schema["properties"].contains(key)) schema["properties"][key] = Json::object();
    }
    Json conditions = Json::array();
    schema["properties"][choice.key] = names_of(choice.kind);
    for (const NamedPart& part : parts_) {
      if (part.kind != choice.kind) continue;
      Json then = {{"properties", Json::object()}};
      Json names = beside;
      Json needed = Json::array();
      for (const config::Parameter& one : part.info.parameters) {
        if (!schema["properties"].contains(one.name)) schema["properties"][one.name] = Json::object();
        then["properties"][one.name] = parameter_schema(one);
        names.push_back(one.name);
        if (required(one)) needed.push_back(one.name);
      }
      then["propertyNames"] = {{"enum", names}};
      if (!needed.empty()) then["required"] = needed;
      conditions.push_back(
          {{"if", {{"properties", {{choice.key, {{"const", part.info.name}}}}}, {"required", {choice.key}}}}, {"then", then}});
    }
    schema["allOf"] = conditions;
  }

  Sections sections_;
  std::vector<NamedPart> parts_;
};

}  // namespace

ExitCode schema_command(const std::vector<std::string>& arguments) {
  CommandLine line("specsim schema >config.schema.json",
                   "  specsim schema >config.schema.json\n"
                   "  # first line of a config: # yaml-language-server: $schema=config.schema.json\n");
  if (!line.read(arguments)) return ExitCode::fine;
  write_output(SchemaMaker().make().dump(1) + "\n");
  return ExitCode::fine;
}

}  // namespace specsim::cli
