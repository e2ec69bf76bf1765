#include "sim/doors/cli/named_parts.h"

#include "sim/experiments/judge/coverage.h"
#include "sim/experiments/spec/read_acceptance_table.h"
#include "sim/foundation/base/error.h"
#include "sim/hardware/gpu/hardware.h"
#include "sim/hardware/latency/cost_model.h"
#include "sim/hardware/latency/engine.h"
#include "sim/hardware/model/model_shape.h"
#include "sim/hardware/placement/placement.h"
#include "sim/hardware/presets/presets.h"
#include "sim/rounds/draft/drafter.h"
#include "sim/rounds/draft/length_policy.h"
#include "sim/rounds/families/context.h"
#include "sim/rounds/theory/closed_forms.h"
#include "sim/rounds/verify/verifier.h"
#include "sim/serving/arrivals/arrivals.h"
#include "sim/serving/arrivals/lengths.h"
#include "sim/serving/serve/policy.h"
#include "sim/serving/serve/routing.h"
#include "sim/serving/serve/scheduler.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace specsim::cli {

namespace {

template <class Registry, class Mark>
void add(std::vector<NamedPart>& parts, const std::string& kind, const Registry& registry, Mark mark) {
  for (const auto& entry : registry.entries()) parts.push_back({kind, entry.info, mark(entry)});
}

// An engine's figures. Their explanations are comments in the file that the source names.
config::PartInfo engine_info(const char* name, const config::Value& value, Diagnostics& diagnostics) {
  const cost::Engine engine = cost::read_engine(value, diagnostics);
  config::PartInfo info{name, engine.name, engine.source, {}, ""};
  std::vector<std::string> figures;
  figures.push_back(engine.graphs ? fmt::format("captured graphs of up to {:g} rows", engine.largest_graph) : "no graphs");
  for (const cost::HostFigure& figure : cost::host_figures())
    if (engine.host.*figure.figure > 0.0)
      figures.push_back(fmt::format("{} {:g}: {}", figure.key, engine.host.*figure.figure, figure.summary));
  if (!engine.kernels.empty()) figures.push_back(fmt::format("kernels of {}", engine.kernels));
  for (const cost::KernelRule& rule : engine.implementations) figures.push_back(describe(rule));
  if (engine.switch_share)
    figures.push_back(fmt::format("large all-reduces in the switch, at {:g} of a link", *engine.switch_share));
  if (engine.fused_quantisation) figures.emplace_back("activations quantised by the kernel before");
  if (engine.small_kernels) figures.push_back(fmt::format("{:g} small kernels per layer", *engine.small_kernels));
  if (engine.unequal_contexts > 1.0)
    figures.push_back(
        fmt::format("attention takes {:g} times as long over the unequal contexts of a live server", engine.unequal_contexts));
  for (const auto& [method, layers] : engine.proposals)
    figures.push_back(fmt::format("proposal {}: {:g} layers of a pass without a graph per round", method, layers));
  info.notes = fmt::format("{}.", fmt::join(figures, "; "));
  return info;
}

// Which layers differ from the others, and how keys and values are cached.
std::string layers_by_kind(const cost::ModelShape& shape) {
  std::string text;
  if (shape.experts > 0.0) text += fmt::format(" {:.3f}B of them are active per token.", 1e-9 * shape.active_parameters());
  if (shape.dense_layers > 0.0) text += fmt::format(" {} layers are dense, {} wide.", shape.dense_layers, shape.ffn);
  if (shape.shared_ffn > 0.0)
    text += fmt::format(" In addition to the experts, every token passes a feed-forward part of {}.", shape.shared_ffn);
  if (shape.latent)
    text += fmt::format(" Latent attention: {} and {} rotated elements are cached instead of keys and values.",
                        shape.latent->width, shape.latent->rope_dim);
  if (const auto& entries = shape.compressed)
    text += fmt::format(
        " Compressed attention: {} layers cache one entry per {} tokens and pick {} of them, {} layers one per {} and use "
        "all.",
        entries->picked_layers, entries->picked_tokens, shape.indexer ? shape.indexer->topk : 0.0, entries->heavy_layers,
        entries->heavy_tokens);
  if (shape.kv_window)
    text += fmt::format(" {} layers have a window of {} tokens{}.",
                        shape.window_layers ? fmt::format("{}", *shape.window_layers) : "All", *shape.kv_window,
                        shape.chunked ? ", chunk by chunk" : "");
  return text;
}

void add_model(NamedPart& part, const config::Value& value, Diagnostics& diagnostics) {
  const cost::ModelShape shape = cost::read_model(value, part.info.name, diagnostics);
  part.info.summary = fmt::format("{:.3f}B parameters, {:.2f} GB {}, {:.1f} kB of KV per token", 1e-9 * shape.total_parameters(),
                                  1e-9 * shape.weight_bytes(), shape.expert_type.empty() ? "in 16 bits" : "in its own types",
                                  1e-3 * shape.kv_bytes_per_token());
  part.info.notes = fmt::format(
      "{} layers of width {}, {} heads, {} of keys and values, {} wide, feed-forward {}{}, vocabulary {}{}. {:.3f}B parameters "
      "in the layers.",
      shape.layers, shape.hidden, shape.heads, shape.kv_heads, shape.head_dim,
      shape.experts > 0.0 ? fmt::format("{} of {} experts of {}", shape.experts_per_token, shape.experts, shape.expert_ffn)
                          : fmt::format("{}", shape.ffn),
      shape.gated ? " gated" : "", shape.vocab,
      shape.shares_lm_head    ? ", embeddings and LM head shared with the target"
      : shape.tied_embeddings ? ", tied"
                              : "",
      1e-9 * shape.layer_parameters());
  part.info.notes += layers_by_kind(shape);
  part.mark = shape.unverified ? "unverified" : "";
}

void add_acceptance(NamedPart& part, const config::Value& value) {
  const spec::AcceptanceTable table = spec::read_acceptance_table(value);
  part.info.summary = table.about;
  part.info.notes = "P(accepted, given its parent is), by rank, depth after depth: ";
  std::size_t rows = table.acceptance.size();
  while (rows > 1 && table.acceptance[rows - 1] == table.acceptance[rows - 2]) --rows;
  for (std::size_t depth = 0; depth < rows; ++depth)
    part.info.notes += fmt::format("{}{:.4g}", depth == 0 ? "" : "; ", fmt::join(table.acceptance[depth], ", "));
  if (rows < table.acceptance.size()) part.info.notes += fmt::format("; the same down to depth {}", table.acceptance.size());
  part.info.notes += table.note.empty() ? "." : fmt::format(". Derived {}.", table.note);
  if (!table.target.empty())
    part.info.notes += fmt::format(" Latencies are those of {}{}.", table.target,
                                   table.tensor_parallel > 1 ? fmt::format(" over {} GPUs", table.tensor_parallel) : "");
  if (!table.draft.empty())
    part.info.notes += fmt::format(" Drafted with {}.", table.draft == "none" ? "no draft model" : "draft " + table.draft);
  part.mark = table.unverified ? "unverified" : "";
}

void add_hardware(NamedPart& part, const config::Value& value, Diagnostics& diagnostics) {
  const cost::Hardware hardware = cost::read_hardware(value, diagnostics);
  part.info.summary = fmt::format("{}: {:.0f} GB at {:.0f} GB/s, {:.0f} TFLOP/s dense bf16", hardware.name,
                                  1e-9 * hardware.memory_bytes, 1e-9 * hardware.bandwidth, 1e-12 * hardware.flops);
  const cost::Calibration& c = hardware.calibration;
  part.info.notes = fmt::format(
      "{} multiprocessors; to a peer {:.0f} GB/s and {:g} us. A decode step turns compute-bound near {:.0f} rows. Matrix "
      "products reach {:.1f} % of the bandwidth, the second-level cache feeds operands at {:.1f} TB/s, each product adds {:.1f} "
      "us.",
      hardware.multiprocessors, 1e-9 * hardware.link_bandwidth, 1e6 * hardware.link_latency,
      hardware.flops / (hardware.bandwidth * c.memory_efficiency), 100.0 * c.memory_efficiency, c.feed_tb_per_s, c.kernel_us);
  if (const config::Value* source = config::find_path(value, "calibration.source")) part.info.paper = source->text;
  part.mark = hardware.unverified ? "unverified" : "";
}

}  // namespace

