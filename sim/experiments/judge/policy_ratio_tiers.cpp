#include "sim/experiments/judge/cell_theory.h"
#include "sim/experiments/judge/method.h"

namespace specsim::judge {

PolicyTheory ratio_tiers_policy_theory() {
  return {{"ratio_tiers", "tiers of lengths by a moving average of accepted / drafted", "", {}, ""},
          [](const spec::Cell& cell) {
            const config::Arguments& own = policy_arguments(cell);
            std::vector<int> tiers;
            for (const double tier : own.numbers("tiers")) tiers.push_back(static_cast<int>(tier));
            return theory::ratio_tiers_rule(std::move(tiers), own.number("weight"), own.number("up"), own.number("down"));
          },
          {}};
}

}  // namespace specsim::judge
