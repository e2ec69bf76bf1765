// Text to tokens and back by a model's SentencePiece vocabulary.
#pragma once

#include "sim/base/token.h"

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace specsim::llm {

class Tokenizer {
 public:
  // Reads a tokenizer.model. Throws BadInput where it is none.
  explicit Tokenizer(const std::string& path);
  ~Tokenizer();
  Tokenizer(const Tokenizer&) = delete;
  Tokenizer& operator=(const Tokenizer&) = delete;
  [[nodiscard]] std::size_t vocab() const;
  // Without a begin token.
  [[nodiscard]] std::vector<Token> encode(std::string_view text) const;
  [[nodiscard]] std::string decode(const std::vector<Token>& tokens) const;
  // Whether the other has the same pieces at the same places.
  [[nodiscard]] bool same_pieces(const Tokenizer& other) const;

 private:
  struct Processor;  // keeps SentencePiece's header out of this one
  std::unique_ptr<Processor> processor_;
};

}  // namespace specsim::llm
