// A chain's acceptance by depth where positions of a text resemble the ones before them, as context process `text` has it.
#pragma once

#include <array>
#include <cstddef>
#include <vector>

namespace specsim::fit {

// Mean acceptance in each kind of stretch: halves of what is open by halves of what is hard, all equally likely.
using StretchRates = std::array<double, 4>;

// [depth]: P(accepted, given that the one before is) of rounds that draft as many tokens as `by_depth` has entries. Each position
// lies in the stretch of the one before with probability `persistence`, else in any. Rounds begin where the one before ended,
// more often in hard stretches than positions lie there: the law of their beginnings is the one that a round leads back to.
std::vector<double> rates_along_text(const std::vector<StretchRates>& by_depth, double persistence);

}  // namespace specsim::fit
