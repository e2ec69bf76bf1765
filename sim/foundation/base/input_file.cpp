#include "sim/foundation/base/input_file.h"

#include "sim/foundation/base/error.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace specsim {

InputFile::InputFile(std::string path, const char* what)
    : path_(std::move(path)),
      file_(open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {  // O_NONBLOCK: opening a fifo must not wait
  struct stat facts {};
  int error = file_ < 0 || fstat(file_, &facts) != 0 ? errno : 0;
  if (error == 0 && S_ISDIR(facts.st_mode)) error = EISDIR;
  if (error == 0 && !S_ISREG(facts.st_mode)) error = EINVAL;
  if (error != 0) {
    if (file_ >= 0) close(file_);
    throw BadInput({path_, 0, 0}, fmt::format("cannot be read: {}, allowed: {}", std::strerror(error), what));
  }
  size_ = static_cast<std::size_t>(facts.st_size);
}

InputFile::~InputFile() { close(file_); }

void InputFile::read(std::size_t offset, std::span<std::byte> to) const {
  for (std::size_t done = 0; done < to.size();) {
    const ssize_t got = pread(file_, to.data() + done, to.size() - done, static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw IoError(fmt::format("{}: cannot be read: {}", path_, std::strerror(errno)));
    if (got == 0)
      throw BadInput({path_, 0, 0},
                     fmt::format("ends at byte {} and had {} when it was opened, allowed: a file that does not change "
                                 "while it is read",
                                 offset + done, size_));
    done += static_cast<std::size_t>(got);
  }
}

}  // namespace specsim
