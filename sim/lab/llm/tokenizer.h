// Converts text to tokens by a model's own vocabulary.
#pragma once

#include "sim/foundation/base/token.h"

#include <boost/core/noncopyable.hpp>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace specsim::config {
class GgufFile;
}

namespace specsim::llm {

class Tokenizer : boost::noncopyable {
 public:
  virtual ~Tokenizer() = default;
  // The file from which it was read.
  [[nodiscard]] virtual const std::string& path() const = 0;
  // One more than the largest token.
  [[nodiscard]] virtual std::size_t vocab() const = 0;
  // The tokens of `text` (UTF-8), without those that the model needs before it.
  [[nodiscard]] virtual std::vector<Token> encode(std::string_view text) const = 0;
  // The tokens in front of every text, for a model whose own begin token is `begin_token`.
  [[nodiscard]] virtual std::vector<Token> before_text(Token begin_token) const = 0;
  // The text of a token, as the vocabulary writes it; empty if there is no such token.
  [[nodiscard]] virtual std::string piece(Token token) const = 0;
};

// Whether both have the same pieces at the same places.
bool same_pieces(const Tokenizer& a, const Tokenizer& b);

// Reads a SentencePiece model. Throws BadInput if the file is not one.
std::unique_ptr<Tokenizer> read_sentencepiece(const std::string& path);

// Reads tokenizer.json of the library tokenizers (Hugging Face) if it describes byte-pair encoding. Supported: model BPE;
// normalizers NFC, Prepend, Replace of a text; pre-tokenizers ByteLevel, Digits, Metaspace, and Split by the expressions of
// GPT-2, Llama 3 and Qwen or by a text. Throws BadInput with the file and any other feature, since slightly wrong tokens would
// silently make acceptance wrong.
std::unique_ptr<Tokenizer> read_tokenizer_json(const std::string& path);

// The tokenizer in a GGUF file's metadata. Supports byte-pair vocabularies of GPT-2, Llama 3 and Qwen2 ("gpt2" in the file). Null
// for other kinds, whose prompts must be token ids. Throws BadInput for a broken one, or one that is cut by unsupported rules.
std::unique_ptr<Tokenizer> read_gguf_tokenizer(const config::GgufFile& file);

// The tokenizer of the model at `path`: tokenizer.json of a directory, otherwise its tokenizer.model; or the one within a GGUF
// file. Null if there is none. Throws BadInput if it is broken or of an unsupported kind.
std::unique_ptr<Tokenizer> read_tokenizer(const std::string& path);

}  // namespace specsim::llm
