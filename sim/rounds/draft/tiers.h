// The draft lengths (tiers) that a policy chooses from, as a config gives them.
#pragma once

#include "sim/foundation/config/arguments.h"

#include <fmt/format.h>

#include <vector>

namespace specsim::draft {

// Checks the parameter `tiers`: integers that rise from `least` to at most `longest`. Returns false after reporting a mistake.
inline bool check_tiers(const config::Arguments& arguments, int least, int longest, Diagnostics& diagnostics) {
  double last = least - 1.0;
  for (const double tier : arguments.numbers("tiers")) {
    if (tier != static_cast<int>(tier) || tier > longest || tier <= last) {
      diagnostics.add(arguments.where("tiers"),
                      fmt::format("tiers has {}, allowed: increasing integers in [{}, {}], the drafter's draft_length", tier,
                                  least, longest));
      return false;
    }
    last = tier;
  }
  return true;
}

}  // namespace specsim::draft
