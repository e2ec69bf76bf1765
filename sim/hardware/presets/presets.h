// The YAML files of configs/hardware, configs/models, configs/engines and configs/acceptance, built into the program, and how a
// config or an option names one of them.
#pragma once

#include "sim/foundation/config/value.h"

#include <array>
#include <string>
#include <vector>

namespace specsim::cost {

enum class PresetKind { hardware, model, engine, acceptance };
inline constexpr std::array<PresetKind, 4> kPresetKinds = {PresetKind::hardware, PresetKind::model, PresetKind::engine,
                                                           PresetKind::acceptance};
// As in `specsim list KIND` and in messages: "hardware".
const char* name_of(PresetKind kind);

struct BuiltInFile {
  const char* name;
  const char* path;  // its path in the repository, for messages
  const char* text;
};
struct Preset : BuiltInFile {
  PresetKind kind;
};
const std::vector<Preset>& presets();              // generated, see cmake/presets.cmake
const std::vector<BuiltInFile>& kernel_presets();  // configs/kernels: fits of single kernels, separate because they are long

// Names and aliases of a kind's presets, in order.
std::vector<std::string> preset_names(PresetKind kind);
// The preset's own name where `text` is that, one of its aliases, or a map in braces that begins with one; `text` otherwise.
std::string own_name(PresetKind kind, const std::string& text);
// Other names of a preset.
std::vector<std::string> aliases_of(const Preset& preset);

// A preset or file chosen by an option or a table, each part as a config would write it, with the place that messages name.
struct PresetChoice {
  struct Change {
    std::string key;
    std::string text;
    Location where;
  };
  std::string name;  // a preset's name, the path of a file, or a map in braces
  Location where;
  std::vector<Change> changes;  // settings that override the preset's
};
// The choice as a config holds it: the name alone, or {preset: NAME, KEY: TEXT, ...}. A change replaces the same key of a map in
// braces. Reports broken YAML in braces.
config::Value to_config(const PresetChoice& choice, Diagnostics& diagnostics);

// The description that `spec` names: a preset (or alias), the path of a .yaml file, or a map. The map is {preset: NAME, ...} with
// keys that override the preset's, or a whole description. A null value after reporting.
config::Value resolve_preset(PresetKind kind, const config::Value& spec, Diagnostics& diagnostics);

}  // namespace specsim::cost
