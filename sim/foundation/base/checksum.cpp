#include "sim/foundation/base/checksum.h"

#include <fmt/format.h>
#include <boost/crc.hpp>

#include <cstdint>

namespace specsim {

std::string checksum(std::string_view bytes) {
  constexpr std::uint64_t kPolynomial = 0x42f0e1eba9ea3693ULL;  // ECMA-182
  constexpr std::uint64_t kOnes = ~std::uint64_t{0};
  boost::crc_optimal<64, kPolynomial, kOnes, kOnes, true, true> crc;
  crc.process_bytes(bytes.data(), bytes.size());
  return fmt::format("{:016x}", crc.checksum());
}

}  // namespace specsim
