#include "sim/rounds/theory/automaton.h"

#include "sim/foundation/base/check.h"
#include "sim/foundation/math/series.h"

#include <cmath>
#include <numeric>

namespace specsim::theory {

void check_automaton(const Automaton& automaton, int draft_length) {
  SPECSIM_CHECK(draft_length >= 0, "draft_length = {}", draft_length);
  SPECSIM_CHECK(automaton.vocab >= 1 && automaton.states >= 1, "vocab {}, states {}", automaton.vocab, automaton.states);
  SPECSIM_CHECK(automaton.start >= 0 && automaton.start < automaton.states, "start = {}", automaton.start);
  const std::size_t states = index_of(automaton.states);
  const auto check = [&](std::span<const double> distribution) {
    SPECSIM_CHECK(distribution.size() == index_of(automaton.vocab), "distribution over {} tokens, vocabulary {}",
                  distribution.size(), automaton.vocab);
    check_distribution(distribution);
  };
  SPECSIM_CHECK(automaton.next.size() == states * index_of(automaton.vocab), "{} successors", automaton.next.size());
  for (const int next : automaton.next) SPECSIM_CHECK(next >= 0 && next < automaton.states, "successor = {}", next);
  SPECSIM_CHECK(automaton.target.size() == states, "{} target distributions for {} states", automaton.target.size(), states);
  for (const std::vector<double>& distribution : automaton.target) check(distribution);
  SPECSIM_CHECK(automaton.draft.size() == 1 || automaton.draft.size() >= index_of(draft_length),
                "{} draft positions for draft_length {}", automaton.draft.size(), draft_length);
  for (const std::vector<std::vector<double>>& distributions : automaton.draft) {
    SPECSIM_CHECK(distributions.size() == states, "{} draft distributions for {} states", distributions.size(), states);
    for (const std::vector<double>& distribution : distributions) check(distribution);
  }
}

void check_distribution(std::span<const double> distribution) {
  SPECSIM_CHECK(!distribution.empty(), "empty distribution");
  math::CompensatedSum sum;
  for (const double share : distribution) {
    SPECSIM_CHECK(share >= 0.0, "share = {}", share);
    sum += share;
  }
  SPECSIM_CHECK(std::abs(sum.value() - 1.0) < 1e-9, "distribution sums to {}", sum.value());
}

std::vector<int> likeliest(std::span<const double> distribution, std::size_t most) {
  std::vector<int> tokens(distribution.size());
  std::iota(tokens.begin(), tokens.end(), 0);
  std::stable_sort(tokens.begin(), tokens.end(),
                   [&](int a, int b) { return distribution[index_of(a)] > distribution[index_of(b)]; });
  tokens.resize(std::min(tokens.size(), most));
  return tokens;
}

}  // namespace specsim::theory
