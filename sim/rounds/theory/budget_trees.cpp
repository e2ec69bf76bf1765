#include "sim/rounds/theory/budget_trees.h"

#include "sim/foundation/base/index.h"

#include <algorithm>
#include <numeric>
#include <queue>
#include <utility>

namespace specsim::theory {
namespace {

struct Path {
  int parent = -1;
  int rank = -1;
  int token = -1;
  int state = 0;
  int depth = 0;
  double weight = 1.0;
};

// The `width` likeliest tokens after paths[above], as paths; the lower token first among equals.
std::vector<Path> longer_paths(const Automaton& distributions, const std::vector<Path>& paths, int above, int width,
                               double decay) {
  const Path& path = paths[index_of(above)];
  const std::size_t row = std::min(index_of(path.depth), distributions.draft.size() - 1);
  const std::vector<double>& draft = distributions.draft[row][index_of(path.state)];
  std::vector<int> tokens(draft.size());
  std::iota(tokens.begin(), tokens.end(), 0);
  std::stable_sort(tokens.begin(), tokens.end(), [&](int a, int b) { return draft[index_of(a)] > draft[index_of(b)]; });
  std::vector<Path> longer;
  for (int rank = 0; rank < std::min(width, distributions.vocab); ++rank) {
    const int token = tokens[index_of(rank)];
    if (draft[index_of(token)] == 0.0) break;
    longer.push_back({above, rank, token, distributions.next[index_of(path.state * distributions.vocab + token)], path.depth + 1,
                      path.weight * draft[index_of(token)] * decay});
  }
  return longer;
}

// The `most` heaviest of paths[1 ..], parents before children.
std::vector<int> heaviest(const std::vector<Path>& paths, int most) {
  std::vector<int> order(paths.size() - 1);
  std::iota(order.begin(), order.end(), 1);
  std::stable_sort(order.begin(), order.end(),
                   [&](int a, int b) { return paths[index_of(a)].weight > paths[index_of(b)].weight; });
  order.resize(std::min(order.size(), index_of(most)));
  std::sort(order.begin(), order.end());
  return order;
}

ChosenTree tree_from(const std::vector<Path>& paths, const std::vector<int>& kept) {
  ChosenTree chosen;
  std::vector<int> place(paths.size(), 0);
  for (const int path : kept) {
    const Path& own = paths[index_of(path)];
    place[index_of(path)] = chosen.tree.add(place[index_of(own.parent)], own.rank);
    chosen.tokens.push_back(own.token);
  }
  return chosen;
}

}  // namespace

ChosenTree opt_tree(const Automaton& distributions, int state, int nodes, double threshold, int layers) {
  std::vector<Path> paths = {Path{.state = state}};
  std::vector<int> layer = {0};
  double expected = 0.0;
  for (int d = 0; d < layers && !layer.empty(); ++d) {
    std::vector<Path> next = {Path()};
    for (const int above : layer) {
      const std::vector<Path> longer = longer_paths(distributions, paths, above, nodes, 1.0);
      next.insert(next.end(), longer.begin(), longer.end());
    }
    layer.clear();
    for (const int one : heaviest(next, nodes)) {
      layer.push_back(static_cast<int>(paths.size()));
      paths.push_back(next[index_of(one)]);
    }
    double sum = 0.0;
    for (const int one : heaviest(paths, nodes)) sum += paths[index_of(one)].weight;
    if (sum - expected <= threshold) break;
    expected = sum;
  }
  return tree_from(paths, heaviest(paths, nodes));
}

ChosenTree likeliest_paths(const Automaton& distributions, int state, int budget, int depth, int width, double decay) {
  std::vector<Path> kept = {Path{.state = state}};
  const auto lighter = [](const Path& a, const Path& b) { return a.weight < b.weight; };
  std::priority_queue<Path, std::vector<Path>, decltype(lighter)> open(lighter);
  const auto extend = [&](int path) {
    if (kept[index_of(path)].depth == depth) return;
    for (const Path& longer : longer_paths(distributions, kept, path, width, decay)) open.push(longer);
  };
  extend(0);
  while (!open.empty() && static_cast<int>(kept.size()) <= budget) {
    kept.push_back(open.top());
    open.pop();
    extend(static_cast<int>(kept.size()) - 1);
  }
  std::vector<int> all(kept.size() - 1);
  std::iota(all.begin(), all.end(), 1);
  return tree_from(kept, all);
}

ChosenTree beam_tree(const Automaton& distributions, int state, int beams, int depth) {
  std::vector<Path> paths = {Path{.state = state}};
  std::vector<int> ends = {0};
  for (int level = 0; level < depth && !ends.empty(); ++level) {
    std::vector<Path> next = {Path()};
    for (const int end : ends) {
      const std::vector<Path> longer = longer_paths(distributions, paths, end, beams, 1.0);
      next.insert(next.end(), longer.begin(), longer.end());
    }
    ends.clear();
    for (const int one : heaviest(next, beams)) {
      ends.push_back(static_cast<int>(paths.size()));
      paths.push_back(next[index_of(one)]);
    }
  }
  std::vector<bool> needed(paths.size(), false);
  for (int path : ends)
    for (; path > 0; path = paths[index_of(path)].parent) needed[index_of(path)] = true;
  std::vector<int> kept;
  for (int path = 1; path < static_cast<int>(paths.size()); ++path)
    if (needed[index_of(path)]) kept.push_back(path);
  return tree_from(paths, kept);
}

ChosenTree marginal_tree(const Automaton& distributions, int state, const MarginalTree& rule) {
  // The marginals, by the distribution of the draft's state at each depth.
  std::vector<std::vector<double>> marginal;
  std::vector<double> in_state(index_of(distributions.states), 0.0);
  in_state[index_of(state)] = 1.0;
  for (int depth = 0; depth < rule.positions; ++depth) {
    std::vector<double> own(index_of(distributions.vocab), 0.0);
    std::vector<double> then(in_state.size(), 0.0);
    for (int s = 0; s < distributions.states; ++s) {
      if (in_state[index_of(s)] == 0.0) continue;
      const std::vector<Path> from = {Path{.state = s, .depth = depth, .weight = in_state[index_of(s)]}};
      for (const Path& one : longer_paths(distributions, from, 0, rule.nodes, 1.0)) {
        if (!(one.weight > rule.least)) break;
        own[index_of(one.token)] += one.weight;
        then[index_of(one.state)] += one.weight;
      }
    }
    marginal.push_back(std::move(own));
    in_state = std::move(then);
  }
  // Level by level the heaviest paths of each length: none of the heaviest of all can lie outside them.
  std::vector<Path> paths = {Path{.state = state}};
  std::vector<int> level = {0};
  for (int depth = 0; depth < rule.positions && !level.empty(); ++depth) {
    const std::vector<double>& own = marginal[index_of(depth)];
    std::vector<int> tokens(own.size());
    std::iota(tokens.begin(), tokens.end(), 0);
    std::stable_sort(tokens.begin(), tokens.end(), [&](int a, int b) { return own[index_of(a)] > own[index_of(b)]; });
    if (rule.width > 0) tokens.resize(std::min(tokens.size(), index_of(rule.width)));
    std::vector<Path> next = {Path()};
    for (const int above : level)
      for (std::size_t rank = 0; rank < std::min(tokens.size(), index_of(rule.nodes)) && own[index_of(tokens[rank])] > 0.0;
           ++rank)
        next.push_back({above, static_cast<int>(rank), tokens[rank], state, depth + 1,
                        paths[index_of(above)].weight * own[index_of(tokens[rank])]});
    level.clear();
    for (const int one : heaviest(next, rule.nodes)) {
      level.push_back(static_cast<int>(paths.size()));
      paths.push_back(next[index_of(one)]);
    }
  }
  int best = rule.nodes;
  if (rule.row_time > 0.0) {
    std::vector<double> weights;
    for (std::size_t i = 1; i < paths.size(); ++i) weights.push_back(paths[i].weight);
    std::sort(weights.rbegin(), weights.rend());
    double tokens = 1.0;
    double most = 1.0 / (1.0 + rule.draft_time);
    best = 0;
    for (int n = 1; n <= std::min(rule.nodes, static_cast<int>(weights.size())); ++n) {
      tokens += weights[index_of(n - 1)];
      const double per_time = tokens / (1.0 + rule.draft_time + rule.row_time * n);
      if (per_time > most) {
        most = per_time;
        best = n;
      }
    }
  }
  return tree_from(paths, heaviest(paths, best));
}

}  // namespace specsim::theory
