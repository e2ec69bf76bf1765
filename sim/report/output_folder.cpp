#include "sim/report/output_folder.h"

#include "sim/base/error.h"
#include "sim/base/whole_file.h"
#include "sim/report/manifest.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

namespace specsim::report {

namespace {

constexpr const char* kManifest = "manifest.yaml";

// The directories of a path that are not there yet, the outermost first.
std::vector<std::string> missing_directories(const std::string& path) {
  std::vector<std::string> missing;
  std::error_code ignored;
  for (std::filesystem::path at = path; !at.empty() && !std::filesystem::exists(at, ignored); at = at.parent_path()) {
    if (at.has_filename()) missing.insert(missing.begin(), at.string());
    if (at == at.parent_path()) break;
  }
  return missing;
}

}  // namespace

OutputFolder::OutputFolder(std::string path) : path_(std::move(path)), made_(missing_directories(path_)) {
  make_directories(path_);
  lock_ = open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  // A file system that cannot lock directories, or a directory that may not be read, goes without.
  if (lock_ >= 0 && flock(lock_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    close(lock_);
    throw BadInput({path_, 0, 0}, "another process is writing here, allowed: another --out, or this one when it has ended");
  }
}

OutputFolder::~OutputFolder() {
  while (!made_.empty() && rmdir(made_.back().c_str()) == 0) made_.pop_back();
  if (lock_ >= 0) close(lock_);
}

bool OutputFolder::has(const std::string& name) const {
  std::error_code ignored;
  return std::filesystem::exists(std::filesystem::symlink_status(file(name), ignored));
}

void OutputFolder::guard(const std::vector<std::string>& names, const std::string& identity) const {
  std::error_code ignored;
  if (std::filesystem::is_regular_file(file(kManifest), ignored)) {
    std::string other;
    try {
      other = read_manifest(file(kManifest)).identity;
    } catch (const BadInput&) {
      other = "unreadable";
    }
    if (other != identity)
      throw BadInput({path_, 0, 0},
                     "holds the finished results of another run, allowed: another --out, or --force to replace them");
    return;
  }
  for (const std::string& name : names)
    if (has(name))
      throw BadInput({file(name), 0, 0},
                     "is here without a manifest.yaml that says what made it, allowed: another --out, or --force to replace it");
}

void OutputFolder::write(const std::string& name, std::string_view text) const {
  make_directories(path_);
  write_whole_file(file(name), text);
}

void OutputFolder::remove(const std::string& name) const {
  std::error_code error;
  std::filesystem::remove(file(name), error);
  if (error) throw IoError(file(name) + ": cannot be removed: " + error.message());
}

}  // namespace specsim::report
