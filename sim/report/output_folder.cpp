#include "sim/report/output_folder.h"

#include "sim/base/check.h"
#include "sim/base/error.h"
#include "sim/base/whole_file.h"

#include <fmt/format.h>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

namespace specsim::report {

namespace {

constexpr const char* kManifest = "manifest.yaml";
constexpr const char* kStage = ".unfinished";
constexpr const char* kUnfinished = "unfinished";  // as the manifest's verdict

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

// Moves a file into place. Throws IoError.
void move_file(const std::string& from, const std::string& to) {
  std::error_code error;
  std::filesystem::rename(from, to, error);
  if (error) throw IoError(fmt::format("{}: cannot be moved to {}: {}", from, to, error.message()));
}

// Who made the results of a manifest, as OutputClaim::owner has it.
std::string owner_of(const Manifest& manifest) {
  if (!manifest.identity.empty()) return manifest.identity;
  const std::size_t command = manifest.command.find(' ');
  return manifest.command.substr(0, command == std::string::npos ? command : manifest.command.find(' ', command + 1));
}

}  // namespace

OutputFolder::OutputFolder(std::string path) : path_(std::move(path)), made_(missing_directories(path_)) {
  if (path_.empty()) throw BadInput({"--out", 0, 0}, "\"\", allowed: a directory");
  make_and_lock();
}

void OutputFolder::make_and_lock() {
  make_directories(path_);
  lock_ = open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  // A file system that cannot lock directories, or a directory that may not be read, goes without.
  if (lock_ >= 0 && flock(lock_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    close(std::exchange(lock_, -1));
    throw BadInput({path_, 0, 0}, "another process is writing here, allowed: another --out, or this one when it has ended");
  }
}

OutputFolder::~OutputFolder() {
  std::error_code ignored;
  if (!stage_.empty() && !finished_) std::filesystem::remove_all(stage_, ignored);
  while (!made_.empty() && rmdir(made_.back().c_str()) == 0) made_.pop_back();
  if (lock_ >= 0) close(lock_);
}

bool OutputFolder::has(const std::string& name) const {
  std::error_code ignored;
  return std::filesystem::exists(std::filesystem::symlink_status(file(name), ignored));
}

void OutputFolder::claim(OutputClaim claim) {
  claim_ = std::move(claim);
  const bool results_here = has(kManifest);
  const bool all_listed = results_here && check_earlier();
  for (const std::string& name : claim_.names) {
    if (!has(name) || earlier_.contains(name)) continue;
    if (!claim_.repeatable)
      throw BadInput(
          {file(name), 0, 0},
          "is here already, and no manifest.yaml beside it lists it; allowed: another --out, or none of this name there");
    if (!claim_.force && (!results_here || all_listed))
      throw BadInput({file(name), 0, 0}, fmt::format("is here {}, allowed: another --out, or --force to replace it",
                                                     results_here ? "and the manifest.yaml beside it does not list it"
                                                                  : "without a manifest.yaml that says what made it"));
    earlier_.insert(name);
  }
  if (claim_.writing == Writing::at_once || (claim_.writing == Writing::growing && results_here)) stage_ = file(kStage);
}

bool OutputFolder::check_earlier() {
  const bool replaces_anything = claim_.repeatable && claim_.force;
  const BadInput another({path_, 0, 0},
                         "holds the finished results of another run, allowed: another --out, or --force to replace them");
  Manifest manifest;
  try {
    manifest = read_manifest(file(kManifest));
  } catch (const BadInput&) {
    if (replaces_anything) return false;
    if (claim_.repeatable) throw another;
    throw;
  }
  if (owner_of(manifest) != claim_.owner && !replaces_anything) {
    if (claim_.repeatable) throw another;
    throw BadInput({file(kManifest), 0, 0}, "results of another command are here, allowed: another --out");
  }
  const bool unfinished = manifest.verdict == kUnfinished;
  if (!claim_.repeatable && !claim_.force)
    throw BadInput({file(kManifest), 0, 0},
                   fmt::format("{}results are here already, allowed: another --out, or --force to replace them",
                               unfinished ? "unfinished " : ""));
  for (const FileSum& listed : manifest.results) {
    if (listed.name.find('/') != std::string::npos || !has(listed.name)) continue;
    // What was cut short may have a file that is newer than the manifest.
    const bool changed = !unfinished && checksum(read_whole_file(file(listed.name))) != listed.sum;
    if (changed && !claim_.repeatable)
      throw BadInput({file(listed.name), 0, 0},
                     "was changed since it was written, allowed: another --out, or none of this name there");
    if (!changed || announced(listed.name)) earlier_.insert(listed.name);
  }
  return !manifest.results.empty();
}

bool OutputFolder::announced(const std::string& name) const {
  return std::find(claim_.names.begin(), claim_.names.end(), name) != claim_.names.end();
}

void OutputFolder::check_there() {
  struct stat own {};
  if (lock_ < 0 || fstat(lock_, &own) != 0 || own.st_nlink > 0) return;
  if (!files_.empty())
    throw IoError(
        fmt::format("{}: was removed while files were being written into it, and those that were there are lost", path_));
  close(std::exchange(lock_, -1));
  make_and_lock();
}

void OutputFolder::write(const std::string& name, std::string_view text) {
  SPECSIM_CHECK(announced(name), "{} was not announced", name);
  check_there();
  if (files_.empty() && !stage_.empty()) {
    std::error_code ignored;
    std::filesystem::remove_all(stage_, ignored);  // what a command that was killed left there
  }
  make_directories(place());
  const auto known = std::find_if(files_.begin(), files_.end(), [&](const FileSum& own) { return own.name == name; });
  if (known != files_.end()) {
    known->sum = checksum(text);
  } else {
    files_.push_back({name, checksum(text)});
    if (claim_.writing == Writing::growing && stage_.empty()) {  // listed before it is there: no file is without an owner, ever
      Manifest manifest = new_manifest(claim_.owner);
      manifest.files = {claim_.owner};
      manifest.configs = {"{}"};
      manifest.verdict = kUnfinished;
      write_manifest(std::move(manifest));
    }
  }
  write_whole_file(place() + "/" + name, text);
}

void OutputFolder::wrote(const std::string& name) {
  SPECSIM_CHECK(announced(name) && stage_.empty(), "{} was not announced, or is kept aside", name);
  files_.push_back({name, checksum(read_whole_file(file(name)))});
}

void OutputFolder::write_manifest(Manifest manifest) const {
  manifest.results = files_;
  write_whole_file(file(kManifest), manifest_text(manifest));
}

void OutputFolder::finish(const Manifest& manifest) {
  check_there();
  make_directories(path_);
  for (const FileSum& own : files_) earlier_.erase(own.name);
  if (!stage_.empty()) {
    // From here on the manifest lists what is there before and after, so that a sudden end leaves nothing that no one owns.
    Manifest moving = manifest;
    moving.verdict = kUnfinished;
    moving.results = files_;
    for (const std::string& name : earlier_) moving.results.push_back({name, ""});
    write_whole_file(file(kManifest), manifest_text(moving));
    for (const FileSum& own : files_) move_file(stage_ + "/" + own.name, file(own.name));
  }
  for (const std::string& name : earlier_) remove(name);
  if (!stage_.empty()) {
    std::error_code ignored;
    std::filesystem::remove_all(stage_, ignored);
  }
  write_manifest(manifest);
  finished_ = true;
}

std::vector<std::string> OutputFolder::written() const {
  std::vector<std::string> names;
  for (const FileSum& own : files_) names.push_back(own.name);
  return names;
}

void OutputFolder::remove(const std::string& name) const {
  std::error_code error;
  std::filesystem::remove(file(name), error);
  if (error) throw IoError(file(name) + ": cannot be removed: " + error.message());
}

}  // namespace specsim::report
