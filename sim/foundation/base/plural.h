#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>

namespace specsim {

// "1 line", "2 lines": a count with its word, which gets an s unless the count is one.
template <typename Count>
std::string plural(Count count, std::string_view word) {
  return fmt::format("{} {}{}", count, word, count == Count{1} ? "" : "s");
}

}  // namespace specsim
