#include "sim/judge/prediction.h"

#include "sim/math/series.h"
#include "sim/theory/closed_forms.h"
#include "sim/theory/requests.h"
#include "sim/theory/trace_walk.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace specsim::judge {

namespace {

using Kind = families::ContextShape::Kind;

double geometric_slope(double alpha, int draft_length) { return math::geometric_sum_derivative(alpha, draft_length + 1); }

// Of `rounds` rounds, each sequence but the last of sequence_rounds; nullopt: too many to follow.
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
  if (!add(static_cast<double>(rounds / sequence_rounds), sequence_rounds) || !add(1.0, rounds % sequence_rounds))
    return std::nullopt;
  return all;
}

theory::RunMoments modulated_moments(const theory::Modulation& modulation, std::span<const double> start, int draft_length,
                                     int rounds) {
  const theory::SequenceTotals totals = theory::expected_totals(modulation, start, draft_length, rounds);
  theory::RunMoments moments;
  moments.emitted = totals.emitted;
  moments.variance = theory::emitted_variance(modulation, start, draft_length, rounds);
  for (const double tries : totals.tries) moments.tries += tries;
  for (const double accepted : totals.accepted) moments.accepted += accepted;
  return moments;
}

}  // namespace

Prediction predict_exact(const spec::Cell& cell, const DistributionFacts& facts, std::uint64_t work) {
  const families::ContextShape& shape = cell.contexts->process->shape();
  const int draft_length = cell.draft_length();
  const auto rounds = static_cast<double>(work);
  Prediction prediction;
  prediction.missing = facts.block.missing;
  if (!prediction.missing.empty()) return prediction;
  prediction.known = true;
  const auto from_moments = [&](const theory::RunMoments& moments) {
    prediction.tokens_per_round = moments.emitted / rounds;
    prediction.tokens_per_round_error = std::sqrt(moments.variance) / rounds;
    prediction.alpha = moments.tries > 0.0 ? moments.accepted / moments.tries : 0.0;
  };
  const auto from_distribution = [&](theory::RoundDistribution distribution) {
    prediction.tokens_per_round = distribution.mean_emitted();
    prediction.tokens_per_round_error = std::sqrt(distribution.variance_emitted() / rounds);
    double tries = 0.0;
    for (int j = 0; j < draft_length; ++j) tries += distribution.tail(j);
    prediction.alpha = tries > 0.0 ? distribution.mean_accepted() / tries : 0.0;
    prediction.accepted_distribution = {std::move(distribution)};
  };
  const auto from_requests = [&](const std::vector<theory::RoundDistribution>& distributions) {
    std::vector<theory::RequestType> types;
    double tries = 0.0;
    double accepted = 0.0;
    const auto request_tokens = static_cast<int>(shape.request_tokens);
    for (std::size_t i = 0; i < distributions.size(); ++i) {
      types.push_back({shape.start[i], distributions[i]});
      const theory::RequestTotals totals = theory::request_totals(distributions[i], request_tokens);
      const double started = shape.start[i] * (totals.whole_rounds + totals.cut_rounds);
      for (int j = 0; j < draft_length; ++j) tries += started * distributions[i].tail(j);
      accepted += started * distributions[i].mean_accepted();
    }
    const theory::RequestTotals totals = theory::request_totals(types, request_tokens);
    if (!(totals.whole_rounds > 0.0)) {
      prediction = {};
      prediction.missing = "requests so short that no round is ever whole";
      return;
    }
    prediction.tokens_per_round = totals.tokens_per_round();
    prediction.tokens_per_round_error = theory::tokens_per_round_standard_error(types, request_tokens, rounds);
    prediction.alpha = tries > 0.0 ? accepted / tries : 0.0;
    prediction.accepted_distribution = distributions;  // of every round, cut ones too
  };
  if (cell.block() != nullptr) {
    if (shape.kind == Kind::requests) {
      from_requests(facts.block.distributions);
    } else if (!facts.block.sequence) {
      from_distribution(facts.block.distributions.at(0));
    } else if (const auto moments = moments_of(facts.block.sequence, work, cell.sequence_rounds)) {
      from_moments(*moments);
      prediction.accepted_distribution = facts.block.distributions;
    } else {
      prediction = {};
      prediction.missing =
          fmt::format("sequences of {} rounds have too many histories, fewer sequence_rounds would do", cell.sequence_rounds);
      return prediction;
    }
    prediction.tokens_per_round_error = std::hypot(prediction.tokens_per_round_error, facts.block.mean_error);
    return prediction;
  }
  switch (shape.kind) {
    case Kind::fixed:
      from_distribution(theory::constant_alpha(facts.alpha[0][0], draft_length));
      break;
    case Kind::iid_pool: {
      math::CompensatedSum sum;
      for (const std::vector<double>& alpha : facts.alpha) sum.add(alpha[0]);
      from_distribution(theory::constant_alpha(sum.value() / static_cast<double>(facts.alpha.size()), draft_length));
      break;
    }
    case Kind::iid_fresh: {
      from_distribution(theory::constant_alpha(facts.alpha[0][0], draft_length));
      const double slope = geometric_slope(facts.alpha[0][0], draft_length) * facts.mean_alpha_error;
      prediction.tokens_per_round_error = std::hypot(prediction.tokens_per_round_error, slope);
      if (facts.mean_alpha_error > 1e-9)
        prediction.accepted_distribution.clear();  // an estimated alpha is no distribution to test against exactly
      break;
    }
    case Kind::by_depth: {
      std::vector<double> alpha(static_cast<std::size_t>(draft_length));
      for (std::size_t j = 0; j < alpha.size(); ++j) alpha[j] = facts.alpha[0][std::min(j, facts.alpha[0].size() - 1)];
      from_distribution(theory::by_position(alpha));
      break;
    }
    case Kind::markov:
    case Kind::regimes: {
      if (shape.kind == Kind::markov && !facts.modulation) {
        prediction = {};
        prediction.missing = fmt::format("{} contexts are too many: at most {}", shape.contexts, kMaxTheoryStates);
        return prediction;
      }
      theory::Modulation modulation;
      if (shape.kind == Kind::markov) {
        modulation = *facts.modulation;
      } else {
        std::vector<double> alpha;
        for (const std::vector<double>& by_depth : facts.alpha) alpha.push_back(by_depth[0]);
        modulation = theory::hidden_regimes(std::span<const double>(alpha), shape.transition);
      }
      std::vector<double> start = shape.start;
      if (start.empty()) {
        start.assign(static_cast<std::size_t>(shape.contexts), 0.0);
        start[0] = 1.0;
      }
      const auto sequence = [&](int length) { return modulated_moments(modulation, start, draft_length, length); };
      from_moments(moments_of(sequence, work, cell.sequence_rounds).value());
      prediction.accepted_distribution = theory::round_distribution_by_state(modulation, draft_length);
      break;
    }
    case Kind::trace: {
      std::vector<double> alpha;
      for (const std::vector<double>& by_depth : facts.alpha) alpha.push_back(by_depth[0]);
      const auto sequence = [&](int length) { return theory::trace_moments(alpha, shape.starts, draft_length, length); };
      from_moments(moments_of(sequence, work, cell.sequence_rounds).value());
      prediction.accepted_distribution = theory::trace_distributions(alpha, draft_length);
      break;
    }
    case Kind::requests: {
      std::vector<theory::RoundDistribution> distributions;
      for (const std::vector<double>& alpha : facts.alpha)
        distributions.push_back(theory::constant_alpha(alpha[0], draft_length));
      from_requests(distributions);
      break;
    }
  }
  return prediction;
}

