#include "sim/base/whole_file.h"

#include "sim/base/error.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace specsim {

namespace {

[[noreturn]] void fail(const std::string& path, const std::string& what, int error) {
  throw IoError(path + ": " + what + ": " + std::strerror(error));
}

}  // namespace

void write_whole_file(const std::string& path, const std::string& text) {
  const std::string temporary = path + ".part";
  const int file = open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (file < 0) fail(temporary, "cannot be written", errno);
  std::size_t done = 0;
  while (done < text.size()) {
    const ssize_t n = write(file, text.data() + done, text.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      const int error = errno;
      close(file);
      unlink(temporary.c_str());
      fail(path, "cannot be written", error);
    }
    done += static_cast<std::size_t>(n);
  }
  if (fsync(file) != 0 || close(file) != 0) {
    const int error = errno;
    unlink(temporary.c_str());
    fail(path, "cannot be written", error);
  }
  if (rename(temporary.c_str(), path.c_str()) != 0) {
    const int error = errno;
    unlink(temporary.c_str());
    fail(path, "cannot be replaced", error);
  }
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
