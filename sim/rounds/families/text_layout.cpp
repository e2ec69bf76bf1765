#include "sim/rounds/families/text_layout.h"

#include "sim/foundation/math/quantiles.h"

#include <cmath>

namespace specsim::families {

namespace {

// The median of part i of n equally likely parts of a normal distribution.
double middle_of(std::size_t i, std::size_t n) {
  return math::normal_quantile((static_cast<double>(i) + 0.5) / static_cast<double>(n));
}

// The medians of n parts vary less than the distribution. Multiplying them by this factor restores a variance of 1.
double pulled_apart(std::size_t n) {
  double squares = 0.0;
  for (std::size_t i = 0; i < n; ++i) squares += middle_of(i, n) * middle_of(i, n);
  return std::sqrt(static_cast<double>(n) / squares);
}

}  // namespace

TextLayout::TextLayout(double between_requests)
    : between_requests_(between_requests), kinds_(between_requests > 0.0 ? 4 : 1), places_(kContexts / kinds_ / stretches()) {}

std::vector<ContextScales> TextLayout::scales() const {
  const std::size_t levels = kParts * places_;
  const double of_request = std::sqrt(between_requests_);
  const double of_stretch = std::sqrt(1.0 - between_requests_) * pulled_apart(levels);
  std::vector<ContextScales> scales;
  for (std::size_t c = 0; c < kContexts; ++c) {
    const std::size_t place = c % places_;
    // Places are in one order for the target and in another for the draft, within a part.
    const std::size_t other = (21 * place + 3 * places_ / 4) % places_;
    const std::size_t open = stretch(c) / kParts * places_ + place;
    const std::size_t hard = stretch(c) % kParts * places_ + other;
    const double request_open = kind(c) / 2 == 0 ? -of_request : of_request;
    const double request_hard = kind(c) % 2 == 0 ? -of_request : of_request;
    scales.push_back({request_open + of_stretch * middle_of(open, levels), request_hard + of_stretch * middle_of(hard, levels)});
  }
  return scales;
}

std::vector<std::vector<double>> TextLayout::transition(double persistence) const {
  const auto of_stretch = static_cast<double>(places_);
  const double of_kind = of_stretch * static_cast<double>(stretches());
  std::vector<std::vector<double>> rows(kContexts, std::vector<double>(kContexts, 0.0));
  for (std::size_t from = 0; from < kContexts; ++from)
    for (std::size_t to = 0; to < kContexts; ++to)
      if (kind(from) == kind(to))
        rows[from][to] = (1.0 - persistence) / of_kind + (stretch(from) == stretch(to) ? persistence / of_stretch : 0.0);
  return rows;
}

}  // namespace specsim::families
