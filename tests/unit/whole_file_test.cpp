// Reading whole files: a stream without end is read once.
#include "sim/foundation/base/whole_file.h"

#include <catch2/catch.hpp>

#include <cstdint>
#include <fstream>
#include <string>

namespace specsim::whole_file_test {

namespace {

// Bytes that this process has read so far.
std::uint64_t bytes_read() {
  std::ifstream file("/proc/self/io");
  std::string name;
  std::uint64_t bytes = 0;
  while (file >> name >> bytes)
    if (name == "rchar:") return bytes;
  return 0;
}

std::string refusal(const std::string& path, std::size_t limit) {
  try {
    return read_whole_file(path, limit);
  } catch (const ReadError& error) {
    return error.what();
  }
}

}  // namespace

TEST_CASE("a device without an end is read once up to a limit, and again if the limit is larger") {
  constexpr std::size_t kLimit = std::size_t{8} << 20;
  const std::string first = refusal("/dev/zero", kLimit);
  CHECK(first.find("it is larger than 8388608 bytes") != std::string::npos);
  const std::uint64_t before = bytes_read();
  REQUIRE(before > kLimit);
  CHECK(refusal("/dev/zero", kLimit) == first);
  CHECK(refusal("/dev/zero", kLimit / 2).find("it is larger than 4194304 bytes") != std::string::npos);
  CHECK(bytes_read() - before < kLimit / 4);
  CHECK(refusal("/dev/zero", 2 * kLimit).find("it is larger than 16777216 bytes") != std::string::npos);
  CHECK(bytes_read() - before > kLimit);
}

}  // namespace specsim::whole_file_test
