// Verifiers that accept tokens equal to the target's own sample: on a chain, on chosen children, on guesses of later positions.
#include "sim/experiments/judge/enumeration.h"
#include "sim/experiments/judge/method.h"
#include "sim/experiments/judge/position_rounds.h"
#include "sim/experiments/judge/tree_walk.h"
#include "sim/rounds/theory/chosen_trees.h"
#include "sim/rounds/theory/multi_draft.h"

namespace specsim::judge {

namespace {

// Every position is guessed from the context at the round's start.
class Guesses final : public TreeEnumeration {
 public:
  using TreeEnumeration::TreeEnumeration;

 private:
  [[nodiscard]] theory::RoundKernel tree_kernel(const theory::Automaton& /*own*/) const override { return {}; }
  [[nodiscard]] theory::RoundKernel round_kernel(int draft_length, int context, double& /*error*/) const override {
    const theory::Automaton distributions = automaton(context);
    return theory::chosen_kernel(distributions, context < 0 ? transition() : theory::StateMatrix(), draft_length,
                                 [&](int state) { return theory::guessed_tree(rounds().tree, distributions, state); });
  }
};

std::string why_not_guessed(const BlockRounds& rounds) {
  if (std::string why = why_not_kept(rounds); !why.empty()) return why;
  if (std::string why = why_not_windows(rounds); !why.empty()) return why;
  // Only the draft's likeliest tokens have a known rank.
  if (rounds.drafter->siblings != tokens::Siblings::point_mass)
    return "theory does not cover drawn guesses in contexts that move";
  return too_many_steps(rounds, steps_of(rounds));
}

}  // namespace

TheoryEntry matching_theory() {
  return {{"matching",
           "drafts are accepted while the target samples them: alpha = sum target draft, or the target's mass on chosen children",
           "Gante, assisted generation, 2023; Cai et al. (Medusa), arXiv 2401.10774",
           {},
           ""},
          {"greedy", "sample_match", "tree_point_mass", "greedy_tree"},
          {},
          [](const spec::Cell& cell) -> Coverage {
            if (judges_positions(cell))
              return follow_positions(cell, [](const verify::PositionDistributions& distributions) {
                return theory::judge_sample(distributions.target, distributions.drafted);
              });
            BlockRounds rounds(cell);
            if (rounds.guesses_ahead()) {
              std::string why = why_not_guessed(rounds);
              if (!why.empty()) return {nullptr, std::move(why)};
              return {std::make_unique<Guesses>(std::move(rounds)), ""};
            }
            const tokens::Siblings siblings = rounds.drafter->siblings;
            return walk(std::move(rounds), {[siblings](const verify::PositionDistributions& distributions, int children) {
                          switch (siblings) {
                            case tokens::Siblings::independent:
                              return theory::judge_matching(distributions.target, distributions.drafted, children).by_token;
                            case tokens::Siblings::without_replacement:
                              return theory::judge_matching_without_replacement(distributions.target, distributions.drafted,
                                                                                children)
                                  .by_token;
                            case tokens::Siblings::hub:  // the verifiers of this file do not accept hub siblings
                            case tokens::Siblings::point_mass:
                              break;
                          }
                          return theory::judge_top_ranked(distributions.target, distributions.drafted, children).by_token;
                        }});
          }};
}

}  // namespace specsim::judge
