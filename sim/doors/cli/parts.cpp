// specsim list, describe and reference: all names, from the registries.
#include "sim/answers/choose/choose.h"
#include "sim/answers/load/curve.h"
#include "sim/answers/load/experiment.h"
#include "sim/answers/load/outputs.h"
#include "sim/answers/load/slo.h"
#include "sim/answers/plan/passes.h"
#include "sim/answers/plan/planned.h"
#include "sim/answers/plan/ranking.h"
#include "sim/doors/cli/command.h"
#include "sim/doors/cli/command_reference.h"
#include "sim/doors/cli/describe_model.h"
#include "sim/doors/cli/kernel_files.h"
#include "sim/doors/cli/lab_files.h"
#include "sim/doors/cli/named_parts.h"
#include "sim/doors/cli/options.h"
#include "sim/experiments/fit/fit_files.h"
#include "sim/experiments/judge/coverage.h"
#include "sim/experiments/judge/rows.h"
#include "sim/experiments/spec/sections.h"
#include "sim/foundation/base/output.h"
#include "sim/foundation/report/table.h"

#include <fmt/format.h>

#include <algorithm>

namespace specsim::cli {

namespace {

using report::Align;

// Two columns: a name and its description.
report::Table named_lines() {
  return report::Table({{"", Align::left, "name"}, {"", Align::left, "text"}}, {.indent = 2, .headless = true});
}

void describe(const NamedPart& part) {
  print_output("{}/{}: {}\n", part.kind, part.info.name, part.info.summary);
  if (!part.mark.empty()) print_output("  {}\n", part.mark);
  if (!part.info.notes.empty()) print_output("  {}\n", part.info.notes);
  if (!part.info.paper.empty()) print_output("  source: {}\n", part.info.paper);
  if (const std::string page = page_of(part); !page.empty()) print_output("  page: docs/{}\n", page);
  if (const std::string theory = judge::theory_of_part(part.kind, part.info.name); !theory.empty())
    print_output("  {}\n", theory);
  report::Table table = named_lines();
  for (const config::Parameter& parameter : part.info.parameters)
    table.add({parameter.name, fmt::format("{} ({}; {})", parameter.summary, type_text(parameter), default_text(parameter))});
  print_output("{}", table.text(output_width()));
}

// Escapes pipes, which would split a Markdown table's cell.
std::string cell(std::string text) {
  for (std::size_t at = 0; (at = text.find('|', at)) != std::string::npos; at += 2) text.replace(at, 1, "\\|");
  return text;
}

void print_parameters(const std::vector<config::Parameter>& parameters) {
  if (parameters.empty()) return;
  print_output("\n| key | allowed | default | meaning |\n|---|---|---|---|\n");
  for (const config::Parameter& p : parameters)
    print_output("| `{}` | {} | {} | {} |\n", p.name, cell(type_text(p)),
                 cell(p.fallback ? (p.fallback->empty() ? "none" : "`" + *p.fallback + "`") : "required"), cell(p.summary));
}

void print_sections() {
  print_output("\n## Sections\n");
  for (const auto* const sections : {&spec::config_sections(), &load::serve_sections()})
    for (const spec::SectionInfo& section : *sections) {
      print_output("\n### {}\n\n{}\n", section.path.empty() ? "(top level)" : section.path, section.summary);
      print_parameters(section.parameters);
    }
}

void print_parts() {
  const std::vector<NamedPart> parts = named_parts();
  for (const auto& [kind, summary] : part_kinds()) {
    print_output("\n## {}\n\n{}\n", kind, summary);
    for (const NamedPart& named : parts) {
      if (named.kind != kind) continue;
      const NamedPart part = worked_out(named);
      print_output("\n### {}/{}\n\n{}{}.", kind, part.info.name, part.info.summary,
                   part.mark.empty() ? "" : " (" + part.mark + ")");
      if (!part.info.notes.empty()) print_output(" {}", part.info.notes);
      if (!part.info.paper.empty()) print_output(" Source: {}.", part.info.paper);
      if (const std::string page = page_of(part); !page.empty()) print_output(" Page: [docs/{0}]({0}).", page);
      print_output("\n");
      print_parameters(part.info.parameters);
    }
  }
}

}  // namespace

std::vector<report::FileInfo> written_files() {
  std::vector<report::FileInfo> files = judge::described_files();
  const auto add = [&](const std::vector<report::FileInfo>& more) { files.insert(files.end(), more.begin(), more.end()); };
  add(plan::plan_file_infos());
  add(plan::ranking_file_infos());
  add({plan::passes_info()});
  add({choose::choices_info()});
  add(load::curve_infos());
  add({load::limits_info()});
  add(load::output_infos());
  add(fit::described_files());
  add(kernel_file_infos());
  add(lab_file_infos());
  return files;
}

namespace {

void print_columns() {
  for (const report::FileInfo& file : written_files()) {
    print_output("\n## Columns of {}\n", file.name);
    if (!file.note.empty()) print_output("\n{}\n", file.note);
    print_output("\n| column | unit | meaning |\n|---|---|---|\n");
    for (const report::ColumnInfo& column : file.columns)
      print_output("| `{}` | {} | {} |\n", column.name, column.unit, cell(column.meaning));
  }
}

}  // namespace

ExitCode list_command(const std::vector<std::string>& arguments) {
  std::vector<std::string> wanted;
  CommandLine line("specsim list [KIND]", "  specsim list\n  specsim list verifier\n");
  line.add_words("kind", wanted);
  if (!line.read(arguments)) return ExitCode::fine;
  std::vector<std::string> names;
  for (const auto& [kind, summary] : part_kinds()) names.push_back(kind);
  for (const std::string& kind : wanted) {
    if (std::find(names.begin(), names.end(), kind) != names.end()) continue;
    throw BadInput({"", 0, 0}, config::unknown_name("unknown kind", kind, names));
  }
  const std::vector<NamedPart> parts = named_parts();
  for (const auto& [kind, summary] : part_kinds()) {
    if (!wanted.empty() && std::find(wanted.begin(), wanted.end(), kind) == wanted.end()) continue;
    print_output("{} ({})\n", kind, summary);
    report::Table table = named_lines();
    for (const NamedPart& named : parts) {
      if (named.kind != kind) continue;
      const NamedPart part = worked_out(named);
      table.add({part.info.name, part.info.summary + (part.mark.empty() ? "" : " [" + part.mark + "]")});
    }
    print_output("{}", table.text(output_width()));
  }
  return ExitCode::fine;
}

ExitCode describe_command(const std::vector<std::string>& arguments) {
  std::vector<std::string> words;
  CommandLine line("specsim describe NAME|KIND/NAME|PATH...",
                   "  specsim describe eagle\n  specsim describe verifier/token\n  specsim describe model/llama-3.1-8b "
                   "hardware/h100-sxm\n  specsim describe models/Qwen3-8B-FP8\n");
  line.add_words("part", words);
  if (!line.read(arguments)) return ExitCode::fine;
  if (words.empty()) throw BadInput({"", 0, 0}, "specsim describe needs a NAME, or KIND/NAME, as specsim list prints them");
  std::vector<std::string> names;
  for (const std::string& word : words)
    if (names_model_file(word))
      describe_model_file(word);
    else
      names.push_back(word);
  if (names.empty()) return ExitCode::fine;
  const std::vector<NamedPart> parts = named_parts();
  for (const std::string& name : names)
    for (const NamedPart* part : parts_called(parts, name)) describe(worked_out(*part));
  return ExitCode::fine;
}

ExitCode reference_command(const std::vector<std::string>& arguments) {
  CommandLine line("specsim reference > docs/reference.md",
                   "  specsim reference | diff docs/reference.md -\n  specsim reference --format json   # commands, options, "
                   "types, defaults, schemas\n");
  if (!line.read(arguments)) return ExitCode::fine;
  print_output("# Config reference\n\nGenerated by `specsim reference` from the registries; a test compares the two.\n");
  print_sections();
  print_parts();
  print_columns();
  return ExitCode::fine;
}

}  // namespace specsim::cli
