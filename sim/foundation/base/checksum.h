// Checksums of files' bytes: they detect damage and mix-ups, not forgery.
#pragma once

#include <string>
#include <string_view>

namespace specsim {

// CRC-64/XZ as 16 hexadecimal digits.
std::string checksum(std::string_view bytes);

// A file and the checksum of its bytes.
struct FileSum {
  std::string name;
  std::string sum;
  bool operator==(const FileSum&) const = default;
};

}  // namespace specsim
