#include "sim/foundation/base/files_read.h"

#include "sim/foundation/base/check.h"
#include "sim/foundation/base/context.h"

#include <algorithm>
#include <mutex>
#include <optional>

namespace specsim {

namespace {

struct RecordedReads {
  std::mutex mutex;
  std::optional<std::vector<FileSum>> sums;  // nullopt: reads are not recorded
};

}  // namespace

FilesRead::FilesRead() {
  auto& noted = context().of<RecordedReads>();
  const std::lock_guard lock(noted.mutex);
  SPECSIM_CHECK(!noted.sums.has_value(), "{} files are noted for another", noted.sums->size());
  noted.sums.emplace();
}

FilesRead::~FilesRead() {
  auto& noted = context().of<RecordedReads>();
  const std::lock_guard lock(noted.mutex);
  noted.sums.reset();
}

std::vector<FileSum> FilesRead::sums() const {
  std::vector<FileSum> sums;
  {
    auto& noted = context().of<RecordedReads>();
    const std::lock_guard lock(noted.mutex);
    sums = *noted.sums;
  }
  const auto before = [](const FileSum& a, const FileSum& b) { return a.name != b.name ? a.name < b.name : a.sum < b.sum; };
  std::sort(sums.begin(), sums.end(), before);
  sums.erase(std::unique(sums.begin(), sums.end()), sums.end());
  return sums;
}

void note_file_read(const std::string& path, std::string_view text) {
  auto& noted = context().of<RecordedReads>();
  const std::lock_guard lock(noted.mutex);
  if (noted.sums) noted.sums->push_back({path, checksum(text)});
}

}  // namespace specsim
