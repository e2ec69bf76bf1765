#include "sim/rounds/theory/lossy.h"

#include "sim/foundation/base/check.h"
#include "sim/foundation/base/index.h"
#include "sim/foundation/math/series.h"
#include "sim/rounds/theory/bounds.h"
#include "sim/rounds/theory/chosen_trees.h"
#include "sim/rounds/theory/sibling_draws.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>
#include <map>
#include <numeric>
#include <utility>

namespace specsim::theory {
namespace {

using Distribution = std::vector<double>;

// The distribution, for a subtree, of the height of its longest accepted path and the state after the round: [height][state].
// What is missing from 1 is the probability that its top node is not accepted.
using Heights = std::vector<Distribution>;

double mass_of(const Heights& heights, std::size_t below) {
  double sum = 0.0;
  for (std::size_t h = 0; h < std::min(below, heights.size()); ++h)
    for (const double share : heights[h]) sum += share;
  return sum;
}

class TypicalTree {
 public:
  TypicalTree(const Automaton& distributions, const TreeShape& tree, TreeSampling sampling, double epsilon, double delta,
              double within)
      : distributions_(distributions),
        tree_(tree),
        sampling_(sampling),
        depths_(tree.depths()),
        children_(index_of(tree.size())) {
    for (int node = 1; node < tree.size(); ++node) children_[index_of(tree.parent[index_of(node)])].push_back(node);
    for (const Distribution& target : distributions.target)
      accepts_.push_back(typical_acceptance(target, epsilon, delta, within));
  }

  // What follows below a node that is accepted at a state.
  const Heights& below(int node, int state) {
    const auto [place, fresh] = known_.try_emplace({node, state});
    if (fresh) place->second = heights_below(node, state);
    return place->second;
  }

 private:
  [[nodiscard]] Heights heights_below(int node, int state) {
    const std::vector<int>& children = children_[index_of(node)];
    Heights heights(index_of(tree_.depth() - depths_[index_of(node)]) + 1, Distribution(index_of(distributions_.states), 0.0));
    if (children.empty()) {
      add_final(state, 1.0, heights[0]);
      return heights;
    }
    const auto depth = std::min(index_of(depths_[index_of(node)]), distributions_.draft.size() - 1);
    const Distribution& draft = distributions_.draft[depth][index_of(state)];
    if (sampling_ == TreeSampling::with_replacement) {
      std::vector<Heights> each;
      for (const int child : children) {
        Heights own(heights.size(), Distribution(index_of(distributions_.states), 0.0));
        for (int x = 0; x < distributions_.vocab; ++x) add_child(child, state, x, draft[index_of(x)], own);
        each.push_back(std::move(own));
      }
      add_longest(each, state, 1.0, heights);
      return heights;
    }
    int ranks = 0;
    for (const int child : children) ranks = std::max(ranks, tree_.rank[index_of(child)] + 1);
    each_draw(draft, ranks, sampling_, [&](const std::vector<int>& tokens, double probability) {
      std::vector<Heights> each;
      for (const int child : children) {
        const std::size_t rank = index_of(tree_.rank[index_of(child)]);
        if (rank >= tokens.size()) continue;
        each.emplace_back(heights.size(), Distribution(index_of(distributions_.states), 0.0));
        add_child(child, state, tokens[rank], 1.0, each.back());
      }
      add_longest(each, state, probability, heights);
    });
    return heights;
  }

  [[nodiscard]] int next(int state, int token) const {
    return distributions_.next[index_of(state * distributions_.vocab + token)];
  }
  void add_final(int state, double weight, Distribution& states) const {
    for (int x = 0; x < distributions_.vocab; ++x)
      states[index_of(next(state, x))] += weight * distributions_.target[index_of(state)][index_of(x)];
  }
  void add_child(int child, int state, int token, double weight, Heights& own) {
    if (weight == 0.0 || accepts_[index_of(state)][index_of(token)] == 0.0) return;
    const Heights& deeper = below(child, next(state, token));
    for (std::size_t h = 0; h < deeper.size(); ++h)
      for (std::size_t s = 0; s < deeper[h].size(); ++s) own[h][s] += weight * deeper[h][s];
  }
  // The first of the highest of independent children, one more than its own height; none: the round ends here.
  void add_longest(const std::vector<Heights>& each, int state, double probability, Heights& heights) const {
    double none = probability;
    for (const Heights& own : each) none *= 1.0 - mass_of(own, own.size());
    add_final(state, none, heights[0]);
    for (std::size_t h = 0; h + 1 < heights.size(); ++h) {
      for (std::size_t k = 0; k < each.size(); ++k) {
        double others = probability;
        for (std::size_t i = 0; i < each.size(); ++i) {
          if (i == k) continue;
          const double higher = mass_of(each[i], each[i].size()) - mass_of(each[i], i < k ? h : h + 1);
          others *= std::max(0.0, 1.0 - higher);
        }
        for (std::size_t s = 0; s < each[k][h].size(); ++s) heights[h + 1][s] += others * each[k][h][s];
      }
    }
  }

  const Automaton& distributions_;
  const TreeShape& tree_;
  TreeSampling sampling_;
  std::vector<int> depths_;
  std::vector<std::vector<int>> children_;
  std::vector<Distribution> accepts_;
  std::map<std::pair<int, int>, Heights> known_;  // [node and state]
};

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
  std::vector<std::size_t> order(target.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return target[a] > target[b]; });
  std::vector<double> acceptance(target.size(), 0.0);
  for (std::size_t i = 0; i < std::min(order.size(), static_cast<std::size_t>(k)); ++i) acceptance[order[i]] = 1.0;
  return acceptance;
}

std::vector<std::vector<double>> threshold_accepted(std::span<const double> target, std::span<const double> draft, int drafts,
                                                    TreeSampling sampling, double single, double accumulated) {
  std::vector<std::vector<double>> by_rank(index_of(drafts), std::vector<double>(target.size(), 0.0));
  each_draw(draft, drafts, sampling, [&](const std::vector<int>& tokens, double probability) {
    double sum = 0.0;
    double taken = 0.0;  // the coins below this accept a token before
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
  TypicalTree typical(distributions, tree, sampling, epsilon, delta, within);
  RoundKernel kernel(distributions.states, tree.depth());
  for (int s = 0; s < distributions.states; ++s) {
    const Heights& heights = typical.below(0, s);
    for (int h = 0; h <= tree.depth(); ++h)
      for (int next = 0; next < distributions.states; ++next) kernel.at(h, s, next) = heights[index_of(h)][index_of(next)];
  }
  return kernel;
}

RoundKernel typical_guess_kernel(const Automaton& distributions, const StateMatrix& transition, const TreeShape& tree,
                                 double epsilon, double delta, double within) {
  RoundKernel kernel(distributions.states, tree.depth());
  std::vector<Distribution> accepts;
  for (const Distribution& target : distributions.target) accepts.push_back(typical_acceptance(target, epsilon, delta, within));
  for (int start = 0; start < distributions.states; ++start) {
    const ChosenTree guessed = guessed_tree(tree, distributions, start);
    const std::function<void(int, int, const std::vector<bool>&, double)> go =
        [&](int depth, int state, const std::vector<bool>& held, double probability) {
          std::vector<bool> deeper(held.size(), false);  // nodes one further down that are accepted
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
