#include "sim/experiments/judge/cell_theory.h"

namespace specsim::judge {

PolicyTheory confidence_policy_theory() {
  return {{"confidence", "drafting stops after a token that the draft considers unlikely", "", {}, ""},
          {},
          [](const config::Arguments& own, double probability, double /*entropy*/) { return probability < own.number("least"); }};
}

}  // namespace specsim::judge
