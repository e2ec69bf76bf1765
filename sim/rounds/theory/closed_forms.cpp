#include "sim/rounds/theory/closed_forms.h"

#include "sim/foundation/base/check.h"
#include "sim/foundation/math/series.h"
#include "sim/rounds/theory/length_policies.h"
#include "sim/rounds/theory/speedup.h"

#include <cmath>
#include <numeric>
#include <span>

namespace specsim::theory {
namespace {

constexpr auto kAlphaInput = ClosedFormInput::alpha;
constexpr auto kPositionsInput = ClosedFormInput::alpha_by_position;
constexpr auto kCostInput = ClosedFormInput::cost_ratio;
constexpr auto kSecondsInput = ClosedFormInput::seconds;

RatioCost cost_of(const ClosedFormInputs& inputs) { return RatioCost{inputs.cost_ratio, 1.0, 0.0}; }

std::vector<double> round_times(const ClosedFormInputs& inputs) {
  SPECSIM_CHECK(inputs.draft_length >= 0, "draft_length = {}", inputs.draft_length);
  std::vector<double> times;
  for (int k = 0; k <= inputs.draft_length; ++k) times.push_back(cost_of(inputs).round_time(k));
  return times;
}

// The rates of the drafted positions; the constant alpha if none are given.
std::vector<double> rates_of(const ClosedFormInputs& inputs) {
  SPECSIM_CHECK(inputs.draft_length >= 0, "draft_length = {}", inputs.draft_length);
  const auto length = static_cast<std::size_t>(inputs.draft_length);
  if (inputs.alpha_by_position.empty()) return std::vector<double>(length, inputs.alpha);
  SPECSIM_CHECK(inputs.alpha_by_position.size() >= length, "{} alphas for draft_length {}", inputs.alpha_by_position.size(),
                length);
  return {inputs.alpha_by_position.begin(), inputs.alpha_by_position.begin() + inputs.draft_length};
}

ClosedFormPrediction tokens_only(double tokens) {
  ClosedFormPrediction prediction;
  prediction.tokens_per_round = tokens;
  return prediction;
}

ClosedFormPrediction with_distribution(RoundDistribution distribution, double tokens) {
  ClosedFormPrediction prediction = tokens_only(tokens);
  prediction.distribution = std::move(distribution);
  return prediction;
}

ClosedFormPrediction with_speedup(double tokens, double speedup) {
  ClosedFormPrediction prediction = tokens_only(tokens);
  prediction.speedup = speedup;
  return prediction;
}

// (1 - a^k) / (1 - a) + 1: counts the final token on top of a sum that already runs from a^0.
double overcounted_tokens(const ClosedFormInputs& inputs) {
  SPECSIM_CHECK(inputs.alpha >= 0.0 && inputs.alpha <= 1.0, "alpha = {}", inputs.alpha);
  return math::geometric_sum(inputs.alpha, inputs.draft_length) + 1.0;
}

std::vector<ClosedForm> make_closed_forms() {
  std::vector<ClosedForm> forms;
  const auto add = [&forms](ClosedForm form) { forms.push_back(std::move(form)); };
  add({"geometric",
       "M4",
       "Leviathan et al. 2022, arXiv 2211.17192, equation 1",
       "(1 - alpha^(draft_length + 1)) / (1 - alpha)",
       "tokens per round if every position accepts with the same probability, independently; with the distribution of "
       "accepted",
       false,
       {kAlphaInput},
       [](const ClosedFormInputs& inputs) {
         return with_distribution(constant_alpha(inputs.alpha, inputs.draft_length),
                                  tokens_per_round(inputs.alpha, inputs.draft_length));
       }});
  add({"sum_over_lengths",
       "M4",
       "Brenndoerfer 2026, Speculative Decoding Math",
       "sum over i = 1..draft_length of i alpha^(i-1) (1 - alpha), + (draft_length + 1) alpha^draft_length",
       "mean tokens per round, summed over the round's lengths",
       false,
       {kAlphaInput},
       [](const ClosedFormInputs& inputs) {
         const RoundDistribution distribution = constant_alpha(inputs.alpha, inputs.draft_length);
         math::CompensatedSum tokens;
         for (std::size_t j = 0; j < distribution.accepted.size(); ++j)
           tokens += static_cast<double>(j + 1) * distribution.accepted[j];
         return tokens_only(tokens.value());
       }});
  add({"by_position",
       "M4",
       "product of the positions' acceptance probabilities (derived)",
       "1 + sum over i = 1..draft_length of alpha_1 ... alpha_i",
       "tokens per round if positions accept independently with fixed unequal probabilities; with the distribution of "
       "accepted",
       false,
       {kPositionsInput},
       [](const ClosedFormInputs& inputs) {
         const std::vector<double> rates = rates_of(inputs);
         return with_distribution(by_position(rates), tokens_per_round(rates));
       }});
  add({"geometric_at_mean_alpha",
       "M4",
       "Brenndoerfer 2026, the formula applied to unequal positions",
       "(1 - mean^(draft_length + 1)) / (1 - mean), mean = mean of alpha_i",
       "wrong for fixed unequal positions (.9, .5: 2.19 against 2.35); correct only if they are equal or drawn independently",
       true,
       {kPositionsInput},
       [](const ClosedFormInputs& inputs) {
         const std::vector<double> rates = rates_of(inputs);
         if (rates.empty()) return tokens_only(1.0);
         const double mean = std::accumulate(rates.begin(), rates.end(), 0.0) / static_cast<double>(rates.size());
         return with_distribution(constant_alpha(mean, inputs.draft_length), tokens_per_round(mean, inputs.draft_length));
       }});
  add({"speedup_by_cost_ratio",
       "",
       "Leviathan et al. 2022, arXiv 2211.17192, theorem 3.8",
       "(1 - alpha^(draft_length + 1)) / ((1 - alpha) (draft_length cost_ratio + 1))",
       "speedup if a round takes draft_length draft passes and one target pass",
       false,
       {kAlphaInput, kCostInput},
       [](const ClosedFormInputs& inputs) {
         return with_speedup(tokens_per_round(inputs.alpha, inputs.draft_length),
                             constant_alpha_speedup(inputs.alpha, inputs.draft_length, cost_of(inputs)));
       }});
  add({"speedup_by_target_to_draft_ratio",
       "M5",
       "Brenndoerfer 2026, Speculative Decoding Math",
       "E[emitted] / (1 + draft_length / target_to_draft_ratio), target_to_draft_ratio = 1 / cost_ratio",
       "speedup in the inverse convention of the cost ratio",
       false,
       {kAlphaInput, kCostInput},
       [](const ClosedFormInputs& inputs) {
         const double tokens = tokens_per_round(inputs.alpha, inputs.draft_length);
         // A free draft is the infinite ratio: 1 / 0 in IEEE arithmetic.
         return with_speedup(tokens, speedup_by_target_to_draft_ratio(tokens, inputs.draft_length, 1.0 / inputs.cost_ratio));
       }});
  add({"speedup_by_position",
       "",
       "ratio model on the by_position mean (derived)",
       "(1 + sum over i of alpha_1 ... alpha_i) / (draft_length cost_ratio + 1)",
       "speedup if positions accept independently with fixed unequal probabilities",
       false,
       {kPositionsInput, kCostInput},
       [](const ClosedFormInputs& inputs) {
         const double tokens = tokens_per_round(rates_of(inputs));
         return with_speedup(tokens, speedup(tokens, inputs.draft_length, cost_of(inputs)));
       }});
  add({"speedup_equals_accepted",
       "G3",
       "A Deep Dive into Speculative Decoding: The Complete Guide",
       "E[accepted]",
       "wrong: leaves out the final token and the cost of drafting (3 accepted are 4 emitted)",
       true,
       {kAlphaInput},
       [](const ClosedFormInputs& inputs) {
         const double tokens = tokens_per_round(inputs.alpha, inputs.draft_length);
         return with_speedup(tokens, tokens - 1.0);
       }});
  add({"speedup_without_draft_cost",
       "G3",
       "A Deep Dive into Speculative Decoding: The Complete Guide",
       "E[emitted]",
       "wrong unless the draft is free: the limit of speedup at cost ratio 0",
       true,
       {kAlphaInput},
       [](const ClosedFormInputs& inputs) {
         const double tokens = tokens_per_round(inputs.alpha, inputs.draft_length);
         return with_speedup(tokens, tokens);
       }});
  add({"accepted_recursion",
       "A1",
       "Speculative Decoding: Mathematical Analysis and Performance Optimization",
       "E_k = alpha (1 + E_(k+1)), E_draft_length = 0; tokens = E_0 + 1",
       "tokens per round by the recursion over positions; equals geometric",
       false,
       {kAlphaInput},
       [](const ClosedFormInputs& inputs) {
         SPECSIM_CHECK(inputs.alpha >= 0.0 && inputs.alpha <= 1.0, "alpha = {}", inputs.alpha);
         double accepted = 0.0;
         for (int k = inputs.draft_length; k > 0; --k) accepted = inputs.alpha * (1.0 + accepted);
         return tokens_only(accepted + 1.0);
       }});
  add({"tokens_per_second",
       "A2",
       "Speculative Decoding: Mathematical Analysis and Performance Optimization",
       "(1 - alpha^(draft_length + 1)) / ((draft_seconds draft_length + target_seconds) (1 - alpha))",
       "rate of one sequence if a round takes draft_length draft passes and one target pass",
       false,
       {kAlphaInput, kSecondsInput},
       [](const ClosedFormInputs& inputs) {
         const double tokens = tokens_per_round(inputs.alpha, inputs.draft_length);
         ClosedFormPrediction prediction = with_distribution(constant_alpha(inputs.alpha, inputs.draft_length), tokens);
         prediction.tokens_per_second =
             tokens_per_second(tokens, inputs.draft_length, inputs.draft_seconds, inputs.target_seconds);
         return prediction;
       }});
  add({"geometric_plus_one",
       "L2",
       "vllm_lessons 07, Speculative decoding",
       "(1 - alpha^draft_length) / (1 - alpha) + 1",
       "wrong: too high by 1 - alpha^draft_length (alpha 0 would give 2 tokens per round)",
       true,
       {kAlphaInput},
       [](const ClosedFormInputs& inputs) { return tokens_only(overcounted_tokens(inputs)); }});
  add({"speedup_geometric_plus_one",
       "L3",
       "vllm_lessons 07, Speculative decoding",
       "((1 - alpha^draft_length) / (1 - alpha) + 1) / (draft_length cost_ratio + 1)",
       "wrong: the ratio model on geometric_plus_one (alpha .7, length 5, cost ratio .2: 1.89 against 1.47)",
       true,
       {kAlphaInput, kCostInput},
       [](const ClosedFormInputs& inputs) {
         const double tokens = overcounted_tokens(inputs);
         return with_speedup(tokens, speedup(tokens, inputs.draft_length, cost_of(inputs)));
       }});
  add({"geometric_without_bonus",
       "",
       "overlapped drafting: the next block is drafted before the bonus token is known (derived)",
       "(1 - alpha^draft_length) / (1 - alpha)",
       "tokens per round if full acceptance yields no bonus token (alpha .8, length 4: 2.952, not 3.362); draft_length >= 1",
       false,
       {kAlphaInput},
       [](const ClosedFormInputs& inputs) {
         SPECSIM_CHECK(inputs.alpha >= 0.0 && inputs.alpha <= 1.0, "alpha = {}", inputs.alpha);
         SPECSIM_CHECK(inputs.draft_length >= 1, "draft_length = {}", inputs.draft_length);
         return tokens_only(math::geometric_sum(inputs.alpha, inputs.draft_length));
       }});
  add({"oracle_lengths",
       "",
       "every token takes a target pass or, if a draft token is right, a draft pass (derived)",
       "sum over i = 0..draft_length of alpha^i / (1 + cost_ratio sum over i = 1..draft_length of alpha^i)",
       "speedup if each round drafts exactly the tokens that will be accepted, at most draft_length: the bound of every draft "
       "length "
       "policy",
       false,
       {kAlphaInput, kCostInput},
       [](const ClosedFormInputs& inputs) {
         const PolicyFigures oracle = oracle_length(inputs.alpha, round_times(inputs));
         return with_speedup(oracle.tokens_per_round, oracle.rate());
       }});
  add({"additive_lengths",
       "",
       "heuristic schedule of Hugging Face's assisted generation; its stationary distribution as a Markov chain (derived)",
       "sum of pi_k (1 - alpha^(k + 1)) / (1 - alpha) / sum of pi_k (1 + k cost_ratio), pi the stationary distribution of k",
       "speedup if the draft length k grows by 2 after full acceptance and shrinks by 1 otherwise, from 1 to draft_length",
       false,
       {kAlphaInput, kCostInput},
       [](const ClosedFormInputs& inputs) {
         const PolicyFigures additive = additive_length(inputs.alpha, 2, 1, 1, round_times(inputs));
         return with_speedup(additive.tokens_per_round, additive.rate());
       }});
  return forms;
}

}  // namespace

const std::vector<ClosedForm>& closed_forms() {
  static const std::vector<ClosedForm> forms = make_closed_forms();
  return forms;
}

const ClosedForm* find_closed_form(std::string_view name) {
  for (const ClosedForm& form : closed_forms()) {
    if (form.name == name) return &form;
  }
  return nullptr;
}

}  // namespace specsim::theory
