#include "sim/experiments/run/journal.h"

#include "sim/foundation/base/error.h"
#include "sim/foundation/base/output.h"
#include "sim/foundation/rng/address.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <sstream>
#include <utility>

namespace specsim::run {

namespace {

constexpr const char* kAnotherRun =
    "this journal belongs to another run (config, seed or shard differ), allowed: the same run, or --force to delete it";

[[noreturn]] void fail_journal(const std::string& path, int error) {
  throw IoError(path + ": cannot be written: " + std::strerror(error));
}

// The first line, and the header lines after it: the program and its input files.
std::string title(const Origin& origin) { return "specsim journal " + origin.run; }
std::vector<std::string> origin_lines(const Origin& origin) {
  std::vector<std::string> lines = {"program " + origin.program};
  for (const FileSum& one : origin.inputs) lines.push_back(fmt::format("input {} {}", one.sum, printable(one.name)));
  return lines;
}

// The line without its checksum.
std::string_view body_of(std::string_view line) { return line.substr(0, std::min(line.rfind(" #"), line.size())); }

template <class Number>
bool take_number(std::string_view& text, Number& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc()) return false;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return true;
}

bool take(std::string_view& text, char c) {
  if (text.empty() || text.front() != c) return false;
  text.remove_prefix(1);
  return true;
}

std::optional<Record> record_of(std::string_view body) {
  Record record;
  if (!take_number(body, record.cell) || !take(body, ' ') || !take_number(body, record.slab) || !take(body, ' ')) return {};
  record.counts = body;
  return record;
}

// How the origin in a journal differs from this run's; "" if it does not.
std::string changed_origin(const std::vector<std::string>& told, const Origin& origin) {
  const std::vector<std::string> own = origin_lines(origin);
  if (told == own) return "";
  if (told.front() != own.front())
    return fmt::format("the run was begun by specsim {}, and this is {}", told.front().substr(told.front().find(' ') + 1),
                       origin.program);
  std::vector<FileSum> before;
  for (std::size_t i = 1; i < told.size(); ++i) {
    std::istringstream words(told[i]);
    FileSum one;
    std::string kind;
    words >> kind >> one.sum;
    std::getline(words >> std::ws, one.name);
    before.push_back(std::move(one));
  }
  return changed_inputs(before, origin.inputs);
}

}  // namespace

std::string Journal::with_checksum(const std::string& body) const {
  return fmt::format("{} #{:016x}", body, rng::hash_text(body, seed_));
}

Journal::Journal(std::string path, const Origin& origin, bool resume, const std::function<void(const Record&)>& replay)
    : path_(std::move(path)) {
  seed_ = rng::hash_text(title(origin));
  open_file(resume);
  try {
    const std::uint64_t good_bytes = read(origin, replay);
    // Truncates a half-written line that a crash left.
    if (ftruncate(file_, static_cast<off_t>(good_bytes)) != 0 || lseek(file_, 0, SEEK_END) < 0) fail_journal(path_, errno);
    if (good_bytes == 0) {
      std::string text = with_checksum(title(origin)) + "\n";
      for (const std::string& line : origin_lines(origin)) text += with_checksum(line) + "\n";
      write_text(text);
    }
  } catch (...) {
    close(file_);
    throw;
  }
}

