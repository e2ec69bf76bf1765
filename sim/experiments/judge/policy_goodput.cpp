#include "sim/experiments/judge/cell_theory.h"
#include "sim/experiments/judge/method.h"

namespace specsim::judge {

namespace {

PolicyTheory goodput_theory(const char* name, bool alone) {
  return {{name, "the length with the most expected tokens per time, by a moving average of the rounds' alpha", "", {}, ""},
          [](const spec::Cell& cell) {
            const config::Arguments& own = policy_arguments(cell);
            const std::span<const double> times = policy_times(cell);
            return theory::goodput_rule(own.number("first_alpha"), own.number("weight"), static_cast<int>(own.integer("probe")),
                                        {times.begin(), times.end()});
          },
          {},
          alone};
}

}  // namespace

PolicyTheory goodput_policy_theory() { return goodput_theory("goodput", true); }

PolicyTheory goodput_per_sequence_policy_theory() { return goodput_theory("goodput_per_sequence", false); }

}  // namespace specsim::judge
