#include "sim/rounds/theory/stationary.h"

#include "sim/foundation/base/check.h"
#include "sim/foundation/math/series.h"

namespace specsim::theory {
namespace {

// States reachable from `from` (itself included) along the matrix, or against it.
std::vector<bool> reachable(const std::vector<double>& matrix, std::size_t states, std::size_t from, bool backwards) {
  std::vector<bool> seen(states, false);
  std::vector<std::size_t> open = {from};
  seen[from] = true;
  while (!open.empty()) {
    const std::size_t here = open.back();
    open.pop_back();
    for (std::size_t there = 0; there < states; ++there) {
      const double entry = backwards ? matrix[there * states + here] : matrix[here * states + there];
      if (entry > 0.0 && !seen[there]) {
        seen[there] = true;
        open.push_back(there);
      }
    }
  }
  return seen;
}

// The states of the one recurrent class, ascending.
std::vector<std::size_t> recurrent_class(const std::vector<double>& matrix, std::size_t states) {
  std::size_t candidate = 0;
  for (;;) {
    const std::vector<bool> forward = reachable(matrix, states, candidate, false);
    const std::vector<bool> backward = reachable(matrix, states, candidate, true);
    std::size_t escape = states;
    for (std::size_t s = 0; s < states && escape == states; ++s) {
      if (forward[s] && !backward[s]) escape = s;
    }
    if (escape < states) {
      // The candidate is transient. The states that it reaches without return are a strictly smaller set, so this loop ends.
      candidate = escape;
      continue;
    }
    for (std::size_t s = 0; s < states; ++s) {
      SPECSIM_CHECK(backward[s], "state {} never reaches state {}: the long run depends on the start", s, candidate);
    }
    std::vector<std::size_t> members;
    for (std::size_t s = 0; s < states; ++s) {
      if (forward[s]) members.push_back(s);
    }
    return members;
  }
}

}  // namespace

// Grassmann, Taksar and Heyman 1985.
std::vector<double> stationary_distribution(const std::vector<double>& transition, std::size_t states) {
  SPECSIM_CHECK(transition.size() == states * states, "{} entries for {} states", transition.size(), states);
  const std::vector<std::size_t> members = recurrent_class(transition, states);
  const std::size_t size = members.size();
  std::vector<double> work(size * size);
  for (std::size_t i = 0; i < size; ++i) {
    for (std::size_t j = 0; j < size; ++j) work[i * size + j] = transition[members[i] * states + members[j]];
  }
  for (std::size_t last = size - 1; last > 0; --last) {
    const double* last_row = work.data() + last * size;
    double out = 0.0;
    for (std::size_t j = 0; j < last; ++j) out += last_row[j];
    for (std::size_t i = 0; i < last; ++i) {
      double* row = work.data() + i * size;
      row[last] /= out;
      const double weight = row[last];
      if (weight == 0.0) continue;
      for (std::size_t j = 0; j < last; ++j) row[j] += weight * last_row[j];
    }
  }
  std::vector<double> share(size, 0.0);
  share[0] = 1.0;
  for (std::size_t last = 1; last < size; ++last) {
    for (std::size_t i = 0; i < last; ++i) share[last] += share[i] * work[i * size + last];
  }
  math::CompensatedSum mass;
  for (const double one : share) mass += one;
  std::vector<double> distribution(states, 0.0);
  for (std::size_t i = 0; i < size; ++i) distribution[members[i]] = share[i] / mass.value();
  return distribution;
}

}  // namespace specsim::theory
