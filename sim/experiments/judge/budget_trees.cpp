#include "sim/experiments/judge/budget_trees.h"

#include "sim/experiments/judge/enumeration.h"
#include "sim/experiments/judge/method.h"

#include <utility>

namespace specsim::judge {

namespace {

class BudgetTrees final : public TreeEnumeration {
 public:
  BudgetTrees(BlockRounds rounds, TreeInState tree) : TreeEnumeration(std::move(rounds)), tree_(std::move(tree)) {}

 private:
  [[nodiscard]] theory::RoundKernel tree_kernel(const theory::Automaton& own) const override {
    return theory::chosen_kernel(own, {}, draft_length(*rounds().cell), [&](int state) { return tree_(own, state); });
  }

  TreeInState tree_;
};

std::string why_not_found(const BlockRounds& rounds) {
  if (std::string why = why_not_kept(rounds); !why.empty()) return why;
  if (std::string why = why_not_windows(rounds); !why.empty()) return why;
  return too_many_steps(rounds, steps_of(rounds) * rounds.drafter->nodes);
}

}  // namespace

Coverage enumerate_budget_trees(BlockRounds rounds, TreeInState tree) {
  std::string why = why_not_found(rounds);
  if (!why.empty()) return {nullptr, std::move(why)};
  return {std::make_unique<BudgetTrees>(std::move(rounds), std::move(tree)), ""};
}

int whole_argument(const spec::Cell& cell, const char* name) { return static_cast<int>(drafter_arguments(cell).integer(name)); }

}  // namespace specsim::judge