NamedPart worked_out(const NamedPart& named) {
  if (named.preset == nullptr) return named;
  const cost::Preset& preset = *named.preset;
  Diagnostics diagnostics;
  const config::Value value = config::parse_text(preset.text, preset.path, diagnostics);
  NamedPart part = named;
  switch (preset.kind) {
    case cost::PresetKind::hardware:
      add_hardware(part, value, diagnostics);
      break;
    case cost::PresetKind::model:
      add_model(part, value, diagnostics);
      break;
    case cost::PresetKind::engine:
      part.info = engine_info(preset.name, value, diagnostics);
      break;
    case cost::PresetKind::acceptance:
      add_acceptance(part, value);
      if (const std::vector<std::string> aliases = cost::aliases_of(preset); !aliases.empty())
        part.info.summary += fmt::format("; also {}", fmt::join(aliases, ", "));
      break;
  }
  if (const config::Value* source = value.find("source")) part.info.paper = source->text;
  diagnostics.throw_if_any();
  return part;
}

const std::vector<std::pair<std::string, std::string>>& part_kinds() {
  static const std::vector<std::pair<std::string, std::string>> list = {
      {"family", "independent next-token distributions: {family: NAME, ...}"},
      {"transform", "distributions made from another one: {from: target | DISTRIBUTION, transform: NAME, ...}"},
      {"context", "how the distributions change along the text: context: {process: NAME, ...}"},
      {"drafter", "decode.drafter: NAME, or {kind: NAME, ...}"},
      {"verifier", "decode.verifier: NAME, or {kind: NAME, ...}"},
      {"policy", "decode.policy: NAME, or {kind: NAME, ...}"},
      {"cost", "cost: {model: NAME, ...}"},
      {"hardware", "cost: {model: roofline, hardware: NAME, ...}"},
      {"model", "cost: {model: roofline, target: NAME, draft: NAME, ...}"},
      {"engine", "cost: {model: roofline, engine: NAME, ...}"},
      {"acceptance", "--acceptance NAME of compare and plan"},
      {"placement", "placement: {kind: NAME, ...}"},
      {"scheduler", "serve.scheduler: {kind: NAME, ...}"},
      {"arrivals", "serve.arrivals: {process: NAME, ...}"},
      {"lengths", "serve.lengths: {prompt: {NAME: ...}, output: {NAME: ...}}"},
      {"server_policy", "serve.speculation.policy: {kind: NAME, ...}"},
      {"routing", "serve.replicas: {count: N, routing: NAME}"},
      {"theory", "what a cell is compared with, by its verifier and drafter: theory: {name: exact} uses the one that covers it"},
      {"closed_form", "theory: {name: NAME}"}};
  return list;
}

