#include "sim/draft/overlap_by_depth.h"

#include <algorithm>

namespace specsim::draft {

config::Parameter acceptance_parameter() {
  return {"acceptance",
          config::Type::number_list,
          "",
          "how likely a drawn token is accepted at depth 1, 2, ..., given that all before it are; the last one holds beyond",
          config::between(0, 1),
          {}};
}

double at_depth(const std::vector<double>& list, int depth) {
  return list[std::min(static_cast<std::size_t>(depth), list.size() - 1)];
}

void set_overlap(double overlap, std::span<const double> target, std::span<double> draft) {
  double variation = 0.0;  // 1 - the overlap that there is
  for (std::size_t x = 0; x < draft.size(); ++x) variation += std::max(draft[x] - target[x], 0.0);
  if (!(variation > 0.0)) return;
  if (overlap >= 1.0 - variation) {
    // A share s of the target leaves (1 - s) of the variation.
    const double share = 1.0 - (1.0 - overlap) / variation;
    for (std::size_t x = 0; x < draft.size(); ++x) draft[x] += share * (target[x] - draft[x]);
    return;
  }
  // A share t of (draft - target)+, normalised: the overlap falls with it.
  const auto moved = [&](double t, std::size_t x) {
    return (1.0 - t) * draft[x] + t * std::max(draft[x] - target[x], 0.0) / variation;
  };
  const auto overlap_at = [&](double t) {
    double sum = 0.0;
    for (std::size_t x = 0; x < draft.size(); ++x) sum += std::min(target[x], moved(t, x));
    return sum;
  };
  double low = 0.0;
  double high = 1.0;
  constexpr int kHalvings = 60;
  for (int i = 0; i < kHalvings; ++i) {
    const double middle = 0.5 * (low + high);
    (overlap_at(middle) > overlap ? low : high) = middle;
  }
  for (std::size_t x = 0; x < draft.size(); ++x) draft[x] = moved(high, x);
}

}  // namespace specsim::draft
