#include "sim/llm/law_classes.h"

#include <algorithm>
#include <numeric>

namespace specsim::llm {

LawClasses law_classes(std::span<const double> target, std::span<const double> draft, std::size_t tokens) {
  std::vector<std::size_t> order(target.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  tokens = std::min(tokens, order.size());
  const auto kept = order.begin() + static_cast<std::ptrdiff_t>(tokens);
  std::partial_sort(order.begin(), kept, order.end(),
                    [&](std::size_t a, std::size_t b) { return std::max(target[a], draft[a]) > std::max(target[b], draft[b]); });
  constexpr std::size_t kClasses = 4;
  LawClasses laws{std::vector<double>(tokens + kClasses, 0.0), std::vector<double>(tokens + kClasses, 0.0)};
  for (std::size_t i = 0; i < order.size(); ++i) {
    const double own = target[order[i]];
    const double drafted = draft[order[i]];
    const std::size_t place = i < tokens ? i
                                         : tokens + (own > 4.0 * drafted   ? 0U
                                                     : own > drafted       ? 1U
                                                     : own > drafted / 4.0 ? 2U
                                                                           : 3U);
    laws.target[place] += own;
    laws.draft[place] += drafted;
  }
  return laws;
}

}  // namespace specsim::llm
