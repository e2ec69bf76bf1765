// Byte-pair encoding (Sennrich, Haddow, Birch 2016) as described by tokenizer.json and GGUF files. Special tokens are cut out,
// the rest is normalised and cut into pieces, and each piece is merged pair by pair, the pair of the lowest rank first.
#pragma once

#include "sim/lab/llm/text_pieces.h"
#include "sim/lab/llm/tokenizer.h"

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

namespace specsim::llm {

struct AddedToken {
  Token id = 0;
  std::string text;
  bool strip_left = false;  // includes the white space before it
  bool strip_right = false;
  bool normalised = false;  // searched for in the normalised text
};

struct Compose {};  // converts a text to Unicode's form C
struct Prepend {
  std::string text;
};
struct Replace {
  std::string from;
  std::string to;
};
using Normaliser = std::variant<Compose, Prepend, Replace>;

struct SplitDigits {
  bool each = true;
};
struct SplitBytes {  // bytes to GPT-2's characters, optionally after a cut by its expression
  bool prefix_space = false;
  bool by_expression = true;
};
struct SplitAfter {  // cuts after each occurrence of a text
  std::string text;
};
struct Metaspace {
  enum class Prefix { never, first, always };
  std::string replacement;  // replacement of a space
  Prefix prefix = Prefix::always;
  bool cut = true;  // cuts before each replacement
};
using PieceStep = std::variant<SplitPattern, SplitDigits, SplitBytes, SplitAfter, Metaspace>;

struct BpeParts {
  std::string path;
  std::unordered_map<std::string, Token> vocab;
  std::vector<std::pair<std::string, std::string>> merges;  // [rank]
  std::vector<AddedToken> added;
  std::vector<Normaliser> normalisers;
  std::vector<PieceStep> steps;
  std::optional<Token> unknown;
  bool fuse_unknown = false;
  bool byte_fallback = false;                     // characters that are not tokens become <0x..> for each byte
  bool whole_words = false;                       // a piece that is a token is not merged again ("ignore_merges")
  std::optional<std::vector<Token>> before_text;  // empty optional: the model's begin token
};

// Throws BadInput with parts.path: a merge of or into texts that are not tokens; a number beyond 32 bits.
std::unique_ptr<Tokenizer> make_bpe_tokenizer(BpeParts parts);

}  // namespace specsim::llm
