// A large file that is read in pieces. It is not mapped, because truncating a mapped file would end the program.
#pragma once

#include <boost/core/noncopyable.hpp>

#include <cstddef>
#include <span>
#include <string>

namespace specsim {

class InputFile : boost::noncopyable {
 public:
  // Throws BadInput if the file cannot be read or is not a regular file; `what` names what was expected: "a readable GGUF file".
  InputFile(std::string path, const char* what);
  ~InputFile();
  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] std::size_t size() const { return size_; }  // when it was opened
  // Throws BadInput if the file is shorter than when it was opened, IoError if it cannot be read.
  void read(std::size_t offset, std::span<std::byte> to) const;

 private:
  std::string path_;
  int file_ = -1;
  std::size_t size_ = 0;
};

}  // namespace specsim
