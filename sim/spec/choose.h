// A part as a config names it: a section of which one key is the part's name and the rest its parameters.
#pragma once

#include "sim/config/registry.h"
#include "sim/spec/cell.h"

#include <fmt/format.h>

#include <string>
#include <vector>

namespace specsim::spec {

// The entry that `selector` of `section` names, and its arguments, read from the same section; nullptr after reporting.
// `also_allowed` are keys that somebody else reads.
template <class Entry>
const Entry* choose(const config::Registry<Entry>& registry, const config::Value& section, const std::string& selector,
                    const std::string& what, const std::vector<std::string>& also_allowed, config::Arguments& arguments,
                    Diagnostics& diagnostics) {
  if (!section.is_map()) {
    diagnostics.add(section.where,
                    fmt::format("{} is {}, allowed: {{{}: NAME, ...}}", what, config::found_text(section), selector));
    return nullptr;
  }
  const config::Value* name = section.find(selector);
  if (name == nullptr) {
    diagnostics.add(section.where, fmt::format("{} lacks \"{}\", allowed: {}", what, selector, registry.names()));
    return nullptr;
  }
  const auto text = config::read_text(*name, what + "." + selector, diagnostics);
  if (!text) return nullptr;
  const Entry* entry = registry.find(*text, name->where, diagnostics);
  if (entry == nullptr) return nullptr;
  std::vector<std::string> allowed = also_allowed;
  allowed.push_back(selector);
  const std::size_t before = diagnostics.list().size();
  arguments = config::read_arguments(section, entry->info.parameters, allowed, registry.kind() + " " + *text, diagnostics);
  return diagnostics.list().size() == before ? entry : nullptr;
}

}  // namespace specsim::spec
