// The record of finished work of an unfinished run. Lines are appended and never changed. Each has a checksum that is specific
// to this run, so a line that a crash cut is recognised and ignored.
#pragma once

#include "sim/experiments/run/identity.h"
#include "sim/rounds/decode/counts.h"

#include <cstdint>
#include <functional>
#include <string>

namespace specsim::run {

// A piece of finished work in a journal.
struct Record {
  int line = 0;  // its line in the journal, for messages
  std::uint64_t cell = 0;
  std::uint64_t slab = 0;
  std::string counts;  // packed
};

class Journal {
 public:
  // Opens a journal for appending, with an exclusive lock. Its first lines name the run's inputs. With `resume`, an existing
  // journal of the same origin is read first, and `replay` is called for each whole line in order. Throws BadInput for a journal
  // of another run, program or input file, for an existing journal without `resume`, and for a file that is not a journal.
  // Throws IoError.
  Journal(std::string path, const Origin& origin, bool resume, const std::function<void(const Record&)>& replay);
  Journal(const Journal&) = delete;
  Journal& operator=(const Journal&) = delete;
  ~Journal();
  // Throws IoError if the disk is full. If the journal was deleted, does nothing: see is_lost().
  void append(std::uint64_t cell, std::uint64_t slab, const std::string& counts);
  // Whether the file or its folder was deleted. Then the run cannot be resumed.
  [[nodiscard]] bool is_lost() const { return lost_; }
  // How a user continues after an interruption, as the end of a sentence. The journal may have been removed, moved or replaced.
  [[nodiscard]] std::string how_to_continue() const;
  // The number of damaged lines after the header, not counting one that a crash cut short; and the first of them.
  [[nodiscard]] int damaged() const { return damaged_; }
  [[nodiscard]] int first_damaged() const { return first_damaged_; }

 private:
  [[nodiscard]] std::string with_checksum(const std::string& body) const;
  void open_file(bool resume);
  // Returns the end of the last whole line of this run.
  std::uint64_t read(const Origin& origin, const std::function<void(const Record&)>& replay);
  void write_text(const std::string& text);

  std::string path_;
  std::uint64_t seed_ = 0;  // initial value of the lines' checksums, specific to the run
  int file_ = -1;
  int damaged_ = 0;
  int first_damaged_ = 0;
  bool lost_ = false;
};

// Counts as "index:value ..." over Counts::each, without zeros.
std::string pack_counts(const decode::Counts& counts);
// The inverse: adds the text's counts to `counts`. Returns false if the text is invalid.
bool unpack_counts(const std::string& text, decode::Counts& counts);

}  // namespace specsim::run
