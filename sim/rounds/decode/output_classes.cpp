#include "sim/rounds/decode/output_classes.h"

#include "sim/foundation/math/simplex.h"

#include <algorithm>
#include <array>
#include <numeric>

namespace specsim::decode {

namespace {

// Upper edges of draft/target; finer near 1, where most of the mass of a good draft lies.
constexpr std::array<double, kRatioBins - 1> kEdges = {0.05, 0.2,  0.4,  0.6, 0.75, 0.88, 0.96, 1.0,
                                                       1.04, 1.12, 1.25, 1.5, 2.0,  3.0,  6.0};

int ratio_bin(double target, double draft) {
  if (!(target > 0.0)) return kImpossible;
  const double ratio = draft / target;
  return static_cast<int>(std::upper_bound(kEdges.begin(), kEdges.end(), ratio) - kEdges.begin());
}

}  // namespace

OutputClasses output_classes(std::span<const double> target, std::span<const double> draft, bool with_top_tokens) {
  const std::size_t vocab = target.size();
  OutputClasses classes;
  classes.of_token.resize(vocab);
  for (std::size_t x = 0; x < vocab; ++x) classes.of_token[x] = static_cast<std::uint16_t>(ratio_bin(target[x], draft[x]));
  std::vector<Token> top;
  if (with_top_tokens)
    for (const Token x : math::likeliest(target, kTopTokens))
      if (target[x] > 0.0) top.push_back(x);
  classes.count = kFirstTopToken + static_cast<int>(top.size());
  classes.bin_of_class.resize(static_cast<std::size_t>(classes.count));
  std::iota(classes.bin_of_class.begin(), classes.bin_of_class.begin() + kFirstTopToken, std::uint8_t{0});
  for (std::size_t i = 0; i < top.size(); ++i) {
    const std::size_t at = kFirstTopToken + i;
    classes.bin_of_class[at] = static_cast<std::uint8_t>(classes.of_token[top[i]]);
    classes.of_token[top[i]] = static_cast<std::uint16_t>(at);
  }
  classes.target_mass.assign(static_cast<std::size_t>(classes.count), 0.0);
  classes.draft_mass.assign(static_cast<std::size_t>(classes.count), 0.0);
  for (std::size_t x = 0; x < vocab; ++x) {
    classes.target_mass[classes.of_token[x]] += target[x];
    classes.draft_mass[classes.of_token[x]] += draft[x];
  }
  return classes;
}

}  // namespace specsim::decode
