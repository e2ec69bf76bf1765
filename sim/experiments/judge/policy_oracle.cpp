#include "sim/experiments/judge/cell_theory.h"

namespace specsim::judge {

PolicyTheory oracle_policy_theory() { return {{"oracle", "rounds go as without a policy", "", {}, ""}, {}, {}}; }

}  // namespace specsim::judge
