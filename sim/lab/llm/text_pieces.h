// How byte-pair tokenizers cut a text before they merge: the regular expressions of GPT-2, Llama 3 and Qwen, written out, since
// those of the standard library know no Unicode classes.
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
  // The same with one digit at a time: \p{N}
  qwen2,
};

// The matches of the expression, one after the other.
std::vector<std::string> split(std::string_view text, SplitPattern pattern);
// Every character of class N (Unicode) on its own, or every run of them, and what lies between.
std::vector<std::string> split_digits(std::string_view text, bool each);

// Each byte as the printable character that GPT-2's vocabulary has for it, in UTF-8.
std::string bytes_as_text(std::string_view bytes);

// The bytes of each character, one after the other; a byte that is no UTF-8 stands alone.
std::vector<std::string_view> characters(std::string_view text);
// Unicode's normalisation form C.
std::string compose(std::string_view text);
bool is_space(std::string_view character);

}  // namespace specsim::llm
