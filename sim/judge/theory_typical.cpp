// Typical acceptance: on chains by the masses that it admits, on trees by every drafted tree.
#include "sim/base/index.h"
#include "sim/judge/enumeration.h"
#include "sim/judge/method.h"
#include "sim/judge/tree_walk.h"
#include "sim/theory/lossy.h"

#include <algorithm>
#include <cmath>

namespace specsim::judge {

namespace {

class TypicalTrees final : public TreeEnumeration {
 public:
  explicit TypicalTrees(BlockRounds rounds)
      : TreeEnumeration(std::move(rounds)),
        epsilon_(verifier_arguments(*this->rounds().cell).number("epsilon")),
        delta_(verifier_arguments(*this->rounds().cell).number("delta")) {}

 private:
  [[nodiscard]] theory::RoundKernel tree_kernel(const theory::Automaton& own) const override {
    return theory::typical_kernel(own, rounds().tree, sampling_of(rounds().drafter->siblings), epsilon_, delta_);
  }
  [[nodiscard]] theory::RoundKernel round_kernel(int draft_length, int context, double& error) const override {
    if (rounds().drafter->from_root && context < 0 && !transition().empty())
      return theory::typical_guess_kernel(automaton(context), transition(), rounds().tree, epsilon_, delta_);
    return TreeEnumeration::round_kernel(draft_length, context, error);
  }

  double epsilon_;
  double delta_;
};

std::string why_not_enumerated(const BlockRounds& rounds) {
  if (std::string why = why_not_kept(rounds); !why.empty()) return why;
  if (std::string why = why_not_windows(rounds); !why.empty()) return why;
  const bool guesses = rounds.drafter->from_root;
  if (guesses && !rounds.hidden() && rounds.shape->contexts > 1 && rounds.shape->kind != families::ContextShape::Kind::requests)
    return "verifier typical with guesses of another context is not worked out";
  const double vocab = rounds.cell->vocab;
  double steps = steps_of(rounds);
  if (rounds.drafter->siblings == tokens::Siblings::without_replacement)
    for (const int children : rounds.ranks)
      steps = std::max(steps, paths_of(rounds) * std::pow(vocab, children) * rounds.tree.size());
  if (guesses && rounds.hidden())
    steps = std::pow(rounds.shape->contexts, draft_length(*rounds.cell) + 1) * rounds.drafter->nodes;
  return too_many_steps(rounds, steps);
}

}  // namespace

TheoryEntry typical_theory() {
  return {{"typical",
           "tokens with target > min(epsilon, delta e^-entropy), the longest path of them, then the target's own sample",
           "Cai et al. (Medusa), arXiv 2401.10774",
           {},
           ""},
          {"typical"},
          {},
          [](const spec::Cell& cell) -> Coverage {
            BlockRounds rounds(cell);
            if (!rounds.is_chain() || rounds.guesses_ahead()) {
              std::string why = why_not_enumerated(rounds);
              if (!why.empty()) return {nullptr, std::move(why)};
              return {std::make_unique<TypicalTrees>(std::move(rounds)), ""};
            }
            const double epsilon = verifier_arguments(cell).number("epsilon");
            const double delta = verifier_arguments(cell).number("delta");
            const auto admits = [epsilon, delta](const verify::PositionDistributions& distributions) {
              return theory::typical_acceptance(distributions.target, epsilon, delta);
            };
            return walk_first_admitted(std::move(rounds), admits);
          }};
}

}  // namespace specsim::judge
