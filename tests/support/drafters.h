// Drafters made from the text of their parameters, as a config would write them.
#pragma once

#include "sim/config/value.h"
#include "sim/draft/drafter.h"

#include <catch2/catch.hpp>

#include <string>
#include <variant>

namespace specsim::tests {

// A drafter that chooses blocks. Throws BadInput for wrong parameters.
inline draft::Blocks make_blocks(const std::string& kind, const std::string& parameters) {
  Diagnostics diagnostics;
  const draft::DrafterEntry* entry = draft::drafters().find(kind);
  REQUIRE(entry != nullptr);
  const config::Value section = config::parse_text(parameters, "t", diagnostics);
  const config::Arguments arguments = config::read_arguments(section, entry->info.parameters, {}, kind, diagnostics);
  const draft::Draft made = entry->make(arguments, diagnostics);
  diagnostics.throw_if_any();
  return std::get<draft::Blocks>(made);
}

}  // namespace specsim::tests
