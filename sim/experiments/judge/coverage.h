// Messages for cells without theory, and the list of theories that cover a part.
#pragma once

#include "sim/experiments/judge/cell_theory.h"

#include <string>
#include <vector>

namespace specsim::judge {

// "no theory: ..."
std::string no_theory_text(const std::string& why);

// A thing without theory, as the user names it, and the reason.
struct Uncovered {
  std::string what;
  std::string why;
};

// A line per reason, with the things that have no theory because of it; "" for an empty list.
std::string no_theory_lines(const std::vector<Uncovered>& list);

// The cells without theory, as far as this is known before their distributions are drawn. Omits cells whose config asks for no
// theory.
std::vector<Uncovered> uncovered(const std::vector<const spec::Cell*>& cells);

// For `specsim describe`: the theories that cover the part, or a statement that none does. `kind`: verifier, drafter or policy;
// "" for parts of other kinds.
std::string theory_of_part(const std::string& kind, const std::string& name);

}  // namespace specsim::judge
