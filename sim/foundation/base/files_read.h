// Which files a piece of work has read, and what was in them: whoever goes on with the work later asks whether they are the same.
#pragma once

#include "sim/foundation/base/checksum.h"

#include <string>
#include <string_view>
#include <vector>

namespace specsim {

// While one is alive, files that its context (context.h) reads as a whole (read_whole_file, YAML files) are noted with their
// checksums. One at a time in a context; what several threads read is noted in the order in which they do.
class FilesRead {
 public:
  FilesRead();
  ~FilesRead();
  FilesRead(const FilesRead&) = delete;
  FilesRead& operator=(const FilesRead&) = delete;
  // By name, each pair of name and checksum once: a file that changed between two readings is there twice.
  [[nodiscard]] std::vector<FileSum> sums() const;
};

// Notes that `text` was read from the file `path`, if anybody wants to know.
void note_file_read(const std::string& path, std::string_view text);

}  // namespace specsim
