// What users are told where there is no theory, and which theories know a part.
#pragma once

#include "sim/experiments/judge/cell_theory.h"

#include <string>
#include <vector>

namespace specsim::judge {

// "no theory: ..."
std::string no_theory_text(const std::string& why);

// Something that has no theory, as a user knows it, and why.
struct Uncovered {
  std::string what;
  std::string why;
};

// A line for each reason, with the things that have no theory for it; "" for an empty list.
std::string no_theory_lines(const std::vector<Uncovered>& list);

// The cells that have no theory, as far as can be told before their distributions are drawn, and whose config does not say that
// it wants none.
std::vector<Uncovered> uncovered(const std::vector<const spec::Cell*>& cells);

// For `specsim describe`: which theories know the part, or that none does. `kind`: verifier, drafter or policy; for parts of
// other kinds the answer is "".
std::string theory_of_part(const std::string& kind, const std::string& name);

}  // namespace specsim::judge