std::vector<NamedPart> named_parts() {
  std::vector<NamedPart> parts;
  const auto plain = [](const auto&) { return std::string(); };
  add(parts, "family", families::families(), plain);
  add(parts, "transform", families::transforms(), plain);
  add(parts, "context", families::context_processes(), plain);
  add(parts, "drafter", draft::drafters(), plain);
  add(parts, "verifier", verify::verifiers(),
      [](const verify::VerifierEntry& entry) { return std::string(entry.lossless ? "lossless" : "not lossless"); });
  add(parts, "policy", draft::policies(), plain);
  add(parts, "cost", cost::cost_models(), plain);
  for (const cost::Preset& preset : cost::presets())
    parts.push_back({cost::name_of(preset.kind), {preset.name, "", "", {}, ""}, "", &preset});
  add(parts, "placement", placement::placements(), plain);
  add(parts, "scheduler", serve::schedulers(), plain);
  add(parts, "arrivals", arrivals::arrival_processes(), plain);
  add(parts, "lengths", arrivals::length_distributions(), plain);
  add(parts, "server_policy", serve::server_policies(), plain);
  add(parts, "routing", serve::routings(), plain);
  for (const judge::TheoryEntry& entry : judge::theories().entries()) {
    NamedPart part{"theory", entry.info, "", nullptr};
    part.info.notes = fmt::format("Covers verifiers {}; {}.", fmt::join(entry.verifiers, ", "),
                                  entry.drafters.empty() ? "chains, and trees that are the same in every round"
                                                         : fmt::format("drafter {}", fmt::join(entry.drafters, ", ")));
    parts.push_back(std::move(part));
  }
  for (const theory::ClosedForm& form : theory::closed_forms())
    parts.push_back(
        {"closed_form",
         {form.name, form.summary, form.source, {}, form.formula + (form.claim.empty() ? "" : " (claim " + form.claim + ")")},
         form.known_wrong ? "known to be wrong" : "",
         nullptr});
  return parts;
}

std::vector<const NamedPart*> parts_called(const std::vector<NamedPart>& parts, const std::string& wanted) {
  std::vector<const NamedPart*> found;
  std::vector<std::string> names;
  for (const NamedPart& part : parts) {
    const std::string full = part.kind + "/" + part.info.name;
    std::vector<std::string> called = {full, part.info.name};
    if (part.preset != nullptr)
      for (const std::string& alias : cost::aliases_of(*part.preset)) {
        called.push_back(part.kind + "/" + alias);
        called.push_back(alias);
      }
    if (std::find(called.begin(), called.end(), wanted) != called.end()) found.push_back(&part);
    names.insert(names.end(), called.begin(), called.end());
  }
  if (!found.empty()) return found;
  throw BadInput({"", 0, 0}, fmt::format("unknown part {}{} allowed: names from specsim list, as NAME or KIND/NAME",
                                         config::quote_for_message(wanted), did_you_mean(wanted, names)));
}

std::string page_of(const NamedPart& part) {
  const bool method = part.kind == "drafter" || part.kind == "verifier" || part.kind == "policy";
  if (!method || !part.info.notes.empty()) return "";
  std::string name = part.info.name;
  std::replace(name.begin(), name.end(), '_', '-');
  return fmt::format("methods/{}-{}.md", part.kind, name);
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

}  // namespace specsim::cli
