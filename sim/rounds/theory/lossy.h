// Rules that give up the target distribution for more acceptance: the distribution of one emitted token and its distance from the
// target.
//
// Distributions as in bounds.h, of equal size `vocab`. Each rule accepts a drafted token x with a probability a(x). The draft
// token is drawn from `drafted` (one-hot for a deterministic draft), the final token after a rejection from `otherwise`.
#pragma once

#include "sim/rounds/theory/judgement.h"
#include "sim/rounds/theory/round_chain.h"
#include "sim/rounds/theory/tree_enumeration.h"

#include <span>
#include <string>
#include <vector>

namespace specsim::theory {

// Typical acceptance (Medusa, Cai et al. 2024, arXiv 2401.10774): 1 if target(x) > min(epsilon, delta e^-H(target)), else 0; H in
// nats. within: constant that is added to each probability inside H's logarithms, 1e-5 in Medusa's program.
[[nodiscard]] std::vector<double> typical_acceptance(std::span<const double> target, double epsilon, double delta,
                                                     double within = 0.0);

// Lenience (Leviathan et al. 2022, arXiv 2211.17192, appendix A.5): min(1, target / (lenience drafted)), lenience in (0, 1]; 1 is
// the token rule. The paper multiplies the draft by it "before comparing" in algorithm 1 and changes nothing else, so a rejection
// resamples from that algorithm's (target - drafted)+. Its acceptance is sum of min(target / lenience, drafted), and no token is
// emitted with more than target / lenience.
[[nodiscard]] std::vector<double> lenience_acceptance(std::span<const double> target, std::span<const double> drafted,
                                                      double lenience);
// (target - drafted)+ divided by its sum; the target where that is 0.
[[nodiscard]] std::vector<double> residual_distribution(std::span<const double> target, std::span<const double> drafted);

// 1 for the target's k likeliest tokens (ties: the lowest ids), else 0.
[[nodiscard]] std::vector<double> top_k_acceptance(std::span<const double> target, int k);

// SGLang's relaxed acceptance of the draft's `drafts` likeliest tokens (sampling top; fewer if fewer have positive probability)
// or of one sampled token. There is one coin u. The first x is accepted with u < (target of x and of those before it) /
// accumulated, or with target(x) >= single. By rank and token, as in multi_draft.h.
[[nodiscard]] std::vector<std::vector<double>> threshold_accepted(std::span<const double> target, std::span<const double> draft,
                                                                  int drafts, TreeSampling sampling, double single,
                                                                  double accumulated);

// The token after a rejection of all of them, by mass: the target's mass on tokens other than the children, whatever was drafted.
[[nodiscard]] std::vector<double> threshold_rejected(std::span<const double> target, std::span<const double> draft, int drafts,
                                                     TreeSampling sampling, double single, double accumulated);

// TensorRT-LLM's relaxed acceptance: 1 for those of the target's n likeliest tokens (ties: the lowest ids) that are at least the
// likeliest one's probability less delta; else 0.
[[nodiscard]] std::vector<double> top_n_acceptance(std::span<const double> target, int n, double delta);

// Mass by token, as an accepted draft and as the final token.
[[nodiscard]] Judgement judge_accepting(std::span<const double> acceptance, std::span<const double> drafted,
                                        std::span<const double> otherwise);
// accepted + rejected: the distribution of one emitted token.
[[nodiscard]] std::vector<double> emitted_distribution(const Judgement& judgement);
// Total variation of the judged rule's output from the target: 0 for a lossless rule.
[[nodiscard]] double bias(const Judgement& judgement, std::span<const double> target);

// The distribution of a speculative cascade (Narasimhan et al. 2024, arXiv 2405.19261). Rules for a position use the draft's
// distribution if its largest probability is at least a threshold, otherwise the target's. The threshold is 1 - alpha ("chow"),
// the target's largest - alpha ("diff"), or the target's largest - alpha times the total variation ("opt"). Rules for a token
// keep a draft sample that is among the trusted tokens, and replace any other by a target sample. Trusted are tokens of draft >=
// the target's largest - alpha ("token_v1"), of target >= its largest - alpha ("token_v2"), or of target >= (1 - alpha) times its
// largest ("token_v3").
[[nodiscard]] std::vector<double> cascade_distribution(std::span<const double> target, std::span<const double> draft,
                                                       const std::string& rule, double alpha);

// Judge decoding (Bachmann et al. 2025, arXiv 2501.19309) with a judge that accepts a share `rate` of the tokens that the token
// rule rejects, whatever they are. Returns the probability that a drafted token stays, by token; 0 for tokens that are never
// drafted.
[[nodiscard]] std::vector<double> judge_acceptance(std::span<const double> target, std::span<const double> drafted, double rate);

// Siblings are judged in turn, and the first that `acceptance` (0 or 1 by token) allows is accepted: by rank and token, as in
// multi_draft.h. Draws without replacement are walked: vocab!/(vocab - drafts)!.
[[nodiscard]] std::vector<std::vector<double>> first_accepted(std::span<const double> acceptance, std::span<const double> draft,
                                                              int drafts, TreeSampling sampling);

// Typical acceptance of a tree. Every node is accepted or not by itself. The round keeps the longest path of accepted nodes
// (ties: the first) and adds a target token. Siblings without replacement are walked draw by draw.
[[nodiscard]] RoundKernel typical_kernel(const Automaton& distributions, const TreeShape& tree, TreeSampling sampling,
                                         double epsilon, double delta, double within = 0.0);

// Typical acceptance of a tree whose tokens are guessed from the state at the round's start (guessed_tree in chosen_trees.h), if
// the states move by `transition`, whatever the tokens are. Walks every path of states.
[[nodiscard]] RoundKernel typical_guess_kernel(const Automaton& distributions, const StateMatrix& transition,
                                               const TreeShape& tree, double epsilon, double delta, double within = 0.0);

}  // namespace specsim::theory
