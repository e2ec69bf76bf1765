#include "sim/experiments/judge/cell_theory.h"
#include "sim/experiments/judge/method.h"

namespace specsim::judge {

PolicyTheory additive_policy_theory() {
  return {{"additive", "more tokens after full acceptance, else fewer", "", {}, ""},
          [](const spec::Cell& cell) {
            const config::Arguments& own = policy_arguments(cell);
            return theory::additive_rule(static_cast<int>(own.integer("first")), static_cast<int>(own.integer("up")),
                                         static_cast<int>(own.integer("down")), draft_length(cell));
          },
          {}};
}

}  // namespace specsim::judge
