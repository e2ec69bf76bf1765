#include "sim/experiments/judge/prediction.h"

#include "sim/experiments/judge/method.h"
#include "sim/rounds/theory/closed_forms.h"
#include "sim/rounds/theory/requests.h"
#include "sim/rounds/theory/trace_walk.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>

namespace specsim::judge {

namespace {

// Moments of a run of `rounds` rounds, in sequences of sequence_rounds rounds; the last sequence has the remainder. nullopt if a
// sequence has too many rounds to follow.
std::optional<theory::RunMoments> moments_of(const std::function<std::optional<theory::RunMoments>(int rounds)>& sequence,
                                             std::uint64_t rounds, std::uint32_t sequence_rounds) {
  theory::RunMoments all;
  const auto add = [&](double sequences, std::uint64_t length) {
    if (sequences == 0.0 || length == 0) return true;
    const std::optional<theory::RunMoments> one = sequence(static_cast<int>(length));
    if (!one) return false;
    all.emitted += sequences * one->emitted;
    all.variance += sequences * one->variance;
    all.accepted += sequences * one->accepted;
    all.tries += sequences * one->tries;
    return true;
  };
  const std::uint64_t whole = rounds / sequence_rounds;
  if (!add(static_cast<double>(whole), sequence_rounds) || !add(1.0, rounds % sequence_rounds)) return std::nullopt;
  return all;
}

constexpr const char* kNoWholeRound = "requests are too short for a whole round";

Prediction without(std::string why) {
  Prediction prediction;
  prediction.missing = std::move(why);
  return prediction;
}

}  // namespace

Prediction predict_exact(const spec::Cell& cell, const DistributionFacts& facts, std::uint64_t work) {
  if (facts.theory == nullptr) return without(facts.missing);
  RoundTheory theory = facts.theory->answer(cell);
  if (!theory.missing.empty()) return without(std::move(theory.missing));
  Prediction prediction;
  const families::ContextShape& shape = context_shape(cell);
  const int length = draft_length(cell);
  const auto rounds = static_cast<double>(work);
  prediction.known = true;
  if (shape.request_tokens > 0 && theory.requests) {
    const theory::MovingRequests requests = theory.requests(static_cast<int>(shape.request_tokens));
    if (!(requests.totals.whole_rounds > 0.0)) return without(kNoWholeRound);
    prediction.tokens_per_round = requests.totals.tokens_per_round();
    prediction.tokens_per_round_error = requests.tokens_per_round_standard_error(rounds);
    prediction.alpha = requests.tries > 0.0 ? requests.accepted / requests.tries : 0.0;
    prediction.accepted_distribution = std::move(theory.distributions);
  } else if (shape.request_tokens > 0 && theory.sequence) {
    return without("theory covers requests of equally many tokens whose contexts move only for chains");
  } else if (shape.request_tokens > 0) {
    std::vector<theory::RequestType> types;
    double tries = 0.0;
    double accepted = 0.0;
    const auto request_tokens = static_cast<int>(shape.request_tokens);
    for (std::size_t i = 0; i < theory.distributions.size(); ++i) {
      const theory::RoundDistribution& own = theory.distributions[i];
      types.push_back({shape.start[i], own});
      const theory::RequestTotals totals = theory::request_totals(own, request_tokens);
      const double started = shape.start[i] * (totals.whole_rounds + totals.cut_rounds);
      for (int j = 0; j < length; ++j) tries += started * own.tail(j);
      accepted += started * own.mean_accepted();
    }
    const theory::RequestTotals totals = theory::request_totals(types, request_tokens);
    if (!(totals.whole_rounds > 0.0)) return without(kNoWholeRound);
    prediction.tokens_per_round = totals.tokens_per_round();
    prediction.tokens_per_round_error = theory::tokens_per_round_standard_error(types, request_tokens, rounds);
    prediction.alpha = tries > 0.0 ? accepted / tries : 0.0;
    prediction.accepted_distribution = std::move(theory.distributions);  // every round counts, even one that was cut
  } else if (shape.ends()) {
    const theory::RecordTotals totals = theory::record_totals(theory.distributions, shape.starts, length);
    prediction.tokens_per_round = totals.tokens_per_round();
    prediction.tokens_per_round_error = totals.tokens_per_round_standard_error(rounds);
    prediction.alpha = totals.tries > 0.0 ? totals.accepted / totals.tries : 0.0;
    prediction.accepted_distribution = std::move(theory.distributions);
  } else if (!theory.sequence) {
    const theory::RoundDistribution& distribution = theory.distributions.at(0);
    prediction.tokens_per_round = distribution.mean_emitted();
    prediction.tokens_per_round_error = std::sqrt(distribution.variance_emitted() / rounds);
    double tries = 0.0;
    for (int j = 0; j < length; ++j) tries += distribution.tail(j);
    prediction.alpha = tries > 0.0 ? distribution.mean_accepted() / tries : 0.0;
    prediction.accepted_distribution = {distribution};
  } else if (const auto moments = moments_of(theory.sequence, work, cell.sequence_rounds)) {
    prediction.tokens_per_round = moments->emitted / rounds;
    prediction.tokens_per_round_error = std::sqrt(moments->variance) / rounds;
    prediction.alpha = moments->tries > 0.0 ? moments->accepted / moments->tries : 0.0;
    prediction.accepted_distribution = std::move(theory.distributions);
  } else {
    return without(
        fmt::format("sequences of {} rounds have too many histories, use fewer sequence_rounds", cell.sequence_rounds));
  }
  prediction.theory_error = theory.mean_error;
  prediction.tokens_per_round_error = std::hypot(prediction.tokens_per_round_error, theory.mean_error);
  if (theory.estimated) prediction.accepted_distribution.clear();
  prediction.alpha_by_context = std::move(theory.alpha);
  return prediction;
}

Prediction predict_named(const spec::Cell& cell, const DistributionFacts& facts, const Prediction& exact) {
  const auto* named = std::get_if<spec::NamedTheory>(&cell.theory);
  const theory::ClosedForm* form = named != nullptr ? named->form : nullptr;
  Prediction prediction;
  if (form == nullptr) return prediction;
  if (!exact.known) return without(exact.missing);
  if (exact.alpha_by_context.empty())
    return without(fmt::format("closed form {} reads the acceptance of each position, which verifier {} does not have",
                               spec::theory_name(cell.theory), verifier_name(cell)));
  theory::ClosedFormInputs inputs;
  inputs.alpha = exact.alpha;
  inputs.draft_length = draft_length(cell);
  // The mean over contexts by their share of text or requests. `alpha` above is the one that a log of judged tokens shows.
  const families::ContextShape& shape = context_shape(cell);
  double mean_alpha = exact.alpha;
  if (!shape.start.empty()) {
    mean_alpha = 0.0;
    for (std::size_t i = 0; i < shape.start.size(); ++i) mean_alpha += shape.start[i] * exact.alpha_by_context[i][0];
    mean_alpha = std::min(mean_alpha, 1.0);
  }
  for (int j = 0; j < draft_length(cell); ++j) {
    const std::vector<double>& by_depth = exact.alpha_by_context[0];
    inputs.alpha_by_position.push_back(by_depth.size() > 1 ? by_depth[std::min(static_cast<std::size_t>(j), by_depth.size() - 1)]
                                                           : mean_alpha);
  }
  if (cell.cost_choice) {
    inputs.target_seconds = cell.cost().pass(cost::Role::target, {cell.workload.batch, 1.0, cell.workload.context, 1.0}).total();
    inputs.draft_seconds = cell.cost().draft_pass(cell.workload, 0, 0.0).total();
    // Closed forms count one pass per token.
    if (!cell.cost().makes_draft_pass(1) && inputs.draft_length > 0) {
      inputs.draft_seconds = 0.0;
      for (int j = 0; j < inputs.draft_length; ++j)
        inputs.draft_seconds += cell.cost().draft_pass(cell.workload, j, 0.0).total() / inputs.draft_length;
    }
    inputs.cost_ratio = inputs.draft_seconds / inputs.target_seconds;
  }
  const theory::ClosedFormPrediction answer = form->evaluate(inputs);
  prediction.alpha = exact.alpha;
  prediction.tokens_per_round_error = exact.tokens_per_round_error;
  prediction.theory_error = exact.theory_error;
  prediction.speedup = answer.speedup;
  // A form is tested on the figure that it predicts. A speedup or a rate is converted to tokens per round by the ratio model's
  // own time, so that one check serves all forms. Forms that predict a speedup or a rate need a cost.
  const cost::RoundTime time = cell.cost_choice ? cell.round_time(0.0) : cost::RoundTime();
  const double round_time = cell.cost_choice ? time.total() / time.plain.total() : 1.0;
  if (answer.speedup)
    prediction.tokens_per_round = *answer.speedup * round_time;
  else if (answer.tokens_per_second)
    prediction.tokens_per_round = *answer.tokens_per_second * inputs.target_seconds * round_time;
  else if (answer.tokens_per_round)
    prediction.tokens_per_round = *answer.tokens_per_round;
  else
    return without(fmt::format("closed form {} does not cover this cell", spec::theory_name(cell.theory)));
  prediction.known = true;
  if (answer.distribution && facts.classes.strata == 1) prediction.accepted_distribution = {*answer.distribution};
  return prediction;
}

}  // namespace specsim::judge
