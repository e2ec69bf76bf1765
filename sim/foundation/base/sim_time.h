// Simulated time, counted in whole picoseconds so that sums do not depend on their order.
//
// SimTime is a moment, counted from the start of a simulation; Duration is a stretch of time. Neither is ever negative: the
// difference of two moments needs the later one first. Both end at 2^63 - 1 ps, about 106 days. A value outside this range or a
// NaN is a failed check; nothing wraps and nothing is clamped.
#pragma once

#include "sim/foundation/base/check.h"

#include <cmath>
#include <compare>
#include <cstdint>
#include <limits>

namespace specsim {

namespace detail {

[[noreturn]] void fail_time(const char* what, double value);

constexpr std::int64_t sum_ps(std::int64_t a, std::int64_t b) {
  std::int64_t sum = 0;
  if (__builtin_add_overflow(a, b, &sum)) [[unlikely]]
    fail_time("a sum of times overflows, ps", static_cast<double>(a) + static_cast<double>(b));
  return sum;
}

constexpr std::int64_t known_ps(std::int64_t ps) {
  if (ps < 0) [[unlikely]]
    fail_time("negative time, ps", static_cast<double>(ps));
  return ps;
}

}  // namespace detail

class Duration {
 public:
  constexpr Duration() = default;
  static constexpr Duration from_ps(std::int64_t ps) { return Duration(detail::known_ps(ps)); }
  // Rounds to the nearest picosecond; halves are rounded up.
  static Duration from_ps(double ps) {
    if (!(ps >= 0.0 && ps < 0x1.0p63)) [[unlikely]]
      detail::fail_time("not a duration, ps", ps);
    return Duration(std::llround(ps));
  }
  static Duration from_seconds(double seconds) { return from_ps(seconds * 1e12); }
  static constexpr Duration max() { return Duration(std::numeric_limits<std::int64_t>::max()); }

  [[nodiscard]] constexpr std::int64_t ps() const { return ps_; }
  [[nodiscard]] constexpr double seconds() const { return static_cast<double>(ps_) / 1e12; }

  friend constexpr auto operator<=>(Duration, Duration) = default;  // NOLINT(modernize-use-nullptr): misread by clang-tidy 14
  friend constexpr Duration operator+(Duration a, Duration b) { return Duration(detail::sum_ps(a.ps_, b.ps_)); }
  friend constexpr Duration operator-(Duration a, Duration b) { return from_ps(a.ps_ - b.ps_); }
  constexpr Duration& operator+=(Duration other) { return *this = *this + other; }

 private:
  constexpr explicit Duration(std::int64_t ps) : ps_(ps) {}
  std::int64_t ps_ = 0;
};

class SimTime {
 public:
  constexpr SimTime() = default;  // the start
  static constexpr SimTime from_ps(std::int64_t ps) { return SimTime(detail::known_ps(ps)); }
  static SimTime from_seconds(double seconds) { return SimTime(Duration::from_seconds(seconds).ps()); }
  static constexpr SimTime max() { return SimTime(std::numeric_limits<std::int64_t>::max()); }

  [[nodiscard]] constexpr std::int64_t ps() const { return ps_; }
  [[nodiscard]] constexpr double seconds() const { return static_cast<double>(ps_) / 1e12; }

  friend constexpr auto operator<=>(SimTime, SimTime) = default;  // NOLINT(modernize-use-nullptr): misread by clang-tidy 14
  friend constexpr SimTime operator+(SimTime a, Duration b) { return SimTime(detail::sum_ps(a.ps_, b.ps())); }
  friend constexpr Duration operator-(SimTime a, SimTime b) { return Duration::from_ps(a.ps_ - b.ps_); }

 private:
  constexpr explicit SimTime(std::int64_t ps) : ps_(ps) {}
  std::int64_t ps_ = 0;
};

}  // namespace specsim
