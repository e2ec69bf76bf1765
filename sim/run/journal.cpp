#include "sim/run/journal.h"

#include "sim/base/check.h"
#include "sim/base/error.h"
#include "sim/rng/address.h"

#include <fcntl.h>
#include <unistd.h>

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace specsim::run {

namespace {

std::string sealed(const std::string& body) { return fmt::format("{} #{:016x}", body, rng::hash_text(body)); }

}  // namespace

Journal::Journal(std::string path, const std::string& header, bool resume,
                 const std::function<void(std::uint64_t, std::uint64_t, const std::string&)>& replay)
    : path_(std::move(path)) {
  const std::string first = sealed("specsim journal " + header);
  const bool exists = std::filesystem::exists(path_);
  std::uintmax_t good_bytes = 0;
  if (exists && !resume)
    throw BadInput({path_, 0, 0}, "an unfinished run is here, allowed: --resume to go on with it, or --force to drop it");
  if (exists) {
    std::ifstream file(path_, std::ios::binary);
    std::string line;
    bool is_first = true;
    while (std::getline(file, line)) {
      if (file.eof()) break;  // no line end: torn
      if (is_first) {
        if (line != first)
          throw BadInput(
              {path_, 1, 0},
              "this journal belongs to another run (config, seed or shard differ), allowed: the same run, or --force to drop it");
      } else {
        const std::size_t mark = line.rfind(" #");
        if (mark == std::string::npos || sealed(line.substr(0, mark)) != line) break;
        std::istringstream parts(line.substr(0, mark));
        std::uint64_t cell = 0;
        std::uint64_t slab = 0;
        parts >> cell >> slab;
        std::string rest;
        std::getline(parts, rest);
        replay(cell, slab, rest);
      }
      is_first = false;
      good_bytes += line.size() + 1;
    }
  }
  file_ = open(path_.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
  if (file_ < 0) throw IoError(path_ + ": cannot be written: " + std::strerror(errno));
  // What a sudden end left half-written goes.
  if (ftruncate(file_, static_cast<off_t>(good_bytes)) != 0 || lseek(file_, 0, SEEK_END) < 0)
    throw IoError(path_ + ": cannot be written: " + std::strerror(errno));
  if (good_bytes == 0) write_line(first);
}

Journal::~Journal() {
  if (file_ >= 0) close(file_);
}

void Journal::write_line(const std::string& line) {
  const std::string text = line + "\n";
  std::size_t done = 0;
  while (done < text.size()) {
    const ssize_t n = write(file_, text.data() + done, text.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) throw IoError(path_ + ": cannot be written: " + std::strerror(errno));
    done += static_cast<std::size_t>(n);
  }
}

void Journal::append(std::uint64_t cell, std::uint64_t slab, const std::string& counts) {
  write_line(sealed(fmt::format("{} {} {}", cell, slab, counts)));
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

void unpack_counts(const std::string& text, decode::Counts& counts) {
  std::vector<std::uint64_t*> slots;
  counts.each([&](const char*, std::size_t, std::uint64_t& value) { slots.push_back(&value); });
  std::istringstream parts(text);
  std::string part;
  while (parts >> part) {
    std::size_t at = 0;
    unsigned long long value = 0;
    SPECSIM_CHECK(std::sscanf(part.c_str(), "%zu:%llu", &at, &value) == 2 && at < slots.size(), "journal entry {}", part);
    *slots[at] += value;
  }
}

}  // namespace specsim::run
