#include "sim/hardware/latency/cost_model.h"

namespace specsim::cost {

// To add a cost model, add one line here and one file in this folder.
#define SPECSIM_COSTS(X) X(ratio) X(affine) X(table) X(roofline)

#define SPECSIM_DECLARE(name) CostEntry name##_cost();
SPECSIM_COSTS(SPECSIM_DECLARE)
#undef SPECSIM_DECLARE

config::Registry<CostEntry>& cost_models() {
#define SPECSIM_ENTRY(name) name##_cost(),
  static config::Registry<CostEntry> registry("cost model", {SPECSIM_COSTS(SPECSIM_ENTRY)});
#undef SPECSIM_ENTRY
  return registry;
}

}  // namespace specsim::cost
