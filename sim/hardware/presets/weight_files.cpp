#include "sim/hardware/presets/weight_files.h"

#include "sim/foundation/config/json.h"
#include "sim/foundation/config/safetensors_header.h"
#include "sim/foundation/config/words.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <set>
#include <system_error>
#include <utility>

namespace specsim::cost {

namespace {

using config::Value;
namespace fs = std::filesystem;

struct Rule {
  std::string_view texts;  // anywhere in the name
  std::string_view part;
};
// The first that fits counts. Names as Hugging Face's classes and llama.cpp's converter give them.
constexpr Rule kRules[] = {
    {"vision visual image audio speech mm_projector multi_modal patch_embed", "other"},
    {"mtp nextn eh_proj", "mtp"},
    {"shared_expert_gate", "small"},
    {"shared_expert share_expert shared_mlp _shexp", "shared"},
    {"mlp.gate. ffn.gate. moe.gate. mixer.gate. router ffn_gate_inp exp_probs expert_bias", "small"},
    {"experts _exps block_sparse_moe.input block_sparse_moe.output", "experts"},
    {"linear_attn mamba ssm_ shortconv conv mixer.in_proj mixer.out_proj A_log", "state"},
    {"norm ln_", "small"},
    {"embed_tokens token_embd tok_embeddings word_embeddings wte embed_in embed.weight", "embeddings"},
    {"position wpe rotary rope_freqs", "small"},
    {"lm_head embed_out", "head"},
    {"attn attention qkv q_proj k_proj v_proj o_proj W_pack", "attention"},
    {"mlp ffn feed_forward up_proj down_proj gate_proj fc1 fc2 dense_h_to_4h dense_4h_to_h", "dense"},
    {"medusa", "head"},
    {"fc.weight inp_gate laurel", "dense"},
    {"altup", "small"},
    {"per_layer .proj.", "dense"},
    {"bias", "small"},
};

// The layer number in a name: model.layers.7.mlp, blk.7.ffn_up, h.7.attn.
std::optional<std::size_t> layer_of(std::string_view name) {
  for (const std::string_view before : {"layers.", "blk.", "blocks.", "h."}) {
    const std::size_t at = name.find(before);
    if (at == std::string_view::npos || (at > 0 && name[at - 1] != '.')) continue;
    std::size_t number = 0;
    std::size_t digits = 0;
    for (const char c : name.substr(at + before.size())) {
      if (c < '0' || c > '9' || digits > 6) break;
      number = 10 * number + static_cast<std::size_t>(c - '0');
      ++digits;
    }
    if (digits > 0) return number;
  }
  return std::nullopt;
}

}  // namespace

std::string_view part_of_tensor(std::string_view name, std::size_t dimensions, std::size_t layers) {
  const std::optional<std::size_t> layer = layer_of(name);
  const bool beyond = layers > 0 && layer && *layer >= layers && name.find("vis") == std::string_view::npos;
  if (beyond || name.starts_with("mtp.")) return "mtp";
  if (name.starts_with("v.") || name.starts_with("mm.")) return "other";
  if (name == "output.weight" || name == "head.weight") return "head";
  for (const Rule& rule : kRules)
    for (const std::string_view text : config::words_of(rule.texts))
      if (name.find(text) != std::string_view::npos) return dimensions < 2 && rule.part != "other" ? "small" : rule.part;
  return dimensions < 2 ? "small" : "other";
}

std::vector<std::string> safetensors_files(const std::string& path, std::vector<std::string>& missing, Diagnostics& diagnostics) {
  std::error_code ignored;
  if (path.ends_with(".safetensors")) return {path};
  const fs::path folder = path;
  std::vector<std::string> files;
  for (const char* name : {"model.safetensors.index.json", "consolidated.safetensors.index.json"}) {
    const fs::path index = folder / name;
    if (!files.empty() || !fs::is_regular_file(index, ignored)) continue;
    const std::size_t before = diagnostics.list().size();
    const Value root = config::parse_json_file(index.string(), diagnostics);
    if (diagnostics.list().size() != before) return {};
    const Value* map = root.find("weight_map");
    if (map == nullptr || !map->is_map()) {
      diagnostics.add({index.string(), 1, 1}, "no \"weight_map\", allowed: {\"weight_map\": {TENSOR: FILE, ...}}");
      return {};
    }
    std::set<std::string> names;
    for (const config::Field& entry : map->fields) {
      const std::string& file = entry.value.text;
      if (!entry.value.is_scalar() || file.empty() || fs::path(file).filename() != file) {
        diagnostics.add(entry.value.where,
                        fmt::format("tensor {} is in {}, allowed: the name of a file next to the index",
                                    config::quote_for_message(entry.key), config::description_of_found(entry.value)));
        return {};
      }
      names.insert(file);
    }
    for (const std::string& file : names)
      if (fs::is_regular_file(folder / file, ignored))
        files.push_back((folder / file).string());
      else
        missing.push_back(file);
    if (!names.empty()) return files;
  }
  for (const char* name : {"model.safetensors", "consolidated.safetensors"})
    if (fs::is_regular_file(folder / name, ignored)) return {(folder / name).string()};
  for (const auto& entry : fs::directory_iterator(folder, ignored))
    if (entry.path().extension() == ".safetensors" && entry.is_regular_file(ignored)) files.push_back(entry.path().string());
  std::sort(files.begin(), files.end());
  return files;
}

StoredParts stored_parts(const std::vector<std::string>& files, std::size_t layers, Diagnostics& diagnostics) {
  StoredParts parts;
  for (const std::string& path : files) {
    try {
      const InputFile file(path, "a readable safetensors file");
      for (const auto& [name, tensor] : config::read_safetensors_header(file)) {
        TensorSum& own = parts[std::string(part_of_tensor(name, tensor.shape.size(), layers))][tensor.dtype];
        ++own.tensors;
        own.elements += 8.0 * static_cast<double>(tensor.bytes) / static_cast<double>(config::bits_of_dtype(tensor.dtype));
        own.bytes += static_cast<double>(tensor.bytes);
      }
    } catch (const BadInput& bad) {
      for (const Diagnostic& mistake : bad.list()) diagnostics.add(mistake.where, mistake.message);
      return {};
    }
  }
  return parts;
}

Value to_value(const StoredParts& parts, const Location& where) {
  std::vector<std::pair<std::string, Value>> all;
  for (const auto& [part, types] : parts) {
    std::vector<std::pair<std::string, Value>> own;
    for (const auto& [type, tensors] : types)
      own.emplace_back(type, config::map({{"tensors", config::scalar(fmt::format("{}", tensors.tensors), where)},
                                          {"elements", config::scalar(fmt::format("{:.0f}", tensors.elements), where)},
                                          {"bytes", config::scalar(fmt::format("{:.0f}", tensors.bytes), where)}},
                                         where));
    all.emplace_back(part, config::map(std::move(own), where));
  }
  return config::map(std::move(all), where);
}

}  // namespace specsim::cost
