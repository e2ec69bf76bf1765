// Files that are read whole, and files that appear whole or not at all.
#pragma once

#include "sim/foundation/base/error.h"

#include <cstddef>
#include <string>
#include <string_view>

namespace specsim {

// Whether a path is written directly because it is not a replaceable file: a pipe, a terminal, a standard stream.
bool is_written_through(const std::string& path);

// A file NAME.part where a writer wants to put its pieces: left by a writer that was killed, or a user's.
enum class Leftover {
  kept,    // the pieces get another name
  removed  // in a folder that a command has claimed
};

// Writes a file piece by piece next to `path`, as `path`.part. commit() forces it to disk and then renames it to `path`. Without
// commit() `path` stays as it was and the pieces are removed. A symbolic link to a file is refused. An existing pipe, terminal or
// /dev/stdout (neither file nor directory) is written directly, piece by piece. Throws IoError with the path and the system's
// reason; after that only the destructor may be called. If two writers write one file, the second throws.
class WholeFileWriter {
 public:
  explicit WholeFileWriter(std::string path, Leftover leftover = Leftover::kept);
  ~WholeFileWriter();
  WholeFileWriter(const WholeFileWriter&) = delete;
  WholeFileWriter& operator=(const WholeFileWriter&) = delete;
  void append(std::string_view text);
  void commit();

 private:
  void open_through();
  void open_temporary(Leftover leftover);
  bool make_pieces();  // false with errno if they cannot be made

  std::string path_;
  std::string temporary_;  // "" if `path_` is written directly
  int file_ = -1;
  bool remains_ = false;  // the pieces are at temporary_
};

// Writes `text` next to `path`, forces it to disk and renames it into place, as WholeFileWriter does. Throws IoError with the
// path and the system's reason; `path` is then as it was.
void write_whole_file(const std::string& path, std::string_view text, Leftover leftover = Leftover::kept);

// Removes the pieces of files that are being written at this moment. Called when a signal ends the program, so it uses only what
// a signal handler may call. Nothing is written after it: a thread that begins a file waits for the end of the program.
void remove_unfinished_files();

// Number of files that this program has written, without unfinished ones.
std::size_t whole_files_written();

// The reason why a file could not be read whole; what() is "PATH: what is wrong".
class ReadError : public IoError {
 public:
  // `found`: "cannot be read: no such file or directory"; `allowed`: "a readable {}" or another text, with {} for the wanted kind
  // of file.
  ReadError(const std::string& path, std::string found, std::string allowed);
  // "it is a directory, allowed: a YAML file", for a message that names the file already; `wanted`: "YAML file".
  [[nodiscard]] std::string message(const std::string& wanted) const;

 private:
  std::string found_;
  std::string allowed_;
};

// The most bytes read of any file, since a user may name a device that never ends.
constexpr std::size_t kMostFileBytes = std::size_t{512} << 20U;

// The file's contents, at most `limit` bytes. Throws ReadError with the system's reason if it cannot be opened or read to its
// end, is a directory, is larger than `limit`, or does not fit into memory.
std::string read_whole_file(const std::string& path, std::size_t limit = kMostFileBytes);

// The same for a file that was found in a folder which the user named, or that is read more than once: anything but a regular
// file, such as a pipe, is refused at once.
std::string read_regular_file(const std::string& path, std::size_t limit = kMostFileBytes);

// The contents of a file that a command wrote. Like read_whole_file(), but the read is not reported to observers, and anything
// but a regular file, such as a pipe, is refused at once with BadInput. Throws ReadError.
std::string read_written_file(const std::string& path, std::size_t limit = kMostFileBytes);

// Makes a directory and its parents; throws IoError.
void make_directories(const std::string& path);

}  // namespace specsim
