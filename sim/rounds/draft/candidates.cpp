#include "sim/rounds/draft/candidates.h"

#include <algorithm>
#include <functional>
#include <numeric>

namespace specsim::draft {

std::vector<Candidates::Child> Candidates::children_of(DrafterInput& input, const std::vector<int>& nodes, std::size_t width,
                                                       double decay) const {
  std::vector<Child> children;
  children.reserve(nodes.size() * std::min<std::size_t>(width, 16));
  for (const int node : nodes) {
    const std::span<const Ranked> likeliest = input.likeliest(block, node);
    for (std::size_t rank = 0; rank < std::min(likeliest.size(), width) && likeliest[rank].probability > 0.0; ++rank)
      children.push_back({node, static_cast<int>(rank), likeliest[rank].token,
                          value[static_cast<std::size_t>(node)] * likeliest[rank].probability * decay});
  }
  return children;
}

std::vector<Candidates::Child> Candidates::best_children(DrafterInput& input, const std::vector<int>& nodes,
                                                         std::size_t most) const {
  std::vector<Child> children;
  children.reserve(2 * most);
  std::vector<double> best;  // the largest values so far, the smallest of them first
  best.reserve(most);
  for (const int node : nodes) {
    const std::span<const Ranked> likeliest = input.likeliest(block, node);
    for (std::size_t rank = 0; rank < std::min(likeliest.size(), most) && likeliest[rank].probability > 0.0; ++rank) {
      const double worth = value[static_cast<std::size_t>(node)] * likeliest[rank].probability;
      if (best.size() == most) {
        if (!(worth > best.front())) break;  // later ones are worth no more
        std::pop_heap(best.begin(), best.end(), std::greater<>());
        best.pop_back();
      }
      best.push_back(worth);
      std::push_heap(best.begin(), best.end(), std::greater<>());
      children.push_back({node, static_cast<int>(rank), likeliest[rank].token, worth});
    }
  }
  if (children.size() <= most) return children;
  const double least = best.front();
  // Several children may be worth exactly the smallest value that stays. The first of them stay, as many as there is room for.
  auto equal = static_cast<std::size_t>(std::count(best.begin(), best.end(), least));
  std::erase_if(children, [&](const Child& child) {
    if (child.value != least) return child.value < least;
    return equal == 0 || equal-- == 0;
  });
  return children;
}

std::vector<int> Candidates::add(const std::vector<Child>& children) {
  std::vector<int> added;
  added.reserve(children.size());
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
  const std::size_t kept = std::min(values.size(), most);
  std::partial_sort(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(kept), values.end(), std::greater<>());
  values.resize(kept);
  return std::accumulate(values.begin(), values.end(), 0.0);
}

void Candidates::best(std::size_t most, ChosenBlock& drafted) const {
  std::vector<int> kept(value.size() - 1);
  std::iota(kept.begin(), kept.end(), 1);
  if (kept.size() > most) {
    std::nth_element(kept.begin(), kept.begin() + static_cast<std::ptrdiff_t>(most), kept.end(),
                     [&](int a, int b) { return better(a, b); });
    kept.resize(most);
  }
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
  // Breadth first: by depth, by the parent's place, by rank. Children are in lists by rank, filled from the last rank.
  const auto node_of = [&](int node) -> const tokens::Tree::Node& { return block.tree.nodes[static_cast<std::size_t>(node)]; };
  std::vector<int> by_rank = kept;
  std::sort(by_rank.begin(), by_rank.end(), [&](int a, int b) { return node_of(a).rank > node_of(b).rank; });
  std::vector<int> first_child(value.size(), 0);  // 0: none
  std::vector<int> next_sibling(value.size(), 0);
  for (const int node : by_rank) {
    int& first = first_child[static_cast<std::size_t>(node_of(node).parent)];
    next_sibling[static_cast<std::size_t>(node)] = first;
    first = node;
  }
  std::vector<int> placed;  // [drafted node]: its candidate
  placed.reserve(kept.size() + 1);
  placed.push_back(0);
  for (std::size_t at = 0; at < placed.size(); ++at)
    for (int node = first_child[static_cast<std::size_t>(placed[at])]; node != 0;
         node = next_sibling[static_cast<std::size_t>(node)]) {
      drafted.add(static_cast<int>(at), block.tokens[static_cast<std::size_t>(node)], node_of(node).rank);
      placed.push_back(node);
    }
}

}  // namespace specsim::draft
