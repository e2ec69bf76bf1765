#include "sim/rounds/theory/modulated.h"

#include "sim/foundation/base/check.h"
#include "sim/foundation/base/index.h"
#include "sim/foundation/math/series.h"
#include "sim/rounds/theory/state_matrices.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace specsim::theory {
namespace {

// sum over j of value[j] K_j: the round's kernel weighted by a function of accepted.
Matrix weighted_kernel(const Modulation& modulation, int draft_length, std::span<const double> value) {
  const std::size_t states = index_of(modulation.states);
  Matrix kernel(modulation.bonus);
  for (double& entry : kernel) entry *= value[index_of(draft_length)];
  for (int j = draft_length - 1; j >= 0; --j) {
    Matrix previous(at_position(modulation.reject, j));
    for (double& entry : previous) entry *= value[index_of(j)];
    add_product(at_position(modulation.accept, j), kernel, states, previous);
    kernel = std::move(previous);
  }
  return kernel;
}

// (sum over j of value[j] K_j) * column, without the matrix.
Vector weighted_kernel_times(const Modulation& modulation, int draft_length, std::span<const double> value,
                             std::span<const double> column) {
  Vector result = times_column(modulation.bonus, column);
  for (double& entry : result) entry *= value[index_of(draft_length)];
  for (int j = draft_length - 1; j >= 0; --j) {
    Vector previous = times_column(at_position(modulation.reject, j), column);
    const Vector onward = times_column(at_position(modulation.accept, j), result);
    for (std::size_t s = 0; s < previous.size(); ++s) previous[s] = previous[s] * value[index_of(j)] + onward[s];
    result = std::move(previous);
  }
  return result;
}

void check_start(const Modulation& modulation, std::span<const double> start) {
  SPECSIM_CHECK(start.size() == index_of(modulation.states), "start has {} states, not {}", start.size(), modulation.states);
  for (const double share : start) SPECSIM_CHECK(share >= 0.0, "start share = {}", share);
  SPECSIM_CHECK(std::abs(total(start) - 1.0) < 1e-9, "start sums to {}", total(start));
}

void check_reward(std::span<const double> reward, int draft_length) {
  SPECSIM_CHECK(reward.size() == index_of(draft_length) + 1, "{} rewards for draft_length {}", reward.size(), draft_length);
}

// E[reward | start state].
Vector mean_reward(const std::vector<RoundDistribution>& distributions, std::span<const double> reward) {
  Vector mean(distributions.size());
  for (std::size_t s = 0; s < distributions.size(); ++s) mean[s] = dot(distributions[s].accepted, reward);
  return mean;
}

// The totals of one pass of a (sub-)distribution of start states through a round, scaled to its mass.
SequenceTotals totals_of(const Modulation& modulation, Vector started, int draft_length) {
  SequenceTotals totals;
  totals.rounds = total(started);
  totals.rounds_started = started;
  Vector here = std::move(started);
  double reached = totals.rounds;
  math::CompensatedSum emitted(totals.rounds);
  for (int j = 0; j < draft_length; ++j) {
    totals.tries.push_back(reached);
    totals.distribution.accepted.push_back(total(row_times(here, at_position(modulation.reject, j))) / totals.rounds);
    here = row_times(here, at_position(modulation.accept, j));
    reached = total(here);
    totals.accepted.push_back(reached);
    emitted += reached;
  }
  totals.distribution.accepted.push_back(reached / totals.rounds);
  totals.emitted = emitted.value();
  return totals;
}

}  // namespace

std::vector<double> next_start(const Modulation& modulation, std::span<const double> start, int draft_length) {
  Vector next(start.size(), 0.0);
  Vector here(start.begin(), start.end());
  for (int j = 0; j < draft_length; ++j) {
    add_row_times(here, at_position(modulation.reject, j), 1.0, next);
    here = row_times(here, at_position(modulation.accept, j));
  }
  add_row_times(here, modulation.bonus, 1.0, next);
  return next;
}

