#include "sim/calibrate/result_folder.h"

#include "sim/base/check.h"
#include "sim/base/error.h"
#include "sim/base/whole_file.h"
#include "sim/calibrate/gpu_runs.h"
#include "sim/calibrate/passes.h"
#include "sim/calibrate/speed.h"
#include "sim/calibrate/validate.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <system_error>

namespace specsim::calibrate {

namespace {

constexpr const char* kManifest = "manifest.yaml";
constexpr const char* kStage = ".unfinished";
constexpr const char* kExperiment = "models";      // what the manifest names as its experiment
constexpr const char* kUnfinished = "unfinished";  // as the manifest's verdict

// Moves a file into place. Throws IoError.
void move_file(const std::string& from, const std::string& to) {
  std::error_code error;
  std::filesystem::rename(from, to, error);
  if (error) throw IoError(fmt::format("{}: cannot be moved to {}: {}", from, to, error.message()));
}

bool exists(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::symlink_status(path, ignored).type() != std::filesystem::file_type::not_found;
}

}  // namespace

std::vector<report::FileInfo> described_files() {
  return {{"passes.csv of calibrate", report::column_infos(pass_columns())},
          {"acceptance.csv of calibrate", report::column_infos(acceptance_columns())},
          {"speed.csv of calibrate", report::column_infos(speed_columns())},
          {"validation.csv of validate", report::column_infos(validation_line_columns())},
          {"validation.csv of calibrate --device cuda", report::column_infos(gpu_run_columns())}};
}

ResultFolder::ResultFolder(std::string path, const std::vector<std::string>& names, bool force, Writing writing)
    : path_(std::move(path)), names_(names.begin(), names.end()) {
  if (exists(path_ + "/" + kManifest)) check_earlier(force);
  for (const std::string& name : names_)
    if (exists(path_ + "/" + name) && !earlier_.contains(name))
      throw BadInput(
          {path_ + "/" + name, 0, 0},
          "is here already, and no manifest.yaml beside it lists it; allowed: another --out, or none of this name there");
  if (writing == Writing::at_once || exists(path_ + "/" + kManifest)) stage_ = path_ + "/" + kStage;
}

void ResultFolder::check_earlier(bool force) {
  const std::string path = path_ + "/" + kManifest;
  const report::Manifest manifest = report::read_manifest(path);
  if (manifest.files != std::vector<std::string>{kExperiment})
    throw BadInput({path, 0, 0}, "results of another command are here, allowed: another --out");
  const bool unfinished = manifest.verdict == kUnfinished;
  if (!force)
    throw BadInput({path, 0, 0}, fmt::format("{}results are here already, allowed: another --out, or --force to replace them",
                                             unfinished ? "unfinished " : ""));
  for (const FileSum& file : manifest.results) {
    const std::string own = path_ + "/" + file.name;
    if (file.name.find('/') != std::string::npos || !exists(own)) continue;
    // What was cut short may have a file that is newer than the manifest.
    if (!unfinished && checksum(read_whole_file(own)) != file.sum)
      throw BadInput({own, 0, 0}, "was changed since it was written, allowed: another --out, or none of this name there");
    earlier_.insert(file.name);
  }
}

ResultFolder::~ResultFolder() {
  if (stage_.empty() || finished_) return;
  std::error_code ignored;
  std::filesystem::remove_all(stage_, ignored);
}

void ResultFolder::write(const std::string& name, const std::string& text) {
  SPECSIM_CHECK(names_.contains(name), "{} was not announced", name);
  if (files_.empty()) {
    std::error_code ignored;
    if (!stage_.empty()) std::filesystem::remove_all(stage_, ignored);  // of a run that was killed
    make_directories(stage_.empty() ? path_ : stage_);
  }
  const auto known = std::find_if(files_.begin(), files_.end(), [&](const FileSum& file) { return file.name == name; });
  if (known != files_.end()) {
    known->sum = checksum(text);
  } else {
    files_.push_back({name, checksum(text)});
    if (stage_.empty()) {  // listed before it is there: whatever ends the run, no file is without an owner
      report::Manifest manifest = manifest_of("", "{}", 1, 0, 0.0);
      manifest.verdict = kUnfinished;
      write_manifest(std::move(manifest));
    }
  }
  write_whole_file((stage_.empty() ? path_ : stage_) + "/" + name, text);
}

void ResultFolder::write_manifest(report::Manifest manifest) const {
  manifest.results = files_;
  write_whole_file(path_ + "/" + kManifest, report::manifest_text(manifest));
}

void ResultFolder::finish(const report::Manifest& manifest) {
  make_directories(path_);
  if (!stage_.empty()) {
    // From here on the manifest lists what is there before and after, so that a sudden end leaves nothing that no one owns.
    std::vector<FileSum> both = files_;
    for (const std::string& name : earlier_) both.push_back({name, ""});
    report::Manifest moving = manifest;
    moving.verdict = kUnfinished;
    moving.results = std::move(both);
    write_whole_file(path_ + "/" + kManifest, report::manifest_text(moving));
    for (const FileSum& file : files_) {
      move_file(stage_ + "/" + file.name, path_ + "/" + file.name);
      earlier_.erase(file.name);
    }
    std::error_code ignored;
    for (const std::string& name : earlier_) std::filesystem::remove(path_ + "/" + name, ignored);
    std::filesystem::remove_all(stage_, ignored);
  }
  write_manifest(manifest);
  finished_ = true;
}

std::vector<std::string> ResultFolder::written() const {
  std::vector<std::string> names;
  for (const FileSum& file : files_) names.push_back(file.name);
  return names;
}

report::Manifest manifest_of(const std::string& command, const std::string& description, unsigned threads, std::size_t cells,
                             double seconds) {
  report::Manifest manifest = report::new_manifest(command);
  manifest.threads = threads;
  manifest.cells = cells;
  manifest.wall_seconds = seconds;
  manifest.files = {kExperiment};
  manifest.configs = {description};
  return manifest;
}

}  // namespace specsim::calibrate
