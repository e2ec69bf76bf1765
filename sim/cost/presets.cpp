#include "sim/cost/presets.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace specsim::cost {

namespace {

using config::Value;

std::vector<std::string> aliases_of(const Value& preset) {
  std::vector<std::string> aliases;
  if (const Value* list = preset.find("aliases"))
    for (const Value& alias : list->items) aliases.push_back(alias.text);
  return aliases;
}

// Kind and name or alias of every preset, in order; parsed once.
const std::vector<std::pair<std::pair<std::string, std::string>, Value>>& parsed_presets() {
  static const auto all = [] {
    std::vector<std::pair<std::pair<std::string, std::string>, Value>> list;
    for (const Preset& preset : presets()) {
      Diagnostics diagnostics;
      const Value value = config::parse_text(preset.text, preset.path, diagnostics);
      diagnostics.throw_if_any();
      list.push_back({{preset.kind, preset.name}, value});
      for (const std::string& alias : aliases_of(value)) list.push_back({{preset.kind, alias}, value});
    }
    return list;
  }();
  return all;
}

Value find_preset(const std::string& kind, const Value& name, Diagnostics& diagnostics) {
  std::vector<std::string> names;
  for (const auto& [of, value] : parsed_presets()) {
    if (of.first != kind) continue;
    if (of.second == name.text) return value;
    names.push_back(of.second);
  }
  diagnostics.add(name.where,
                  fmt::format("unknown {} {}{} allowed: {}, or the path of a .yaml file", kind,
                              config::quote_for_message(name.text), did_you_mean(name.text, names), fmt::join(names, ", ")));
  return {};
}

constexpr int kMaxDepth = 8;

// The keys of `changes` in place of those of `base`; maps within them alike, so that one calibrated figure can be changed.
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

Value resolve(const std::string& kind, const Value& spec, int depth, Diagnostics& diagnostics) {
  if (depth > kMaxDepth) {
    diagnostics.add(spec.where, fmt::format("presets are {} deep, allowed: {}; does a file name itself?", depth, kMaxDepth));
    return {};
  }
  if (spec.is_scalar()) {
    if (!spec.text.ends_with(".yaml") && !spec.text.ends_with(".yml")) return find_preset(kind, spec, diagnostics);
    Diagnostics own;
    Value file = config::parse_file(spec.text, own);
    for (const Diagnostic& mistake : own.list()) {
      if (mistake.where.line > 0)
        diagnostics.add(mistake.where, mistake.message);
      else
        diagnostics.add(spec.where, fmt::format("{} {}: {}", kind, spec.text, mistake.message));
    }
    if (!own.empty()) return {};
    return file.find("preset") == nullptr ? file : resolve(kind, file, depth + 1, diagnostics);
  }
  if (!spec.is_map()) {
    diagnostics.add(spec.where, fmt::format("{} is {}, allowed: a name, the path of a .yaml file, or a map with preset: NAME",
                                            kind, config::found_text(spec)));
    return {};
  }
  const Value* name = spec.find("preset");
  if (name == nullptr) return spec;
  if (!name->is_scalar()) {
    diagnostics.add(name->where,
                    fmt::format("preset is {}, allowed: a name or the path of a .yaml file", config::found_text(*name)));
    return {};
  }
  Value base = resolve(kind, *name, depth + 1, diagnostics);
  if (!base.is_map()) return {};
  Value changes = spec;
  std::erase_if(changes.fields, [](const config::Field& field) { return field.key == "preset"; });
  replace_keys(base, changes);
  base.where = spec.where;
  return base;
}

}  // namespace

Value resolve_preset(const std::string& kind, const Value& spec, Diagnostics& diagnostics) {
  return resolve(kind, spec, 0, diagnostics);
}

}  // namespace specsim::cost
