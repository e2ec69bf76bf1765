#include "sim/rounds/draft/joined_block.h"

#include "sim/foundation/math/simplex.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace specsim::draft {

JoinedBlock::JoinedBlock(int draft_length, double pass_rows, const Head& head)
    : TreeDrafter(path_of(draft_length), tokens::Siblings::independent), head_(head), pass_rows_(pass_rows) {
  shape_.joins = true;
  shape_.joins_whole = head.share == 1.0;
  shape_.joins_path = head.path;
  shape_.argmax = head.argmax;
  shape_.on_target_state = true;
}

// The bias is added to logits before they are normalised, so the result is a geometric mean. Tokens of probability 0 get the
// logit of the smallest normal number, since a bias is finite.
void JoinedBlock::join(std::span<const double> before, std::span<double> known) const {
  const std::size_t count = known.size();
  std::vector<std::size_t> left_out;
  if (head_.candidates > 0 && static_cast<std::size_t>(head_.candidates) < count) {
    left_out.resize(count);
    std::iota(left_out.begin(), left_out.end(), std::size_t{0});
    const auto end = left_out.begin() + head_.candidates;
    std::partial_sort(left_out.begin(), end, left_out.end(),
                      [&](std::size_t a, std::size_t b) { return before[a] != before[b] ? before[a] > before[b] : a < b; });
    left_out.erase(left_out.begin(), end);
  }
  if (head_.share == 0.0) {
    std::copy(before.begin(), before.end(), known.begin());
  } else if (head_.share < 1.0) {
    const auto logit = [](double p) { return std::log(std::max(p, std::numeric_limits<double>::min())); };
    for (std::size_t x = 0; x < count; ++x) known[x] = (1.0 - head_.share) * logit(before[x]) + head_.share * logit(known[x]);
    math::softmax(known);
    math::drop_subnormal(known);
  }
  if (left_out.empty()) return;
  for (const std::size_t x : left_out) known[x] = 0.0;
  // If the head leaves no candidate any probability, the distribution before the head is used.
  if (std::all_of(known.begin(), known.end(), [](double p) { return p == 0.0; })) {
    std::copy(before.begin(), before.end(), known.begin());
    for (const std::size_t x : left_out) known[x] = 0.0;
  }
  math::normalise(known);
}

BlockWork JoinedBlock::work(int nodes) const {
  if (nodes == 0) return {{}, 1.0};
  return {{pass_rows_}, 1.0 + nodes};
}

}  // namespace specsim::draft
