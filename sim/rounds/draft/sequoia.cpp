#include "sim/rounds/draft/sequoia.h"

#include "sim/foundation/base/check.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace specsim::draft {

namespace {
constexpr double kNo = -std::numeric_limits<double>::infinity();
}

SequoiaProgramme::SequoiaProgramme(std::span<const double> acceptance, int budget, int depth)
    : sizes_(static_cast<std::size_t>(budget) + 2), ranks_(acceptance.size()) {
  SPECSIM_CHECK(budget >= 1 && depth >= 1 && !acceptance.empty(), "budget {}, depth {}, {} ranks", budget, depth, ranks_);
  const auto levels = static_cast<std::size_t>(depth) + 1;
  best_.assign(levels * sizes_, {kNo, 0});
  share_.assign(levels * (ranks_ + 1) * sizes_, 0);
  for (std::size_t level = 0; level < levels; ++level) best_[level * sizes_ + 1] = {1.0, 0};
  std::vector<double> above(sizes_);
  std::vector<double> own(sizes_);
  for (int level = 1; level <= depth; ++level) {
    std::vector<double> child(sizes_);
    for (std::size_t size = 0; size < sizes_; ++size) child[size] = best(static_cast<int>(size), level - 1).value;
    Best* const bests = best_.data() + static_cast<std::size_t>(level) * sizes_;
    std::fill(above.begin(), above.end(), kNo);
    above[1] = 1.0;
    for (std::size_t b = 1; b <= ranks_; ++b) {
      std::fill(own.begin(), own.end(), kNo);
      std::uint16_t* const shares = share_.data() + at(static_cast<int>(b), 0, level);
      for (std::size_t size = b + 1; size < sizes_; ++size) {
        for (std::size_t last = 1; last + b <= size; ++last) {
          const double value = above[size - last] + acceptance[b - 1] * child[last];
          if (value > own[size]) {
            own[size] = value;
            shares[size] = static_cast<std::uint16_t>(last);
          }
        }
        if (own[size] > bests[size].value) bests[size] = {own[size], static_cast<int>(b)};
      }
      std::swap(above, own);
    }
  }
}

tokens::Tree SequoiaProgramme::tree(int nodes, int depth) const {
  tokens::Tree tree;
  // The subtree of each node of the tree: number of nodes including itself, and number of levels.
  std::vector<std::pair<int, int>> below = {{nodes + 1, depth}};
  SPECSIM_CHECK(best(nodes + 1, depth).value > kNo, "no tree of {} nodes on {} levels", nodes, depth);
  for (std::size_t parent = 0; parent < below.size(); ++parent) {
    const auto [size, levels] = below[parent];
    std::vector<int> sizes;
    int left = size;
    for (int children = best(size, levels).children; children > 0; --children) {
      sizes.push_back(share_[at(children, left, levels)]);
      left -= sizes.back();
    }
    std::reverse(sizes.begin(), sizes.end());
    for (std::size_t rank = 0; rank < sizes.size(); ++rank) {
      tree.add(static_cast<int>(parent), static_cast<int>(rank));
      below.emplace_back(sizes[rank], levels - 1);
    }
  }
  return tree;
}

}  // namespace specsim::draft
