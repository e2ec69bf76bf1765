#include "sim/draft/candidates.h"

#include <algorithm>
#include <functional>
#include <numeric>

namespace specsim::draft {

std::vector<Candidates::Child> Candidates::children_of(Sight& sight, const std::vector<int>& nodes, std::size_t width,
                                                       double decay) const {
  std::vector<Child> children;
  for (const int node : nodes) {
    const std::span<const Ranked> likeliest = sight.likeliest(block, node);
    for (std::size_t rank = 0; rank < std::min(likeliest.size(), width) && likeliest[rank].probability > 0.0; ++rank)
      children.push_back({node, static_cast<int>(rank), likeliest[rank].token,
                          value[static_cast<std::size_t>(node)] * likeliest[rank].probability * decay});
  }
  return children;
}

void Candidates::keep_best(std::vector<Child>& children, std::size_t most) {
  if (children.size() <= most) return;
  std::vector<std::size_t> order(children.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return children[a].value > children[b].value; });
  order.resize(most);
  std::sort(order.begin(), order.end());
  for (std::size_t i = 0; i < most; ++i) children[i] = children[order[i]];
  children.resize(most);
}

std::vector<int> Candidates::add(const std::vector<Child>& children) {
  std::vector<int> added;
  for (const Child& child : children) {
    added.push_back(block.add_candidate(child.parent, child.token, child.rank));
    value.push_back(child.value);
  }
  return added;
}

bool Candidates::better(int a, int b) const {
  const double x = value[static_cast<std::size_t>(a)];
  const double y = value[static_cast<std::size_t>(b)];
  return x != y ? x > y : a < b;
}

double Candidates::sum_of_best(std::size_t most) const {
  std::vector<double> values(value.begin() + 1, value.end());
  std::sort(values.begin(), values.end(), std::greater<>());
  values.resize(std::min(values.size(), most));
  return std::accumulate(values.begin(), values.end(), 0.0);
}

void Candidates::best(std::size_t most, ChosenBlock& drafted) const {
  std::vector<int> kept(value.size() - 1);
  std::iota(kept.begin(), kept.end(), 1);
  std::sort(kept.begin(), kept.end(), [&](int a, int b) { return better(a, b); });
  kept.resize(std::min(kept.size(), most));
  draft(kept, drafted);
}

void Candidates::paths_to(const std::vector<int>& nodes, ChosenBlock& drafted) const {
  std::vector<int> kept;
  std::vector<bool> taken(value.size(), false);
  for (int node : nodes)
    for (; node > 0 && !taken[static_cast<std::size_t>(node)]; node = block.tree.nodes[static_cast<std::size_t>(node)].parent) {
      taken[static_cast<std::size_t>(node)] = true;
      kept.push_back(node);
    }
  draft(kept, drafted);
}

void Candidates::draft(const std::vector<int>& kept, ChosenBlock& drafted) const {
  // Breadth first: by depth, by the parent's place, by rank.
  std::vector<std::vector<int>> children(value.size());
  for (const int node : kept)
    children[static_cast<std::size_t>(block.tree.nodes[static_cast<std::size_t>(node)].parent)].push_back(node);
  std::vector<int> placed = {0};  // [drafted node]: its candidate
  for (std::size_t at = 0; at < placed.size(); ++at) {
    std::vector<int>& own = children[static_cast<std::size_t>(placed[at])];
    const auto rank = [&](int node) { return block.tree.nodes[static_cast<std::size_t>(node)].rank; };
    std::sort(own.begin(), own.end(), [&](int a, int b) { return rank(a) < rank(b); });
    for (const int node : own) {
      drafted.add(static_cast<int>(at), block.tokens[static_cast<std::size_t>(node)], rank(node));
      placed.push_back(node);
    }
  }
}

}  // namespace specsim::draft
