// Text files that a user names: how they are found and read.
#pragma once

#include "sim/foundation/base/error.h"
#include "sim/foundation/base/whole_file.h"

#include <string>

namespace specsim {

// The path of a file that a config names: next to the config if it is there, otherwise from the working directory. `where`: the
// place of the name, in the config or on the command line.
std::string file_next_to(const Location& where, const std::string& name);
// For messages about a file that cannot be read. Returns "; looked for next to the config and in the working directory" if it is
// in neither, and "" if it is in one of them or they are the same.
std::string looked_for(const Location& where, const std::string& name);

// The text without the byte-order mark that some programs write before UTF-8.
std::string without_byte_order_mark(std::string text);
// The file's contents as read_whole_file() has them, without such a mark.
std::string read_text_file(const std::string& path);

}  // namespace specsim