Prediction predict_named(const spec::Cell& cell, const DistributionFacts& facts, const Prediction& exact) {
  const auto* named = std::get_if<spec::NamedTheory>(&cell.theory);
  const theory::ClosedForm* form = named != nullptr ? named->form : nullptr;
  Prediction prediction;
  if (form == nullptr || !exact.known || cell.block() != nullptr) return prediction;
  theory::ClosedFormInputs inputs;
  inputs.alpha = exact.alpha;
  inputs.draft_length = cell.draft_length();
  // The mean over contexts by their share of text or requests, where `alpha` above is the one that a log of tries shows.
  const families::ContextShape& shape = cell.contexts->process->shape();
  double mean_alpha = exact.alpha;
  if (!shape.start.empty()) {
    mean_alpha = 0.0;
    for (std::size_t i = 0; i < shape.start.size(); ++i) mean_alpha += shape.start[i] * facts.alpha[i][0];
    mean_alpha = std::min(mean_alpha, 1.0);
  }
  for (int j = 0; j < cell.draft_length(); ++j) {
    const std::vector<double>& by_depth = facts.alpha[0];
    inputs.alpha_by_position.push_back(by_depth.size() > 1 ? by_depth[std::min(static_cast<std::size_t>(j), by_depth.size() - 1)]
                                                           : mean_alpha);
  }
  inputs.target_seconds = cell.cost().pass(cost::Role::target, {cell.workload.batch, 1.0, cell.workload.context, 1.0}).total();
  inputs.draft_seconds = cell.cost().draft_pass(cell.workload, 0, 0.0).total();
  inputs.cost_ratio = inputs.draft_seconds / inputs.target_seconds;
  const theory::ClosedFormPrediction answer = form->evaluate(inputs);
  prediction.alpha = exact.alpha;
  prediction.tokens_per_round_error = exact.tokens_per_round_error;
  prediction.speedup = answer.speedup;
  // A form is held to what it claims in the end: a speedup or a rate is turned into tokens per round by the ratio model's own
  // time, so that one check serves all.
  const cost::RoundTime time = cell.round_time(0.0);
  const double round_time = time.total() / time.plain.total();
  if (answer.speedup)
    prediction.tokens_per_round = *answer.speedup * round_time;
  else if (answer.tokens_per_second)
    prediction.tokens_per_round = *answer.tokens_per_second * inputs.target_seconds * round_time;
  else if (answer.tokens_per_round)
    prediction.tokens_per_round = *answer.tokens_per_round;
  else
    return prediction;
  prediction.known = true;
  if (answer.distribution && facts.classes.strata == 1) prediction.accepted_distribution = {*answer.distribution};
  return prediction;
}

}  // namespace specsim::judge
