// The words of a text that spaces separate. Long lists of words are written as one text.
#pragma once

#include <algorithm>
#include <string_view>
#include <vector>

namespace specsim::config {

// They refer to the text.
inline std::vector<std::string_view> words_of(std::string_view text) {
  std::vector<std::string_view> words;
  for (std::size_t at = 0; (at = text.find_first_not_of(' ', at)) != std::string_view::npos;) {
    const std::size_t end = std::min(text.find(' ', at), text.size());
    words.push_back(text.substr(at, end - at));
    at = end;
  }
  return words;
}

inline bool is_among(std::string_view word, const std::vector<std::string_view>& words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

}  // namespace specsim::config
