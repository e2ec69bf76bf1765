#include "sim/experiments/judge/position_rounds.h"

#include "sim/experiments/judge/method.h"
#include "sim/foundation/math/series.h"
#include "sim/rounds/decode/simulator.h"
#include "sim/rounds/theory/lossy.h"
#include "sim/rounds/theory/modulated.h"
#include "sim/rounds/theory/requests.h"
#include "sim/rounds/theory/trace_walk.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace specsim::judge {

namespace {

using Kind = families::ContextShape::Kind;

// alpha of truly fresh distributions has no closed form in general. It is estimated as the mean over this many pairs, drawn at
// addresses that no simulation uses.
constexpr std::size_t kFreshPairs = 20000;
constexpr double kFreshBudget = 3e8;  // tokens
// A few seconds of multiplications, for requests of equally many tokens whose contexts move.
constexpr double kMostRequestWork = 1.5e9;

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

class PositionRounds final : public CellTheory {
 public:
  PositionRounds(const spec::Cell& cell, PositionJudge judge);
  std::vector<double> see(int context, int depth, const verify::PositionDistributions& distributions) override;
  void finish() override;
  [[nodiscard]] RoundTheory answer(const spec::Cell& cell) const override;

 private:
  void sample_fresh();
  [[nodiscard]] std::vector<double> first_alphas() const;
  [[nodiscard]] std::vector<std::vector<double>> alphas_by_depth(int length) const;

