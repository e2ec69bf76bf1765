// Files that appear whole or not at all, and files that are read whole.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace specsim {

// A file that is written piece by piece beside `path`, as `path`.part, and takes its name in commit(), forced to disk before.
// Without commit() `path` stays as it was and the pieces are removed. A symbolic link to a file stays, and the file behind it is
// replaced. What exists and is neither file nor directory, such as a pipe, a terminal or /dev/stdout, is written through, piece
// by piece. Throws IoError with the path and the system's reason; then only the destructor is left to call. Two writers of one
// file: the second throws.
class WholeFileWriter {
 public:
  explicit WholeFileWriter(std::string path);
  ~WholeFileWriter();
  WholeFileWriter(const WholeFileWriter&) = delete;
  WholeFileWriter& operator=(const WholeFileWriter&) = delete;
  void append(std::string_view text);
  void commit();

 private:
  void open_through();
  void open_beside();

  std::string path_;
  std::string target_;     // what is replaced: `path_`, or the file that it links to
  std::string temporary_;  // "" where `path_` is written through
  int file_ = -1;
  bool remains_ = false;  // the pieces lie at temporary_
};

// Writes `text` beside `path`, forces it to disk and renames it into place, as WholeFileWriter does. Throws IoError with the path
// and the system's reason; `path` is then as it was.
void write_whole_file(const std::string& path, std::string_view text);

// How many files this program has written, pieces of none.
std::size_t whole_files_written();

constexpr std::size_t kLargestRead = std::size_t{1} << 30;
// The file's contents, of a pipe until its end. Throws IoError where it cannot be read to its end, is a directory, or is longer
// than `most` bytes, as a device without an end is.
std::string read_whole_file(const std::string& path, std::size_t most = kLargestRead);

// Makes a directory and its parents; throws IoError.
void make_directories(const std::string& path);

}  // namespace specsim
