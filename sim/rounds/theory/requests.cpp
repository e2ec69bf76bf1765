#include "sim/rounds/theory/requests.h"

#include "sim/foundation/base/check.h"
#include "sim/foundation/math/series.h"
#include "sim/rounds/theory/state_matrices.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>

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

// First and second moments of (tokens - ratio rounds) over the whole rounds of a request, from its start.
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

// The same by the state in which the next round begins.
struct StateMoments {
  Vector first;
  Vector second;
};

// The second moment over requests that begin in `start`, by the round that comes first.
double second_moment(const Modulation& modulation, std::span<const double> start, int draft_length, std::size_t request_tokens,
                     double ratio) {
  const std::size_t states = start.size();
  const Vector nothing(states, 0.0);
  std::vector<StateMoments> left;  // [tokens left]
  for (std::size_t tokens = 0; tokens <= request_tokens; ++tokens) {
    left.push_back({nothing, nothing});
    if (tokens == 0) continue;
    // A round with this many tokens: its own contribution, and that of the rounds after it. A round that would go beyond the end
    // is cut and contributes nothing.
    const auto after_round = [&](int accepted, Vector& first, Vector& second) {
      const std::size_t emitted = static_cast<std::size_t>(accepted) + 1;
      first = second = nothing;
      if (emitted > tokens) return;
      const double gain = static_cast<double>(emitted) - ratio;
      const StateMoments& after = left[tokens - emitted];
      for (std::size_t s = 0; s < states; ++s) {
        first[s] = gain + after.first[s];
        second[s] = gain * gain + 2.0 * gain * after.first[s] + after.second[s];
      }
    };
    Vector first;
    Vector second;
    after_round(draft_length, first, second);
    Vector first_here = times_column(modulation.bonus, first);
    Vector second_here = times_column(modulation.bonus, second);
    for (int j = draft_length - 1; j >= 0; --j) {
      after_round(j, first, second);
      const Matrix& accept = at_position(modulation.accept, j);
      const Matrix& reject = at_position(modulation.reject, j);
      const Vector first_on = times_column(accept, first_here);
      const Vector second_on = times_column(accept, second_here);
      first_here = times_column(reject, first);
      second_here = times_column(reject, second);
      for (std::size_t s = 0; s < states; ++s) {
        first_here[s] += first_on[s];
        second_here[s] += second_on[s];
      }
    }
    left.back() = {std::move(first_here), std::move(second_here)};
  }
  return dot(start, left.back().second);
}

}  // namespace

double RequestTotals::tokens_per_round() const {
  SPECSIM_CHECK(whole_rounds > 0.0, "no round is ever whole: whole_rounds = {}", whole_rounds);
  return whole_tokens / whole_rounds;
}

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
  // The ratio is chosen so that the residual's mean over the mixture is 0. Its second moment is then its variance.
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

double MovingRequests::tokens_per_round_standard_error(double requests) const {
  SPECSIM_CHECK(requests > 0.0, "requests = {}", requests);
  return std::sqrt(residual / requests) / totals.whole_rounds;
}

MovingRequests moving_requests(const Modulation& modulation, std::span<const double> start, int draft_length,
                               int request_tokens) {
  check_modulation(modulation, draft_length);
  SPECSIM_CHECK(start.size() == index_of(modulation.states), "{} entries for {} states", start.size(), modulation.states);
  SPECSIM_CHECK(request_tokens >= 1, "request_tokens = {}", request_tokens);
  const auto end = static_cast<std::size_t>(request_tokens);
  std::vector<Vector> ends(end + 1, Vector(start.size(), 0.0));  // u_n
  ends[0].assign(start.begin(), start.end());
  MovingRequests result;
  for (std::size_t n = 0; n <= end; ++n) {
    const double here = total(ends[n]);
    if (n > 0) {
      result.totals.whole_rounds += here;
      if (n == end) result.totals.whole_tokens += static_cast<double>(n) * here;
    }
    if (n == end) break;
    Vector row = ends[n];
    const std::size_t left = end - n;
    double cut = 0.0;
    const auto emit = [&](std::size_t emitted, const Vector& from, const Matrix& matrix) {
      if (emitted <= left)
        add_row_times(from, matrix, 1.0, ends[n + emitted]);
      else
        cut += total(row_times(from, matrix));
    };
    for (int j = 0; j < draft_length; ++j) {
      result.tries += total(row);
      emit(static_cast<std::size_t>(j) + 1, row, at_position(modulation.reject, j));
      row = row_times(row, at_position(modulation.accept, j));
      result.accepted += total(row);
    }
    emit(static_cast<std::size_t>(draft_length) + 1, row, modulation.bonus);
    // The last whole round ended here if the next one overshoots.
    result.totals.whole_tokens += static_cast<double>(n) * cut;
    result.totals.cut_tokens += static_cast<double>(left) * cut;
    result.totals.cut_rounds += cut;
  }
  if (result.totals.whole_rounds > 0.0)
    result.residual = second_moment(modulation, start, draft_length, end, result.totals.tokens_per_round());
  return result;
}

PoolingFigures pooling_figures(std::span<const double> alpha, std::span<const double> weight, int draft_length) {
  SPECSIM_CHECK(alpha.size() == weight.size(), "{} alphas, {} weights", alpha.size(), weight.size());
  SPECSIM_CHECK(draft_length >= 1, "draft_length = {}", draft_length);
  std::vector<RequestType> types;
  for (std::size_t i = 0; i < alpha.size(); ++i) types.push_back({weight[i], constant_alpha(alpha[i], draft_length)});
  const double weights = total_weight(types);
  PoolingFigures figures;
  figures.equal_tokens = equal_tokens_limit(types);
  double tries = 0.0;
  double accepted = 0.0;
  for (std::size_t i = 0; i < alpha.size(); ++i) {
    figures.equal_rounds += weight[i] / weights * types[i].distribution.mean_emitted();
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
