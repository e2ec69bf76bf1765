// A gain with its error, and the one rule by which every command states it.
#pragma once

#include <string>

namespace specsim::plan {

// The gain of one way to decode over another: the logarithm of the ratio of their speeds, normal with this standard error.
struct Gain {
  double logarithm = 0.0;
  double error = 0.0;
  // The ratio, and the bounds of its 95 % interval.
  [[nodiscard]] double ratio() const;
  [[nodiscard]] double low() const;
  [[nodiscard]] double high() const;
  // Probability that the ratio is above 1.
  [[nodiscard]] double pays() const;
};

enum class Verdict { pays, does_not_pay, too_close };
// "pays" and "does not pay" require this probability.
constexpr double kSure = 0.95;
Verdict verdict_of(const Gain& gain);
// "pays", "does not pay", or "too close to call: P(pays) = 0.71, expected gain 4 %".
std::string verdict_text(const Gain& gain);

}  // namespace specsim::plan
