#include "sim/answers/plan/closed_form_answers.h"

#include "sim/foundation/base/check.h"
#include "sim/foundation/base/token.h"

#include <algorithm>
#include <span>

namespace specsim::plan {

std::vector<double> first_rates(const std::vector<double>& rates, int draft_length) {
  std::vector<double> first;
  for (int j = 0; j < draft_length; ++j)
    first.push_back(rates[std::min<std::size_t>(static_cast<std::size_t>(j), rates.size() - 1)]);
  return first;
}

theory::BestDraftLength best_draft_length(const std::vector<double>& rates, const theory::RatioCost& cost) {
  std::vector<double> tokens(kMaxDraftLength + 1);
  for (int k = 0; k <= kMaxDraftLength; ++k)
    tokens[static_cast<std::size_t>(k)] = theory::tokens_per_round(first_rates(rates, k));
  return theory::best_draft_length(std::span<const double>(tokens), cost);
}

RateAnswers answers_at(const std::vector<double>& rates, int draft_length, const theory::RatioCost& cost) {
  RateAnswers answers;
  answers.distribution = theory::by_position(first_rates(rates, draft_length));
  if (draft_length > 0) answers.speedup = theory::speedup(answers.distribution.mean_emitted(), draft_length, cost);
  answers.best = best_draft_length(rates, cost);
  const double alpha = rates[0];
  answers.constant = std::all_of(rates.begin(), rates.end(), [&](double rate) { return rate == alpha; });
  if (!answers.constant) return answers;
  if (answers.best.draft_length > 0 && answers.best.draft_length < kMaxDraftLength)
    answers.continuous_best = theory::continuous_best_draft_length(alpha, cost);
  answers.break_even_at_best = theory::break_even_alpha_any(cost, kMaxDraftLength);
  if (draft_length > 0) {
    answers.break_even = theory::break_even_alpha(draft_length, cost);
    answers.slope = theory::speedup_sensitivity(alpha, draft_length, cost);
  }
  return answers;
}

RequestAnswers answers_of_requests(const std::vector<double>& alphas, const std::vector<double>& weights, int draft_length,
                                   const theory::RatioCost& cost) {
  double total = 0.0;
  for (const double weight : weights) total += weight;
  const auto together = [&](int length) {
    std::vector<theory::RequestType> types;
    for (std::size_t i = 0; i < alphas.size(); ++i) types.push_back({weights[i], theory::constant_alpha(alphas[i], length)});
    return theory::equal_tokens_limit(types);
  };
  RequestAnswers answers;
  double time_at_own_best = 0.0;
  for (std::size_t i = 0; i < alphas.size(); ++i) {
    const theory::BestDraftLength best = best_draft_length(std::vector<double>{alphas[i]}, cost);
    time_at_own_best += weights[i] / total / best.speedup;
    answers.kinds.push_back({alphas[i], weights[i] / total, theory::tokens_per_round(alphas[i], draft_length), best});
  }
  std::vector<double> tokens(kMaxDraftLength + 1, 1.0);
  for (int k = 1; k <= kMaxDraftLength; ++k) tokens[static_cast<std::size_t>(k)] = together(k);
  answers.tokens_per_round = together(draft_length);
  answers.best = theory::best_draft_length(std::span<const double>(tokens), cost);
  answers.speedup_at_own_best = 1.0 / time_at_own_best;
  answers.pooled = theory::pooling_figures(alphas, weights, draft_length);
  return answers;
}

std::optional<theory::ClosedFormPrediction> answer_of(const theory::ClosedForm& form, const std::vector<double>& rates,
                                                      int draft_length, double cost_ratio) {
  theory::ClosedFormInputs inputs;
  inputs.alpha = rates[0];
  inputs.alpha_by_position = first_rates(rates, draft_length);
  inputs.draft_length = draft_length;
  inputs.cost_ratio = cost_ratio;
  inputs.target_seconds = 1.0;
  inputs.draft_seconds = cost_ratio;
  try {
    return form.evaluate(inputs);
  } catch (const InvariantBroken&) {  // undefined at small draft lengths
    return std::nullopt;
  }
}

}  // namespace specsim::plan
