// A test's file, deleted at the end of its scope.
#pragma once

#include "sim/foundation/base/check.h"
#include "sim/foundation/base/whole_file.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>

namespace specsim::tests {

class TemporaryFile {
 public:
  explicit TemporaryFile(const std::string& content)
      : path_((std::filesystem::temp_directory_path() / "specsim_test_XXXXXX").string()) {
    const int descriptor = mkstemp(path_.data());
    SPECSIM_CHECK(descriptor >= 0, "no temporary file");
    close(descriptor);
    write_whole_file(path_, content);
  }
  ~TemporaryFile() {
    std::error_code ignored;
    std::filesystem::remove(path_, ignored);
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace specsim::tests
