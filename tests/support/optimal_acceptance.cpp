#include "tests/support/optimal_acceptance.h"

#include "sim/foundation/base/check.h"
#include "sim/foundation/math/series.h"
#include "sim/rounds/theory/bounds.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <vector>

namespace specsim::theory {

double optimal_acceptance_without_replacement(std::span<const double> target, std::span<const double> draft, int drafts) {
  (void)overlap(target, draft);  // throws unless both are distributions of one size
  SPECSIM_CHECK(drafts >= 1, "drafts = {}", drafts);
  const std::size_t vocab = target.size();
  SPECSIM_CHECK(vocab <= 16, "vocabulary {} is too large for every subset", vocab);
  const auto support = std::count_if(draft.begin(), draft.end(), [](double share) { return share > 0.0; });
  const int size = static_cast<int>(std::min<std::ptrdiff_t>(drafts, support));
  const std::size_t sets = std::size_t{1} << vocab;
  std::vector<double> drawn(sets, 0.0);  // P(the first |S| drafts are the set S)
  drawn[0] = 1.0;
  double least = 0.0;
  for (std::size_t set = 0; set < sets; ++set) {
    double left = 0.0;
    double target_mass = 0.0;
    const auto members = std::popcount(set);
    for (std::size_t x = 0; x < vocab; ++x) {
      if (((set >> x) & 1U) == 0) {
        left += draft[x];
      } else {
        target_mass += target[x];
      }
    }
    if (members < size) {
      for (std::size_t x = 0; x < vocab; ++x) {
        if (((set >> x) & 1U) == 0 && draft[x] > 0.0) drawn[set | (std::size_t{1} << x)] += drawn[set] * draft[x] / left;
      }
    }
    if (members < size) continue;
    math::CompensatedSum inside;  // P(all drafts in the set)
    for (std::size_t subset = set; subset > 0; subset = (subset - 1) & set) {
      if (std::popcount(subset) == size) inside += drawn[subset];
    }
    least = std::min(least, target_mass - inside.value());
  }
  return 1.0 + least;
}

}  // namespace specsim::theory
