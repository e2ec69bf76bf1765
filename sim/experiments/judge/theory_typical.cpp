// Typical acceptance: on chains by the masses that it admits, on trees by enumeration of every drafted tree.
#include "sim/experiments/judge/enumeration.h"
#include "sim/experiments/judge/method.h"
#include "sim/experiments/judge/tree_walk.h"
#include "sim/foundation/base/index.h"
#include "sim/rounds/theory/lossy.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace specsim::judge {

namespace {

constexpr double kWithin = 1e-5;  // Medusa's program adds this within the entropy's logarithms

// The path that is kept of the longest ones, and the token that follows it.
enum class Typical : bool {
  as_paper,    // the first path, and the target's own sample
  as_program,  // the likeliest path, and the target's likeliest token
};

class TypicalTrees final : public TreeEnumeration {
 public:
  TypicalTrees(BlockRounds rounds, Typical rule)
      : TreeEnumeration(std::move(rounds)),
        epsilon_(verifier_arguments(*this->rounds().cell).number("epsilon")),
        delta_(verifier_arguments(*this->rounds().cell).number("delta")),
        rule_(rule) {}

 private:
  [[nodiscard]] double within() const { return rule_ == Typical::as_program ? kWithin : 0.0; }
  [[nodiscard]] theory::RoundKernel tree_kernel(const theory::Automaton& own) const override {
    return theory::typical_kernel(own, rounds().tree, sampling_of(rounds().drafter->siblings), epsilon_, delta_, within());
  }
  [[nodiscard]] theory::RoundKernel round_kernel(int draft_length, int context, double& error) const override {
    if (rounds().drafter->from_root && context < 0 && !transition().empty())
      return theory::typical_guess_kernel(automaton(context), transition(), rounds().tree, epsilon_, delta_, within());
    return TreeEnumeration::round_kernel(draft_length, context, error);
  }
  [[nodiscard]] std::optional<theory::TokenMoments> tokens_by_class(const theory::Automaton& own,
                                                                    const theory::TokenClasses& classes) const override {
    const theory::TreeSampling sampling = sampling_of(rounds().drafter->siblings);
    if (rule_ == Typical::as_paper) return theory::typical_tokens(own, rounds().tree, sampling, epsilon_, delta_, classes);
    // With drawn siblings the likeliest path depends on all siblings that were drawn together.
    if (sampling != theory::TreeSampling::top) return std::nullopt;
    return theory::typical_medusa_tokens(own, rounds().tree, epsilon_, delta_, classes);
  }

  double epsilon_;
  double delta_;
  Typical rule_;
};

std::string why_not_enumerated(const BlockRounds& rounds) {
  if (std::string why = why_not_kept(rounds); !why.empty()) return why;
  if (std::string why = why_not_windows(rounds); !why.empty()) return why;
  const bool guesses = rounds.drafter->from_root;
  if (guesses && !rounds.hidden() && rounds.shape->contexts > 1 && rounds.shape->kind != families::ContextShape::Kind::requests)
    return fmt::format("theory does not cover verifier {} with guesses from another context", verifier_name(*rounds.cell));
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
              return {std::make_unique<TypicalTrees>(std::move(rounds), Typical::as_paper), ""};
            }
            const double epsilon = verifier_arguments(cell).number("epsilon");
            const double delta = verifier_arguments(cell).number("delta");
            const auto admits = [epsilon, delta](const verify::PositionDistributions& distributions) {
              return theory::typical_acceptance(distributions.target, epsilon, delta);
            };
            return walk_first_admitted(std::move(rounds), admits);
          }};
}

TheoryEntry typical_medusa_theory() {
  return {{"typical_medusa",
           "tokens with target > min(epsilon, delta e^-entropy), the likeliest of the longest paths of them, then the target's "
           "argmax",
           "Cai et al. (Medusa), arXiv 2401.10774, and its program",
           {},
           ""},
          {"typical_medusa"},
          {},
          [](const spec::Cell& cell) -> Coverage {
            BlockRounds rounds(cell);
            if (rounds.next_context_known())
              return {nullptr, "theory does not cover contexts that follow the tokens under a verifier that emits other tokens"};
            if (!rounds.is_chain() || rounds.guesses_ahead()) {
              std::string why = why_not_enumerated(rounds);
              if (!why.empty()) return {nullptr, std::move(why)};
              return {std::make_unique<TypicalTrees>(std::move(rounds), Typical::as_program), ""};
            }
            const double epsilon = verifier_arguments(cell).number("epsilon");
            const double delta = verifier_arguments(cell).number("delta");
            const auto admits = [epsilon, delta](const verify::PositionDistributions& distributions) {
              return theory::typical_acceptance(distributions.target, epsilon, delta, kWithin);
            };
            const auto likeliest = [](const verify::PositionDistributions& distributions) {
              return theory::top_k_acceptance(distributions.target, 1);
            };
            const theory::TreeSampling sampling = sampling_of(rounds.drafter->siblings);
            return walk(std::move(rounds), {[admits, sampling](const verify::PositionDistributions& distributions, int children) {
                                              return theory::first_accepted(admits(distributions), distributions.drafted,
                                                                            children, sampling);
                                            },
                                            TokenwiseRule{admits, likeliest, likeliest}});
          }};
}

}  // namespace specsim::judge
