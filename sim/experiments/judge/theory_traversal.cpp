// Traversal verification, by enumeration of every drafted tree; on a chain it is block verification.
#include "sim/experiments/judge/block_enumeration.h"
#include "sim/experiments/judge/enumeration.h"
#include "sim/experiments/judge/method.h"
#include "sim/foundation/base/index.h"

#include <fmt/format.h>

#include <cmath>

namespace specsim::judge {

namespace {

constexpr double kMostTrees = 0x1p20;  // drafted, over all starts

class Traversal final : public TreeEnumeration {
 public:
  using TreeEnumeration::TreeEnumeration;

 private:
  [[nodiscard]] theory::RoundKernel tree_kernel(const theory::Automaton& own) const override {
    const theory::TreeSampling sampling = sampling_of(rounds().drafter->siblings);
    theory::RoundKernel kernel(own.states, draft_length(*rounds().cell));
    for (int s = 0; s < own.states; ++s)
      for (const theory::RoundOutcome& outcome :
           theory::tree_outcomes(own, {theory::TreeRule::traversal, sampling, rounds().tree}, s))
        kernel.at(static_cast<int>(outcome.emitted.size()) - 1, s, outcome.end_state) += outcome.probability;
    return kernel;
  }
};

std::string why_not_traversed(const BlockRounds& rounds) {
  if (rounds.guesses_ahead())
    return fmt::format("theory does not cover verifier {} with guesses from another context", verifier_name(*rounds.cell));
  if (std::string why = why_not_kept(rounds); !why.empty()) return why;
  if (std::string why = why_not_windows(rounds); !why.empty()) return why;
  const int vocab = rounds.cell->vocab;
  if (std::pow(vocab, rounds.tree.size() - 1) * paths_of(rounds) <= kMostTrees) return "";
  return fmt::format("vocabulary {}, {} nodes{}: too many trees", vocab, rounds.tree.size() - 1,
                     rounds.shape->contexts > 1 ? fmt::format(", {} contexts", rounds.shape->contexts) : "");
}

}  // namespace

TheoryEntry traversal_theory() {
  return {{"traversal", "traversal verification, by every drafted tree", "Weng et al., arXiv 2505.12398", {}, ""},
          {"traversal"},
          {},
          [](const spec::Cell& cell) -> Coverage {
            BlockRounds rounds(cell);
            if (rounds.is_chain()) return enumerate_block_verification(std::move(rounds));
            std::string why = why_not_traversed(rounds);
            if (!why.empty()) return {nullptr, std::move(why)};
            return {std::make_unique<Traversal>(std::move(rounds)), ""};
          }};
}

}  // namespace specsim::judge
