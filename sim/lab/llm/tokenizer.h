// Text to tokens by a model's own vocabulary.
#pragma once

#include "sim/foundation/base/token.h"

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace specsim::llm {

class Tokenizer {
 public:
  Tokenizer() = default;
  Tokenizer(const Tokenizer&) = delete;
  Tokenizer& operator=(const Tokenizer&) = delete;
  virtual ~Tokenizer() = default;
  // The file that it was read from.
  [[nodiscard]] virtual const std::string& path() const = 0;
  // One more than the largest token.
  [[nodiscard]] virtual std::size_t vocab() const = 0;
  // The tokens of `text` (UTF-8), without those that the model wants in front of it.
  [[nodiscard]] virtual std::vector<Token> encode(std::string_view text) const = 0;
  // What stands in front of every text, where the model's own begin token is `begin_token`.
  [[nodiscard]] virtual std::vector<Token> before_text(Token begin_token) const = 0;
  // The piece of text that the token stands for, as the vocabulary writes it; empty where there is no such token.
  [[nodiscard]] virtual std::string piece(Token token) const = 0;
};

// Whether both have the same pieces at the same places.
bool same_pieces(const Tokenizer& a, const Tokenizer& b);

// Reads a SentencePiece model. Throws BadInput where it is none.
std::unique_ptr<Tokenizer> read_sentencepiece(const std::string& path);

}  // namespace specsim::llm
