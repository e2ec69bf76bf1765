// Parts of the C++20 standard library that libc++ 14 lacks, which compiles the code for browsers. They are taken from the library
// if it has them.
#pragma once

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <system_error>
#include <thread>
#include <type_traits>
#include <utility>
#include <version>

namespace specsim {

#if defined(__cpp_lib_bit_cast)
using std::bit_cast;
#else
template <typename To, typename From>
requires(sizeof(To) == sizeof(From) && std::is_trivially_copyable_v<To> && std::is_trivially_copyable_v<From>) constexpr To
    bit_cast(const From& from) noexcept {
  return __builtin_bit_cast(To, from);
}
#endif

#if defined(__cpp_lib_to_chars)
using std::from_chars;
using std::to_chars;
#else
// Only for decimal numbers: no infinities, no NaN.
inline std::from_chars_result from_chars(const char* first, const char* last, double& x) {
  const char* end = first;
  while (end != last && std::strchr("0123456789.eE+-", *end) != nullptr && *end != '\0') ++end;
  if (first == end || *first == '+') return {first, std::errc::invalid_argument};
  const std::string text(first, end);
  char* read_to = nullptr;
  const double read = std::strtod(text.c_str(), &read_to);
  const char* const next = first + (read_to - text.c_str());
  if (next == first) return {first, std::errc::invalid_argument};
  if (std::isinf(read)) return {next, std::errc::result_out_of_range};
  x = read;
  return {next, std::errc()};
}
// The fewest digits that read back as x, as a plain number unless one with an exponent is shorter.
inline std::to_chars_result to_chars(char* first, char* last, double x) {
  char scientific[40];
  int digits = 0;
  do std::snprintf(scientific, sizeof scientific, "%.*e", digits, x);
  while (std::strtod(scientific, nullptr) != x && ++digits < 17 && std::isfinite(x));
  std::string text = scientific;
  if (std::isfinite(x)) {
    const int exponent = std::atoi(text.c_str() + text.find('e') + 1);
    const int decimals = digits > exponent ? digits - exponent : 0;
    char plain[400];
    const int length = std::snprintf(plain, sizeof plain, "%.*f", decimals, x);
    if (static_cast<std::size_t>(length) <= text.size()) text.assign(plain, static_cast<std::size_t>(length));
  }
  if (static_cast<std::size_t>(last - first) < text.size()) return {last, std::errc::value_too_large};
  return {std::copy(text.begin(), text.end(), first), std::errc()};
}
#endif

// A thread that is joined when it goes out of scope.
#if defined(__cpp_lib_jthread)
using JoiningThread = std::jthread;
#else
class JoiningThread {
 public:
  template <typename Work>
  explicit JoiningThread(Work&& work) : thread_(std::forward<Work>(work)) {}
  JoiningThread(JoiningThread&&) noexcept = default;
  JoiningThread& operator=(JoiningThread&&) = delete;
  JoiningThread(const JoiningThread&) = delete;
  JoiningThread& operator=(const JoiningThread&) = delete;
  ~JoiningThread() {
    if (thread_.joinable()) thread_.join();
  }

 private:
  std::thread thread_;
};
#endif

}  // namespace specsim
