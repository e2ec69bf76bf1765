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

Value find_preset(const std::string& kind, const Value& name, Diagnostics& diagnostics) {
  std::vector<std::string> names;
  for (const Preset& preset : presets()) {
    if (preset.kind != kind) continue;
    names.emplace_back(preset.name);
    Value value = config::parse_text(preset.text, preset.path, diagnostics);
    const std::vector<std::string> aliases = aliases_of(value);
    if (preset.name == name.text || std::find(aliases.begin(), aliases.end(), name.text) != aliases.end()) return value;
    names.insert(names.end(), aliases.begin(), aliases.end());
  }
  const std::string near = nearest_name(name.text, names);
  diagnostics.add(
      name.where,
      fmt::format("unknown {} {}{} allowed: {}, or the path of a .yaml file", kind, config::quote_for_message(name.text),
                  near.empty() ? "," : fmt::format(", did you mean \"{}\"?", near), fmt::join(names, ", ")));
  return {};
}

}  // namespace

Value resolve_preset(const std::string& kind, const Value& spec, Diagnostics& diagnostics) {
  if (spec.is_scalar()) {
    if (spec.text.ends_with(".yaml") || spec.text.ends_with(".yml")) return config::parse_file(spec.text, diagnostics);
    return find_preset(kind, spec, diagnostics);
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
  Value base = resolve_preset(kind, *name, diagnostics);
  if (!base.is_map()) return {};
  for (const config::Field& field : spec.fields) {
    if (field.key == "preset") continue;
    if (Value* old = base.find(field.key))
      *old = field.value;
    else
      base.fields.push_back(field);
  }
  base.where = spec.where;
  return base;
}

}  // namespace specsim::cost
