#include "sim/rounds/draft/tree_drafter.h"

#include <algorithm>

namespace specsim::draft {

tokens::Tree path_of(int length) {
  tokens::Tree tree;
  for (int i = 0; i < length; ++i) tree.add(i, 0);
  return tree;
}

TreeDrafter::TreeDrafter(tokens::Tree tree, tokens::Siblings siblings) : tree_(std::move(tree)) {
  shape_.siblings = siblings;
  shape_.draft_length = tree_.height();
  shape_.nodes = tree_.drafted();
  if (siblings == tokens::Siblings::point_mass)
    for (const tokens::Tree::Node& node : tree_.nodes) shape_.ranks = std::max(shape_.ranks, node.rank + 1);
  if (siblings == tokens::Siblings::hub) shape_.ranks = 1;
}

BlockWork TreeDrafter::work(int nodes) const {
  // The pass of a level extends the parents that were drafted; nodes are numbered level by level.
  BlockWork work{std::vector<double>(static_cast<std::size_t>(tree_.height()), 0.0), 1.0 + nodes};
  for (int i = 0; i < static_cast<int>(tree_.nodes.size()); ++i) {
    const tokens::Tree::Node& node = tree_.nodes[static_cast<std::size_t>(i)];
    if (node.children > 0 && node.first_child <= nodes) work.pass_rows[static_cast<std::size_t>(node.depth)] += 1.0;
  }
  while (!work.pass_rows.empty() && work.pass_rows.back() == 0.0) work.pass_rows.pop_back();
  return work;
}

}  // namespace specsim::draft