  const spec::Cell* cell_;
  const families::ContextShape* shape_;
  PositionJudge judge_;
  std::vector<std::vector<double>> alpha_;  // [context][depth]
  double mean_alpha_error_ = 0.0;           // fresh distributions: standard error of alpha_[0][0], a mean over sampled pairs
  theory::Modulation modulation_;           // markov: moves between contexts by token
};

PositionRounds::PositionRounds(const spec::Cell& cell, PositionJudge judge)
    : cell_(&cell), shape_(&context_shape(cell)), judge_(std::move(judge)) {
  const auto contexts = static_cast<std::size_t>(shape_->contexts);
  alpha_.assign(contexts, std::vector<double>(static_cast<std::size_t>(shape_->depths)));
  if (shape_->kind == Kind::markov) {
    modulation_.states = shape_->contexts;
    modulation_.accept.assign(1, std::vector<double>(contexts * contexts, 0.0));
    modulation_.reject = modulation_.accept;
    modulation_.bonus.assign(contexts * contexts, 0.0);
  }
}

std::vector<double> PositionRounds::see(int context, int depth, const verify::PositionDistributions& distributions) {
  const auto contexts = static_cast<std::size_t>(shape_->contexts);
  const auto c = static_cast<std::size_t>(context);
  const theory::Judgement judgement = judge_(distributions);
  alpha_[c][static_cast<std::size_t>(depth)] = judgement.alpha();
  if (shape_->kind == Kind::markov) {
    for (std::size_t x = 0; x < distributions.target.size(); ++x) {
      const std::size_t at = c * contexts + process(*cell_).next(static_cast<std::uint32_t>(context), static_cast<Token>(x));
      modulation_.accept[0][at] += judgement.accepted[x];
      modulation_.reject[0][at] += judgement.rejected[x];
      modulation_.bonus[at] += distributions.target[x];
    }
  }
  if (cell_->lossless() || shape_->judged_separately()) return {};
  return theory::emitted_distribution(judgement);
}

void PositionRounds::finish() {
  if (shape_->contexts == 0) sample_fresh();
}

void PositionRounds::sample_fresh() {
  const decode::PreparationPlan plan = spec::plan_of(*cell_);
  const decode::DistributionDrawer drawer(plan);
  std::vector<double> target;
  std::vector<double> model;
  std::vector<double> drafted;
  const auto pairs = static_cast<std::uint64_t>(std::clamp(kFreshBudget / cell_->vocab, 200.0, static_cast<double>(kFreshPairs)));
  math::CompensatedSum sum;
  math::CompensatedSum squares;
  for (std::uint64_t i = 0; i < pairs; ++i) {
    const std::uint64_t context = (std::uint64_t{1} << 63) + i;
    drawer.target(0, context, target);
    drawer.draft(0, context, 0, target, model, drafted);
    const double alpha = judge_({target, drafted, model}).alpha();
    sum.add(alpha);
    squares.add(alpha * alpha);
  }
  const auto n = static_cast<double>(pairs);
  const double mean = sum.value() / n;
  alpha_ = {{mean}};
  mean_alpha_error_ = std::sqrt(std::max(squares.value() / n - mean * mean, 0.0) / (n - 1.0));
}

std::vector<double> PositionRounds::first_alphas() const {
  std::vector<double> alpha;
  for (const std::vector<double>& by_depth : alpha_) alpha.push_back(by_depth[0]);
  return alpha;
}

// [depth][context]; a single row serves all depths if the draft has one distribution per context.
std::vector<std::vector<double>> PositionRounds::alphas_by_depth(int length) const {
  std::vector<std::vector<double>> rows(shape_->depths > 1 ? static_cast<std::size_t>(std::max(length, 1)) : 1);
  for (std::size_t depth = 0; depth < rows.size(); ++depth)
    for (const std::vector<double>& by_depth : alpha_) rows[depth].push_back(by_depth[std::min(depth, by_depth.size() - 1)]);
  return rows;
}

RoundTheory PositionRounds::answer(const spec::Cell& cell) const {
  const int length = draft_length(cell);
  RoundTheory result;
  result.alpha = alpha_;
  switch (shape_->kind) {
    case Kind::by_rank:
    case Kind::other:
      result.missing = "the transitions between contexts are unknown";
      break;
    case Kind::fixed:
      result.distributions = {theory::constant_alpha(alpha_[0][0], length)};
      break;
    case Kind::iid_pool: {
      math::CompensatedSum sum;
      for (const std::vector<double>& alpha : alpha_) sum.add(alpha[0]);
      result.distributions = {theory::constant_alpha(sum.value() / static_cast<double>(alpha_.size()), length)};
      break;
    }
    case Kind::iid_fresh:
      result.distributions = {theory::constant_alpha(alpha_[0][0], length)};
      result.mean_error = math::geometric_sum_derivative(alpha_[0][0], length + 1) * mean_alpha_error_;
      result.estimated = mean_alpha_error_ > 1e-9;
      break;
    case Kind::by_depth: {
      std::vector<double> alpha(static_cast<std::size_t>(length));
      for (std::size_t j = 0; j < alpha.size(); ++j) alpha[j] = alpha_[0][std::min(j, alpha_[0].size() - 1)];
      result.distributions = {theory::by_position(alpha)};
      break;
    }
    case Kind::markov:
    case Kind::regimes: {
      theory::Modulation modulation =
          shape_->kind == Kind::markov ? modulation_ : theory::hidden_regimes(alphas_by_depth(length), shape_->transition);
      result.distributions = theory::round_distribution_by_state(modulation, length);
      std::vector<double> start = shape_->start;
      if (start.empty()) {
        start.assign(static_cast<std::size_t>(shape_->contexts), 0.0);
        start[0] = 1.0;
      }
      if (static_cast<double>(shape_->request_tokens) * (length + 1) * shape_->contexts * shape_->contexts > kMostRequestWork) {
        result.missing =
            fmt::format("requests of {} tokens are too long to follow at draft_length {}", shape_->request_tokens, length);
        break;
      }
      if (shape_->request_tokens > 0)
        result.requests = [modulation, start, length](int tokens) {
          return theory::moving_requests(modulation, start, length, tokens);
        };
      result.sequence = [modulation = std::move(modulation), start = std::move(start),
                         length](int rounds) -> std::optional<theory::RunMoments> {
        return modulated_moments(modulation, start, length, rounds);
      };
      break;
    }
    case Kind::trace:
      result.distributions = theory::trace_distributions(first_alphas(), length);
      break;
    case Kind::requests:
      for (const double alpha : first_alphas()) result.distributions.push_back(theory::constant_alpha(alpha, length));
      break;
  }
  return result;
}

}  // namespace

Coverage follow_positions(const spec::Cell& cell, PositionJudge judge) {
  const families::ContextShape& shape = context_shape(cell);
  if (shape.kind == Kind::markov && shape.contexts > kMaxTheoryStates)
    return {nullptr, fmt::format("{} contexts are too many: at most {}", shape.contexts, kMaxTheoryStates)};
  return {std::make_unique<PositionRounds>(cell, std::move(judge)), ""};
}

}  // namespace specsim::judge
