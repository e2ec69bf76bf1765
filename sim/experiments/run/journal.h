// The record of finished work beside an unfinished run: lines that are appended and never changed, each with a checksum that only
// a line of this run has, so that whatever a sudden end leaves behind is either a whole line or is ignored.
#pragma once

#include "sim/experiments/run/identity.h"
#include "sim/rounds/decode/counts.h"

#include <cstdint>
#include <functional>
#include <string>

namespace specsim::run {

// A piece of work that a journal says is done.
struct Record {
  int line = 0;  // where it stands in the journal, for messages
  std::uint64_t cell = 0;
  std::uint64_t slab = 0;
  std::string counts;  // packed
};

class Journal {
 public:
  // Opens for appending, as the only one; what the run depends on stands in its first lines. With `resume`, an existing journal
  // of the same origin is read first: `replay` for each whole line, in their order. Throws BadInput for a journal of another run,
  // program or input file, for one that exists where no resumption was asked for, and for what is no journal; IoError.
  Journal(std::string path, const Origin& origin, bool resume, const std::function<void(const Record&)>& replay);
  Journal(const Journal&) = delete;
  Journal& operator=(const Journal&) = delete;
  ~Journal();
  // Throws IoError where the disk takes no more. A journal that somebody removed takes nothing: see is_lost().
  void append(std::uint64_t cell, std::uint64_t slab, const std::string& counts);
  // Whether the file was removed, or its folder: nothing can be resumed from it.
  [[nodiscard]] bool is_lost() const { return lost_; }
  // Lines behind the header that a reading found damaged, not counting one that a sudden end cut short; the first of them.
  [[nodiscard]] int damaged() const { return damaged_; }
  [[nodiscard]] int first_damaged() const { return first_damaged_; }

 private:
  [[nodiscard]] std::string sealed(const std::string& body) const;
  void open_file(bool resume);
  // The end of the last whole line of this run.
  std::uint64_t read(const Origin& origin, const std::function<void(const Record&)>& replay);
  void write_text(const std::string& text);

  std::string path_;
  std::uint64_t seed_ = 0;  // what the lines' checksums begin with: the run's own
  int file_ = -1;
  int damaged_ = 0;
  int first_damaged_ = 0;
  bool lost_ = false;
};

// Counts as "index:value ..." over Counts::each, zeros left out.
std::string pack_counts(const decode::Counts& counts);
// And back, added to `counts`; false where the text is none of such counts.
bool unpack_counts(const std::string& text, decode::Counts& counts);

}  // namespace specsim::run
