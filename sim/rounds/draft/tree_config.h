// Trees as a config writes them, shared by the drafters that take one.
#pragma once

#include "sim/foundation/config/fields.h"
#include "sim/rounds/tokens/tree.h"

#include <optional>
#include <string>
#include <vector>

namespace specsim::draft {

constexpr int kMaxNodes = 1024;

// The shape of a tree: exactly one of the three is given.
struct TreeShape {
  std::vector<double> branching;
  std::vector<std::vector<double>> paths;
  std::vector<double> parents;
};
const config::Fields<TreeShape>& tree_shape_fields();

// The description of the parameter `siblings`.
std::string siblings_meaning();
config::Choices<tokens::Siblings> siblings_words();
template <class P>
config::Declaration<P> siblings_field(tokens::Siblings P::*siblings) {
  return {"siblings", siblings, siblings_meaning(), siblings_words()};
}

// The tree of the shape in `arguments`: exactly one of `branching`, `paths` and `parents`. nullopt after reporting.
std::optional<tokens::Tree> tree_of(const config::Arguments& arguments, const TreeShape& shape, tokens::Siblings siblings,
                                    Diagnostics& diagnostics);

}  // namespace specsim::draft
