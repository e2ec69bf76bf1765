#include "sim/doors/cli/describe_model.h"

#include "sim/doors/cli/output_form.h"
#include "sim/foundation/base/error.h"
#include "sim/foundation/base/output.h"
#include "sim/foundation/report/table.h"
#include "sim/hardware/presets/hugging_face.h"
#include "sim/hardware/presets/weight_files.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <filesystem>
#include <system_error>
#include <vector>

namespace specsim::cli {

namespace {

using cost::ModelShape;
using cost::Module;
using report::Align;

constexpr double kGibibyte = 0x1.0p30;

std::string count_of(double number) { return fmt::format("{:g}", number); }

std::string stored_type_text(const cost::StoredType& type) {
  if (type.kernel.empty()) return fmt::format("{:g} bits", type.bits);
  return fmt::format("{:g} bits ({})", type.bits, type.kernel);
}

const char* state_text(cost::StateLayer::Kind kind) {
  using Kind = cost::StateLayer::Kind;
  switch (kind) {
    case Kind::gated_deltanet:
      return "Gated DeltaNet";
    case Kind::kimi_delta:
      return "Kimi Delta Attention";
    case Kind::lightning:
      return "lightning attention";
    case Kind::mamba:
      return "Mamba";
    case Kind::mamba2:
      return "Mamba 2";
    case Kind::convolution:
      return "gated convolution";
  }
  return "";
}

std::vector<std::string> layer_lines(const ModelShape& shape) {
  std::vector<std::string> lines;
  for (const cost::AttentionKind& kind : shape.attention_kinds()) {
    std::string line = fmt::format("{} with attention, {} heads", count_of(kind.layers), count_of(kind.heads));
    if (shape.latent)
      line += fmt::format(", latent: {} and {} rotated elements are cached", count_of(shape.latent->width),
                          count_of(shape.latent->rope_dim));
    else
      line += fmt::format(
          ", {} of keys and values, {} wide{}", count_of(kind.kv_heads), count_of(kind.head_dim),
          kind.value_dim == kind.head_dim || shape.one_vector ? "" : fmt::format(" (values {})", count_of(kind.value_dim)));
    if (kind.window) line += fmt::format(", {} of {} tokens", kind.chunked ? "chunks" : "a window", count_of(*kind.window));
    if (kind.compression) line += fmt::format(", one entry per {} tokens", count_of(*kind.compression));
    if (kind.picked) line += fmt::format(", an indexer picks {}", count_of(*kind.picked));
    if (kind.borrowing > 0.0) line += fmt::format(", {} of them read other layers' cache", count_of(kind.borrowing));
    lines.push_back(line);
  }
  if (shape.state_layers() > 0.0)
    lines.push_back(fmt::format("{} with {}{}, {} heads {} wide, state {} wide", count_of(shape.state_layers()),
                                state_text(shape.state->kind), shape.parallel_state ? " in parallel with attention" : "",
                                count_of(shape.state->value_heads), count_of(shape.state->value_dim),
                                count_of(shape.state->key_dim)));
  else if (shape.linear_layers > 0.0)
    lines.push_back(fmt::format("{} without a cache, of an unknown kind", count_of(shape.linear_layers)));
  const double mixtures = shape.mixture_layers();
  const double dense = shape.layers - shape.mixer_only_layers - mixtures;
  const char* const gate = shape.gated ? "gated" : "without a gate";
  if (dense > 0.0)
    lines.push_back(fmt::format("{} with a dense feed-forward part {} wide, {}", count_of(dense), count_of(shape.ffn), gate));
  if (mixtures > 0.0)
    lines.push_back(fmt::format("{} with {} experts {} wide, {}, {} per token{}{}", count_of(mixtures), count_of(shape.experts),
                                count_of(shape.expert_ffn), gate, count_of(shape.experts_per_token),
                                shape.expert_hidden ? fmt::format(", on a width of {}", count_of(*shape.expert_hidden)) : "",
                                shape.shared_ffn > 0.0 ? fmt::format(", shared part {} wide", count_of(shape.shared_ffn)) : ""));
  return lines;
}

std::string drafter_line(const ModelShape& shape) {
  if (shape.drafter.empty() && !shape.on_target() && !shape.one_pass) return "";
  std::string line = shape.drafter.empty() ? "a head on a target" : shape.drafter;
  line += shape.one_pass                 ? ", one pass drafts a block"
          : shape.prediction_heads > 1.0 ? fmt::format(", {:g} heads in one pass", shape.prediction_heads)
                                         : ", a pass per token";
  if (shape.longest_draft) line += fmt::format(", at most {:g} tokens", *shape.longest_draft);
  if (shape.markov_rank > 0.0) line += fmt::format(", Markov head of rank {:g}", shape.markov_rank);
  line += shape.shares_lm_head      ? ", embeddings and LM head are the target's"
          : shape.shares_embeddings ? ", embeddings are the target's"
                                    : "";
  if (shape.fused_inputs > 0.0) line += fmt::format(", joins {:.4g} features", shape.fused_inputs);
  if (!shape.verifier.empty()) line += ", made for " + shape.verifier;
  return line;
}

const char* words_of(const std::string& part) {
  struct Words {
    std::string_view part;
    const char* words;
  };
  constexpr std::array<Words, 10> kWords = {{{"attention", "attention"},
                                             {"state", "state layers"},
                                             {"dense", "dense feed-forward"},
                                             {"shared", "shared experts"},
                                             {"experts", "routed experts"},
                                             {"head", "LM head"},
                                             {"embeddings", "embeddings"},
                                             {"mtp", "MTP module"},
                                             {"small", "norms, biases, routers"},
                                             {"other", "other (images, sound, ...)"}}};
  for (const Words& one : kWords)
    if (one.part == part) return one.words;
  return "";
}

// Prints the contents of its weight files' headers.
void print_stored(const std::vector<cost::StoredTensors>& stored) {
  report::Table table(
      {{"in the weight files", Align::left}, {"type", Align::left}, {"tensors"}, {"elements"}, {"bytes"}, {"GiB"}},
      {.indent = 2});
  double tensors = 0.0;
  double bytes = 0.0;
  for (const cost::StoredTensors& own : stored) {
    table.add({words_of(own.part), own.type, fmt::format("{:.0f}", own.tensors), fmt::format("{:.0f}", own.elements),
               fmt::format("{:.0f}", own.bytes), fmt::format("{:.2f}", own.bytes / kGibibyte)});
    tensors += own.tensors;
    bytes += own.bytes;
  }
  table.add(
      {"all", "", fmt::format("{:.0f}", tensors), "", fmt::format("{:.0f}", bytes), fmt::format("{:.2f}", bytes / kGibibyte)});
  print_output("{}", table.text(output_width()));
}

}  // namespace

bool names_model_file(const std::string& text) {
  std::error_code ignored;
  constexpr std::string_view kModule = ":mtp";  // the MTP module in a checkpoint
  const std::string path = text.ends_with(kModule) ? text.substr(0, text.size() - kModule.size()) : text;
  return cost::model_file_path(path).has_value() || path.ends_with(".yaml") || path.ends_with(".yml") ||
         std::filesystem::is_directory(path, ignored);
}

void print_model(const ModelShape& shape) {
  print_output("{}: {} layers of width {}, vocabulary {}\n", shape.name, count_of(shape.layers), count_of(shape.hidden),
               count_of(shape.vocab));
  for (const std::string& line : layer_lines(shape)) print_output("  {}\n", line);
  if (const std::string line = drafter_line(shape); !line.empty()) print_output("  drafter: {}\n", line);
  report::Table table({{"part", Align::left}, {"1e9 parameters"}, {"type", Align::left}, {"GiB"}}, {.indent = 2});
  struct Row {
    Module module;
    const char* name;
  };
  constexpr std::array<Row, 7> kRows = {{{Module::attention, "attention"},
                                         {Module::state, "state layers"},
                                         {Module::dense, "dense feed-forward"},
                                         {Module::shared, "shared experts"},
                                         {Module::experts, "routed experts"},
                                         {Module::head, "LM head"},
                                         {Module::embeddings, "embeddings"}}};
  for (const auto& [module, name] : kRows) {
    const double parameters = shape.module_parameters(module);
    if (parameters <= 0.0) continue;
    for (const cost::TypeShare& one : shape.types_of(module))
      table.add({name, fmt::format("{:.3f}", 1e-9 * one.share * parameters), stored_type_text(one.type),
                 fmt::format("{:.2f}", one.share * parameters * one.type.bits / 8.0 / kGibibyte)});
  }
  if (shape.markov_parameters() > 0.0)
    table.add({"Markov head", fmt::format("{:.3f}", 1e-9 * shape.markov_parameters()), fmt::format("{:g} bits", shape.head_bits),
               fmt::format("{:.2f}", shape.markov_parameters() * shape.head_bits / 8.0 / kGibibyte)});
  table.add({"total", fmt::format("{:.3f}", 1e-9 * shape.own_parameters()), "",
             fmt::format("{:.2f}", shape.weight_bytes() / kGibibyte)});
  print_output("{}", table.text(output_width()));
  if (shape.experts > 0.0) print_output("  {:.3f}B parameters are active per token\n", 1e-9 * shape.active_parameters());
  print_output("  KV cache: {:.0f} bytes per token in {:g} bits", shape.kv_bytes_per_token(), shape.kv_bits);
  if (shape.kv_window) print_output(", those with a window up to it");
  print_output("\n");
  if (const double state = shape.recurrent_bytes(); state > 0.0) print_output("  state: {:.0f} bytes per sequence\n", state);
  if (!shape.stored.empty()) print_stored(shape.stored);
  for (const std::string& text : shape.assumed) print_words("  assumed: " + text);
  if (!shape.unread.empty()) print_words(fmt::format("  not read: {}", fmt::join(shape.unread, ", ")));
}

void describe_model_file(const std::string& path) {
  Diagnostics diagnostics;
  const std::optional<std::string> file = cost::model_file_path(path);
  if (file && file->ends_with(".safetensors") &&
      !std::filesystem::exists(std::filesystem::path(*file).parent_path() / "config.json")) {
    std::vector<std::string> missing;
    const std::vector<std::string> files = cost::safetensors_files(path, missing, diagnostics);
    const cost::StoredParts parts = cost::stored_parts(files, 0, diagnostics);
    diagnostics.throw_if_any();
    print_output("{}: no config.json next to it, so its shape is unknown\n", path);
    print_stored(cost::read_stored(cost::to_value(parts, {path, 0, 0})));
    for (const std::string& name : missing) print_words("  missing: " + name);
    return;
  }
  const ModelShape shape = cost::read_model(config::scalar(path, {path, 0, 0}), "model", diagnostics);
  diagnostics.throw_if_any();
  print_model(shape);
}

}  // namespace specsim::cli
