#include "sim/judge/cell_theory.h"
#include "sim/judge/method.h"

namespace specsim::judge {

PolicyTheory goodput_policy_theory() {
  return {{"goodput", "the length of the largest expected tokens per time, by a moving average of the rounds' alpha", "", {}, ""},
          [](const spec::Cell& cell) {
            const config::Arguments& own = policy_arguments(cell);
            const std::span<const double> times = policy_times(cell);
            return theory::goodput_rule(own.number("first_alpha"), own.number("weight"), {times.begin(), times.end()});
          },
          {}};
}

}  // namespace specsim::judge
