#include "sim/hardware/placement/placement.h"

namespace specsim::placement {

// To add a placement, add one line here and one file in this folder.
#define SPECSIM_PLACEMENTS(X) X(plain) X(serial) X(shared) X(two_gpus) X(outcome_cache) X(network)

#define SPECSIM_DECLARE(name) PlacementEntry name##_placement();
SPECSIM_PLACEMENTS(SPECSIM_DECLARE)
#undef SPECSIM_DECLARE

config::Registry<PlacementEntry>& placements() {
#define SPECSIM_ENTRY(name) name##_placement(),
  static config::Registry<PlacementEntry> registry("placement", {SPECSIM_PLACEMENTS(SPECSIM_ENTRY)});
#undef SPECSIM_ENTRY
  return registry;
}

}  // namespace specsim::placement
