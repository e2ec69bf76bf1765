// Arguments for parts that a test knows by their entries alone.
#pragma once

#include "sim/config/arguments.h"
#include "sim/config/registry.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

namespace specsim::tests {

// "{kind: NAME, ...}" in flow style, small enough for an exact enumeration: required arguments get a value of their interval,
// integers with large defaults a small one, and each choice of text and boolean a sample of its own.
inline std::vector<std::string> samples_of(const config::PartInfo& part) {
  constexpr double kSmall = 3.0;
  std::vector<std::string> samples = {"kind: " + part.name};
  const auto add = [&](const std::string& name, const std::vector<std::string>& values) {
    std::vector<std::string> longer;
    for (const std::string& sample : samples)
      for (const std::string& value : values) longer.push_back(fmt::format("{}, {}: {}", sample, name, value));
    samples = std::move(longer);
  };
  for (const config::Parameter& own : part.parameters) {
    const bool required = !own.fallback.has_value();
    const bool given = !required && !own.fallback->empty();
    switch (own.type) {
      case config::Type::integer:
        if (required || (given && std::stod(*own.fallback) > kSmall))
          add(own.name, {fmt::format("{:.0f}", std::clamp(kSmall, own.interval.low, own.interval.high))});
        break;
      case config::Type::number:
        if (required) add(own.name, {fmt::format("{}", std::clamp(0.9, own.interval.low, own.interval.high))});
        break;
      case config::Type::number_list:
        if (required) add(own.name, {own.interval.high <= 1.0 ? "[0.5, 0.3]" : "[1, 2]"});
        break;
      case config::Type::text:
        if (!own.choices.empty()) add(own.name, own.choices);
        break;
      case config::Type::boolean:
        add(own.name, {"false", "true"});
        break;
      default:
        break;
    }
  }
  // One of several ways to give a tree.
  if (std::any_of(part.parameters.begin(), part.parameters.end(), [](const auto& own) { return own.name == "branching"; }))
    add("branching", {"[2, 1]", "[1, 1, 1]"});
  for (std::string& sample : samples) sample = "{" + sample + "}";
  return samples;
}

}  // namespace specsim::tests
