// specsim list, describe and reference: everything that has a name, from the registries alone.
#include "sim/base/output.h"
#include "sim/calibrate/result_folder.h"
#include "sim/cli/command.h"
#include "sim/cli/options.h"
#include "sim/cost/cost_model.h"
#include "sim/cost/hardware.h"
#include "sim/cost/model_shape.h"
#include "sim/cost/presets.h"
#include "sim/draft/drafter.h"
#include "sim/draft/length_policy.h"
#include "sim/families/context.h"
#include "sim/judge/coverage.h"
#include "sim/judge/rows.h"
#include "sim/placement/placement.h"
#include "sim/spec/sections.h"
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
      {"family", "next-token distributions that stand on their own: {family: NAME, ...}"},
      {"transform", "distributions made from another one: {from: target | DISTRIBUTION, transform: NAME, ...}"},
      {"context", "how the distributions change along the text: context: {process: NAME, ...}"},
      {"drafter", "decode.drafter: {kind: NAME, ...}"},
      {"verifier", "decode.verifier: NAME, or {kind: NAME, ...}"},
      {"policy", "decode.policy: {kind: NAME, ...}"},
      {"cost", "cost: {model: NAME, ...}"},
      {"hardware", "cost: {model: roofline, hardware: NAME, ...}"},
      {"model", "cost: {model: roofline, target: NAME, draft: NAME, ...}"},
      {"placement", "placement: {kind: NAME, ...}"},
      {"theory", "what a cell is held to, by its verifier and drafter: theory: {name: exact} takes the one that covers it"},
      {"closed_form", "theory: {name: NAME}"}};
  return list;
}

// A preset's figures, worked out.
Part preset_part(const cost::Preset& preset) {
  Diagnostics diagnostics;
  const config::Value value = config::parse_text(preset.text, preset.path, diagnostics);
  Part part{preset.kind, {preset.name, "", "", {}, ""}, ""};
  if (std::string(preset.kind) == "model") {
    const cost::ModelShape shape = cost::read_model(value, preset.name, diagnostics);
    part.info.summary =
        fmt::format("{:.3f}B parameters, {:.2f} GB in 16 bits, {:.1f} kB of KV per token", 1e-9 * shape.total_parameters(),
                    1e-9 * shape.weight_bytes(), 1e-3 * shape.kv_bytes_per_token());
    part.info.notes = fmt::format(
        "{} layers of width {}, {} heads, {} of keys and values, {} wide, feed-forward {}{}, vocabulary {}{}. {:.3f}B parameters "
        "in the "
        "layers.",
        shape.layers, shape.hidden, shape.heads, shape.kv_heads, shape.head_dim,
        shape.experts > 0.0 ? fmt::format("{} of {} experts of {}", shape.experts_per_token, shape.experts, shape.expert_ffn)
                            : fmt::format("{}", shape.ffn),
        shape.gated ? " gated" : "", shape.vocab,
        shape.shares_lm_head    ? ", embeddings and LM head shared with the target"
        : shape.tied_embeddings ? ", tied"
                                : "",
        1e-9 * shape.layer_parameters());
    part.mark = shape.unverified ? "unverified" : "";
  } else {
    const cost::Hardware hardware = cost::read_hardware(value, diagnostics);
    part.info.summary = fmt::format("{}: {:.0f} GB at {:.0f} GB/s, {:.0f} TFLOP/s dense bf16", hardware.name,
                                    1e-9 * hardware.memory_bytes, 1e-9 * hardware.bandwidth, 1e-12 * hardware.flops);
    const cost::Calibration& c = hardware.calibration;
    part.info.notes = fmt::format(
        "{} multiprocessors; to a peer {:.0f} GB/s and {:g} us. A decode step turns compute-bound near {:.0f} rows. Matrix "
        "products reach "
        "{:.1f} % of the bandwidth, operands arrive at {:.1f} TB/s, each product takes {:.1f} us beside.",
        hardware.multiprocessors, 1e-9 * hardware.link_bandwidth, 1e6 * hardware.link_latency,
        hardware.flops / (hardware.bandwidth * c.memory_efficiency), 100.0 * c.memory_efficiency, c.feed_tb_per_s, c.kernel_us);
    if (const config::Value* source = config::find_path(value, "calibration.source")) part.info.paper = source->text;
    part.mark = hardware.unverified ? "unverified" : "";
  }
  if (const config::Value* source = value.find("source")) part.info.paper = source->text;
  diagnostics.throw_if_any();
  return part;
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
  add(parts, "policy", draft::policies(), plain);
  add(parts, "cost", cost::cost_models(), plain);
  for (const cost::Preset& preset : cost::presets()) parts.push_back(preset_part(preset));
  add(parts, "placement", placement::placements(), plain);
  for (const judge::TheoryEntry& entry : judge::theories().entries()) {
    Part part{"theory", entry.info, ""};
    part.info.notes = fmt::format("Of verifiers {}; of {}.", fmt::join(entry.verifiers, ", "),
                                  entry.drafters.empty() ? "chains, and trees that are the same in every round"
                                                         : fmt::format("drafter {}", fmt::join(entry.drafters, ", ")));
    parts.push_back(std::move(part));
  }
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
  print_output("{}/{}: {}\n", part.kind, part.info.name, part.info.summary);
  if (!part.mark.empty()) print_output("  {}\n", part.mark);
  if (!part.info.notes.empty()) print_output("  {}\n", part.info.notes);
  if (!part.info.paper.empty()) print_output("  source: {}\n", part.info.paper);
  if (const std::string theory = judge::theory_of_part(part.kind, part.info.name); !theory.empty())
    print_output("  {}\n", theory);
  for (const config::Parameter& parameter : part.info.parameters)
    print_output("  {:<22} {} ({}; {})\n", parameter.name, parameter.summary, type_text(parameter), default_text(parameter));
}

