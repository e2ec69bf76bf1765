#include "sim/rounds/draft/recycled.h"

#include <algorithm>

namespace specsim::draft {

tokens::Tree recycling_tree() {
  // Level by level, in the order of the parents.
  static const std::vector<std::vector<int>> paths = {{0},
                                                      {1},
                                                      {2},
                                                      {3},
                                                      {4},
                                                      {5},
                                                      {6},
                                                      {7},
                                                      {0, 0},
                                                      {0, 1},
                                                      {0, 2},
                                                      {0, 3},
                                                      {0, 4},
                                                      {0, 5},
                                                      {0, 6},
                                                      {0, 7},
                                                      {1, 0},
                                                      {1, 1},
                                                      {1, 2},
                                                      {1, 3},
                                                      {2, 0},
                                                      {2, 1},
                                                      {2, 2},
                                                      {3, 0},
                                                      {3, 1},
                                                      {4, 0},
                                                      {5, 0},
                                                      {6, 0},
                                                      {7, 0},
                                                      {0, 0, 0},
                                                      {0, 0, 1},
                                                      {0, 0, 2},
                                                      {0, 0, 3},
                                                      {0, 0, 4},
                                                      {0, 0, 5},
                                                      {0, 0, 6},
                                                      {0, 0, 7},
                                                      {0, 1, 0},
                                                      {0, 1, 1},
                                                      {0, 1, 2},
                                                      {0, 2, 0},
                                                      {0, 2, 1},
                                                      {0, 3, 0},
                                                      {0, 4, 0},
                                                      {0, 5, 0},
                                                      {0, 6, 0},
                                                      {0, 7, 0},
                                                      {1, 0, 0},
                                                      {1, 0, 1},
                                                      {1, 1, 0},
                                                      {2, 0, 0},
                                                      {3, 0, 0},
                                                      {4, 0, 0},
                                                      {5, 0, 0},
                                                      {0, 0, 0, 0},
                                                      {0, 0, 0, 1},
                                                      {0, 0, 0, 2},
                                                      {0, 0, 0, 3},
                                                      {0, 0, 0, 4},
                                                      {0, 0, 1, 0},
                                                      {0, 0, 1, 1},
                                                      {0, 0, 2, 0},
                                                      {0, 0, 3, 0},
                                                      {0, 0, 4, 0},
                                                      {0, 1, 0, 0},
                                                      {0, 2, 0, 0},
                                                      {1, 0, 0, 0},
                                                      {2, 0, 0, 0},
                                                      {3, 0, 0, 0},
                                                      {0, 0, 0, 0, 0},
                                                      {0, 0, 0, 0, 1},
                                                      {0, 0, 0, 0, 2},
                                                      {0, 0, 0, 1, 0},
                                                      {0, 0, 0, 2, 0},
                                                      {0, 0, 1, 0, 0},
                                                      {0, 1, 0, 0, 0},
                                                      {1, 0, 0, 0, 0},
                                                      {0, 0, 0, 0, 0, 0},
                                                      {0, 0, 0, 0, 0, 1},
                                                      {0, 0, 0, 1, 0, 0}};
  tokens::Tree tree;
  std::map<std::vector<int>, int> nodes = {{{}, 0}};
  for (const std::vector<int>& path : paths) {
    const std::vector<int> above(path.begin(), path.end() - 1);
    nodes[path] = tree.add(nodes.at(above), path.back());
  }
  return tree;
}

void recycled_tree(const tokens::Tree& tree, const RecycledMemory& memory, Token last, ChosenBlock& block) {
  constexpr int kLeftOut = -1;
  std::vector<int> place(tree.nodes.size(), kLeftOut);  // [node of the tree]: its node in the block
  place[0] = 0;
  for (std::size_t node = 1; node < tree.nodes.size(); ++node) {
    const tokens::Tree::Node& own = tree.nodes[node];
    const int parent = place[static_cast<std::size_t>(own.parent)];
    if (parent == kLeftOut) continue;
    const auto kept = memory.likeliest.find(parent == 0 ? last : block.tokens[static_cast<std::size_t>(parent)]);
    if (kept == memory.likeliest.end() || kept->second.size() <= static_cast<std::size_t>(own.rank)) continue;
    place[node] = block.add(parent, kept->second[static_cast<std::size_t>(own.rank)], own.rank);
  }
}

void recycle(DrafterInput& input, const ChosenBlock& block, RecycledMemory& memory) {
  std::vector<DrafterInput::Prefix> prefixes = {input.end_of_text()};
  const auto keep = [&](Token token, DrafterInput::Prefix prefix) {
    const std::span<const Token> likeliest = input.target_likeliest(prefix);
    memory.likeliest[token].assign(likeliest.begin(), likeliest.end());
  };
  if (const std::span<const Token> text = input.text(); !text.empty()) keep(text.back(), prefixes.front());
  for (std::size_t node = 1; node < block.tree.nodes.size(); ++node) {
    const DrafterInput::Prefix above = prefixes[static_cast<std::size_t>(block.tree.nodes[node].parent)];
    keep(block.tokens[node], prefixes.emplace_back(input.after(above, block.tokens[node])));
  }
}

}  // namespace specsim::draft
