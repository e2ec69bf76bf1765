// Acceptance that changes with the context: rates by position at a few context lengths, and between them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <vector>

namespace specsim::spec {

struct ContextRates {
  double context = 0.0;       // cached tokens of a sequence
  std::vector<double> rates;  // [position]: P(accepted, given that it is reached); later positions have the last rate
};

inline double rate_of_position(const std::vector<double>& rates, std::size_t position) {
  return rates[std::min(position, rates.size() - 1)];
}

// The rates at a context, for as many positions as the longest list has: linear in the context between two of the list, and the
// nearest outside it. `list`: at least one, contexts rising, no empty rates.
inline std::vector<double> rates_at(const std::vector<ContextRates>& list, double context) {
  const auto above = std::find_if(list.begin(), list.end(), [&](const ContextRates& one) { return one.context >= context; });
  if (above == list.begin()) return list.front().rates;
  if (above == list.end()) return list.back().rates;
  const ContextRates& low = *std::prev(above);
  const double share = (context - low.context) / (above->context - low.context);
  std::vector<double> rates(std::max(low.rates.size(), above->rates.size()));
  for (std::size_t i = 0; i < rates.size(); ++i)
    rates[i] = (1.0 - share) * rate_of_position(low.rates, i) + share * rate_of_position(above->rates, i);
  return rates;
}

}  // namespace specsim::spec