void check_modulation(const Modulation& modulation, int draft_length) {
  SPECSIM_CHECK(modulation.states >= 1, "states = {}", modulation.states);
  SPECSIM_CHECK(draft_length >= 0, "draft_length = {}", draft_length);
  const std::size_t states = index_of(modulation.states);
  const auto check_rows = [states](const Matrix& first, const Matrix* second, int position) {
    SPECSIM_CHECK(first.size() == states * states, "{} entries for {} states", first.size(), states);
    if (second != nullptr) SPECSIM_CHECK(second->size() == states * states, "{} entries for {} states", second->size(), states);
    for (std::size_t s = 0; s < states; ++s) {
      double sum = 0.0;
      double least = 0.0;
      for (std::size_t i = s * states; i < (s + 1) * states; ++i) {
        sum += first[i] + (second != nullptr ? (*second)[i] : 0.0);
        least = std::min(least, second != nullptr ? std::min(first[i], (*second)[i]) : first[i]);
      }
      SPECSIM_CHECK(least >= 0.0, "negative entry {} in state {} at position {}", least, s, position);
      SPECSIM_CHECK(std::abs(sum - 1.0) < 1e-9, "state {} at position {} sums to {}", s, position, sum);
    }
  };
  check_rows(modulation.bonus, nullptr, draft_length);
  const std::size_t length = index_of(draft_length);
  for (const auto* matrices : {&modulation.accept, &modulation.reject}) {
    SPECSIM_CHECK(matrices->size() == 1 || matrices->size() >= length, "{} positions for draft_length {}", matrices->size(),
                  draft_length);
  }
  if (draft_length == 0) return;
  const bool same = modulation.accept.size() == 1 && modulation.reject.size() == 1;
  for (int j = 0; j < (same ? 1 : draft_length); ++j) {
    check_rows(at_position(modulation.accept, j), &at_position(modulation.reject, j), j);
  }
}

Modulation hidden_regimes(std::span<const double> alpha, const std::vector<double>& transition) {
  return hidden_regimes(std::vector<Vector>{Vector(alpha.begin(), alpha.end())}, transition);
}

Modulation hidden_regimes(const std::vector<std::vector<double>>& alpha_by_depth, const std::vector<double>& transition) {
  SPECSIM_CHECK(!alpha_by_depth.empty(), "no alpha");
  const std::size_t states = alpha_by_depth.front().size();
  SPECSIM_CHECK(transition.size() == states * states, "{} entries for {} states", transition.size(), states);
  Modulation modulation;
  modulation.states = static_cast<int>(states);
  modulation.bonus = transition;
  for (const Vector& alpha : alpha_by_depth) {
    SPECSIM_CHECK(alpha.size() == states, "{} alphas for {} states", alpha.size(), states);
    Matrix accept(transition);
    Matrix reject(transition);
    for (std::size_t s = 0; s < states; ++s) {
      SPECSIM_CHECK(alpha[s] >= 0.0 && alpha[s] <= 1.0, "alpha = {}", alpha[s]);
      for (std::size_t next = 0; next < states; ++next) {
        accept[s * states + next] *= alpha[s];
        reject[s * states + next] *= 1.0 - alpha[s];
      }
    }
    modulation.accept.push_back(std::move(accept));
    modulation.reject.push_back(std::move(reject));
  }
  return modulation;
}

std::vector<RoundDistribution> round_distribution_by_state(const Modulation& modulation, int draft_length) {
  check_modulation(modulation, draft_length);
  const std::size_t states = index_of(modulation.states);
  std::vector<RoundDistribution> distributions(states);
  const Vector ones(states, 1.0);
  for (int j = 0; j <= draft_length; ++j) {
    // P(accepted = j | state) = accept_0 ... accept_{j-1} (rejection mass at j), or (1) at full acceptance.
    Vector mass = j < draft_length ? times_column(at_position(modulation.reject, j), ones) : ones;
    for (int i = j - 1; i >= 0; --i) mass = times_column(at_position(modulation.accept, i), mass);
    for (std::size_t s = 0; s < states; ++s) distributions[s].accepted.push_back(mass[s]);
  }
  return distributions;
}

double SequenceTotals::alpha() const {
  const double tried = total(tries);
  return tried > 0.0 ? total(accepted) / tried : std::numeric_limits<double>::quiet_NaN();
}

