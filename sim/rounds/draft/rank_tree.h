// The best tree for children that are accepted by depth and rank.
#pragma once

#include "sim/rounds/tokens/tree.h"

#include <string>
#include <vector>

namespace specsim::draft {

// The mistake in acceptance[depth][rank], or "" if there is none. acceptance[depth][rank] is the probability that this child is
// the accepted one given that its parent is; rows sum to at most 1.
std::string mistake_in_acceptance(const std::vector<std::vector<double>>& acceptance);

// Which children a node may have.
enum class Ranks {
  any,    // those of any ranks: tokens that are chosen
  first,  // none without its elder siblings: tokens that are drawn one after the other
};

// The tree of most expected tokens with so many drafted nodes, fewer where the table has no more: nodes by falling product along
// their path, which take their parents along. With Ranks::first it is the best where no row rises with the rank.
tokens::Tree rank_tree(const std::vector<std::vector<double>>& acceptance, int nodes, Ranks ranks);

}  // namespace specsim::draft
