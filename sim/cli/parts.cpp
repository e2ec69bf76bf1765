// specsim list, describe and reference: everything that has a name, from the registries alone.
#include "sim/cli/command.h"
#include "sim/cli/options.h"
#include "sim/cost/cost_model.h"
#include "sim/draft/drafter.h"
#include "sim/experiment/results.h"
#include "sim/families/context.h"
#include "sim/placement/placement.h"
#include "sim/theory/closed_forms.h"
#include "sim/verify/verifier.h"

#include <fmt/format.h>

#include <algorithm>

namespace specsim::cli {

namespace po = boost::program_options;

namespace {

struct Part {
  std::string kind;  // as in describe KIND/NAME
  config::PartInfo info;
  std::string mark;  // "not lossless", "known to be wrong"
};

template <class Registry, class Mark>
void add(std::vector<Part>& parts, const std::string& kind, const Registry& registry, Mark mark) {
  for (const auto& entry : registry.entries()) parts.push_back({kind, entry.info, mark(entry)});
}

const std::vector<std::pair<std::string, std::string>>& kinds() {
  static const std::vector<std::pair<std::string, std::string>> list = {
      {"family", "next-token laws that stand on their own: {family: NAME, ...}"},
      {"transform", "laws made from another one: {from: target | LAW, transform: NAME, ...}"},
      {"context", "how the laws change along the text: context: {process: NAME, ...}"},
      {"drafter", "decode.drafter: {kind: NAME, ...}"},
      {"verifier", "decode.verifier: NAME"},
      {"cost", "cost: {model: NAME, ...}"},
      {"placement", "placement: {kind: NAME, ...}"},
      {"closed_form", "theory: {name: NAME}"}};
  return list;
}

std::vector<Part> all_parts() {
  std::vector<Part> parts;
  const auto plain = [](const auto&) { return std::string(); };
  add(parts, "family", families::families(), plain);
  add(parts, "transform", families::transforms(), plain);
  add(parts, "context", families::context_processes(), plain);
  add(parts, "drafter", draft::drafters(), plain);
  add(parts, "verifier", verify::verifiers(),
      [](const verify::VerifierEntry& entry) { return std::string(entry.lossless ? "lossless" : "not lossless"); });
  add(parts, "cost", cost::cost_models(), plain);
  add(parts, "placement", placement::placements(), plain);
  for (const theory::ClosedForm& form : theory::closed_forms())
    parts.push_back(
        {"closed_form",
         {form.name, form.summary, form.source, {}, form.formula + (form.claim.empty() ? "" : " (claim " + form.claim + ")")},
         form.known_wrong ? "known to be wrong" : ""});
  return parts;
}

std::string type_text(const config::Parameter& parameter) {
  switch (parameter.type) {
    case config::Type::integer:
      return "integer " + parameter.interval.to_text();
    case config::Type::number:
      return "number " + parameter.interval.to_text();
    case config::Type::text:
      return parameter.choices.empty() ? "text" : fmt::format("{}", fmt::join(parameter.choices, " | "));
    case config::Type::boolean:
      return "true | false";
    case config::Type::number_list:
      return "list of numbers " + parameter.interval.to_text();
    case config::Type::number_table:
      return "table of numbers " + parameter.interval.to_text();
    case config::Type::value:
      return "map";
    case config::Type::value_list:
      return "list of maps";
  }
  return "";
}

std::string default_text(const config::Parameter& parameter) {
  if (!parameter.fallback) return "required";
  return parameter.fallback->empty() ? "optional" : "default " + *parameter.fallback;
}

void describe(const Part& part) {
  fmt::print("{}/{}: {}\n", part.kind, part.info.name, part.info.summary);
  if (!part.mark.empty()) fmt::print("  {}\n", part.mark);
  if (!part.info.notes.empty()) fmt::print("  {}\n", part.info.notes);
  if (!part.info.paper.empty()) fmt::print("  source: {}\n", part.info.paper);
  for (const config::Parameter& parameter : part.info.parameters)
    fmt::print("  {:<22} {} ({}; {})\n", parameter.name, parameter.summary, type_text(parameter), default_text(parameter));
}

// Pipes would split a Markdown table's cell.
std::string cell(std::string text) {
  for (std::size_t at = 0; (at = text.find('|', at)) != std::string::npos; at += 2) text.replace(at, 1, "\\|");
  return text;
}

void print_parameters(const std::vector<config::Parameter>& parameters) {
  if (parameters.empty()) return;
  fmt::print("\n| key | allowed | default | meaning |\n|---|---|---|---|\n");
  for (const config::Parameter& p : parameters)
    fmt::print("| `{}` | {} | {} | {} |\n", p.name, cell(type_text(p)),
               cell(p.fallback ? (p.fallback->empty() ? "none" : "`" + *p.fallback + "`") : "required"), cell(p.summary));
}

}  // namespace

int list_command(const std::vector<std::string>& arguments) {
  po::variables_map values;
  if (!parse(arguments, po::options_description(), "kind", "specsim list [KIND]", "  specsim list\n  specsim list verifier\n",
             values))
    return 0;
  std::vector<std::string> wanted;
  if (values.count("kind") > 0) wanted = values["kind"].as<std::vector<std::string>>();
  std::vector<std::string> names;
  for (const auto& [kind, summary] : kinds()) names.push_back(kind);
  for (const std::string& kind : wanted) {
    if (std::find(names.begin(), names.end(), kind) != names.end()) continue;
    const std::string near = nearest_name(kind, names);
    throw BadInput({"", 0, 0},
                   fmt::format("unknown kind \"{}\"{} allowed: {}", kind,
                               near.empty() ? "," : fmt::format(", did you mean \"{}\"?", near), fmt::join(names, ", ")));
  }
  const std::vector<Part> parts = all_parts();
  for (const auto& [kind, summary] : kinds()) {
    if (!wanted.empty() && std::find(wanted.begin(), wanted.end(), kind) == wanted.end()) continue;
    fmt::print("{} ({})\n", kind, summary);
    for (const Part& part : parts)
      if (part.kind == kind)
        fmt::print("  {:<24} {}{}\n", part.info.name, part.info.summary, part.mark.empty() ? "" : " [" + part.mark + "]");
  }
  return 0;
}

int describe_command(const std::vector<std::string>& arguments) {
  po::variables_map values;
  if (!parse(arguments, po::options_description(), "part", "specsim describe KIND/NAME...",
             "  specsim describe verifier/token\n  specsim describe family/zipf\n", values))
    return 0;
  if (values.count("part") == 0) throw BadInput({"", 0, 0}, "specsim describe needs KIND/NAME, as specsim list prints them");
  const std::vector<Part> parts = all_parts();
  std::vector<std::string> names;
  for (const Part& part : parts) names.push_back(part.kind + "/" + part.info.name);
  for (const std::string& wanted : values["part"].as<std::vector<std::string>>()) {
    const auto found = std::find(names.begin(), names.end(), wanted);
    if (found == names.end()) {
      const std::string near = nearest_name(wanted, names);
      throw BadInput({"", 0, 0}, fmt::format("unknown part \"{}\"{} allowed: what specsim list prints, as KIND/NAME", wanted,
                                             near.empty() ? "," : fmt::format(", did you mean \"{}\"?", near)));
    }
    describe(parts[static_cast<std::size_t>(found - names.begin())]);
  }
  return 0;
}

int reference_command(const std::vector<std::string>& arguments) {
  po::variables_map values;
  if (!parse(arguments, po::options_description(), "", "specsim reference > configs/REFERENCE.md",
             "  specsim reference | diff configs/REFERENCE.md -\n", values))
    return 0;
  fmt::print(
      "# Config reference\n\nGenerated by `specsim reference` from the registries; a test compares the two.\n\n## Sections\n");
  for (const experiment::SectionInfo& section : experiment::config_sections()) {
    fmt::print("\n### {}\n\n{}\n", section.path.empty() ? "(top level)" : section.path, section.summary);
    print_parameters(section.parameters);
  }
  const std::vector<Part> parts = all_parts();
  for (const auto& [kind, summary] : kinds()) {
    fmt::print("\n## {}\n\n{}\n", kind, summary);
    for (const Part& part : parts) {
      if (part.kind != kind) continue;
      fmt::print("\n### {}/{}\n\n{}{}.", kind, part.info.name, part.info.summary,
                 part.mark.empty() ? "" : " (" + part.mark + ")");
      if (!part.info.notes.empty()) fmt::print(" {}", part.info.notes);
      if (!part.info.paper.empty()) fmt::print(" Source: {}.", part.info.paper);
      fmt::print("\n");
      print_parameters(part.info.parameters);
    }
  }
  fmt::print(
      "\n## Columns of data.csv\n\n`experiment, cell, seed`, one column per sweep axis (its path), then:\n\n| column | unit | "
      "formula |\n|---|---|---|\n");
  for (const experiment::Column& column : experiment::columns())
    fmt::print("| `{}` | {} | {} |\n", column.name, column.unit, cell(column.formula));
  return 0;
}

}  // namespace specsim::cli
