// Draft distributions whose overlap with the target is given, depth by depth.
#pragma once

#include <span>
#include <vector>

namespace specsim::draft {

// Moves `draft` until its overlap with the target, the sum of min(target, draft), is `overlap`: towards the target, or away from
// it along what the draft has too much of, and from there on to the target's least likely token. The least overlap is its
// probability.
void set_overlap(double overlap, std::span<const double> target, std::span<double> draft);

// list[min(depth, list.size() - 1)]; the list must not be empty.
double at_depth(const std::vector<double>& list, int depth);

}  // namespace specsim::draft
