#include "sim/rounds/theory/requests.h"

#include "sim/foundation/base/check.h"
#include "sim/foundation/math/series.h"

#include <algorithm>
#include <cmath>

namespace specsim::theory {
namespace {

double total_weight(std::span<const RequestType> types) {
  SPECSIM_CHECK(!types.empty(), "no request types");
  double sum = 0.0;
  for (const RequestType& type : types) {
    SPECSIM_CHECK(type.weight >= 0.0, "weight = {}", type.weight);
    sum += type.weight;
  }
  SPECSIM_CHECK(sum > 0.0, "weights sum to {}", sum);
  return sum;
}

void check_request(const RoundDistribution& distribution, int request_tokens) {
  SPECSIM_CHECK(!distribution.accepted.empty(), "empty round distribution");
  SPECSIM_CHECK(request_tokens >= 1, "request_tokens = {}", request_tokens);
}

// First and second moments of (tokens - ratio rounds) over the whole rounds of a request that has all tokens to go.
struct Moments {
  double first = 0.0;
  double second = 0.0;
};

Moments residual_moments(const RoundDistribution& distribution, int request_tokens, double ratio) {
  std::vector<Moments> left(static_cast<std::size_t>(request_tokens) + 1);
  for (std::size_t tokens = 1; tokens < left.size(); ++tokens) {
    const std::size_t longest = std::min(tokens, distribution.accepted.size());
    for (std::size_t emitted = 1; emitted <= longest; ++emitted) {
      const double chance = distribution.accepted[emitted - 1];
      const double gain = static_cast<double>(emitted) - ratio;
      const Moments& after = left[tokens - emitted];
      left[tokens].first += chance * (gain + after.first);
      left[tokens].second += chance * (gain * gain + 2.0 * gain * after.first + after.second);
    }
  }
  return left.back();
}

}  // namespace

double RequestTotals::tokens_per_round() const {
  SPECSIM_CHECK(whole_rounds > 0.0, "no round is ever whole: whole_rounds = {}", whole_rounds);
  return whole_tokens / whole_rounds;
}

double RequestTotals::tokens_per_round_counting_cut() const { return (whole_tokens + cut_tokens) / (whole_rounds + cut_rounds); }

RequestTotals request_totals(const RoundDistribution& distribution, int request_tokens) {
  check_request(distribution, request_tokens);
  const auto end = static_cast<std::size_t>(request_tokens);
  std::vector<double> round_ends(end + 1, 0.0);
  round_ends[0] = 1.0;
  math::CompensatedSum whole_rounds;
  math::CompensatedSum whole_tokens;
  math::CompensatedSum cut_tokens;
  for (std::size_t tokens = 0; tokens <= end; ++tokens) {
    const std::size_t longest = std::min(tokens, distribution.accepted.size());
    for (std::size_t emitted = 1; emitted <= longest; ++emitted) {
      round_ends[tokens] += round_ends[tokens - emitted] * distribution.accepted[emitted - 1];
    }
    if (tokens > 0) whole_rounds += round_ends[tokens];
    // The last whole round ends here if the next one would overshoot, that is emit more than end - tokens >= 1.
    const std::size_t left = end - tokens;
    const double last = left == 0 ? 1.0 : distribution.tail(static_cast<int>(std::min(left, distribution.accepted.size())));
    whole_tokens += static_cast<double>(tokens) * round_ends[tokens] * last;
    cut_tokens += static_cast<double>(left) * round_ends[tokens] * last;
  }
  RequestTotals totals;
  totals.whole_rounds = whole_rounds.value();
  totals.whole_tokens = whole_tokens.value();
  totals.cut_rounds = 1.0 - round_ends[end];
  totals.cut_tokens = cut_tokens.value();
  return totals;
}

RequestTotals request_totals(std::span<const RequestType> types, int request_tokens) {
  const double weights = total_weight(types);
  RequestTotals mixture;
  for (const RequestType& type : types) {
    const RequestTotals one = request_totals(type.distribution, request_tokens);
    const double share = type.weight / weights;
    mixture.whole_rounds += share * one.whole_rounds;
    mixture.whole_tokens += share * one.whole_tokens;
    mixture.cut_rounds += share * one.cut_rounds;
    mixture.cut_tokens += share * one.cut_tokens;
  }
  return mixture;
}

double tokens_per_round_standard_error(std::span<const RequestType> types, int request_tokens, double requests) {
  SPECSIM_CHECK(requests > 0.0, "requests = {}", requests);
  const RequestTotals totals = request_totals(types, request_tokens);
  const double ratio = totals.tokens_per_round();
  const double weights = total_weight(types);
  // The residual's mean over the mixture is 0 by the choice of the ratio, so its second moment is its variance.
  double second = 0.0;
  for (const RequestType& type : types) {
    second += type.weight / weights * residual_moments(type.distribution, request_tokens, ratio).second;
  }
  return std::sqrt(second / requests) / totals.whole_rounds;
}

double equal_tokens_limit(std::span<const RequestType> types) {
  const double weights = total_weight(types);
  double rounds_per_token = 0.0;
  for (const RequestType& type : types) rounds_per_token += type.weight / weights / type.distribution.mean_emitted();
  return 1.0 / rounds_per_token;
}

double equal_rounds_mean(std::span<const RequestType> types) {
  const double weights = total_weight(types);
  double mean = 0.0;
  for (const RequestType& type : types) mean += type.weight / weights * type.distribution.mean_emitted();
  return mean;
}

PoolingFigures pooling_figures(std::span<const double> alpha, std::span<const double> weight, int draft_length) {
  SPECSIM_CHECK(alpha.size() == weight.size(), "{} alphas, {} weights", alpha.size(), weight.size());
  SPECSIM_CHECK(draft_length >= 1, "draft_length = {}", draft_length);
  std::vector<RequestType> types;
  for (std::size_t i = 0; i < alpha.size(); ++i) types.push_back({weight[i], constant_alpha(alpha[i], draft_length)});
  const double weights = total_weight(types);
  PoolingFigures figures;
  figures.equal_tokens = equal_tokens_limit(types);
  figures.equal_rounds = equal_rounds_mean(types);
  double tries = 0.0;
  double accepted = 0.0;
  for (std::size_t i = 0; i < alpha.size(); ++i) {
    figures.mean_alpha += weight[i] / weights * alpha[i];
    // Equal tokens: a request of this type takes 1 / E[emitted] rounds per token, each with geometric_sum tries.
    const double rounds = weight[i] / weights / tokens_per_round(alpha[i], draft_length);
    const double tries_per_round = math::geometric_sum(alpha[i], draft_length);
    tries += rounds * tries_per_round;
    accepted += rounds * tries_per_round * alpha[i];
  }
  figures.pooled_alpha = accepted / tries;
  figures.at_mean_alpha = tokens_per_round(std::min(1.0, figures.mean_alpha), draft_length);
  figures.at_pooled_alpha = tokens_per_round(std::min(1.0, figures.pooled_alpha), draft_length);
  return figures;
}

}  // namespace specsim::theory
