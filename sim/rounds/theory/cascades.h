// Rules that let the draft speak for the target: what they emit at a drafted position. Distributions as in bounds.h.
#pragma once

#include <span>
#include <string>
#include <vector>

namespace specsim::theory {

// The distribution of a speculative cascade (Narasimhan et al. 2024, arXiv 2405.19261). Rules of a position: the draft's
// distribution where its largest probability is at least 1 - alpha ("chow"), the target's largest - alpha ("diff"), the target's
// largest - alpha times the total variation ("opt"); else the target's. Rules of a token: a sample of the draft that is among the
// trusted tokens stays, any other gives way to a sample of the target. Trusted are tokens of draft >= the target's largest -
// alpha
// ("token_v1"), of target >= its largest - alpha ("token_v2"), of target >= (1 - alpha) times its largest ("token_v3").
[[nodiscard]] std::vector<double> cascade_distribution(std::span<const double> target, std::span<const double> draft,
                                                       const std::string& rule, double alpha);

// Judge decoding (Bachmann et al. 2025, arXiv 2501.19309) with a judge that passes a share `rate` of the tokens which the token
// rule rejects, whatever they are: the probability that a drafted token stays, by token; 0 for tokens that are never drafted.
[[nodiscard]] std::vector<double> judge_acceptance(std::span<const double> target, std::span<const double> drafted, double rate);

}  // namespace specsim::theory
