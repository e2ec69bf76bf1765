// The best tree if children are accepted by depth and rank.
#pragma once

#include "sim/rounds/tokens/tree.h"

#include <string>
#include <vector>

namespace specsim::draft {

// The mistake in acceptance[depth][rank], or "" if there is none. acceptance[depth][rank] is the probability that this child is
// the accepted one given that its parent is; rows sum to at most 1.
std::string acceptance_mistake(const std::vector<std::vector<double>>& acceptance);

// Which children a node may have.
enum class Ranks {
  any,    // of any ranks: for chosen tokens
  first,  // only after all elder siblings: for tokens drawn one after the other
};

// The tree with the most expected tokens with this many drafted nodes, fewer if the table has no more. Nodes are taken by the
// decreasing product along their path, together with their parents. With Ranks::first the tree is the best one if no row rises
// with the rank.
tokens::Tree rank_tree(const std::vector<std::vector<double>>& acceptance, int nodes, Ranks ranks);

}  // namespace specsim::draft
