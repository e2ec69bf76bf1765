#include "sim/experiments/judge/cell_theory.h"
#include "sim/experiments/judge/method.h"

namespace specsim::judge {

PolicyTheory table_policy_theory() {
  return {{"table", "the same length in every round, by the size of the batch", "", {}, ""},
          [](const spec::Cell& cell) {
            int length = 0;
            for (const std::vector<double>& range : policy_arguments(cell).table("table"))
              if (range[0] <= batch(cell)) length = static_cast<int>(range[2]);
            return theory::LengthRule{{0.0, length, 0}, [](const theory::LengthMemory& memory, int, int) { return memory; }};
          },
          {}};
}

}  // namespace specsim::judge
