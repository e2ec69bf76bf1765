#include "sim/foundation/report/output_folder.h"

#include "sim/foundation/base/check.h"
#include "sim/foundation/base/error.h"
#include "sim/foundation/base/whole_file.h"

#include <fmt/format.h>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

namespace specsim::report {

namespace {

constexpr const char* kManifest = "manifest.yaml";
constexpr const char* kStage = ".unfinished";
constexpr const char* kUnfinished = "unfinished";  // as the manifest's verdict
constexpr const char* kNoManifest = "is here without a manifest.yaml that shows which command wrote it";
constexpr const char* kUnlisted =
    "is here already, and no manifest.yaml in its folder lists it; allowed: another --out, or none of this name there";

// The missing directories of a path, the outermost first.
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

// The owner of the results of a manifest, in the form of OutputClaim::owner.
std::string owner_of(const Manifest& manifest) {
  if (!manifest.identity.empty()) return manifest.identity;
  const std::size_t command = manifest.command.find(' ');
  return manifest.command.substr(0, command == std::string::npos ? command : manifest.command.find(' ', command + 1));
}

// Whether the file is empty or contains the beginning of a manifest, as after an interrupted write.
bool begins_manifest(const std::string& path) {
  constexpr std::string_view kBegin = "command: ";  // as manifest_text begins
  try {
    return kBegin.starts_with(read_written_file(path).substr(0, kBegin.size()));
  } catch (const BadInput&) {
    return false;
  } catch (const IoError&) {
    return false;
  }
}

// Inputs by file name and contents: the same folder may have another path from another working directory.
std::vector<FileSum> by_contents(std::vector<FileSum> inputs) {
  for (FileSum& one : inputs) one.name = std::filesystem::path(one.name).filename().string();
  const auto before = [](const FileSum& a, const FileSum& b) { return a.name != b.name ? a.name < b.name : a.sum < b.sum; };
  std::sort(inputs.begin(), inputs.end(), before);
  return inputs;
}

// The inputs that a manifest lists, without configs, whose text is in the identity.
std::vector<FileSum> inputs_of(const Manifest& manifest) {
  std::vector<FileSum> inputs = manifest.inputs;
  std::erase_if(inputs, [&](const FileSum& one) {
    for (std::size_t i = 0; i < manifest.files.size(); ++i)
      if (manifest.files[i] == one.name && manifest.configs[i] != "{}") return true;
    return false;
  });
  return inputs;
}

// A file whose contents have changed, or ""; nothing if none has.
std::optional<std::string> changed_input(const Manifest& manifest, const std::vector<FileSum>& now) {
  const std::vector<FileSum> earlier = by_contents(inputs_of(manifest));
  const std::vector<FileSum> own = by_contents(now);
  if (earlier == own) return std::nullopt;
  for (const auto& [some, others] : {std::pair(&own, &earlier), std::pair(&earlier, &own)})
    for (const FileSum& one : *some)
      if (std::find(others->begin(), others->end(), one) == others->end()) return one.name;
  return "";
}

}  // namespace

OutputFolder::OutputFolder(std::string path) : path_(std::move(path)), made_(missing_directories(path_)) {
  if (path_.empty()) throw BadInput({"--out", 0, 0}, "\"\", allowed: a directory");
  make_and_lock();
}

void OutputFolder::make_and_lock() {
  make_directories(path_);
  lock_ = open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  // File systems that cannot lock directories, and directories without read permission, are used without a lock.
  if (lock_ >= 0 && flock(lock_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    close(std::exchange(lock_, -1));
    throw BadInput({path_, 0, 0}, "another process is writing here, allowed: another --out, or this one when it has ended");
  }
}

OutputFolder::~OutputFolder() {
  std::error_code ignored;
  if (!stage_.empty() && !finished_) std::filesystem::remove_all(stage_, ignored);
  if (claim_.writing == Writing::in_place && !finished_)  // results without a manifest would be in the way of the next run
    for (const FileSum& own : files_) std::filesystem::remove(file(own.name), ignored);
  while (!made_.empty() && rmdir(made_.back().c_str()) == 0) made_.pop_back();
  if (lock_ >= 0) close(lock_);
}

bool OutputFolder::has(const std::string& name) const {
  std::error_code ignored;
  return std::filesystem::exists(std::filesystem::symlink_status(file(name), ignored));
}

void OutputFolder::check_regular() const {
  std::vector<std::string> names = claim_.names;
  names.emplace_back(kManifest);
  std::error_code ignored;
  for (const std::string& name : names) {
    // Writing would replace the file that the link points to, which is in another folder than --out.
    if (std::filesystem::is_symlink(std::filesystem::symlink_status(file(name), ignored)))
      throw BadInput({file(name), 0, 0}, "is a symbolic link, allowed: another --out, or none of this name there");
    const auto found = std::filesystem::status(file(name), ignored);
    // The system reports a directory when the file is put in its place. Writing to a pipe would wait.
    if (std::filesystem::exists(found) && !std::filesystem::is_regular_file(found) && !std::filesystem::is_directory(found))
      throw BadInput({file(name), 0, 0}, "is no regular file, allowed: another --out, or none of this name there");
  }
}

void OutputFolder::check_pieces() const {
  std::vector<std::string> names = {kManifest};
  if (claim_.writing != Writing::at_once) names.insert(names.end(), claim_.names.begin(), claim_.names.end());
  for (const std::string& name : names) {
    const std::string pieces = name + ".part";
    std::error_code ignored;
    if (!has(pieces) || std::filesystem::is_directory(file(pieces), ignored)) continue;  // the system reports a directory
    if (name == kManifest && begins_manifest(file(pieces))) continue;                    // left by a command that was killed
    if (!claim_.repeatable) throw BadInput({file(pieces), 0, 0}, kUnlisted);
    throw BadInput({file(pieces), 0, 0}, fmt::format("{}, allowed: another --out, or --force to replace it", kNoManifest));
  }
}

void OutputFolder::check_stage() const {
  std::error_code ignored;
  if (!has(kStage)) return;
  bool own = std::filesystem::is_directory(std::filesystem::symlink_status(file(kStage), ignored));
  if (own)
    for (const auto& entry : std::filesystem::directory_iterator(file(kStage), ignored)) {
      std::string name = entry.path().filename().string();
      if (name.ends_with(".part")) name.erase(name.size() - std::string_view(".part").size());
      own = own && announced(name);
    }
  if (own) return;  // left by a command that was killed
  throw BadInput(
      {file(kStage), 0, 0},
      fmt::format("is here and holds other files than this command's, allowed: another --out, {}none of this name there",
                  claim_.repeatable ? "--force to remove it, or " : "or "));
}

void OutputFolder::claim(OutputClaim claim) {
  claim_ = std::move(claim);
  check_regular();
  const bool results_here = has(kManifest);
  const bool all_listed = results_here && check_earlier();
  for (const std::string& name : claim_.names) {
    if (!has(name) || earlier_.contains(name)) continue;
    if (!claim_.repeatable) throw BadInput({file(name), 0, 0}, kUnlisted);
    if (!claim_.force && (!results_here || all_listed))
      throw BadInput({file(name), 0, 0},
                     fmt::format("{}, allowed: another --out, or --force to replace it",
                                 results_here ? "is here and the manifest.yaml in its folder does not list it" : kNoManifest));
    earlier_.insert(name);
  }
  if (!results_here && !(claim_.repeatable && claim_.force)) check_pieces();
  if (claim_.writing != Writing::at_once && (claim_.writing != Writing::growing || !results_here)) return;
  if (!(claim_.repeatable && claim_.force)) check_stage();
  stage_ = file(kStage);
}

bool OutputFolder::check_earlier() {
  const bool replaces_anything = claim_.repeatable && claim_.force;
  const auto another = [&](const std::string& why) {
    return BadInput({path_, 0, 0}, fmt::format("holds the finished results of another run{}, allowed: another --out, or --force "
                                               "to replace them",
                                               why));
  };
  Manifest manifest;
  try {
    manifest = read_manifest(file(kManifest));
  } catch (const BadInput&) {
    if (replaces_anything) return false;
    if (claim_.repeatable) throw another("");
    throw;
  }
  if (owner_of(manifest) != claim_.owner && !replaces_anything) {
    if (claim_.repeatable) throw another("");
    throw BadInput({file(kManifest), 0, 0}, "results of another command are here, allowed: another --out");
  }
  if (claim_.repeatable && !claim_.force)
    if (const std::optional<std::string> changed = changed_input(manifest, claim_.inputs))
      throw another(changed->empty() ? ": it read other files" : fmt::format(": {} is not what it read", *changed));
  const bool unfinished = manifest.verdict == kUnfinished;
  if (!claim_.repeatable && !claim_.force)
    throw BadInput({file(kManifest), 0, 0},
                   fmt::format("{}results are here already, allowed: another --out, or --force to replace them",
                               unfinished ? "unfinished " : ""));
  for (const FileSum& listed : manifest.results) {
    if (listed.name.find('/') != std::string::npos || !has(listed.name)) continue;
    // A run that was cut short may have left a file that is newer than the manifest.
    const bool changed = !unfinished && !is_listed(listed);
    if (changed && !claim_.repeatable)
      throw BadInput({file(listed.name), 0, 0},
                     "was changed since it was written, allowed: another --out, or none of this name there");
    if (!changed || announced(listed.name)) earlier_.insert(listed.name);
  }
  return !manifest.results.empty();
}

bool OutputFolder::is_listed(const FileSum& listed) const {
  try {
    return checksum(read_written_file(file(listed.name))) == listed.sum;
  } catch (const BadInput&) {  // a pipe has taken its place
    return false;
  }
}

bool OutputFolder::announced(const std::string& name) const {
  return std::find(claim_.names.begin(), claim_.names.end(), name) != claim_.names.end();
}

void OutputFolder::recreate_if_removed() {
  struct stat own {};
  if (lock_ < 0 || fstat(lock_, &own) != 0 || own.st_nlink > 0) return;
  if (!files_.empty())
    throw IoError(
        fmt::format("{}: was removed while files were being written into it; the files written so far are lost", path_));
  close(std::exchange(lock_, -1));
  make_and_lock();
}

void OutputFolder::write(const std::string& name, std::string_view text) {
  SPECSIM_CHECK(announced(name), "{} was not announced", name);
  recreate_if_removed();
  if (files_.empty() && !stage_.empty()) {
    std::error_code ignored;
    std::filesystem::remove_all(stage_, ignored);  // left by a command that was killed
  }
  make_directories(place());
  const auto known = std::find_if(files_.begin(), files_.end(), [&](const FileSum& own) { return own.name == name; });
  const bool is_new = known == files_.end();
  if (!is_new) {
    known->sum = checksum(text);
  } else {
    files_.push_back({name, checksum(text)});
    if (claim_.writing == Writing::growing &&
        stage_.empty()) {  // listed before it exists, so that every file always has an owner
      Manifest manifest = new_manifest(claim_.owner);
      manifest.files = {claim_.owner};
      manifest.configs = {"{}"};
      manifest.verdict = kUnfinished;
      write_manifest(std::move(manifest), files_);
    }
  }
  try {
    write_whole_file(place() + "/" + name, text, Leftover::removed);
  } catch (const IoError&) {
    if (is_new) files_.pop_back();  // a file of that name that was here before stays
    throw;
  }
}

void OutputFolder::wrote(const std::string& name) {
  SPECSIM_CHECK(announced(name) && stage_.empty(), "{} was not announced, or is kept aside", name);
  files_.push_back({name, checksum(read_written_file(file(name)))});
}

void OutputFolder::write_manifest(Manifest manifest, std::vector<FileSum> results) const {
  manifest.results = std::move(results);
  if (claim_.repeatable && manifest.identity.empty()) manifest.identity = claim_.owner;
  if (manifest.inputs.empty()) manifest.inputs = claim_.inputs;
  write_whole_file(file(kManifest), manifest_text(manifest), Leftover::removed);
}

void OutputFolder::finish(const Manifest& manifest) {
  recreate_if_removed();
  make_directories(path_);
  for (const FileSum& own : files_) earlier_.erase(own.name);
  if (!stage_.empty()) {
    // From here on the manifest lists the files of before and after, so that a sudden end leaves no file without an owner.
    Manifest moving = manifest;
    moving.verdict = kUnfinished;
    std::vector<FileSum> results = files_;
    for (const std::string& name : earlier_) results.push_back({name, ""});
    write_manifest(std::move(moving), std::move(results));
    std::size_t moved = 0;
    try {
      for (; moved < files_.size(); ++moved) move_file(stage_ + "/" + files_[moved].name, file(files_[moved].name));
    } catch (const IoError&) {
      // Incomplete results are removed. If somebody deletes the folder meanwhile, the manifest that lists them may go at any
      // moment.
      std::error_code ignored;
      for (std::size_t i = 0; i < moved; ++i) std::filesystem::remove(file(files_[i].name), ignored);
      throw;
    }
  }
  for (const std::string& name : earlier_) remove(name);
  if (!stage_.empty()) {
    std::error_code ignored;
    std::filesystem::remove_all(stage_, ignored);
  }
  write_manifest(manifest, files_);
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
