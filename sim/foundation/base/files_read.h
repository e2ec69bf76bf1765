// The files that a piece of work has read, and their contents. A later continuation of the work checks whether they are the same.
#pragma once

#include "sim/foundation/base/checksum.h"

#include <string>
#include <string_view>
#include <vector>

namespace specsim {

// While an object of this type lives, files that its context (context.h) reads as a whole (read_whole_file, YAML files) are
// recorded with their checksums. Only one per context; reads of several threads are recorded in the order in which they happen.
class FilesRead {
 public:
  FilesRead();
  ~FilesRead();
  FilesRead(const FilesRead&) = delete;
  FilesRead& operator=(const FilesRead&) = delete;
  // By name, each pair of name and checksum once: a file that changed between two reads is listed twice.
  [[nodiscard]] std::vector<FileSum> sums() const;
};

// Records that `text` was read from the file `path`, if the context has a FilesRead.
void note_file_read(const std::string& path, std::string_view text);

}  // namespace specsim
