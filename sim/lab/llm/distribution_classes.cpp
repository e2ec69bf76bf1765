#include "sim/lab/llm/distribution_classes.h"

#include "sim/foundation/math/simplex.h"

#include <algorithm>
#include <vector>

namespace specsim::llm {

DistributionClasses distribution_classes(std::span<const double> target, std::span<const double> draft, std::size_t tokens) {
  std::vector<double> larger(target.size());
  for (std::size_t x = 0; x < larger.size(); ++x) larger[x] = std::max(target[x], draft[x]);
  const std::vector<Token> alone = math::likeliest(larger, tokens);
  std::vector<std::size_t> place(target.size());
  constexpr std::size_t kClasses = 4;
  for (std::size_t x = 0; x < place.size(); ++x)
    place[x] = alone.size() + (target[x] > 4.0 * draft[x]   ? 0U
                               : target[x] > draft[x]       ? 1U
                               : target[x] > draft[x] / 4.0 ? 2U
                                                            : 3U);
  for (std::size_t i = 0; i < alone.size(); ++i) place[alone[i]] = i;
  DistributionClasses distributions{std::vector<double>(alone.size() + kClasses, 0.0),
                                    std::vector<double>(alone.size() + kClasses, 0.0)};
  for (std::size_t x = 0; x < place.size(); ++x) {
    distributions.target[place[x]] += target[x];
    distributions.draft[place[x]] += draft[x];
  }
  return distributions;
}

}  // namespace specsim::llm
