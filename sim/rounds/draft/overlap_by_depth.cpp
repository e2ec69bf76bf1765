#include "sim/rounds/draft/overlap_by_depth.h"

#include <algorithm>
#include <vector>

namespace specsim::draft {

double at_depth(const std::vector<double>& list, int depth) {
  return list[std::min(static_cast<std::size_t>(depth), list.size() - 1)];
}

namespace {

double overlap_of(std::span<const double> target, std::span<const double> draft) {
  double sum = 0.0;
  for (std::size_t x = 0; x < draft.size(); ++x) sum += std::min(target[x], draft[x]);
  return sum;
}

// Moves `draft` towards `end` until its overlap, which is above `overlap`, falls to it; to `end` itself where that overlaps more.
// The overlap is concave along the way, so that it is met once at the most.
void lower_overlap(double overlap, std::span<const double> target, std::span<const double> end, std::span<double> draft) {
  const std::vector<double> start(draft.begin(), draft.end());
  const auto move = [&](double share) {
    for (std::size_t x = 0; x < draft.size(); ++x) draft[x] = (1.0 - share) * start[x] + share * end[x];
  };
  double low = 0.0;
  double high = 1.0;
  constexpr int kHalvings = 60;
  for (int i = 0; i < kHalvings; ++i) {
    const double middle = 0.5 * (low + high);
    move(middle);
    (overlap_of(target, draft) > overlap ? low : high) = middle;
  }
  move(high);
}

}  // namespace

void set_overlap(double overlap, std::span<const double> target, std::span<double> draft) {
  double variation = 0.0;  // 1 - the overlap that there is
  for (std::size_t x = 0; x < draft.size(); ++x) variation += std::max(draft[x] - target[x], 0.0);
  if (overlap >= 1.0 - variation) {
    if (!(variation > 0.0)) return;
    // A share s of the target leaves (1 - s) of the variation.
    const double share = 1.0 - (1.0 - overlap) / variation;
    for (std::size_t x = 0; x < draft.size(); ++x) draft[x] += share * (target[x] - draft[x]);
    return;
  }
  // First along what the draft has too much of. Of a draft that is all but the target that is rounding, and no direction.
  constexpr double kRounding = 1e-9;
  std::vector<double> end(draft.size(), 0.0);
  if (variation > kRounding) {
    for (std::size_t x = 0; x < draft.size(); ++x) end[x] = std::max(draft[x] - target[x], 0.0) / variation;
    lower_overlap(overlap, target, end, draft);
    if (overlap_of(target, end) <= overlap) return;
  }
  // Then to the token that the target believes in least.
  std::fill(end.begin(), end.end(), 0.0);
  end[static_cast<std::size_t>(std::min_element(target.begin(), target.end()) - target.begin())] = 1.0;
  lower_overlap(overlap, target, end, draft);
}

}  // namespace specsim::draft
