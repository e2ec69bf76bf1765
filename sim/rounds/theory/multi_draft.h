// One node with several drafts of the same position: the acceptance of each lossless rule, and the largest possible one.
//
// Distributions as in bounds.h, of equal size `vocab`; `drafts` >= 1 of them are judged in the order in which they were drawn. A
// judgement's accepted + rejected is the target: every rule here is lossless.
#pragma once

#include "sim/rounds/theory/judgement.h"

#include <functional>
#include <span>
#include <vector>

namespace specsim::theory {

// How the children of a node are drawn.
enum class TreeSampling {
  with_replacement,
  // Siblings differ; a node is left out if the draft distribution's support is used up.
  without_replacement,
  // The child of rank k is the draft's k-th likeliest token (ties: the lowest id), a point mass to the rule (EAGLE). A node is
  // left out if the draft has fewer tokens of positive probability.
  top,
};

// Calls f(tokens, probability) for every ordered draw of at most `drafts` siblings. Without replacement a draw ends with the
// distribution's support; the likeliest tokens end with it too.
void each_draw(std::span<const double> draft, int drafts, TreeSampling sampling,
               const std::function<void(const std::vector<int>&, double)>& f);

struct MultiDraftJudgement {
  std::vector<double> by_rank;                // [drafts]: P(the draft drawn k-th is the accepted one); sums to the node's alpha
  std::vector<std::vector<double>> by_token;  // [drafts][vocab]: P(the k-th draft is the accepted one and is this token)
  Judgement judgement;                        // by token: its mass as an accepted draft, and as the final token
};

// Recursive rejection of independent drafts (Miao et al. 2023, SpecInfer, arXiv 2305.09781): draft k is judged by the token rule
// against what the earlier rejections left of the target. alpha = 1 - product of (1 - overlap of the remainder).
[[nodiscard]] MultiDraftJudgement judge_recursive(std::span<const double> target, std::span<const double> draft, int drafts);

// As above for drafts drawn without replacement (Chen et al. 2024, Sequoia, arXiv 2402.12374): the draft distribution loses the
// rejected token too. Walks every ordered draw: vocab!/(vocab - drafts)! is limited to 2^22. Drafts end with the draft
// distribution's support.
[[nodiscard]] MultiDraftJudgement judge_without_replacement(std::span<const double> target, std::span<const double> draft,
                                                            int drafts);

// K-SEQ (Sun et al. 2023, SpecTr, arXiv 2310.15141): independent drafts, each accepted with min(1, target / (factor draft)). The
// best factor is in [1, drafts] and solves 1 - (1 - beta)^drafts = factor beta with beta = sum of min(draft, target / factor).
[[nodiscard]] double kseq_factor(std::span<const double> target, std::span<const double> draft, int drafts);
[[nodiscard]] MultiDraftJudgement judge_kseq(std::span<const double> target, std::span<const double> draft, int drafts);

// Independent drafts, kept if they equal the target's sample (ties: the first): target draft (1 - draft)^k at rank k.
[[nodiscard]] MultiDraftJudgement judge_matching(std::span<const double> target, std::span<const double> draft, int drafts);

// As above for drafts drawn without replacement, which differ: target(x) P(the draft of rank k is x). Walks every ordered draw,
// with judge_without_replacement()'s limit.
[[nodiscard]] MultiDraftJudgement judge_matching_without_replacement(std::span<const double> target,
                                                                     std::span<const double> draft, int drafts);

// Deterministic drafts: the `drafts` likeliest tokens of the draft distribution (ties: the lowest ids), fewer if fewer have
// positive probability. They are accepted with the target's mass on them, rank by rank (EAGLE-2, Li et al. 2024; Medusa's tree
// under the exact rule).
[[nodiscard]] MultiDraftJudgement judge_top_ranked(std::span<const double> target, std::span<const double> draft, int drafts);

// The largest acceptance of any lossless rule on independent drafts. It is an optimal transport between the target and the
// drafts; by max-flow/min-cut it is 1 + min over sets H of tokens of target(H) - draft(H)^drafts. The minimiser is a prefix in
// rising target / draft order: at a given draft(H) a prefix has the least target(H), and between prefixes the difference is
// concave. So sorting is enough: O(vocab log vocab). For one draft it is the overlap.
[[nodiscard]] double optimal_acceptance(std::span<const double> target, std::span<const double> draft, int drafts);

}  // namespace specsim::theory
