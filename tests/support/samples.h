// Arguments for parts that a test knows only by their registry entries.
#pragma once

#include "sim/foundation/config/arguments.h"
#include "sim/foundation/config/registry.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

namespace specsim::tests {

// A parameter that names a file of the user: tests that know a part by its entry alone leave it out.
inline bool wants_file(const config::PartInfo& part) {
  return std::any_of(part.parameters.begin(), part.parameters.end(), [](const config::Parameter& own) {
    return own.type == config::Type::text && !own.fallback.has_value() && own.choices.empty();
  });
}

// "{kind: NAME, ...}" in flow style, small enough for an exact enumeration: the entry's example, or a value of its interval for
// required parameters; integers with large defaults get a small value, and each choice of text and boolean gets its own sample.
// Empty for a part that needs a file. `key`: the key before the part's name, after any other keys that come first.
inline std::vector<std::string> samples_of(const config::PartInfo& part, const std::string& key = "kind") {
  constexpr double kSmall = 3.0;
  if (wants_file(part)) return {};
  std::vector<std::string> samples = {key + ": " + part.name};
  const auto add = [&](const std::string& name, const std::vector<std::string>& values) {
    std::vector<std::string> longer;
    for (const std::string& sample : samples)
      for (const std::string& value : values) longer.push_back(fmt::format("{}, {}: {}", sample, name, value));
    samples = std::move(longer);
  };
  if (!part.example.empty()) samples.front() += ", " + part.example;
  for (const config::Parameter& own : part.parameters) {
    if (own.fallback.has_value() || !part.example.empty()) continue;  // an example has all required parameters
    if (own.type == config::Type::integer)
      add(own.name, {fmt::format("{:.0f}", std::clamp(kSmall, own.interval.low, own.interval.high))});
    else if (own.type == config::Type::number)
      add(own.name, {fmt::format("{}", std::clamp(0.9, own.interval.low, own.interval.high))});
    else if (own.type == config::Type::number_list)
      add(own.name, {own.interval.high <= 1.0 ? "[0.5, 0.3]" : "[1, 2]"});
    else if (own.type == config::Type::text)
      add(own.name, own.choices);
  }
  for (const config::Parameter& own : part.parameters) {
    if (!own.fallback.has_value() || part.example.find(own.name + ":") != std::string::npos) continue;
    if (own.type == config::Type::integer && !own.fallback->empty() && std::stod(*own.fallback) > kSmall)
      add(own.name, {fmt::format("{:.0f}", std::clamp(kSmall, own.interval.low, own.interval.high))});
    else if (own.type == config::Type::text && !own.choices.empty())
      add(own.name, own.choices);
    else if (own.type == config::Type::boolean)
      add(own.name, {"false", "true"});
  }
  // One of several ways to give a tree.
  if (std::any_of(part.parameters.begin(), part.parameters.end(), [](const auto& own) { return own.name == "branching"; }))
    add("branching", {"[2, 1]", "[1, 1, 1]"});
  for (std::string& sample : samples) sample = "{" + sample + "}";
  return samples;
}

}  // namespace specsim::tests
