// Trees chosen at run time by the draft's probabilities: OPT-Tree's, SpecExec's and Recurrent Drafter's beams.
#include "sim/judge/enumeration.h"
#include "sim/judge/method.h"
#include "sim/theory/budget_trees.h"

namespace specsim::judge {

namespace {

class BudgetTrees final : public TreeEnumeration {
 public:
  using TreeEnumeration::TreeEnumeration;

 private:
  [[nodiscard]] theory::RoundKernel tree_kernel(const theory::Automaton& own) const override {
    const spec::Cell& cell = *rounds().cell;
    const config::Arguments& drafter = drafter_arguments(cell);
    const auto whole = [&](const char* name) { return static_cast<int>(drafter.integer(name)); };
    const std::string& name = drafter_name(cell);
    return theory::chosen_kernel(own, {}, draft_length(cell), [&](int state) {
      if (name == "redrafter") return theory::beam_tree(own, state, whole("beams"), whole("draft_length"));
      if (name == "opt_tree")
        return theory::opt_tree(own, state, whole("nodes"), drafter.number("threshold"), whole("max_depth") - 1);
      return theory::likeliest_paths(own, state, whole("budget"), whole("max_depth"), whole("width"), drafter.number("decay"));
    });
  }
};

std::string why_not_found(const BlockRounds& rounds) {
  const spec::Cell& cell = *rounds.cell;
  if (drafter_name(cell) == "spec_exec") {
    const config::Arguments& drafter = drafter_arguments(cell);
    if (drafter.integer("beams") < drafter.integer("budget"))
      return "with fewer beams than budget the tree hangs on the order of the search, and theory is of the likeliest paths";
  }
  if (std::string why = why_not_kept(rounds); !why.empty()) return why;
  if (std::string why = why_not_windows(rounds); !why.empty()) return why;
  return too_many_steps(rounds, steps_of(rounds) * rounds.drafter->nodes);
}

}  // namespace

TheoryEntry budget_tree_theory() {
  return {{"budget_tree",
           "the likeliest paths of the draft for a budget of nodes, by every context that a round can start from",
           "Wang et al. (OPT-Tree), arXiv 2406.17276; Svirschevski et al. (SpecExec), arXiv 2406.02532; Zhang et al. (Recurrent "
           "Drafter), arXiv 2403.09919",
           {},
           ""},
          {"tree_point_mass", "greedy_tree"},
          {"opt_tree", "spec_exec", "redrafter"},
          [](const spec::Cell& cell) -> Coverage {
            BlockRounds rounds(cell);
            std::string why = why_not_found(rounds);
            if (!why.empty()) return {nullptr, std::move(why)};
            return {std::make_unique<BudgetTrees>(std::move(rounds)), ""};
          }};
}

}  // namespace specsim::judge
