#include "sim/rounds/theory/budget_trees.h"

#include "sim/foundation/base/index.h"

#include <algorithm>
#include <numeric>
#include <queue>

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
  const std::vector<double>& draft = distributions.draft_at(path.depth, path.state);
  std::vector<Path> longer;
  for (const int token : likeliest(draft, index_of(width))) {
    if (draft[index_of(token)] == 0.0) break;
    longer.push_back({above, static_cast<int>(longer.size()), token, distributions.after(path.state, token), path.depth + 1,
                      path.weight * draft[index_of(token)] * decay});
  }
  return longer;
}

// The `most` paths of the largest probability among paths[first ..], parents before children.
std::vector<int> heaviest(const std::vector<Path>& paths, int first, int most) {
  std::vector<int> order(paths.size() - index_of(first));
  std::iota(order.begin(), order.end(), first);
  std::stable_sort(order.begin(), order.end(),
                   [&](int a, int b) { return paths[index_of(a)].weight > paths[index_of(b)].weight; });
  order.resize(std::min(order.size(), index_of(most)));
  std::sort(order.begin(), order.end());
  return order;
}

// Adds the continuations of `level`, `width` per path, to `paths`: all of them or the `most` likeliest. Returns the new ones.
std::vector<int> add_level(const Automaton& distributions, std::vector<Path>& paths, const std::vector<int>& level, int width,
                           int most) {
  std::vector<Path> next;
  for (const int above : level) {
    const std::vector<Path> longer = longer_paths(distributions, paths, above, width, 1.0);
    next.insert(next.end(), longer.begin(), longer.end());
  }
  std::vector<int> added;
  for (const int one : heaviest(next, 0, most)) {
    added.push_back(static_cast<int>(paths.size()));
    paths.push_back(next[index_of(one)]);
  }
  return added;
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

ChosenTree dynamic_tree(const Automaton& distributions, int state, int depth, int width, int nodes) {
  std::vector<Path> paths = {Path{.state = state}};
  int first = 0;  // first path of the last level
  for (int d = 0; d < depth; ++d) {
    const std::vector<int> level = heaviest(paths, first, width);
    first = static_cast<int>(paths.size());
    add_level(distributions, paths, level, width, distributions.vocab * width);
  }
  return tree_from(paths, heaviest(paths, 1, nodes));
}

ChosenTree opt_tree(const Automaton& distributions, int state, int nodes, double threshold, int layers) {
  std::vector<Path> paths = {Path{.state = state}};
  std::vector<int> layer = {0};
  double expected = 0.0;
  for (int d = 0; d < layers && !layer.empty(); ++d) {
    layer = add_level(distributions, paths, layer, nodes, nodes);
    double sum = 0.0;
    for (const int one : heaviest(paths, 1, nodes)) sum += paths[index_of(one)].weight;
    if (sum - expected <= threshold) break;
    expected = sum;
  }
  return tree_from(paths, heaviest(paths, 1, nodes));
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
  return tree_from(kept, heaviest(kept, 1, budget));
}

ChosenTree beam_tree(const Automaton& distributions, int state, int beams, int depth) {
  std::vector<Path> paths = {Path{.state = state}};
  std::vector<int> ends = {0};
  for (int level = 0; level < depth && !ends.empty(); ++level) ends = add_level(distributions, paths, ends, beams, beams);
  std::vector<bool> needed(paths.size(), false);
  for (int path : ends)
    for (; path > 0; path = paths[index_of(path)].parent) needed[index_of(path)] = true;
  std::vector<int> kept;
  for (int path = 1; path < static_cast<int>(paths.size()); ++path)
    if (needed[index_of(path)]) kept.push_back(path);
  return tree_from(paths, kept);
}

ChosenTree marginal_tree(const Automaton& distributions, int state, const MarginalTree& rule) {
  // The marginals, from the distribution of the draft's state at each depth.
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
  std::vector<Path> paths = {Path{.state = state}};
  if (rule.families) {
    std::vector<bool> grown = {false};
    while (static_cast<int>(paths.size()) <= rule.nodes) {
      int best = -1;
      for (std::size_t i = 0; i < paths.size(); ++i)
        if (!grown[i] && paths[i].depth < rule.positions && (best < 0 || paths[i].weight > paths[index_of(best)].weight))
          best = static_cast<int>(i);
      if (best < 0) break;
      grown[index_of(best)] = true;
      const Path from = paths[index_of(best)];
      const std::vector<double>& own = marginal[index_of(from.depth)];
      const std::vector<int> tokens = likeliest(own, index_of(rule.width));
      for (std::size_t rank = 0; rank < tokens.size() && static_cast<int>(paths.size()) <= rule.nodes; ++rank) {
        if (!(own[index_of(tokens[rank])] > 0.0)) break;
        paths.push_back(
            {best, static_cast<int>(rank), tokens[rank], state, from.depth + 1, from.weight * own[index_of(tokens[rank])]});
        grown.push_back(false);
      }
    }
    return tree_from(paths, heaviest(paths, 1, rule.nodes));
  }
  // Level by level, the likeliest paths of each length: the likeliest of all are always among them.
  std::vector<int> level = {0};
  for (int depth = 0; depth < rule.positions && !level.empty(); ++depth) {
    const std::vector<double>& own = marginal[index_of(depth)];
    const std::vector<int> tokens = likeliest(own, rule.width > 0 ? index_of(rule.width) : own.size());
    std::vector<Path> next;
    for (const int above : level)
      for (std::size_t rank = 0; rank < std::min(tokens.size(), index_of(rule.nodes)) && own[index_of(tokens[rank])] > 0.0;
           ++rank)
        next.push_back({above, static_cast<int>(rank), tokens[rank], state, depth + 1,
                        paths[index_of(above)].weight * own[index_of(tokens[rank])]});
    level.clear();
    for (const int one : heaviest(next, 0, rule.nodes)) {
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
  return tree_from(paths, heaviest(paths, 1, best));
}

}  // namespace specsim::theory
