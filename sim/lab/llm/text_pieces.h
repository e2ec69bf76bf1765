// How byte-pair tokenizers cut a text before they merge: the regular expressions of GPT-2, Llama 3 and Qwen as code, since the
// standard library's regular expressions do not support Unicode classes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace specsim::llm {

// The expressions are alternatives, tried in this order; every character belongs to a match of one.
enum class SplitPattern {
  // 's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
  gpt2,
  // (?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+
  llama3,
  // As llama3, with one digit at a time: \p{N}
  qwen2,
};

// The matches of the expression, in order.
std::vector<std::string> split(std::string_view text, SplitPattern pattern);
// Cuts out every character of class N (Unicode), or every run of them; the text between them is also a piece.
std::vector<std::string> split_digits(std::string_view text, bool each);

// Each byte as the printable character that GPT-2's vocabulary uses for it, in UTF-8.
std::string bytes_as_text(std::string_view bytes);

// The bytes of each character, in order; a byte that is not UTF-8 counts as a character.
std::vector<std::string_view> characters(std::string_view text);
// Unicode's normalisation form C.
std::string compose(std::string_view text);
bool is_space(std::string_view character);

}  // namespace specsim::llm
