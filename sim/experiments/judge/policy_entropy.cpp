#include "sim/experiments/judge/cell_theory.h"

namespace specsim::judge {

PolicyTheory entropy_policy_theory() {
  return {{"entropy", "drafting stops behind a token that was drawn from a distribution of high entropy", "", {}, ""},
          {},
          [](const config::Arguments& own, double /*probability*/, double entropy) { return entropy > own.number("most"); }};
}

}  // namespace specsim::judge
