#include "sim/experiments/spec/acceptance_lengths.h"

#include "sim/foundation/base/token.h"
#include "sim/foundation/config/arguments.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <cstddef>
#include <optional>

namespace specsim::spec {

namespace {

using config::Value;

std::vector<Value> items_of(const Value& value) { return value.is_list() ? value.items : std::vector<Value>{value}; }

// The rate of each of `positions` further positions, given that the first is reached with `reached` and they add `gain` tokens.
double rate_for(double gain, double reached, int positions) {
  constexpr int kSteps = 60;
  double low = 0.0;
  double high = 1.0;
  for (int step = 0; step < kSteps; ++step) {
    const double rate = 0.5 * (low + high);
    double sum = 0.0;
    double share = reached;
    for (int i = 0; i < positions; ++i) sum += share *= rate;
    (sum < gain ? low : high) = rate;
  }
  return 0.5 * (low + high);
}

}  // namespace

LengthRates rates_of_lengths(const Value& lengths, const std::string& key, const Value& draft_lengths, bool drafted_only) {
  const std::vector<Value> means = items_of(lengths);
  const std::vector<Value> drafted = items_of(draft_lengths);
  if (means.empty() || means.size() != drafted.size())
    throw BadInput(draft_lengths.where, fmt::format("draft_length has {} entries and {} has {}, allowed: one for each",
                                                    drafted.size(), key, means.size()));
  const config::Interval allowed = config::between(1, kMaxDraftLength);
  const double own = drafted_only ? 0.0 : 1.0;  // the target's token
  LengthRates result;
  std::vector<std::string> from;
  int before = 0;
  double accepted_before = 0.0;
  double reached = 1.0;
  for (std::size_t i = 0; i < means.size(); ++i) {
    const std::optional<double> length = config::as_number(drafted[i]);
    if (!length || !allowed.contains(*length) || *length != std::floor(*length) || *length <= before)
      throw BadInput(drafted[i].where,
                     fmt::format("draft_length is {}, allowed: an integer in [1, {}]{}", config::description_of_found(drafted[i]),
                                 kMaxDraftLength, before > 0 ? fmt::format(" above the one before, {}", before) : ""));
    const std::optional<double> mean = config::as_number(means[i]);
    if (!mean || !config::between(own, *length + own).contains(*mean))
      throw BadInput(means[i].where, fmt::format("{} is {}, allowed at draft length {}: a number in [{}, {}] (the target's own "
                                                 "token is {})",
                                                 key, config::description_of_found(means[i]), *length, own, *length + own,
                                                 drafted_only ? "not counted" : "counted"));
    const int positions = static_cast<int>(*length) - before;
    const double gain = *mean - own - accepted_before;
    constexpr double kRounding = 0.005;  // figures are printed with two digits
    if (gain < -kRounding || gain > reached * positions + kRounding)
      throw BadInput(means[i].where,
                     fmt::format("{} {} at draft length {} follows {:g} at {}, allowed: {:g} to {:.4g}, since position {} is "
                                 "accepted in a share of {:.4g}",
                                 key, config::description_of_found(means[i]), *length, accepted_before + own, before,
                                 accepted_before + own, accepted_before + own + reached * positions, before, reached));
    const double rate = reached > 0.0 ? rate_for(gain, reached, positions) : 0.0;
    for (int position = 0; position < positions; ++position) {
      result.rates.push_back(rate);
      reached *= rate;
    }
    before = static_cast<int>(*length);
    accepted_before = *mean - own;
    from.push_back(fmt::format("{:g} at draft length {}", *mean, before));
  }
  result.from = fmt::format("from mean tokens per round, with the target's own token {}: {}{}",
                            drafted_only ? "not counted" : "counted", fmt::join(from, ", "),
                            result.rates.size() > means.size() ? "; depths in between are assumed to have equal rates" : "");
  return result;
}

}  // namespace specsim::spec
