// Text to tokens by a model's own vocabulary.
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
  // The file that it was read from.
  [[nodiscard]] virtual const std::string& path() const = 0;
  // One more than the largest token.
  [[nodiscard]] virtual std::size_t vocab() const = 0;
  // The tokens of `text` (UTF-8), without those that the model wants in front of it.
  [[nodiscard]] virtual std::vector<Token> encode(std::string_view text) const = 0;
  // The tokens in front of every text, for a model whose own begin token is `begin_token`.
  [[nodiscard]] virtual std::vector<Token> before_text(Token begin_token) const = 0;
  // The piece of text that the token stands for, as the vocabulary writes it; empty where there is no such token.
  [[nodiscard]] virtual std::string piece(Token token) const = 0;
};

// Whether both have the same pieces at the same places.
bool same_pieces(const Tokenizer& a, const Tokenizer& b);

// Reads a SentencePiece model. Throws BadInput where it is none.
std::unique_ptr<Tokenizer> read_sentencepiece(const std::string& path);

// tokenizer.json of the library tokenizers (Hugging Face), where it describes byte-pair encoding.
// Takes model BPE; normalizers NFC, Prepend, Replace of a text; pre-tokenizers ByteLevel, Digits, Metaspace, and Split by the
// expressions of GPT-2, Llama 3 and Qwen or by a text. Throws BadInput with the file and what it asks for beyond that, since
// tokens that are nearly right would make acceptance quietly wrong.
std::unique_ptr<Tokenizer> read_tokenizer_json(const std::string& path);

// The tokenizer in a GGUF file's metadata.
// Byte-pair vocabularies of GPT-2, Llama 3 and Qwen2 ("gpt2" in the file); null for the other kinds, whose prompts must come as
// token ids. Throws BadInput for one that is broken, or cut by rules that are not read.
std::unique_ptr<Tokenizer> read_gguf_tokenizer(const config::GgufFile& file);

// The tokenizer of the model at `path`: tokenizer.json of a directory, else its tokenizer.model; that within a GGUF file. Null
// where there is none. Throws BadInput where it is broken or of a kind that is not read.
std::unique_ptr<Tokenizer> read_tokenizer(const std::string& path);

}  // namespace specsim::llm
