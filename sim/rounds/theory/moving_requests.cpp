#include "sim/rounds/theory/moving_requests.h"

#include "sim/foundation/base/check.h"
#include "sim/rounds/theory/state_matrices.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace specsim::theory {
namespace {

double sum_of(std::span<const double> values) {
  double sum = 0.0;
  for (const double value : values) sum += value;
  return sum;
}

// What is to come of a request, by the state that its next round begins in: moments of tokens - ratio rounds over its whole
// rounds.
struct ToCome {
  Vector first;
  Vector second;
};

// The second moment over requests that begin in `start`, by the round that comes first.
double second_moment(const Modulation& modulation, std::span<const double> start, int draft_length, std::size_t request_tokens,
                     double ratio) {
  const std::size_t states = start.size();
  const Vector nothing(states, 0.0);
  std::vector<ToCome> left;  // [tokens left]
  for (std::size_t tokens = 0; tokens <= request_tokens; ++tokens) {
    left.push_back({nothing, nothing});
    if (tokens == 0) continue;
    // A round of so many tokens: what it adds, and what comes behind it. One that would go beyond the end is cut and adds
    // nothing.
    const auto behind = [&](int accepted, Vector& first, Vector& second) {
      const std::size_t emitted = static_cast<std::size_t>(accepted) + 1;
      first = second = nothing;
      if (emitted > tokens) return;
      const double gain = static_cast<double>(emitted) - ratio;
      const ToCome& after = left[tokens - emitted];
      for (std::size_t s = 0; s < states; ++s) {
        first[s] = gain + after.first[s];
        second[s] = gain * gain + 2.0 * gain * after.first[s] + after.second[s];
      }
    };
    Vector first;
    Vector second;
    behind(draft_length, first, second);
    Vector first_here = times_column(modulation.bonus, first);
    Vector second_here = times_column(modulation.bonus, second);
    for (int j = draft_length - 1; j >= 0; --j) {
      behind(j, first, second);
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
    const double here = sum_of(ends[n]);
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
        cut += sum_of(row_times(from, matrix));
    };
    for (int j = 0; j < draft_length; ++j) {
      result.tries += sum_of(row);
      emit(static_cast<std::size_t>(j) + 1, row, at_position(modulation.reject, j));
      row = row_times(row, at_position(modulation.accept, j));
      result.accepted += sum_of(row);
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

}  // namespace specsim::theory
