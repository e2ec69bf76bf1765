// Drafters made from the text of their parameters, as in a config, and the context of those that read the text.
#pragma once

#include "sim/foundation/config/value.h"
#include "sim/rounds/draft/drafter.h"

#include <catch2/catch.hpp>

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

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

// The context of a drafter that sees only the text.
class WrittenText final : public draft::DrafterInput {
 public:
  explicit WrittenText(std::vector<Token> text) : text_(std::move(text)) {}
  std::span<const draft::Ranked> likeliest(const draft::ChosenBlock&, int) override { return {}; }
  [[nodiscard]] std::size_t vocab() const override { return 1000; }
  [[nodiscard]] std::span<const Token> text() const override { return text_; }
  Token random_token(std::uint32_t) override { return 0; }
  Prefix end_of_text() override { return {}; }
  Prefix after(Prefix prefix, Token) override { return prefix; }
  std::vector<Token> target_argmax(std::span<const Prefix> prefixes) override { return std::vector<Token>(prefixes.size(), 0); }

 private:
  std::vector<Token> text_;
};

}  // namespace specsim::tests
