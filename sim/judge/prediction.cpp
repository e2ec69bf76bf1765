#include "sim/judge/prediction.h"

#include "sim/math/series.h"
#include "sim/theory/bounds.h"
#include "sim/theory/closed_forms.h"
#include "sim/theory/judgement.h"
#include "sim/theory/lossy.h"
#include "sim/theory/requests.h"
#include "sim/theory/trace_walk.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace specsim::judge {

namespace {

using Kind = families::ContextShape::Kind;

// alpha of truly fresh distributions has no closed form in general: the mean over this many pairs, drawn at addresses that no
// simulation uses.
constexpr std::size_t kFreshPairs = 20000;
constexpr double kFreshBudget = 3e8;  // tokens

void add_fresh_facts(const spec::Cell& cell, const decode::PreparationPlan& plan, DistributionFacts& facts) {
  const decode::DistributionDrawer drawer(plan);
  std::vector<double> target;
  std::vector<double> model;
  std::vector<double> drafted;
  const auto pairs = static_cast<std::uint64_t>(std::clamp(kFreshBudget / cell.vocab, 200.0, static_cast<double>(kFreshPairs)));
  math::CompensatedSum sum;
  math::CompensatedSum squares;
  for (std::uint64_t i = 0; i < pairs; ++i) {
    const std::uint64_t context = (std::uint64_t{1} << 63) + i;
    drawer.target(0, context, target);
    drawer.draft(0, context, 0, target, model, drafted);
    const double alpha = theory::judge(cell.verifier, target, drafted, model).alpha();
    sum.add(alpha);
    squares.add(alpha * alpha);
  }
  const auto n = static_cast<double>(pairs);
  const double mean = sum.value() / n;
  facts.alpha = {{mean}};
  facts.mean_alpha_error = std::sqrt(std::max(squares.value() / n - mean * mean, 0.0) / (n - 1.0));
  facts.chi_squared = std::numeric_limits<double>::quiet_NaN();
  facts.kl = std::numeric_limits<double>::quiet_NaN();
}

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

DistributionFacts gather_facts(const spec::Cell& cell, const decode::PreparationPlan& plan, decode::Prepared* tables,
                               const std::atomic<bool>* stop) {
  DistributionFacts facts;
  const families::ContextProcess& process = *cell.contexts->process;
  const families::ContextShape& shape = process.shape();
  const auto contexts = static_cast<std::size_t>(shape.contexts);
  facts.alpha.assign(contexts, std::vector<double>(static_cast<std::size_t>(shape.depths)));
  const bool markov = shape.kind == Kind::markov && shape.contexts <= kMaxTheoryStates && cell.block_rule == nullptr;
  if (markov) {
    theory::Modulation modulation;
    modulation.states = shape.contexts;
    modulation.accept.assign(1, std::vector<double>(contexts * contexts, 0.0));
    modulation.reject = modulation.accept;
    modulation.bonus.assign(contexts * contexts, 0.0);
    facts.modulation = std::move(modulation);
  }
  const bool judged_apart =
      shape.kind == Kind::markov || shape.kind == Kind::regimes || shape.kind == Kind::requests || shape.kind == Kind::trace;
  std::unique_ptr<BlockFacts> block;
  if (cell.block_rule != nullptr) block = block_facts(cell);
  const decode::DistributionObserver observer = [&](int context, int depth, const verify::PositionDistributions& distributions,
                                                    const decode::OutputClasses& classes) {
    const auto c = static_cast<std::size_t>(context);
    theory::Judgement judgement;
    std::vector<double> emitted;
    if (block) {
      emitted = block->add(context, depth, distributions);
    } else {
      judgement = theory::judge(cell.verifier, distributions.target, distributions.drafted, distributions.draft_model);
      facts.alpha[c][static_cast<std::size_t>(depth)] = judgement.alpha();
      if (!cell.lossless && !judged_apart) emitted = theory::emitted_distribution(judgement);
    }
    if (!emitted.empty()) {
      facts.judged_mass.resize(std::max(facts.judged_mass.size(), static_cast<std::size_t>(depth) + 1));
      std::vector<double>& mass = facts.judged_mass[static_cast<std::size_t>(depth)];
      mass.resize(static_cast<std::size_t>(classes.count));
      for (std::size_t x = 0; x < emitted.size(); ++x) mass[classes.of_token[x]] += emitted[x] / static_cast<double>(contexts);
    }
    if (cell.one_hot_target && *std::max_element(distributions.target.begin(), distributions.target.end()) < 1.0)
      throw BadInput(
          {"", 0, 0},
          cell.experiment + ": verifier " + cell.verifier +
              " met a target that is not one-hot, allowed: pair.target_sampling: {temperature: 0}, or a one_hot target");
    if (depth == 0) {
      const double share = 1.0 / static_cast<double>(contexts);
      facts.chi_squared += share * theory::chi_squared(distributions.drafted, distributions.target);
      facts.kl += share * theory::kl_divergence(distributions.target, distributions.drafted);
    }
    if (facts.modulation) {
      for (std::size_t x = 0; x < distributions.target.size(); ++x) {
        const std::size_t at = c * contexts + process.next(static_cast<std::uint32_t>(context), static_cast<Token>(x));
        facts.modulation->accept[0][at] += judgement.accepted[x];
        facts.modulation->reject[0][at] += judgement.rejected[x];
        facts.modulation->bonus[at] += distributions.target[x];
      }
    }
  };
  decode::Prepared prepared = decode::prepare(plan, observer, tables != nullptr, stop);
  if (block) facts.block = block->answer();
  if (shape.contexts == 0) add_fresh_facts(cell, plan, facts);
  facts.classes.classes = prepared.classes;
  facts.classes.class_count = prepared.class_count;
  facts.classes.bin_of_class = prepared.bin_of_class;
  facts.classes.strata = prepared.strata;
  facts.classes.stratum = prepared.stratum;
  if (tables != nullptr) *tables = std::move(prepared);
  return facts;
}

Prediction predict_exact(const spec::Cell& cell, const DistributionFacts& facts, std::uint64_t work) {
  const families::ContextShape& shape = cell.contexts->process->shape();
  const int draft_length = cell.chain.draft_length;
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
  if (cell.block_rule != nullptr) {
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
  const theory::ClosedForm* form = theory::find_closed_form(cell.theory.name);
  Prediction prediction;
  if (form == nullptr || !exact.known || cell.block_rule != nullptr) return prediction;
  theory::ClosedFormInputs inputs;
  inputs.alpha = exact.alpha;
  inputs.draft_length = cell.chain.draft_length;
  // The mean over contexts by their share of text or requests, where `alpha` above is the one that a log of tries shows.
  const families::ContextShape& shape = cell.contexts->process->shape();
  double mean_alpha = exact.alpha;
  if (!shape.start.empty()) {
    mean_alpha = 0.0;
    for (std::size_t i = 0; i < shape.start.size(); ++i) mean_alpha += shape.start[i] * facts.alpha[i][0];
    mean_alpha = std::min(mean_alpha, 1.0);
  }
  for (int j = 0; j < cell.chain.draft_length; ++j) {
    const std::vector<double>& by_depth = facts.alpha[0];
    inputs.alpha_by_position.push_back(by_depth.size() > 1 ? by_depth[std::min(static_cast<std::size_t>(j), by_depth.size() - 1)]
                                                           : mean_alpha);
  }
  inputs.target_seconds = cell.cost->pass(cost::Role::target, {cell.workload.batch, 1.0, cell.workload.context, 1.0}).total();
  inputs.draft_seconds = cell.cost->draft_pass(cell.workload, 0, 0.0).total();
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