void Journal::open_file(bool resume) {
  file_ = open(path_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
  if (file_ < 0 && errno == EEXIST) {
    if (!resume)
      throw BadInput({path_, 0, 0}, "an unfinished run is here, allowed: --resume to continue it, or --force to delete it");
    // O_NONBLOCK: if the path is a pipe, do not wait for its other end.
    file_ = open(path_.c_str(), O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
  }
  if (file_ < 0) fail_journal(path_, errno);
  struct stat found {};
  const bool regular = fstat(file_, &found) == 0 && S_ISREG(found.st_mode);
  const bool alone = flock(file_, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK;
  if (regular && alone) return;
  close(file_);
  if (!regular) throw BadInput({path_, 0, 0}, "is no regular file, allowed: --force to delete it");
  throw BadInput({path_, 0, 0}, "another process is working on this run, allowed: after it has ended");
}

std::uint64_t Journal::read(const Origin& origin, const std::function<void(const Record&)>& replay) {
  const int copy = fcntl(file_, F_DUPFD_CLOEXEC, 0);
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(copy < 0 ? nullptr : fdopen(copy, "r"), &std::fclose);
  if (file == nullptr) throw IoError(path_ + ": cannot be read: " + std::strerror(errno));
  struct Buffer {
    char* text = nullptr;
    std::size_t size = 0;
    ~Buffer() { std::free(text); }
  } buffer;
  std::uint64_t good_bytes = 0;
  std::uint64_t bytes = 0;
  std::vector<std::string> told;
  bool checked = false;
  int number = 0;
  const auto check = [&] {
    const std::string changed = told.empty() ? "it does not name the program that began it" : changed_origin(told, origin);
    if (!changed.empty())
      throw BadInput({path_, 2, 0}, changed + ", allowed: the program and files that began it, or --force to delete it");
    checked = true;
  };
  for (;;) {
    errno = 0;
    const ssize_t length = getline(&buffer.text, &buffer.size, file.get());
    if (length < 0) break;
    bytes += static_cast<std::uint64_t>(length);
    if (buffer.text[length - 1] != '\n') break;  // a crash cut this line
    const std::string line(buffer.text, static_cast<std::size_t>(length - 1));
    const std::string body(body_of(line));
    ++number;
    if (number == 1 && !body.starts_with("specsim journal "))
      throw BadInput({path_, 1, 0}, "is no journal of a run, allowed: another --out, or --force to replace it");
    if (number == 1 && line != with_checksum(title(origin))) throw BadInput({path_, 1, 0}, kAnotherRun);
    if (number > 1 && line != with_checksum(body)) {
      if (damaged_++ == 0) first_damaged_ = number;
      continue;
    }
    if (number > 1 && !checked && (body.starts_with("program ") || body.starts_with("input "))) {
      told.push_back(body);
    } else if (number > 1) {
      if (!checked) check();
      std::optional<Record> record = record_of(body);
      if (!record)
        throw BadInput({path_, number, 0}, "this is no record of finished work, allowed: --force to delete the journal");
      record->line = number;
      replay(*record);
    }
    good_bytes = bytes;
  }
  if (std::ferror(file.get()) != 0) throw IoError(path_ + ": cannot be read: " + std::strerror(errno));
  if (!checked && !told.empty()) check();
  return checked ? good_bytes : 0;  // a truncated header has no lines after it
}

Journal::~Journal() {
  if (file_ >= 0) close(file_);
}

void Journal::write_text(const std::string& text) {
  std::size_t done = 0;
  while (done < text.size()) {
    const ssize_t n = write(file_, text.data() + done, text.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail_journal(path_, errno);
    done += static_cast<std::size_t>(n);
  }
}

void Journal::append(std::uint64_t cell, std::uint64_t slab, const std::string& counts) {
  struct stat found {};
  lost_ = lost_ || (fstat(file_, &found) == 0 && found.st_nlink == 0);
  if (!lost_) write_text(with_checksum(fmt::format("{} {} {}", cell, slab, counts)) + "\n");
}

std::string Journal::how_to_continue() const {
  struct stat own {};
  struct stat found {};
  if (lost_ || fstat(file_, &own) != 0 || own.st_nlink == 0) return "nothing was kept: the journal was removed";
  if (lstat(path_.c_str(), &found) != 0 || found.st_dev != own.st_dev || found.st_ino != own.st_ino)
    return fmt::format("{} was moved: continue with the same command, --resume, and as --out the folder where it is now", path_);
  return fmt::format("continue with the same command and --resume ({})", path_);
}

std::string pack_counts(const decode::Counts& counts) {
  std::string text;
  std::size_t at = 0;
  counts.each([&](const char*, std::size_t, std::uint64_t value) {
    if (value != 0) text += fmt::format("{}:{} ", at, value);
    ++at;
  });
  if (!text.empty()) text.pop_back();
  return text;
}

bool unpack_counts(const std::string& text, decode::Counts& counts) {
  std::vector<std::uint64_t*> slots;
  counts.each([&](const char*, std::size_t, std::uint64_t& value) { slots.push_back(&value); });
  std::string_view rest = text;
  while (!rest.empty()) {
    std::size_t at = 0;
    std::uint64_t value = 0;
    if (!take_number(rest, at) || !take(rest, ':') || !take_number(rest, value) || at >= slots.size()) return false;
    if (!rest.empty() && !take(rest, ' ')) return false;
    if (*slots[at] + value < value) return false;  // overflow
    *slots[at] += value;
  }
  return true;
}

}  // namespace specsim::run
