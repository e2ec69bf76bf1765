// Whether a verifier can judge trees of a shape.
#pragma once

#include "sim/rounds/verify/verifier.h"

#include <string>

namespace specsim::verify {

// The reason why it cannot: "with ..., allowed: ..."; "" if it can.
[[nodiscard]] std::string why_not_tree(const Demands& demands, const tokens::Tree& tree);

}  // namespace specsim::verify
