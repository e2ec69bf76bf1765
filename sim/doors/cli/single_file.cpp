#include "sim/doors/cli/single_file.h"

#include "sim/doors/cli/options.h"
#include "sim/doors/cli/result_files.h"
#include "sim/foundation/base/error.h"
#include "sim/foundation/base/whole_file.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <system_error>

namespace specsim::cli {

namespace {

namespace fs = std::filesystem;

// The place that a path leads to; links are followed as far as they exist.
fs::path place_of(const std::string& path) {
  std::error_code error;
  const fs::path place = fs::weakly_canonical(fs::absolute(path, error), error);
  return error ? fs::path(path).lexically_normal() : place;
}

bool is_same(const std::string& a, const std::string& b) {
  std::error_code ignored;
  return place_of(a) == place_of(b) || fs::equivalent(a, b, ignored);
}

bool is_result(const std::string& path, const std::string& out, std::vector<std::string> names) {
  names.insert(names.end(), {"manifest.yaml", kJournal});
  return std::any_of(names.begin(), names.end(), [&](const std::string& name) {
    const std::string result = out + "/" + name;
    return is_same(path, result) || is_same(path, result + ".part") || is_same(path + ".part", result);
  });
}

// Whether a file is empty, or begins like the option's own files.
bool is_own(const SingleFile& file) {
  std::ifstream stream(file.path, std::ios::binary);
  std::string text(file.start.size(), '\0');
  stream.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(stream.gcount()));
  return !stream.bad() && (text.empty() || text == file.start);
}

// Throws IoError if no file can be created in this file's directory. `out` is created before the file is.
void check_directory(const SingleFile& file, const std::string& out) {
  const fs::path directory = place_of(file.path).parent_path();
  std::error_code ignored;
  if (fs::is_directory(directory, ignored)) {
    if (access(directory.c_str(), W_OK | X_OK) != 0)
      throw IoError(fmt::format("{}: cannot be written: its directory may not be written", file.path));
    return;
  }
  const fs::path made = out.empty() ? fs::path() : place_of(out) / "";
  if (out.empty() || std::mismatch(directory.begin(), directory.end(), made.begin(), made.end()).first != directory.end())
    throw IoError(
        fmt::format("{}: cannot be written: {} is no directory", file.path, fs::path(file.path).parent_path().string()));
}

}  // namespace

void check_single_files(const std::vector<SingleFile>& files, const FilesRead& read, const std::string& out,
                        const std::vector<std::string>& names, bool force) {
  for (std::size_t i = 0; i < files.size(); ++i) {
    const SingleFile& file = files[i];
    if (file.path.empty()) continue;
    const Location where{file.option, 0, 0};
    check_not_read(file.path, file.option, read);
    if (is_written_through(file.path)) continue;
    std::error_code ignored;
    if (fs::is_symlink(fs::symlink_status(file.path, ignored)))
      throw BadInput(where, fmt::format("{} is a symbolic link, allowed: another file, or none of this name there", file.path));
    for (std::size_t j = 0; j < i; ++j)
      if (!files[j].path.empty() && is_same(file.path, files[j].path))
        throw BadInput(where, fmt::format("{} is the file of {}, allowed: another file", file.path, files[j].option));
    if (!out.empty() && is_result(file.path, out, names))
      throw BadInput(where, fmt::format("{} is a file of --out, allowed: another file", file.path));
    if (fs::is_directory(file.path, ignored) || (!out.empty() && is_same(file.path, out)))
      throw BadInput(where, fmt::format("{} is a directory, allowed: a file", file.path));
    check_directory(file, out);
    if (!force && fs::is_regular_file(file.path, ignored) && !is_own(file))
      throw BadInput(where, fmt::format("{} exists already and was not written by {}, allowed: another file, or --force to "
                                        "replace it",
                                        file.path, file.option));
  }
}

}  // namespace specsim::cli
