// A part in a config: a section in which one key is the part's name and the rest are its parameters.
#pragma once

#include "sim/foundation/config/registry.h"

#include <cstddef>
#include <string>
#include <vector>

namespace specsim::config {

// A registered part and its checked arguments. No entry: the config named no valid part, which was reported.
template <class Entry>
struct Choice {
  const Entry* entry = nullptr;
  Arguments arguments;
  Location where;  // the place of the section
};

// The arguments of a part that is named alone: its defaults. Throws BadInput, at `where`, if the part needs parameters. `what`
// names the part in messages.
Arguments default_arguments(const PartInfo& info, const std::string& what, const Location& where);

// Expands a scalar that is short for a section with this one key: NAME becomes {KEY: NAME}. Other values are returned unchanged.
Value spelled_out(const Value& value, const std::string& key);

// The entry that `selector` of `section` names, and its arguments, read from the same section. `what` names the section in
// messages; `also_allowed` are keys that other code reads.
template <class Entry>
Choice<Entry> choose(const Registry<Entry>& registry, const Value& section, const std::string& selector, const std::string& what,
                     Diagnostics& diagnostics, std::vector<std::string> also_allowed = {}) {
  Choice<Entry> choice{nullptr, {}, section.where};
  if (!section.is_map()) {
    diagnostics.add(section.where, what + " is " + description_of_found(section) + ", allowed: {" + selector + ": NAME, ...}");
    return choice;
  }
  const Value* name = section.find(selector);
  if (name == nullptr) {
    diagnostics.add(section.where, what + " lacks \"" + selector + "\", allowed: " + registry.names());
    return choice;
  }
  const auto text = read_text(*name, what + "." + selector, diagnostics);
  const Entry* entry = text ? registry.find(*text, name->where, diagnostics) : nullptr;
  if (entry == nullptr) return choice;
  also_allowed.push_back(selector);
  const std::size_t before = diagnostics.list().size();
  choice.arguments = read_arguments(section, entry->info.parameters, also_allowed, registry.kind() + " " + *text, diagnostics);
  if (diagnostics.list().size() == before) choice.entry = entry;
  return choice;
}

}  // namespace specsim::config
