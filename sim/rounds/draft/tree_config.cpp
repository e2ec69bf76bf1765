#include "sim/rounds/draft/tree_config.h"

#include "sim/foundation/base/token.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

namespace specsim::draft {

namespace {

using Path = std::vector<int>;

// The mistake in a tree, or "".
using Mistake = std::string;

std::string path_text(const Path& path) { return fmt::format("[{}]", fmt::join(path, ", ")); }

Mistake check_size(std::size_t nodes, std::size_t height) {
  if (nodes == 0) return "the tree has no node, allowed: at least one";
  if (nodes > kMaxNodes) return fmt::format("the tree has {} nodes, allowed: at most {}", nodes, kMaxNodes);
  if (height > kMaxDraftLength) return fmt::format("the tree is {} levels deep, allowed: at most {}", height, kMaxDraftLength);
  return "";
}

// Builds the tree from the nodes' paths of ranks, in any order.
Mistake from_paths(std::vector<Path> paths, tokens::Siblings siblings, tokens::Tree& tree) {
  std::stable_sort(paths.begin(), paths.end(),
                   [](const Path& a, const Path& b) { return a.size() != b.size() ? a.size() < b.size() : a < b; });
  if (Mistake mistake = check_size(paths.size(), paths.empty() ? 0 : paths.back().size()); !mistake.empty()) return mistake;
  std::map<Path, int> nodes = {{Path(), 0}};
  for (const Path& path : paths) {
    if (path.empty()) return "a path is empty, allowed: at least one rank each";
    const Path above(path.begin(), path.end() - 1);
    const auto parent = nodes.find(above);
    if (parent == nodes.end())
      return fmt::format("path {} is an orphan, allowed: with path {} among the others", path_text(path), path_text(above));
    const int rank = path.back();
    if (siblings != tokens::Siblings::point_mass && rank > 0) {
      Path elder = path;
      --elder.back();
      if (nodes.find(elder) == nodes.end())
        return fmt::format("path {} skips a rank, allowed for drawn siblings: with path {} among the others", path_text(path),
                           path_text(elder));
    }
    if (!nodes.emplace(path, static_cast<int>(tree.nodes.size())).second)
      return fmt::format("path {} is a duplicate child, allowed: each path once", path_text(path));
    tree.add(parent->second, rank);
  }
  return "";
}

Mistake from_parents(const std::vector<double>& parents, tokens::Siblings siblings, tokens::Tree& tree) {
  const std::size_t size = parents.size();
  std::vector<Path> paths(size + 1);
  std::vector<int> children(size + 1, 0);
  for (std::size_t i = 1; i <= size; ++i) {
    const auto parent = static_cast<std::size_t>(parents[i - 1]);
    if (parent > size) return fmt::format("node {} is an orphan of node {}, allowed: parents from 0 to {}", i, parent, size);
    // Follows the parents up to the root, in at most `size` steps.
    std::size_t at = i;
    for (std::size_t steps = 0; at != 0; ++steps) {
      if (steps == size) return fmt::format("node {} is on a cycle, allowed: parents that lead up to 0", i);
      at = static_cast<std::size_t>(parents[at - 1]);
      if (at > size) return fmt::format("node {} is an orphan of node {}, allowed: parents from 0 to {}", i, at, size);
    }
  }
  // Ranks by the order in which children are listed; parents may come after their children.
  std::vector<int> rank(size + 1, 0);
  for (std::size_t i = 1; i <= size; ++i) rank[i] = children[static_cast<std::size_t>(parents[i - 1])]++;
  for (std::size_t i = 1; i <= size; ++i)
    for (std::size_t at = i; at != 0; at = static_cast<std::size_t>(parents[at - 1])) paths[i].insert(paths[i].begin(), rank[at]);
  paths.erase(paths.begin());
  return from_paths(std::move(paths), siblings, tree);
}

Mistake from_branching(const std::vector<double>& branching, tokens::Siblings siblings, tokens::Tree& tree) {
  std::vector<Path> paths;
  std::vector<Path> level = {Path()};
  for (const double children : branching) {
    if (level.size() * static_cast<std::size_t>(children) > kMaxNodes)
      return fmt::format("the tree has a level of {} nodes, allowed: at most {} in all",
                         level.size() * static_cast<std::size_t>(children), kMaxNodes);
    std::vector<Path> below;
    for (const Path& path : level)
      for (int rank = 0; rank < static_cast<int>(children); ++rank) {
        below.push_back(path);
        below.back().push_back(rank);
      }
    paths.insert(paths.end(), below.begin(), below.end());
    level = std::move(below);
  }
  return from_paths(std::move(paths), siblings, tree);
}

bool whole(double x) { return x == std::floor(x); }

}  // namespace

const config::Fields<TreeShape>& tree_shape_fields() {
  using P = TreeShape;
  static const config::Fields<P> fields = {
      {"branching", &P::branching,
       "children of each node, level by level: [3, 2, 1]; [1, 1, 1] is a chain of 3; one of branching, paths, parents",
       config::between(1, kMaxNodes), config::optional},
      {"paths", &P::paths, "every node as the ranks of the children on its path: [[0], [1], [0, 0]]",
       config::between(0, kMaxNodes), config::optional},
      {"parents", &P::parents, "parent of nodes 1, 2, ...; 0 is the text so far", config::between(0, kMaxNodes),
       config::optional},
  };
  return fields;
}

std::string siblings_meaning() {
  return "how a node's children are chosen: sampled from the draft's distribution with or without replacement; its likeliest "
         "tokens, none of probability 0; or hub: one sampled and its likeliest token (if these are the same, another one is "
         "sampled)";
}

config::Choices<tokens::Siblings> siblings_words() {
  return config::one_of<tokens::Siblings>({{"sampled", tokens::Siblings::independent},
                                           {"without_replacement", tokens::Siblings::without_replacement},
                                           {"top_k", tokens::Siblings::point_mass},
                                           {"hub", tokens::Siblings::hub}});
}

std::optional<tokens::Tree> tree_of(const config::Arguments& arguments, const TreeShape& shape, tokens::Siblings siblings,
                                    Diagnostics& diagnostics) {
  std::vector<std::string> given;
  for (const char* name : {"branching", "paths", "parents"})
    if (arguments.has(name)) given.emplace_back(name);
  if (given.size() != 1) {
    diagnostics.add(arguments.where(), fmt::format("the tree has {}, allowed: exactly one of branching, paths, parents",
                                                   given.empty() ? "no shape" : fmt::format("{}", fmt::join(given, " and "))));
    return std::nullopt;
  }
  tokens::Tree tree;
  Mistake mistake;
  if (given[0] == "paths") {
    std::vector<Path> paths;
    for (const std::vector<double>& row : shape.paths) {
      if (!std::all_of(row.begin(), row.end(), whole)) mistake = "paths has a number that is not whole, allowed: ranks 0, 1, ...";
      paths.emplace_back(row.begin(), row.end());
    }
    if (mistake.empty()) mistake = from_paths(std::move(paths), siblings, tree);
  } else {
    const std::vector<double>& numbers = given[0] == "parents" ? shape.parents : shape.branching;
    if (!std::all_of(numbers.begin(), numbers.end(), whole))
      mistake = given[0] + " has a number that is not whole, allowed: integers";
    else
      mistake = given[0] == "parents" ? from_parents(numbers, siblings, tree) : from_branching(numbers, siblings, tree);
  }
  if (mistake.empty()) return tree;
  diagnostics.add(arguments.where(given[0]), mistake);
  return std::nullopt;
}

}  // namespace specsim::draft
