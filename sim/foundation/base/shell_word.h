// Words of a shell's command.
#pragma once

#include <string>

namespace specsim {

// A word quoted as far as a shell needs it.
std::string shell_word(const std::string& word);

}  // namespace specsim