SequenceTotals expected_totals(const Modulation& modulation, std::span<const double> start, int draft_length, int rounds) {
  check_modulation(modulation, draft_length);
  check_start(modulation, start);
  SPECSIM_CHECK(rounds >= 1, "rounds = {}", rounds);
  const std::size_t states = start.size();
  // Forming the matrix takes as long as `states` applications of the kernel, and then saves a factor 2 draft_length each.
  Matrix transition;
  if (rounds > modulation.states) transition = weighted_kernel(modulation, draft_length, Vector(index_of(draft_length) + 1, 1.0));
  std::vector<math::CompensatedSum> started(states);
  Vector here(start.begin(), start.end());
  for (int round = 0; round < rounds; ++round) {
    for (std::size_t s = 0; s < states; ++s) started[s] += here[s];
    if (round + 1 == rounds) break;
    Vector next = transition.empty() ? next_start(modulation, here, draft_length) : row_times(here, transition);
    double moved = 0.0;
    for (std::size_t s = 0; s < states; ++s) moved += std::abs(next[s] - here[s]);
    here = std::move(next);
    // A step of this size can never grow, so keeping the state from here on has a relative error of at most rounds * 1e-16.
    if (moved < 2e-16) {
      const double left = rounds - 1 - round;
      for (std::size_t s = 0; s < states; ++s) started[s] += left * here[s];
      break;
    }
  }
  Vector sums(states);
  for (std::size_t s = 0; s < states; ++s) sums[s] = started[s].value();
  SequenceTotals totals = totals_of(modulation, std::move(sums), draft_length);
  totals.rounds = rounds;
  return totals;
}

double reward_variance(const Modulation& modulation, std::span<const double> start, int draft_length, int rounds,
                       std::span<const double> reward) {
  const SequenceTotals totals = expected_totals(modulation, start, draft_length, rounds);
  check_reward(reward, draft_length);
  const std::size_t states = start.size();
  const std::vector<RoundDistribution> distributions = round_distribution_by_state(modulation, draft_length);
  // Centred rewards do not change the variance, and keep the squared mean small, which is subtracted at the end.
  const double centre = dot(totals.distribution.accepted, reward);
  Vector centred(reward.begin(), reward.end());
  for (double& value : centred) value -= centre;
  Vector squared(centred);
  for (double& value : squared) value *= value;
  const Vector unit(reward.size(), 1.0);
  const Vector gain = mean_reward(distributions, centred);
  const Vector square = mean_reward(distributions, squared);

  const bool formed = rounds > modulation.states;
  const Matrix transition = formed ? weighted_kernel(modulation, draft_length, unit) : Matrix();
  const Matrix weighted = formed ? weighted_kernel(modulation, draft_length, centred) : Matrix();
  const auto move = [&](const Vector& column) {
    return formed ? times_column(transition, column) : weighted_kernel_times(modulation, draft_length, unit, column);
  };
  const auto move_weighted = [&](const Vector& column) {
    return formed ? times_column(weighted, column) : weighted_kernel_times(modulation, draft_length, centred, column);
  };
  // first, second: moments of the reward of the rounds still to come, given the state in which they begin.
  Vector first(states, 0.0);
  Vector second(states, 0.0);
  for (int round = 0; round < rounds; ++round) {
    const Vector cross = move_weighted(first);
    second = move(second);
    for (std::size_t s = 0; s < states; ++s) second[s] += square[s] + 2.0 * cross[s];
    first = move(first);
    for (std::size_t s = 0; s < states; ++s) first[s] += gain[s];
  }
  const double mean = dot(start, first);
  return std::max(0.0, dot(start, second) - mean * mean);
}

double emitted_variance(const Modulation& modulation, std::span<const double> start, int draft_length, int rounds) {
  SPECSIM_CHECK(draft_length >= 0, "draft_length = {}", draft_length);
  Vector emitted(index_of(draft_length) + 1);  // [accepted]
  std::iota(emitted.begin(), emitted.end(), 1.0);
  return reward_variance(modulation, start, draft_length, rounds, emitted);
}

double tokens_per_round_standard_error(const Modulation& modulation, std::span<const double> start, int draft_length, int rounds,
                                       double sequences) {
  SPECSIM_CHECK(sequences > 0.0, "sequences = {}", sequences);
  return std::sqrt(emitted_variance(modulation, start, draft_length, rounds) / sequences) / rounds;
}

}  // namespace specsim::theory
