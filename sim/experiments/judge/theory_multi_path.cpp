// Greedy multi-path block verification, by enumeration of every path; SpecHub, by the masses of its pairs.
#include "sim/experiments/judge/enumeration.h"
#include "sim/experiments/judge/method.h"
#include "sim/experiments/judge/tree_walk.h"
#include "sim/rounds/theory/multi_path.h"

#include <fmt/format.h>

#include <cmath>

namespace specsim::judge {

namespace {

constexpr double kMostPaths = 0x1p22;  // over all starts

class MultiPath final : public TreeEnumeration {
 public:
  using TreeEnumeration::TreeEnumeration;

 private:
  [[nodiscard]] theory::RoundKernel tree_kernel(const theory::Automaton& own) const override {
    int paths = 0;
    for (const int parent : rounds().tree.parent) paths += parent == 0 ? 1 : 0;
    return theory::multi_path_kernel(own, paths, draft_length(*rounds().cell));
  }
};

std::string why_not_followed(const BlockRounds& rounds) {
  if (rounds.guesses_ahead())
    return fmt::format("theory does not cover verifier {} with guesses from another context", verifier_name(*rounds.cell));
  if (rounds.lengths != nullptr || rounds.stops != nullptr)
    return fmt::format("theory does not cover verifier {} with chains that a policy shortens", verifier_name(*rounds.cell));
  if (std::string why = why_not_kept(rounds); !why.empty()) return why;
  if (std::string why = why_not_windows(rounds); !why.empty()) return why;
  const int vocab = rounds.cell->vocab;
  if (std::pow(vocab, rounds.tree.depth()) * paths_of(rounds) <= kMostPaths) return "";
  return fmt::format("vocabulary {}, paths of {}: too many paths", vocab, rounds.tree.depth());
}

}  // namespace

TheoryEntry greedy_multi_path_theory() {
  return {{"greedy_multi_path",
           "block verification of the last of k paths in the order of target / draft, by every path",
           "Thomas, Pal, arXiv 2602.16961",
           {},
           ""},
          {"greedy_multi_path"},
          {},
          [](const spec::Cell& cell) -> Coverage {
            BlockRounds rounds(cell);
            std::string why = why_not_followed(rounds);
            if (!why.empty()) return {nullptr, std::move(why)};
            return {std::make_unique<MultiPath>(std::move(rounds)), ""};
          }};
}

TheoryEntry spec_hub_theory() {
  return {{"spec_hub",
           "the target's mass that pairs around the draft's likeliest token take, one after the other",
           "Sun et al. (SpecHub), arXiv 2411.05289",
           {},
           ""},
          {"spec_hub"},
          {},
          [](const spec::Cell& cell) {
            return walk(BlockRounds(cell), {[](const verify::PositionDistributions& distributions, int children) {
                          return theory::hub_accepted(distributions.target, distributions.drafted, children);
                        }});
          }};
}

}  // namespace specsim::judge
