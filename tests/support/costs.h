// Cost models from the text of a config's cost section, for tests.
#pragma once

#include "sim/hardware/cost/cost_model.h"
#include "sim/hardware/cost/hardware.h"
#include "sim/hardware/cost/model_shape.h"
#include "sim/hardware/cost/round_time.h"
#include "tests/support/diagnostics.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>

namespace specsim::tests {

// `name` a cost model, `text` its parameters as YAML. A null pointer where `mistakes` is asked for and there are any.
inline std::unique_ptr<cost::CostModel> make_cost(const std::string& name, const std::string& text,
                                                  std::string* mistakes = nullptr) {
  Diagnostics diagnostics;
  const cost::CostEntry* entry = cost::cost_models().find(name);
  REQUIRE(entry != nullptr);
  const config::Value section = config::parse_text(text, "t", diagnostics);
  const config::Arguments arguments =
      config::read_arguments(section, entry->info.parameters, {"model"}, "cost model " + name, diagnostics);
  std::unique_ptr<cost::CostModel> model;
  if (diagnostics.empty()) model = entry->make(arguments, diagnostics);
  if (mistakes != nullptr) {
    *mistakes = all_messages(diagnostics);
    return diagnostics.empty() ? std::move(model) : nullptr;
  }
  INFO(all_messages(diagnostics));
  REQUIRE(diagnostics.empty());
  REQUIRE(model != nullptr);
  return model;
}

inline cost::ModelShape shape_of(const std::string& text) {
  Diagnostics diagnostics;
  cost::ModelShape shape = cost::read_model(config::parse_text(text, "t", diagnostics), "model", diagnostics);
  INFO(all_messages(diagnostics));
  REQUIRE(diagnostics.empty());
  return shape;
}

inline cost::Hardware hardware_of(const std::string& text) {
  Diagnostics diagnostics;
  cost::Hardware hardware = cost::read_hardware(config::parse_text(text, "t", diagnostics), diagnostics);
  INFO(all_messages(diagnostics));
  REQUIRE(diagnostics.empty());
  return hardware;
}

inline bool near(double a, double b, double relative = 1e-12) {
  return std::abs(a - b) <= relative * std::max(std::abs(a), std::abs(b));
}

}  // namespace specsim::tests
