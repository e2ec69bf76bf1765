// The record of finished work beside an unfinished run: lines that are appended and never changed, each with a checksum,
// so that whatever a sudden end leaves behind is either a whole line or is ignored.
#pragma once

#include "sim/decode/counts.h"

#include <cstdint>
#include <functional>
#include <string>

namespace specsim::run {

class Journal {
 public:
  // Opens for appending; `header` is its first line. With `resume`, an existing journal of the same header is read first:
  // `replay(cell, slab, counts text)` for each whole line. Throws BadInput for a journal of another run, or for one that
  // exists where no resumption was asked for; IoError.
  Journal(std::string path, const std::string& header, bool resume,
          const std::function<void(std::uint64_t, std::uint64_t, const std::string&)>& replay);
  Journal(const Journal&) = delete;
  Journal& operator=(const Journal&) = delete;
  ~Journal();
  void append(std::uint64_t cell, std::uint64_t slab, const std::string& counts);

 private:
  void write_line(const std::string& line);
  std::string path_;
  int file_ = -1;
};

// Counts as "index:value ..." over Counts::each, zeros left out, and back (added to `counts`).
std::string pack_counts(const decode::Counts& counts);
void unpack_counts(const std::string& text, decode::Counts& counts);

}  // namespace specsim::run
