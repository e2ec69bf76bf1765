// Relaxed acceptance as in servers: SGLang's thresholds, TensorRT-LLM's N likeliest tokens.
#include "sim/experiments/judge/method.h"
#include "sim/experiments/judge/tree_walk.h"
#include "sim/rounds/theory/lossy.h"

namespace specsim::judge {

namespace {

constexpr const char* kMoves = "theory does not cover contexts that follow the tokens under a verifier that emits other tokens";

}  // namespace

TheoryEntry relaxed_threshold_theory() {
  return {
      {"relaxed_threshold", "one coin against the summed target probability of the children, or a child's own", "SGLang", {}, ""},
      {"relaxed_threshold"},
      {},
      [](const spec::Cell& cell) -> Coverage {
        BlockRounds rounds(cell);
        if (rounds.next_context_known()) return {nullptr, kMoves};
        if (figures_of(rounds).gap) return {nullptr, "the tree skips ranks"};
        const double single = verifier_arguments(cell).number("single");
        const double accumulated = verifier_arguments(cell).number("acc");
        const theory::TreeSampling sampling = sampling_of(rounds.drafter->siblings);
        NodeTheory rule{[=](const verify::PositionDistributions& distributions, int children) {
          return theory::threshold_accepted(distributions.target, distributions.drafted, children, sampling, single, accumulated);
        }};
        rule.otherwise = RejectedMass{[=](const verify::PositionDistributions& distributions, int children) {
          return theory::threshold_rejected(distributions.target, distributions.drafted, children, sampling, single, accumulated);
        }};
        return walk(std::move(rounds), std::move(rule));
      }};
}

TheoryEntry relaxed_top_n_theory() {
  return {{"relaxed_top_n", "drafts among the target's n likeliest tokens and within delta of the first", "TensorRT-LLM", {}, ""},
          {"relaxed_top_n"},
          {},
          [](const spec::Cell& cell) -> Coverage {
            BlockRounds rounds(cell);
            if (rounds.next_context_known()) return {nullptr, kMoves};
            const auto n = static_cast<int>(verifier_arguments(cell).integer("n"));
            const double delta = verifier_arguments(cell).number("delta");
            const auto admits = [n, delta](const verify::PositionDistributions& distributions) {
              return theory::top_n_acceptance(distributions.target, n, delta);
            };
            const auto likeliest = [](const verify::PositionDistributions& distributions) {
              return theory::top_k_acceptance(distributions.target, 1);
            };
            return walk(std::move(rounds), {[admits](const verify::PositionDistributions& distributions, int /*children*/) {
                                              return theory::first_accepted(admits(distributions), distributions.drafted, 1,
                                                                            theory::TreeSampling::with_replacement);
                                            },
                                            TokenwiseRule{admits, likeliest, likeliest}});
          }};
}

}  // namespace specsim::judge
