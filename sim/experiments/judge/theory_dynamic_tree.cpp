// EAGLE-2's trees, which grow where the draft is confident.
#include "sim/experiments/judge/enumeration.h"
#include "sim/experiments/judge/method.h"
#include "sim/rounds/theory/budget_trees.h"

namespace specsim::judge {

namespace {

class DynamicTrees final : public TreeEnumeration {
 public:
  using TreeEnumeration::TreeEnumeration;

 private:
  [[nodiscard]] theory::RoundKernel tree_kernel(const theory::Automaton& own) const override {
    const config::Arguments& drafter = drafter_arguments(*rounds().cell);
    const int depth = draft_length(*rounds().cell);
    return theory::chosen_kernel(own, {}, depth, [&](int state) {
      return theory::dynamic_tree(own, state, depth, static_cast<int>(drafter.integer("width")),
                                  static_cast<int>(drafter.integer("nodes")));
    });
  }
};

std::string why_not_grown(const BlockRounds& rounds) {
  if (std::string why = why_not_kept(rounds); !why.empty()) return why;
  if (std::string why = why_not_windows(rounds); !why.empty()) return why;
  return too_many_steps(rounds, steps_of(rounds));
}

}  // namespace

TheoryEntry dynamic_tree_theory() {
  return {{"dynamic_tree",
           "the likeliest nodes of the draft's likeliest paths, by every context that a round can start from",
           "Li et al. (EAGLE-2), arXiv 2406.16858",
           {},
           ""},
          {"tree_point_mass", "greedy_tree"},
          {"tree_dynamic", "eagle3"},
          [](const spec::Cell& cell) -> Coverage {
            BlockRounds rounds(cell);
            std::string why = why_not_grown(rounds);
            if (!why.empty()) return {nullptr, std::move(why)};
            return {std::make_unique<DynamicTrees>(std::move(rounds)), ""};
          }};
}

}  // namespace specsim::judge
