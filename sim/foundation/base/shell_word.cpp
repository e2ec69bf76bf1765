#include "sim/foundation/base/shell_word.h"

namespace specsim {

std::string shell_word(const std::string& word) {
  if (!word.empty() && word.find_first_of(" \t\n\r'\"\\$&|;<>()*?[]{}#~`!") == std::string::npos) return word;
  std::string quoted = "'";
  for (const char c : word) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

}  // namespace specsim
