// Helpers of the tests of transforms.
#pragma once

#include "sim/foundation/rng/address.h"
#include "sim/rounds/families/distribution.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace specsim::tests {

using families::DistributionAddress;

using Probabilities = std::vector<double>;

// Every statistical check below has a fixed seed and the bound 1e-6 on its p-value; |z| < 4.8916 is the same, two-sided.
inline constexpr double kLevel = 1e-6;
inline constexpr double kZ = 4.8916;

inline const rng::Key kKey = rng::make_key(20260430, rng::hash_text("law"));

struct Lcg {
  std::uint64_t state;
  double operator()() {
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    return static_cast<double>(state >> 11) * 0x1p-53;
  }
};

inline Probabilities normalised(Probabilities distribution) {
  long double sum = 0.0L;
  for (const double mass : distribution) sum += mass;
  for (double& mass : distribution) mass = static_cast<double>(mass / sum);
  return distribution;
}

inline Probabilities random_target(Lcg& lcg, std::size_t vocab, bool zeros) {
  Probabilities distribution(vocab);
  for (double& mass : distribution) mass = zeros && lcg() < 0.3 ? 0.0 : lcg() * lcg() + 1e-6;
  if (*std::max_element(distribution.begin(), distribution.end()) == 0.0) distribution[0] = 1.0;
  return normalised(distribution);
}

inline Probabilities zipf(std::size_t vocab, double exponent) {
  Probabilities distribution(vocab);
  for (std::size_t x = 0; x < vocab; ++x) distribution[x] = std::pow(static_cast<double>(x) + 1.0, -exponent);
  return normalised(distribution);
}

inline double overlap(const Probabilities& a, const Probabilities& b) {
  long double sum = 0.0L;
  for (std::size_t x = 0; x < a.size(); ++x) sum += std::min(a[x], b[x]);
  return static_cast<double>(sum);
}

inline double largest_difference(const Probabilities& a, const Probabilities& b) {
  double worst = 0.0;
  for (std::size_t x = 0; x < a.size(); ++x) worst = std::max(worst, std::abs(a[x] - b[x]));
  return worst;
}

inline bool is_distribution(const Probabilities& distribution) {
  long double sum = 0.0L;
  for (const double mass : distribution) {
    if (!(mass >= 0.0 && mass <= 1.0 + 1e-12)) return false;
    sum += mass;
  }
  return std::abs(static_cast<double>(sum) - 1.0) < 1e-12;
}

inline std::unique_ptr<families::Distribution> build(const std::string& yaml, std::size_t vocab, bool is_draft = true) {
  Diagnostics diagnostics;
  const config::Value value = config::parse_text(yaml, "test", diagnostics);
  families::DistributionBuilder builder(static_cast<int>(vocab), is_draft, diagnostics);
  auto distribution = builder.build(value, "distribution");
  diagnostics.throw_if_any();
  return distribution;
}

inline std::string refusal(const std::string& yaml, std::size_t vocab, bool is_draft) {
  try {
    static_cast<void>(build(yaml, vocab, is_draft));
  } catch (const BadInput& bad) {
    return bad.what();
  }
  return "";
}

inline Probabilities draw(const families::Distribution& distribution, const Probabilities& target, std::uint64_t context = 0,
                          rng::Key key = kKey) {
  Probabilities drawn(target.size(), -1.0);
  distribution.draw({key, context}, target, drawn);
  return drawn;
}

inline std::string from_target(const std::string& transform) { return "{from: target, transform: " + transform + "}"; }

}  // namespace specsim::tests
