#include "sim/foundation/base/whole_file.h"

#include "sim/foundation/base/error.h"
#include "sim/foundation/base/files_read.h"
#include "sim/foundation/base/output.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cctype>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <map>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

namespace specsim {

namespace {

std::atomic<std::size_t> files_written{0};

// The names of pieces on disk, for a signal handler. Only a limited number is known at a time; further pieces are not recorded.
struct Pieces {
  std::atomic<bool> taken{false};
  std::atomic<bool> on_disk{false};
  std::array<char, PATH_MAX> path{};
};
std::array<Pieces, 8> pieces;
static_assert(std::atomic<bool>::is_always_lock_free);

void remember_pieces(const std::string& path) {
  for (Pieces& one : pieces) {
    if (path.size() >= one.path.size() || one.taken.exchange(true)) continue;
    std::memcpy(one.path.data(), path.c_str(), path.size() + 1);
    one.on_disk = true;
    return;
  }
}

void forget_pieces(const std::string& path) {
  for (Pieces& one : pieces) {
    if (!one.on_disk || path != one.path.data()) continue;
    one.on_disk = false;
    one.taken = false;
    return;
  }
}

// Keeps `pieces` complete for signals that end the program. Creating and recording a piece is one step for a signal handler, and
// so is removing and forgetting it. In the same thread the signal is blocked until the step is done; a handler in another thread
// waits for it.
std::atomic<int> steps{0};        // threads within such a step
std::atomic<bool> ending{false};  // a handler has begun to remove pieces: no new step may begin

class StepOfPieces {
 public:
  StepOfPieces() {
    sigset_t every;
    sigfillset(&every);
    pthread_sigmask(SIG_BLOCK, &every, &before_);
    ++steps;
    if (!ending) return;
    --steps;
    while (true) pause();  // until the signal ends the program
  }
  StepOfPieces(const StepOfPieces&) = delete;
  StepOfPieces& operator=(const StepOfPieces&) = delete;
  ~StepOfPieces() {
    --steps;
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }

 private:
  sigset_t before_{};
};

class OpenFile {
 public:
  explicit OpenFile(int descriptor) : descriptor_(descriptor) {}
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  ~OpenFile() {
    if (descriptor_ >= 0) close(descriptor_);
  }
  [[nodiscard]] int descriptor() const { return descriptor_; }

