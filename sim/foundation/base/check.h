// Broken invariants: always on, in every build. A failed check is a defect of this program, never of the user's input.
#pragma once

#include <fmt/format.h>

#include <stdexcept>
#include <string>

namespace specsim {

class InvariantBroken : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

[[noreturn]] void fail_check(const char* expression, const char* file, int line, const std::string& values);

}  // namespace specsim

// SPECSIM_CHECK(n > 0, "n = {}", n): throws InvariantBroken with the expression, the place and the values.
#define SPECSIM_CHECK(expression, ...)                                                    \
  do {                                                                                    \
    if (!(expression)) [[unlikely]]                                                       \
      ::specsim::fail_check(#expression, __FILE__, __LINE__, ::fmt::format(__VA_ARGS__)); \
  } while (false)
