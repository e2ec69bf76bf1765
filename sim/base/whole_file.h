// Files that appear whole or not at all.
#pragma once

#include <string>

namespace specsim {

// Writes `text` beside `path`, forces it to disk and renames it into place. Throws IoError with the path and the
// system's reason; `path` is then as it was.
void write_whole_file(const std::string& path, const std::string& text);

// The file's contents; throws IoError.
std::string read_whole_file(const std::string& path);

// Makes a directory and its parents; throws IoError.
void make_directories(const std::string& path);

}  // namespace specsim
