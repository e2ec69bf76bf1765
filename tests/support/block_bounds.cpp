#include "tests/support/block_bounds.h"

#include "sim/foundation/base/check.h"
#include "sim/foundation/base/index.h"
#include "sim/foundation/math/series.h"
#include "sim/rounds/theory/stationary.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace specsim::theory {
namespace {

// Calls visit(length, target, draft, best) for every drafted prefix: its probability under both distributions, and the largest
// probability with which a lossless rule accepts it.
template <typename Visit>
void walk_prefixes(const Automaton& automaton, int draft_length, int state, int length, double target, double draft, double best,
                   const Visit& visit) {
  if (length > 0) visit(length, target, draft, best);
  if (length == draft_length) return;
  for (int x = 0; x < automaton.vocab; ++x) {
    const double wanted = automaton.target[index_of(state)][index_of(x)];
    const double drafted = draft * automaton.draft_at(length, state)[index_of(x)];
    if (drafted == 0.0) continue;
    walk_prefixes(automaton, draft_length, automaton.after(state, x), length + 1, target * wanted, drafted,
                  std::min(drafted, best * wanted), visit);
  }
}

void check_walk(const Automaton& automaton, int draft_length) {
  check_automaton(automaton, draft_length);
  SPECSIM_CHECK(draft_length * std::log2(automaton.vocab) <= 22.0, "{}^{} drafts are too many to enumerate", automaton.vocab,
                draft_length);
}

std::vector<double> values_of(const std::vector<math::CompensatedSum>& sums) {
  std::vector<double> values;
  for (const math::CompensatedSum& sum : sums) values.push_back(sum.value());
  return values;
}

}  // namespace

double block_long_run_tokens_per_round(const BlockContext& context, int draft_length) {
  const auto kernel = block_kernel(context, draft_length);
  const std::size_t states = index_of(context.states);
  std::vector<double> transition(states * states, 0.0);
  for (const std::vector<double>& matrix : kernel) {
    for (std::size_t i = 0; i < matrix.size(); ++i) transition[i] += matrix[i];
  }
  const std::vector<double> start = stationary_distribution(transition, states);
  math::CompensatedSum tokens;
  for (std::size_t j = 0; j < kernel.size(); ++j) {
    for (std::size_t i = 0; i < kernel[j].size(); ++i) tokens += static_cast<double>(j + 1) * start[i / states] * kernel[j][i];
  }
  return tokens.value();
}

WeightedPair widest_block_pair(double alpha) {
  SPECSIM_CHECK(alpha > 0.0 && alpha < 1.0, "alpha = {}", alpha);
  return {1.0, {1.0 - 0.5 * alpha, 0.5 * alpha}, {0.5 * alpha, 1.0 - 0.5 * alpha}};
}

std::vector<double> optimal_chain_tails(const Automaton& automaton, int draft_length) {
  check_walk(automaton, draft_length);
  std::vector<math::CompensatedSum> tails(index_of(draft_length));
  walk_prefixes(automaton, draft_length, automaton.start, 0, 1.0, 1.0, 1.0,
                [&](int length, double /*target*/, double /*draft*/, double best) { tails[index_of(length - 1)].add(best); });
  return values_of(tails);
}

std::vector<double> joint_overlaps(const Automaton& automaton, int draft_length) {
  check_walk(automaton, draft_length);
  std::vector<math::CompensatedSum> tails(index_of(draft_length));
  walk_prefixes(automaton, draft_length, automaton.start, 0, 1.0, 1.0, 1.0,
                [&](int length, double target, double draft, double /*best*/) {
                  tails[index_of(length - 1)].add(std::min(target, draft));
                });
  return values_of(tails);
}

}  // namespace specsim::theory
