// Whether a verifier judges trees of a shape.
#pragma once

#include "sim/rounds/verify/verifier.h"

#include <string>

namespace specsim::verify {

// Why it does not: "with ..., allowed: ..."; "" where it does.
[[nodiscard]] std::string why_not_tree(const Demands& demands, const tokens::Tree& tree);

}  // namespace specsim::verify
