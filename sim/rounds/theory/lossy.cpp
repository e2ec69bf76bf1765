#include "sim/rounds/theory/lossy.h"

#include "sim/foundation/base/check.h"
#include "sim/foundation/base/index.h"
#include "sim/foundation/math/series.h"
#include "sim/rounds/theory/bounds.h"
#include "sim/rounds/theory/chosen_trees.h"
#include "sim/rounds/theory/typical_walk.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>
#include <numeric>

namespace specsim::theory {
namespace {

using Distribution = std::vector<double>;

// The states after the rounds of one height.
struct TypicalStates {
  using Part = Distribution;  // [state]
  const Automaton& distributions;
  std::vector<Distribution> accepts;  // [state]

  [[nodiscard]] Part none() const { return Part(index_of(distributions.states), 0.0); }
  [[nodiscard]] static double mass(const Part& part) { return std::accumulate(part.begin(), part.end(), 0.0); }
  static void add(const Part& from, double weight, Part& to) {
    for (std::size_t s = 0; s < to.size(); ++s) to[s] += weight * from[s];
  }
  void add_final(int state, double weight, Part& to) const {
    for (int x = 0; x < distributions.vocab; ++x)
      to[index_of(distributions.after(state, x))] += weight * distributions.target[index_of(state)][index_of(x)];
  }
  template <class Deeper>
  void add_child(int state, std::span<const double> drafted, const Deeper& deeper, std::vector<Part>& own) const {
    for (int x = 0; x < distributions.vocab; ++x) {
      if (drafted[index_of(x)] == 0.0 || accepts[index_of(state)][index_of(x)] == 0.0) continue;
      const std::vector<Part>& heights = deeper(distributions.after(state, x));
      for (std::size_t h = 0; h < heights.size(); ++h) add(heights[h], drafted[index_of(x)], own[h]);
    }
  }
};

std::vector<Distribution> typical_acceptances(const Automaton& distributions, double epsilon, double delta, double within) {
  std::vector<Distribution> accepts;
  for (const Distribution& target : distributions.target) accepts.push_back(typical_acceptance(target, epsilon, delta, within));
  return accepts;
}

}  // namespace

std::vector<double> typical_acceptance(std::span<const double> target, double epsilon, double delta, double within) {
  SPECSIM_CHECK(epsilon >= 0.0 && delta >= 0.0, "epsilon = {}, delta = {}", epsilon, delta);
  math::CompensatedSum entropy;
  for (const double share : target) {
    if (share > 0.0) entropy += -share * std::log(share + within);
  }
  const double threshold = std::min(epsilon, delta * std::exp(-entropy.value()));
  std::vector<double> acceptance;
  for (const double share : target) acceptance.push_back(share > threshold ? 1.0 : 0.0);
  return acceptance;
}

std::vector<double> lenience_acceptance(std::span<const double> target, std::span<const double> drafted, double lenience) {
  SPECSIM_CHECK(target.size() == drafted.size(), "target has {} tokens, draft {}", target.size(), drafted.size());
  SPECSIM_CHECK(lenience > 0.0 && lenience <= 1.0, "lenience = {}", lenience);
  std::vector<double> acceptance(target.size(), 0.0);
  for (std::size_t x = 0; x < target.size(); ++x) {
    if (drafted[x] > 0.0) acceptance[x] = std::min(1.0, target[x] / (lenience * drafted[x]));
  }
  return acceptance;
}

std::vector<double> residual_distribution(std::span<const double> target, std::span<const double> drafted) {
  SPECSIM_CHECK(target.size() == drafted.size(), "target has {} tokens, draft {}", target.size(), drafted.size());
  std::vector<double> residual;
  math::CompensatedSum mass;
  for (std::size_t x = 0; x < target.size(); ++x) {
    residual.push_back(std::max(0.0, target[x] - drafted[x]));
    mass += residual.back();
  }
  if (mass.value() == 0.0) return {target.begin(), target.end()};
  for (double& share : residual) share /= mass.value();
  return residual;
}

std::vector<double> top_k_acceptance(std::span<const double> target, int k) {
  SPECSIM_CHECK(k >= 1, "k = {}", k);
  std::vector<double> acceptance(target.size(), 0.0);
  for (const int token : likeliest(target, index_of(k))) acceptance[index_of(token)] = 1.0;
  return acceptance;
}

std::vector<std::vector<double>> threshold_accepted(std::span<const double> target, std::span<const double> draft, int drafts,
                                                    TreeSampling sampling, double single, double accumulated) {
  std::vector<std::vector<double>> by_rank(index_of(drafts), std::vector<double>(target.size(), 0.0));
  each_draw(draft, drafts, sampling, [&](const std::vector<int>& tokens, double probability) {
    double sum = 0.0;
    double taken = 0.0;  // coins below this value accept an earlier token
    for (std::size_t rank = 0; rank < tokens.size(); ++rank) {
      const double own = target[index_of(tokens[rank])];
      sum += own;
      const double bar = own >= single ? 1.0 : std::min(1.0, sum / accumulated);
      by_rank[rank][index_of(tokens[rank])] += probability * std::max(bar - taken, 0.0);
      taken = std::max(taken, bar);
    }
  });
  return by_rank;
}

std::vector<double> threshold_rejected(std::span<const double> target, std::span<const double> draft, int drafts,
                                       TreeSampling sampling, double single, double accumulated) {
  std::vector<double> mass(target.size(), 0.0);
  each_draw(draft, drafts, sampling, [&](const std::vector<int>& tokens, double probability) {
    Distribution rest(target.begin(), target.end());
    double sum = 0.0;
    bool sure = false;
    for (const int token : tokens) {
      sum += rest[index_of(token)];
      sure = sure || target[index_of(token)] >= single;
      rest[index_of(token)] = 0.0;
    }
    const double rejected = probability * (sure ? 0.0 : std::max(0.0, 1.0 - sum / accumulated));
    const double left = std::accumulate(rest.begin(), rest.end(), 0.0);
    if (rejected == 0.0 || left == 0.0) return;
    for (std::size_t x = 0; x < rest.size(); ++x) mass[x] += rejected * rest[x] / left;
  });
  return mass;
}

std::vector<double> top_n_acceptance(std::span<const double> target, int n, double delta) {
  std::vector<double> acceptance = top_k_acceptance(target, n);
  const double best = *std::max_element(target.begin(), target.end());
  for (std::size_t x = 0; x < target.size(); ++x)
    if (target[x] < best - delta) acceptance[x] = 0.0;
  return acceptance;
}

Judgement judge_accepting(std::span<const double> acceptance, std::span<const double> drafted,
                          std::span<const double> otherwise) {
  SPECSIM_CHECK(acceptance.size() == drafted.size(), "{} acceptances for {} tokens", acceptance.size(), drafted.size());
  (void)overlap(drafted, otherwise);  // throws unless both are distributions of one size
  Judgement judgement;
  math::CompensatedSum rejected;
  for (std::size_t x = 0; x < drafted.size(); ++x) {
    SPECSIM_CHECK(acceptance[x] >= 0.0 && acceptance[x] <= 1.0, "acceptance = {}", acceptance[x]);
    judgement.accepted.push_back(acceptance[x] * drafted[x]);
    rejected += (1.0 - acceptance[x]) * drafted[x];
  }
  for (const double share : otherwise) judgement.rejected.push_back(rejected.value() * share);
  return judgement;
}

std::vector<double> emitted_distribution(const Judgement& judgement) {
  std::vector<double> distribution(judgement.accepted);
  for (std::size_t x = 0; x < distribution.size(); ++x) distribution[x] += judgement.rejected[x];
  return distribution;
}

double bias(const Judgement& judgement, std::span<const double> target) {
  return total_variation(emitted_distribution(judgement), target);
}

std::vector<double> cascade_distribution(std::span<const double> target, std::span<const double> draft, const std::string& rule,
                                         double alpha) {
  const double distance = total_variation(target, draft);  // throws unless both are distributions of one size
  const double target_best = *std::max_element(target.begin(), target.end());
  const double draft_best = *std::max_element(draft.begin(), draft.end());
  if (rule == "chow" || rule == "diff" || rule == "opt") {
    const double bar = rule == "chow" ? 1.0 - alpha : target_best - alpha * (rule == "opt" ? distance : 1.0);
    const std::span<const double> chosen = draft_best < bar ? target : draft;
    return {chosen.begin(), chosen.end()};
  }
  SPECSIM_CHECK(rule == "token_v1" || rule == "token_v2" || rule == "token_v3", "rule {}", rule);
  std::vector<double> distribution(target.size(), 0.0);
  math::CompensatedSum replaced;
  for (std::size_t x = 0; x < draft.size(); ++x) {
    const bool trusted = rule == "token_v1"   ? draft[x] >= target_best - alpha
                         : rule == "token_v2" ? target[x] >= target_best - alpha
                                              : target[x] >= (1.0 - alpha) * target_best;
    if (trusted)
      distribution[x] = draft[x];
    else
      replaced += draft[x];
  }
  for (std::size_t x = 0; x < target.size(); ++x) distribution[x] += replaced.value() * target[x];
  return distribution;
}

std::vector<double> judge_acceptance(std::span<const double> target, std::span<const double> drafted, double rate) {
  SPECSIM_CHECK(rate >= 0.0 && rate <= 1.0, "rate = {}", rate);
  std::vector<double> acceptance = lenience_acceptance(target, drafted, 1.0);
  for (std::size_t x = 0; x < target.size(); ++x)
    if (drafted[x] > 0.0) acceptance[x] += rate * (1.0 - acceptance[x]);
  return acceptance;
}

std::vector<std::vector<double>> first_accepted(std::span<const double> acceptance, std::span<const double> draft, int drafts,
                                                TreeSampling sampling) {
  std::vector<Distribution> by_token(index_of(drafts), Distribution(draft.size(), 0.0));
  if (sampling == TreeSampling::with_replacement) {
    double none = 1.0;
    for (Distribution& own : by_token) {
      double accepted = 0.0;
      for (std::size_t x = 0; x < draft.size(); ++x) {
        own[x] = none * acceptance[x] * draft[x];
        accepted += acceptance[x] * draft[x];
      }
      none *= std::max(0.0, 1.0 - accepted);
    }
    return by_token;
  }
  each_draw(draft, drafts, sampling, [&](const std::vector<int>& tokens, double probability) {
    for (std::size_t rank = 0; rank < tokens.size(); ++rank) {
      if (acceptance[index_of(tokens[rank])] == 0.0) continue;
      by_token[rank][index_of(tokens[rank])] += probability;
      return;
    }
  });
  return by_token;
}

RoundKernel typical_kernel(const Automaton& distributions, const TreeShape& tree, TreeSampling sampling, double epsilon,
                           double delta, double within) {
  check_tree(tree);
  TypicalWalk<TypicalStates> typical(distributions, tree, sampling,
                                     {distributions, typical_acceptances(distributions, epsilon, delta, within)});
  RoundKernel kernel(distributions.states, tree.depth());
  for (int s = 0; s < distributions.states; ++s) {
    const std::vector<Distribution>& heights = typical.below(0, s);
    for (int h = 0; h <= tree.depth(); ++h)
      for (int next = 0; next < distributions.states; ++next) kernel.at(h, s, next) = heights[index_of(h)][index_of(next)];
  }
  return kernel;
}

RoundKernel typical_guess_kernel(const Automaton& distributions, const StateMatrix& transition, const TreeShape& tree,
                                 double epsilon, double delta, double within) {
  RoundKernel kernel(distributions.states, tree.depth());
  const std::vector<Distribution> accepts = typical_acceptances(distributions, epsilon, delta, within);
  for (int start = 0; start < distributions.states; ++start) {
    const ChosenTree guessed = guessed_tree(tree, distributions, start);
    const std::function<void(int, int, const std::vector<bool>&, double)> go =
        [&](int depth, int state, const std::vector<bool>& held, double probability) {
          std::vector<bool> deeper(held.size(), false);  // accepted nodes one level further down
          bool any = false;
          for (std::size_t node = 1; node < held.size(); ++node) {
            deeper[node] =
                held[index_of(guessed.tree.parent[node])] && accepts[index_of(state)][index_of(guessed.tokens[node])] > 0.0;
            any = any || deeper[node];
          }
          for (int next = 0; next < distributions.states; ++next) {
            const double chance = probability * transition[index_of(state * distributions.states + next)];
            if (chance == 0.0) continue;
            if (any) {
              go(depth + 1, next, deeper, chance);
            } else {
              kernel.at(depth, start, next) += chance;
            }
          }
        };
    std::vector<bool> root(index_of(guessed.tree.size()), false);
    root[0] = true;
    go(0, start, root, 1.0);
  }
  return kernel;
}

}  // namespace specsim::theory
