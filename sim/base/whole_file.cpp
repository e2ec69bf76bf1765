#include "sim/base/whole_file.h"

#include "sim/base/error.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <utility>

namespace specsim {

namespace {

[[noreturn]] void fail(const std::string& path, const std::string& what, int error) {
  throw IoError(path + ": " + what + ": " + std::strerror(error));
}

}  // namespace

WholeFileWriter::WholeFileWriter(std::string path)
    : path_(std::move(path)),
      temporary_(path_ + ".part"),
      file_(open(temporary_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644)) {
  if (file_ < 0) fail(temporary_, "cannot be written", errno);
  remains_ = true;
}

WholeFileWriter::~WholeFileWriter() {
  if (file_ >= 0) close(file_);
  if (remains_) unlink(temporary_.c_str());
}

void WholeFileWriter::append(std::string_view text) {
  while (!text.empty()) {
    const ssize_t n = write(file_, text.data(), text.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail(path_, "cannot be written", errno);
    text.remove_prefix(static_cast<std::size_t>(n));
  }
}

void WholeFileWriter::commit() {
  if (fsync(file_) != 0 || close(std::exchange(file_, -1)) != 0) fail(path_, "cannot be written", errno);
  if (rename(temporary_.c_str(), path_.c_str()) != 0) fail(path_, "cannot be replaced", errno);
  remains_ = false;
}

void write_whole_file(const std::string& path, const std::string& text) {
  WholeFileWriter file(path);
  file.append(text);
  file.commit();
}

std::string read_whole_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) fail(path, "cannot be read", errno);
  std::ostringstream text;
  text << file.rdbuf();
  if (file.bad()) fail(path, "cannot be read", errno);
  return std::move(text).str();
}

void make_directories(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) fail(path, "cannot be made a directory", error.value());
  if (!std::filesystem::is_directory(path)) fail(path, "is no directory", ENOTDIR);
}

}  // namespace specsim