 private:
  int descriptor_;
};

[[noreturn]] void fail(const std::string& path, const std::string& what, int error) {
  throw IoError(path + ": " + what + ": " + std::strerror(error));
}

// The standard stream that a path names, or -1.
int standard_stream(const std::string& path) {
  for (const int file : {STDOUT_FILENO, STDERR_FILENO})
    for (const char* const folder : {"/dev/fd/", "/proc/self/fd/"})
      if (path == folder + std::to_string(file)) return file;
  return path == "/dev/stdout" ? STDOUT_FILENO : path == "/dev/stderr" ? STDERR_FILENO : -1;
}

bool below(const std::string& path, std::string_view folder) { return path.compare(0, folder.size(), folder) == 0; }

int open_new(const std::string& path) { return open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644); }

// Throws IoError if a writer that is still running has its pieces there, or if it is no file.
void check_leftover(const std::string& path) {
  struct stat found {};
  if (lstat(path.c_str(), &found) != 0) return;
  if (!S_ISREG(found.st_mode)) fail(path, "cannot be written", S_ISDIR(found.st_mode) ? EISDIR : EEXIST);
  const int file = open(path.c_str(), O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (file < 0) fail(path, "cannot be written", errno);
  const bool alive = flock(file, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  close(file);
  if (alive) throw IoError(path + ": cannot be written: another process is writing it");
}

// A new name is on disk only after its directory is. File systems that cannot sync a directory are ignored.
void sync_directory_of(const std::string& path) {
  const std::string parent = std::filesystem::path(path).parent_path().string();
  const int directory = open(parent.empty() ? "." : parent.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (directory < 0) return;
  static_cast<void>(fsync(directory));
  close(directory);
}

// Endless devices, by the limit that their text exceeded: a sweep reads a file once per cell.
class EndlessDevices {
 public:
  void note(const std::string& path, std::size_t limit) {
    const std::scoped_lock lock(mutex_);
    std::size_t& beyond = beyond_[path];
    beyond = std::max(beyond, limit);
  }
  bool knows(const std::string& path, std::size_t limit) {
    const std::scoped_lock lock(mutex_);
    const auto at = beyond_.find(path);
    return at != beyond_.end() && at->second >= limit;
  }

 private:
  std::mutex mutex_;
  std::map<std::string, std::size_t> beyond_;
};

EndlessDevices& endless_devices() {
  static EndlessDevices devices;
  return devices;
}

}  // namespace

bool is_written_through(const std::string& path) {
  if (below(path, "/dev/fd/") || below(path, "/proc/") || standard_stream(path) >= 0) return true;
  struct stat found {};
  return stat(path.c_str(), &found) == 0 && !S_ISREG(found.st_mode) && !S_ISDIR(found.st_mode);
}

WholeFileWriter::WholeFileWriter(std::string path, Leftover leftover) : path_(std::move(path)) {
  if (is_written_through(path_))
    open_through();
  else
    open_temporary(leftover);
}

void WholeFileWriter::open_through() {
  const int standard = standard_stream(path_);
  if (standard >= 0) {
    flush_output();  // earlier output comes first
    file_ = fcntl(standard, F_DUPFD_CLOEXEC, 0);
  } else {
    struct stat found {};
    if (stat(path_.c_str(), &found) == 0 && S_ISBLK(found.st_mode))
      throw IoError(path_ + ": is a disk, allowed: a file or a pipe");
    // Opening a pipe without a reader would wait, and the program would not react to anything meanwhile.
    file_ = open(path_.c_str(), O_WRONLY | O_APPEND | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
    if (file_ < 0 && errno == ENXIO && S_ISFIFO(found.st_mode))
      throw IoError(path_ + ": is a pipe without a reader, allowed: a file, or a pipe with a reader");
    if (file_ >= 0) fcntl(file_, F_SETFL, fcntl(file_, F_GETFL) & ~O_NONBLOCK);
  }
  if (file_ < 0) fail(path_, "cannot be written", errno);
}

bool WholeFileWriter::make_pieces() {
  const StepOfPieces step;
  file_ = open_new(temporary_);
  remains_ = file_ >= 0;
  if (remains_) remember_pieces(temporary_);
  return remains_;
}

void WholeFileWriter::open_temporary(Leftover leftover) {
  struct stat found {};
  if (lstat(path_.c_str(), &found) == 0 && S_ISLNK(found.st_mode))
    throw IoError(path_ + ": is a symbolic link, allowed: another file, or none of this name there");
  temporary_ = path_ + ".part";
  constexpr int kMostNames = 100;
  for (int number = 1; !make_pieces() && errno == EEXIST && number <= kMostNames; ++number) {
    check_leftover(temporary_);
    if (leftover == Leftover::removed)
      unlink(temporary_.c_str());
    else
      temporary_ = path_ + "." + std::to_string(number) + ".part";
  }
  if (file_ < 0) fail(temporary_, "cannot be written", errno);
  static_cast<void>(flock(file_, LOCK_EX | LOCK_NB));  // without file locks only the error message for a second writer is missing
}

WholeFileWriter::~WholeFileWriter() {
  if (file_ >= 0) close(file_);
  if (!remains_) return;
  const StepOfPieces step;
  unlink(temporary_.c_str());
  forget_pieces(temporary_);
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
  if (temporary_.empty()) {
    if (close(std::exchange(file_, -1)) != 0) fail(path_, "cannot be written", errno);
    return;
  }
  if (fsync(file_) != 0) fail(path_, "cannot be written", errno);
  {
    const StepOfPieces step;
    if (rename(temporary_.c_str(), path_.c_str()) != 0) fail(path_, "cannot be replaced", errno);
    remains_ = false;
    forget_pieces(temporary_);
  }
  if (close(std::exchange(file_, -1)) != 0) fail(path_, "cannot be written", errno);
  sync_directory_of(path_);
  ++files_written;
}

void write_whole_file(const std::string& path, std::string_view text, Leftover leftover) {
  WholeFileWriter file(path, leftover);
  file.append(text);
  file.commit();
}

void remove_unfinished_files() {
  ending = true;
  for (const timespec moment{0, 100'000}; steps > 0;) nanosleep(&moment, nullptr);
  for (const Pieces& one : pieces)
    if (one.on_disk) unlink(one.path.data());
}

std::size_t whole_files_written() { return files_written; }

ReadError::ReadError(const std::string& path, std::string found, std::string allowed)
    : IoError((path.empty() ? "" : path + ": ") + found), found_(std::move(found)), allowed_(std::move(allowed)) {}

std::string ReadError::message(const std::string& wanted) const {
  std::string allowed = allowed_;
  if (const std::size_t gap = allowed.find("{}"); gap != std::string::npos) allowed.replace(gap, 2, wanted);
  return found_ + ", allowed: " + allowed;
}

namespace {

// The origin of a file's path. Only `named` may be a pipe or a device; the others are never waited for.
enum class Source {
  named,   // on the command line or in a file
  found,   // in a folder
  result,  // written by specsim
};

std::string read_contents(const std::string& path, std::size_t limit, Source source) {
  if (path.empty()) throw ReadError(path, "the file name is empty", "a readable {}");
  const auto cannot = [&path](int error) {
    std::string words = std::strerror(error);
    words.front() = static_cast<char>(std::tolower(static_cast<unsigned char>(words.front())));
    return ReadError(path, "cannot be read: " + words, "a readable {}");
  };
  const OpenFile file(open(path.c_str(), O_RDONLY | O_NOCTTY | O_CLOEXEC | (source == Source::named ? 0 : O_NONBLOCK)));
  if (file.descriptor() < 0) throw cannot(errno);
  struct stat status {};
  if (fstat(file.descriptor(), &status) != 0) throw cannot(errno);
  if (source == Source::result && !S_ISREG(status.st_mode))
    throw BadInput({path, 0, 0}, "is no regular file, allowed: the file as it was written");
  if (S_ISDIR(status.st_mode)) throw ReadError(path, "it is a directory", "a {}");
  if (source == Source::found && !S_ISREG(status.st_mode)) throw ReadError(path, "it is no regular file", "a {}");
  const std::string most = "at most " + std::to_string(limit) + " bytes";
  const auto larger = [&] {
    if (S_ISCHR(status.st_mode)) endless_devices().note(path, limit);
    return ReadError(path, "it is larger than " + std::to_string(limit) + " bytes", most);
  };
  if (S_ISCHR(status.st_mode) && endless_devices().knows(path, limit)) throw larger();
  std::string text;
  try {
    if (S_ISREG(status.st_mode)) {
      if (static_cast<std::uint64_t>(status.st_size) > limit) throw larger();
      text.reserve(static_cast<std::size_t>(status.st_size));
    }
    std::vector<char> piece(std::size_t{1} << 16U);
    while (true) {
      const ssize_t n = read(file.descriptor(), piece.data(), piece.size());
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) throw cannot(errno);
      if (n == 0) break;
      if (text.size() + static_cast<std::size_t>(n) > limit) throw larger();
      text.append(piece.data(), static_cast<std::size_t>(n));
    }
  } catch (const std::bad_alloc&) {
    throw cannot(ENOMEM);
  }
  return text;
}

}  // namespace

std::string read_whole_file(const std::string& path, std::size_t limit) {
  std::string text = read_contents(path, limit, Source::named);
  note_file_read(path, text);
  return text;
}

std::string read_regular_file(const std::string& path, std::size_t limit) {
  std::string text = read_contents(path, limit, Source::found);
  note_file_read(path, text);
  return text;
}

std::string read_written_file(const std::string& path, std::size_t limit) { return read_contents(path, limit, Source::result); }

void make_directories(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) fail(path, "cannot be made a directory", error.value());
  if (!std::filesystem::is_directory(path)) fail(path, "is no directory", ENOTDIR);
}

}  // namespace specsim
