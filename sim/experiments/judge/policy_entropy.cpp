#include "sim/experiments/judge/cell_theory.h"

namespace specsim::judge {

PolicyTheory entropy_policy_theory() {
  return {{"entropy", "drafting stops after a token drawn from a distribution with high entropy", "", {}, ""},
          {},
          [](const config::Arguments& own, double /*probability*/, double entropy) { return entropy > own.number("most"); }};
}

}  // namespace specsim::judge
