// Tokens and their bounds.
#pragma once

#include <cstdint>

namespace specsim {

using Token = std::uint32_t;

constexpr int kMinVocab = 2;
constexpr int kMaxVocab = 262144;  // 2^18: an alias table's entry keeps a token in 18 bits
constexpr int kMaxDraftLength = 64;

}  // namespace specsim