// Pipes would split a Markdown table's cell.
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

}  // namespace

ExitCode list_command(const std::vector<std::string>& arguments) {
  po::variables_map values;
  if (!parse(arguments, po::options_description(), "kind", "specsim list [KIND]", "  specsim list\n  specsim list verifier\n",
             values))
    return ExitCode::fine;
  std::vector<std::string> wanted;
  if (values.count("kind") > 0) wanted = values["kind"].as<std::vector<std::string>>();
  std::vector<std::string> names;
  for (const auto& [kind, summary] : kinds()) names.push_back(kind);
  for (const std::string& kind : wanted) {
    if (std::find(names.begin(), names.end(), kind) != names.end()) continue;
    throw BadInput({"", 0, 0},
                   fmt::format("unknown kind \"{}\"{} allowed: {}", kind, did_you_mean(kind, names), fmt::join(names, ", ")));
  }
  const std::vector<Part> parts = all_parts();
  for (const auto& [kind, summary] : kinds()) {
    if (!wanted.empty() && std::find(wanted.begin(), wanted.end(), kind) == wanted.end()) continue;
    print_output("{} ({})\n", kind, summary);
    for (const Part& part : parts)
      if (part.kind == kind)
        print_output("  {:<24} {}{}\n", part.info.name, part.info.summary, part.mark.empty() ? "" : " [" + part.mark + "]");
  }
  return ExitCode::fine;
}

namespace {

// Parts called so, as KIND/NAME or, over all kinds, as NAME. Throws BadInput where there is none.
std::vector<const Part*> parts_named(const std::vector<Part>& parts, const std::string& wanted) {
  std::vector<const Part*> found;
  std::vector<std::string> names;
  for (const Part& part : parts) {
    const std::string full = part.kind + "/" + part.info.name;
    if (wanted == full || wanted == part.info.name) found.push_back(&part);
    names.push_back(full);
    names.push_back(part.info.name);
  }
  if (!found.empty()) return found;
  throw BadInput({"", 0, 0}, fmt::format("unknown part \"{}\"{} allowed: what specsim list prints, as NAME or KIND/NAME", wanted,
                                         did_you_mean(wanted, names)));
}

}  // namespace

ExitCode describe_command(const std::vector<std::string>& arguments) {
  po::variables_map values;
  if (!parse(arguments, po::options_description(), "part", "specsim describe NAME|KIND/NAME...",
             "  specsim describe eagle\n  specsim describe verifier/token\n  specsim describe model/llama-3.1-8b "
             "hardware/h100-sxm\n",
             values))
    return ExitCode::fine;
  if (values.count("part") == 0)
    throw BadInput({"", 0, 0}, "specsim describe needs a NAME, or KIND/NAME, as specsim list prints them");
  const std::vector<Part> parts = all_parts();
  for (const std::string& wanted : values["part"].as<std::vector<std::string>>()) {
    const std::vector<const Part*> found = parts_named(parts, wanted);
    for (const Part* part : found) describe(*part);
  }
  return ExitCode::fine;
}

ExitCode reference_command(const std::vector<std::string>& arguments) {
  po::variables_map values;
  if (!parse(arguments, po::options_description(), "", "specsim reference > docs/reference.md",
             "  specsim reference | diff docs/reference.md -\n", values))
    return ExitCode::fine;
  print_output(
      "# Config reference\n\nGenerated by `specsim reference` from the registries; a test compares the two.\n\n## Sections\n");
  for (const spec::SectionInfo& section : spec::config_sections()) {
    print_output("\n### {}\n\n{}\n", section.path.empty() ? "(top level)" : section.path, section.summary);
    print_parameters(section.parameters);
  }
  const std::vector<Part> parts = all_parts();
  for (const auto& [kind, summary] : kinds()) {
    print_output("\n## {}\n\n{}\n", kind, summary);
    for (const Part& part : parts) {
      if (part.kind != kind) continue;
      print_output("\n### {}/{}\n\n{}{}.", kind, part.info.name, part.info.summary,
                   part.mark.empty() ? "" : " (" + part.mark + ")");
      if (!part.info.notes.empty()) print_output(" {}", part.info.notes);
      if (!part.info.paper.empty()) print_output(" Source: {}.", part.info.paper);
      print_output("\n");
      print_parameters(part.info.parameters);
    }
  }
  print_output(
      "\n## Columns of data.csv\n\n`experiment, cell, seed`, one column per sweep axis (its path), then:\n\n| column | unit | "
      "formula |\n|---|---|---|\n");
  for (const judge::Column& column : judge::columns())
    print_output("| `{}` | {} | {} |\n", column.name, column.unit, cell(column.formula));
  for (const report::FileInfo& file : calibrate::described_files()) {
    print_output("\n## Columns of {}\n\n| column | unit | meaning |\n|---|---|---|\n", file.name);
    for (const report::ColumnInfo& column : file.columns)
      print_output("| `{}` | {} | {} |\n", column.name, column.unit, cell(column.meaning));
  }
  return ExitCode::fine;
}

}  // namespace specsim::cli
