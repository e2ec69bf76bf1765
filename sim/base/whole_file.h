// Files that appear whole or not at all.
#pragma once

#include <string>
#include <string_view>

namespace specsim {

// A file that is written piece by piece beside `path` and takes its name in commit(), forced to disk before. Without commit()
// `path` stays as it was and the pieces are removed. Throws IoError with the path and the system's reason; then only the
// destructor is left to call.
class WholeFileWriter {
 public:
  explicit WholeFileWriter(std::string path);
  ~WholeFileWriter();
  WholeFileWriter(const WholeFileWriter&) = delete;
  WholeFileWriter& operator=(const WholeFileWriter&) = delete;
  void append(std::string_view text);
  void commit();

 private:
  std::string path_;
  std::string temporary_;
  int file_ = -1;
  bool remains_ = false;
};

// Writes `text` beside `path`, forces it to disk and renames it into place. Throws IoError with the path and the
// system's reason; `path` is then as it was.
void write_whole_file(const std::string& path, const std::string& text);

// The file's contents; throws IoError.
std::string read_whole_file(const std::string& path);

// Makes a directory and its parents; throws IoError.
void make_directories(const std::string& path);

}  // namespace specsim
