// Counts and numbers are ints, since their differences may be negative; containers want std::size_t.
#pragma once

#include <cstddef>

namespace specsim {

// `value` must not be negative.
constexpr std::size_t index_of(int value) { return static_cast<std::size_t>(value); }

}  // namespace specsim
