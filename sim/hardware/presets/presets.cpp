#include "sim/hardware/presets/presets.h"

#include "sim/hardware/presets/hugging_face.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <optional>
#include <string_view>
#include <system_error>

namespace specsim::cost {

namespace {

using config::Value;

std::vector<std::string> aliases_of(const Value& preset) {
  std::vector<std::string> aliases;
  if (const Value* list = preset.find("aliases"))
    for (const Value& alias : list->items) aliases.push_back(alias.text);
  return aliases;
}

struct ParsedPreset {
  PresetKind kind;
  std::string name;  // or an alias
  std::string own;   // its own name
  Value value;
};

// Every preset by each of its names, in order; parsed once.
const std::vector<ParsedPreset>& parsed_presets() {
  static const auto all = [] {
    std::vector<ParsedPreset> list;
    for (const Preset& preset : presets()) {
      Diagnostics diagnostics;
      const Value value = config::parse_text(preset.text, preset.path, diagnostics);
      diagnostics.throw_if_any();
      list.push_back({preset.kind, preset.name, preset.name, value});
      for (const std::string& alias : aliases_of(value)) list.push_back({preset.kind, alias, preset.name, value});
    }
    return list;
  }();
  return all;
}

const Value* find_preset(PresetKind kind, const std::string& name) {
  for (const ParsedPreset& preset : parsed_presets())
    if (preset.kind == kind && preset.name == name) return &preset.value;
  return nullptr;
}

// The kinds of text that are allowed other than a preset's name.
std::string files_of(PresetKind kind) {
  if (kind == PresetKind::model) return "the path of a .yaml file, a config.json or its folder, or a GGUF file";
  return kind == PresetKind::acceptance ? "the path of a file with acceptance by depth and rank" : "the path of a .yaml file";
}

// The preset that a name of Hugging Face may refer to, "meta-llama/Llama-3.1-8B-Instruct" for llama-3.1-8b; "" if there is none.
std::string preset_like(PresetKind kind, const std::string& path) {
  std::string name = path.substr(path.find_last_of('/') + 1);
  std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  for (const std::string_view ending : {"", "-instruct", "-chat", "-hf", "-it"}) {
    if (!name.ends_with(ending)) continue;
    std::string shorter = name.substr(0, name.size() - ending.size());
    if (find_preset(kind, shorter) != nullptr) return shorter;
  }
  return "";
}

void report_unknown(PresetKind kind, const Value& name, Diagnostics& diagnostics) {
  std::error_code ignored;
  if (kind == PresetKind::model && std::filesystem::is_directory(name.text, ignored)) {
    diagnostics.add(
        name.where,
        fmt::format("model {}: the folder holds no config.json and no GGUF file, allowed: a folder with one of them", name.text));
    return;
  }
  if (name.text.find('/') != std::string::npos && !std::filesystem::exists(name.text, ignored)) {
    const std::string like = preset_like(kind, name.text);
    diagnostics.add(name.where,
                    fmt::format("{} {}: no such file or folder{} allowed: {}, or a name (specsim list {})", name_of(kind),
                                config::quote_for_message(name.text),
                                like.empty() ? "," : fmt::format(", did you mean \"{}\"?", like), files_of(kind), name_of(kind)));
    return;
  }
  diagnostics.add(name.where, config::unknown_name(fmt::format("unknown {}", name_of(kind)), name.text, preset_names(kind)) +
                                  ", or " + files_of(kind));
}

constexpr int kMaxDepth = 8;

// The keys of `changes` override those of `base`, also within nested maps, so that one calibrated figure can be changed.
void replace_keys(Value& base, const Value& changes) {
  for (const config::Field& field : changes.fields) {
    Value* old = base.find(field.key);
    if (old == nullptr)
      base.fields.push_back(field);
    else if (old->is_map() && field.value.is_map())
      replace_keys(*old, field.value);
    else
      *old = field.value;
  }
}

Value resolve(PresetKind kind, const Value& spec, int depth, Diagnostics& diagnostics);

// The file that `spec` names: a config.json, where `json` is its path, or YAML. `module`: its MTP module.
Value from_file(PresetKind kind, const Value& spec, const std::optional<std::string>& json, bool module, int depth,
                Diagnostics& diagnostics) {
  Diagnostics own;
  Value file = json ? read_model_file(*json, own, module) : config::parse_file(spec.text, own);
  for (const Diagnostic& mistake : own.list()) {
    if (mistake.where.line > 0)
      diagnostics.add(mistake.where, mistake.message);
    else {
      // A model may have several files: names the one with the mistake.
      const bool other = !mistake.where.file.empty() && mistake.where.file != spec.text;
      diagnostics.add(spec.where, fmt::format("{} {}: {}{}", name_of(kind), spec.text, other ? mistake.where.file + ": " : "",
                                              mistake.message));
    }
  }
  if (!own.empty()) return {};
  return file.find("preset") == nullptr ? file : resolve(kind, file, depth + 1, diagnostics);
}

Value resolve(PresetKind kind, const Value& spec, int depth, Diagnostics& diagnostics) {
  if (depth > kMaxDepth) {
    diagnostics.add(spec.where, fmt::format("presets are {} deep, allowed: {}; does a file name itself?", depth, kMaxDepth));
    return {};
  }
  if (spec.is_scalar()) {
    constexpr std::string_view kModule = ":mtp";  // the MTP module in a model's checkpoint
    const bool module = kind == PresetKind::model && spec.text.ends_with(kModule);
    if (module) {
      Value whole = spec;
      whole.text.resize(spec.text.size() - kModule.size());
      if (const std::optional<std::string> json = model_file_path(whole.text))
        return from_file(kind, whole, json, true, depth, diagnostics);
      const Value* model = find_preset(kind, whole.text);
      const Value* own = model != nullptr ? model->find("name") : nullptr;
      whole.text = (own != nullptr ? own->text : whole.text) + "-mtp";
      return resolve(kind, whole, depth + 1, diagnostics);
    }
    const Value* preset = find_preset(kind, spec.text);
    if (preset != nullptr) return preset->find("preset") == nullptr ? *preset : resolve(kind, *preset, depth + 1, diagnostics);
    const bool yaml = spec.text.ends_with(".yaml") || spec.text.ends_with(".yml");
    const std::optional<std::string> json = kind == PresetKind::model ? model_file_path(spec.text) : std::nullopt;
    if (!yaml && !json) {
      report_unknown(kind, spec, diagnostics);
      return {};
    }
    return from_file(kind, spec, json, false, depth, diagnostics);
  }
  if (!spec.is_map()) {
    diagnostics.add(spec.where, fmt::format("{} is {}, allowed: a name, {}, or a map with preset: NAME", name_of(kind),
                                            config::description_of_found(spec), files_of(kind)));
    return {};
  }
  const Value* name = spec.find("preset");
  const Value* same = kind == PresetKind::model ? spec.find("model") : nullptr;  // the word that fits there
  if (name != nullptr && same != nullptr) {
    diagnostics.add(same->where, "model is given together with preset, allowed: one of them, because they mean the same");
    return {};
  }
  if (name == nullptr) name = same;
  if (name == nullptr) return spec;
  if (!name->is_scalar()) {
    diagnostics.add(name->where, fmt::format("{} is {}, allowed: a name or {}", same == nullptr ? "preset" : "model",
                                             config::description_of_found(*name), files_of(kind)));
    return {};
  }
  Value base = resolve(kind, *name, depth + 1, diagnostics);
  if (!base.is_map()) return {};
  Value changes = spec;
  const std::string key = same == nullptr ? "preset" : "model";
  std::erase_if(changes.fields, [&](const config::Field& field) { return field.key == key; });
  replace_keys(base, changes);
  base.where = spec.where;
  return base;
}

}  // namespace

const char* name_of(PresetKind kind) {
  switch (kind) {
    case PresetKind::hardware:
      return "hardware";
    case PresetKind::model:
      return "model";
    case PresetKind::engine:
      return "engine";
    case PresetKind::acceptance:
      return "acceptance";
  }
  return "";
}

Value to_config(const PresetChoice& choice, Diagnostics& diagnostics) {
  const auto value_of = [&](const std::string& text, const Location& where) {
    return text.find('{') == std::string::npos ? config::scalar(text, where) : config::parse_text(text, where.file, diagnostics);
  };
  Value name = value_of(choice.name, choice.where);
  if (choice.changes.empty()) return name;
  Value map = std::move(name);
  if (!map.is_map()) {
    const Location where = map.where;
    map = config::map({{"preset", std::move(map)}}, where);
  }
  for (const PresetChoice::Change& change : choice.changes) {
    std::erase_if(map.fields, [&](const config::Field& field) { return field.key == change.key; });
    map.fields.push_back({change.key, change.where, value_of(change.text, change.where)});
  }
  return map;
}

std::string own_name(PresetKind kind, const std::string& text) {
  std::string name = text;
  if (text.starts_with('{')) {
    Diagnostics ignored;
    const Value map = config::parse_text(text, "", ignored);
    if (const Value* const preset = map.find("preset"); preset != nullptr && preset->is_scalar()) name = preset->text;
  }
  for (const ParsedPreset& preset : parsed_presets())
    if (preset.kind == kind && preset.name == name) return preset.own;
  return text;
}

std::vector<std::string> aliases_of(const Preset& preset) {
  const Value* const value = find_preset(preset.kind, preset.name);
  return value != nullptr ? aliases_of(*value) : std::vector<std::string>();
}

std::vector<std::string> preset_names(PresetKind kind) {
  std::vector<std::string> names;
  for (const ParsedPreset& preset : parsed_presets())
    if (preset.kind == kind) names.push_back(preset.name);
  return names;
}

Value resolve_preset(PresetKind kind, const Value& spec, Diagnostics& diagnostics) { return resolve(kind, spec, 0, diagnostics); }

}  // namespace specsim::cost
