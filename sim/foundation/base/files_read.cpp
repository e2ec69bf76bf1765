#include "sim/foundation/base/files_read.h"

#include "sim/foundation/base/check.h"

#include <algorithm>
#include <mutex>
#include <optional>

namespace specsim {

namespace {

std::mutex noted_mutex;
std::optional<std::vector<FileSum>> noted;  // nullopt: nobody asks

}  // namespace

FilesRead::FilesRead() {
  const std::lock_guard lock(noted_mutex);
  SPECSIM_CHECK(!noted.has_value(), "{} files are noted for another", noted->size());
  noted.emplace();
}

FilesRead::~FilesRead() {
  const std::lock_guard lock(noted_mutex);
  noted.reset();
}

std::vector<FileSum> FilesRead::sums() const {
  std::vector<FileSum> sums;
  {
    const std::lock_guard lock(noted_mutex);
    sums = *noted;
  }
  const auto before = [](const FileSum& a, const FileSum& b) { return a.name != b.name ? a.name < b.name : a.sum < b.sum; };
  std::sort(sums.begin(), sums.end(), before);
  sums.erase(std::unique(sums.begin(), sums.end()), sums.end());
  return sums;
}

void note_file_read(const std::string& path, std::string_view text) {
  const std::lock_guard lock(noted_mutex);
  if (noted) noted->push_back({path, checksum(text)});
}

}  // namespace specsim
