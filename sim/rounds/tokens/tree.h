// The draft of a round is a tree of tokens. Node 0 is the text so far; a node's children are tokens that may follow it. Parents
// come before children. Siblings are neighbours, in the order in which they were drawn. A chain is a tree.
#pragma once

#include <cstddef>
#include <vector>

namespace specsim::tokens {

// How siblings are chosen.
enum class Siblings {
  independent,          // drawn from the draft's distribution, with replacement
  without_replacement,  // drawn from it one after the other, each without its elder siblings
  // The first is drawn from the draft. The second is the draft's likeliest token (ties: the lowest); if the first is that token,
  // the second is drawn without it.
  hub,
  point_mass,  // chosen by a rule: the draft's likeliest tokens, a token found in the text
};

struct Tree {
  struct Node {
    int parent = -1;  // -1: this is the root
    int depth = 0;    // 0: this is the root
    int rank = 0;     // among its siblings; for a point mass, its place in the draft's order of likelihood
    int first_child = 0;
    int children = 0;
  };
  std::vector<Node> nodes = {Node()};  // the root first

  [[nodiscard]] int drafted() const { return static_cast<int>(nodes.size()) - 1; }
  [[nodiscard]] int height() const { return nodes.back().depth; }  // breadth first: the last node is one of the deepest
  [[nodiscard]] bool is_chain() const { return height() == drafted(); }
  // Appends a child; returns its index. Call in breadth-first order: all children of a node in a row, nodes in the order of their
  // parents.
  int add(int parent, int rank);
};

}  // namespace specsim::tokens
