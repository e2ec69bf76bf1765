#include "sim/rounds/theory/outcome_cache.h"

#include "sim/foundation/base/check.h"

#include <algorithm>
#include <numeric>

namespace specsim::theory {

namespace {

std::vector<std::size_t> most_likely(std::span<const double> ranked, std::size_t count) {
  std::vector<std::size_t> order(ranked.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return ranked[a] > ranked[b]; });
  order.resize(std::min(count, order.size()));
  std::erase_if(order, [&](std::size_t x) { return !(ranked[x] > 0.0); });
  return order;
}

}  // namespace

PreparedPosition prepared_position(std::span<const double> target, std::span<const double> ranked,
                                   std::span<const double> drafted, std::size_t fan_out) {
  PreparedPosition position;
  double lost = 0.0;  // the mass of (drafted - target)+, equal to that of (target - drafted)+
  const auto more = [&](std::size_t x) { return std::max(target[x] - drafted[x], 0.0); };
  for (std::size_t x = 0; x < target.size(); ++x) lost += more(x);
  position.accepted = 1.0 - lost;
  if (!(lost > 0.0)) return position;
  const std::vector<std::size_t> order = most_likely(ranked, fan_out + 1);
  for (std::size_t x = 0; x < target.size(); ++x) {
    const double rejected = std::max(drafted[x] - target[x], 0.0);
    if (!(rejected > 0.0)) continue;
    double ready = 0.0;
    std::size_t prepared = 0;
    for (const std::size_t y : order) {
      if (y == x || prepared == fan_out) continue;
      ready += more(y);
      ++prepared;
    }
    position.ready_rejected += rejected * ready / lost;
  }
  return position;
}

double prepared_mass(std::span<const double> target, std::span<const double> ranked, std::size_t count) {
  double mass = 0.0;
  for (const std::size_t x : most_likely(ranked, count)) mass += target[x];
  return mass;
}

RoundKernel prepared_rounds(const std::vector<PreparedPosition>& chain, double ready_whole, double ready_alone,
                            bool drafts_again) {
  const auto length = static_cast<int>(chain.size());
  RoundKernel rounds(2, length);
  for (const int state : {0, 1}) {
    const auto end = [&](int accepted, double all, double ready) {
      rounds.at(accepted, state, 0) = ready;
      rounds.at(accepted, state, 1) = std::max(all - ready, 0.0);
    };
    if (state == 1 && !drafts_again) {
      end(0, 1.0, ready_alone);
      continue;
    }
    double reached = 1.0;
    for (int i = 0; i < length; ++i) {
      const PreparedPosition& position = chain[static_cast<std::size_t>(i)];
      end(i, reached * (1.0 - position.accepted), reached * position.ready_rejected);
      reached *= position.accepted;
    }
    end(length, reached, reached * ready_whole);
  }
  return rounds;
}

}  // namespace specsim::theory
