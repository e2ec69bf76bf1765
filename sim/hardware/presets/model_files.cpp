// Finds the file that describes a model, and the files next to it.
#include "sim/foundation/config/json.h"
#include "sim/hardware/presets/hugging_face.h"
#include "sim/hardware/presets/weight_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

namespace specsim::cost {

namespace fs = std::filesystem;
using config::Value;

std::optional<std::string> model_file_path(const std::string& text) {
  for (const char* ending : {".json", ".gguf", ".safetensors"})
    if (text.ends_with(ending)) return text;
  std::error_code ignored;
  if (text.empty() || !fs::is_directory(text, ignored)) return std::nullopt;
  for (const char* name : {"config.json", "params.json"})
    if (const fs::path inside = fs::path(text) / name; fs::exists(inside, ignored)) return inside.string();
  std::vector<std::string> files;
  for (const auto& entry : fs::directory_iterator(text, ignored))
    if (const std::string name = entry.path().string(); name.ends_with(".gguf") || name.ends_with(".safetensors"))
      files.push_back(name);
  std::sort(files.begin(), files.end());  // GGUF first, and the first part of a split file
  return files.empty() ? std::nullopt : std::optional(files.front());
}

namespace {

Value read_gguf(const std::string& path, Diagnostics& diagnostics, bool module) {
  const std::optional<GgufDescription> own = describe_gguf(path, diagnostics);
  if (!own) return {};
  Value model = model_of_config(path, own->config, {nullptr, &own->dtype}, module, diagnostics);
  if (model.is_map()) model.fields.push_back({"stored", own->config.where, to_value(own->parts, own->config.where)});
  return model;
}

Value read_config(const std::string& path, Diagnostics& diagnostics, bool module) {
  const Value root = config::parse_json_file(path, diagnostics);
  if (!diagnostics.empty()) return {};
  if (!root.is_map()) {
    diagnostics.add({path, 1, 1}, "no JSON object, allowed: a model's config.json");
    return {};
  }
  const fs::path folder = fs::path(path).parent_path();
  std::optional<Value> side;
  std::error_code ignored;
  for (const char* name : {"hf_quant_config.json", "quantize_config.json", "quant_config.json"}) {
    const fs::path beside = folder / name;
    if (side || !fs::is_regular_file(beside, ignored)) continue;
    side = config::parse_json_file(beside.string(), diagnostics);
    if (!diagnostics.empty()) return {};
  }
  Value model = model_of_config(path, root, {side ? &*side : nullptr, nullptr}, module, diagnostics);
  const std::string name = fs::path(path).filename().string();
  if (!model.is_map() || module || (name != "config.json" && name != "params.json")) return model;
  std::vector<std::string> missing;
  const std::vector<std::string> files = safetensors_files(folder.empty() ? "." : folder.string(), missing, diagnostics);
  if (!diagnostics.empty()) return {};
  if (files.empty()) return model;
  const Value* layers = model.find("layers");
  const std::optional<double> count = layers != nullptr ? config::as_number(layers->text) : std::nullopt;
  const StoredParts parts = stored_parts(files, static_cast<std::size_t>(count.value_or(0.0)), diagnostics);
  if (!diagnostics.empty()) return {};
  if (missing.empty()) {
    model.fields.push_back({"stored", root.where, to_value(parts, root.where)});
    return model;
  }
  const std::string text = fmt::format("{} of {} weight files are missing, {} among them: bytes are those of config.json",
                                       missing.size(), missing.size() + files.size(), missing.front());
  Value* assumed = model.find("assumed");
  if (assumed == nullptr) {
    model.fields.push_back({"assumed", root.where, {}});
    assumed = &model.fields.back().value;
    assumed->kind = config::Kind::list;
    assumed->where = root.where;
  }
  assumed->items.push_back(config::scalar(text, root.where));
  return model;
}

}  // namespace

Value read_model_file(const std::string& path, Diagnostics& diagnostics, bool module) {
  Diagnostics own;
  Value model;
  std::error_code ignored;
  const std::string beside = (fs::path(path).parent_path() / "config.json").string();
  if (path.ends_with(".gguf"))
    model = read_gguf(path, own, module);
  else if (!path.ends_with(".safetensors"))
    model = read_config(path, own, module);
  else if (fs::exists(beside, ignored))
    model = read_config(beside, own, module);
  else
    own.add({path, 0, 0}, "a safetensors file does not state how many heads a model has, allowed: one next to its config.json");
  for (const Diagnostic& mistake : own.list()) diagnostics.add(mistake.where, mistake.message);
  return own.empty() ? model : Value();
}

}  // namespace specsim::cost
