#include "sim/rounds/theory/joined_drafts.h"

#include "sim/foundation/base/index.h"
#include "sim/foundation/math/series.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace specsim::theory {

std::vector<double> biased_distribution(std::span<const double> before, std::span<const double> known, double share,
                                        double temperature, int candidates) {
  constexpr double kLeast = std::numeric_limits<double>::min();
  std::vector<double> joined(known.begin(), known.end());
  if (share == 0.0) joined.assign(before.begin(), before.end());
  if (share > 0.0 && share < 1.0)
    for (std::size_t x = 0; x < joined.size(); ++x)
      joined[x] = std::pow(std::max(before[x], kLeast), 1.0 - share) * std::pow(std::max(known[x], kLeast), share);
  if (candidates > 0 && index_of(candidates) < joined.size()) {
    // A candidate is a token that fewer than this many others exceed.
    for (std::size_t x = 0; x < joined.size(); ++x) {
      int better = 0;
      for (std::size_t y = 0; y < joined.size(); ++y)
        better += before[y] > before[x] || (before[y] == before[x] && y < x) ? 1 : 0;
      if (better >= candidates) joined[x] = 0.0;
    }
  }
  const auto top = std::max_element(joined.begin(), joined.end());
  if (temperature == 0.0) {
    const auto likeliest = top - joined.begin();
    std::fill(joined.begin(), joined.end(), 0.0);
    joined[static_cast<std::size_t>(likeliest)] = 1.0;
    return joined;
  }
  const double most = *top;
  math::CompensatedSum sum;
  for (double& p : joined) {
    p = std::pow(p / most, 1.0 / temperature);
    sum.add(p);
  }
  for (double& p : joined) p /= sum.value();
  return joined;
}

std::vector<std::vector<double>> joined_row(const JoinedBranches& branches, int draft_length, int start) {
  const std::size_t states = branches.front().size();
  std::vector<std::vector<double>> row(index_of(draft_length) + 1, std::vector<double>(states, 0.0));
  std::vector<double> drafting(states, 0.0);
  drafting[index_of(start)] = 1.0;
  for (std::size_t depth = 0; depth <= index_of(draft_length); ++depth) {
    std::vector<double> further(states, 0.0);
    std::vector<double> ended(states, 0.0);
    for (std::size_t s = 0; s < states; ++s) {
      if (drafting[s] == 0.0) continue;
      for (const JoinedBranch& own : branches[depth][s]) {
        const auto next = index_of(own.branch.next);
        if (depth == index_of(draft_length)) {  // the bonus token
          row[depth][next] += drafting[s] * own.branch.target;
          continue;
        }
        row[depth][next] += drafting[s] * (own.branch.target - own.kept);
        (own.ends ? ended : further)[next] += drafting[s] * own.kept;
      }
    }
    for (std::size_t s = 0; s < states; ++s)
      if (ended[s] > 0.0)
        for (const JoinedBranch& own : branches[depth + 1][s])
          row[depth + 1][index_of(own.branch.next)] += ended[s] * own.branch.target;
    drafting = std::move(further);
  }
  return row;
}

}  // namespace specsim::theory
