#include "sim/rounds/draft/rank_tree.h"

#include "sim/foundation/base/token.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>

namespace specsim::draft {

std::string acceptance_mistake(const std::vector<std::vector<double>>& acceptance) {
  if (acceptance.empty()) return "is empty, allowed: a list for each depth";
  if (acceptance.size() > static_cast<std::size_t>(kMaxDraftLength))
    return fmt::format("has {} depths, allowed: at most {}", acceptance.size(), kMaxDraftLength);
  for (std::size_t depth = 0; depth < acceptance.size(); ++depth) {
    const double sum = std::accumulate(acceptance[depth].begin(), acceptance[depth].end(), 0.0);
    if (acceptance[depth].empty() || sum > 1.0 + 1e-9)
      return fmt::format("at depth {} of {} sums to {:g}, allowed: one rank or more that sum to at most 1", depth + 1,
                         acceptance.size(), sum);
  }
  return "";
}

tokens::Tree rank_tree(const std::vector<std::vector<double>>& acceptance, int nodes, Ranks ranks) {
  using Path = std::vector<int>;
  struct Candidate {
    double value = 0.0;
    double above = 1.0;  // its parent's value
    Path path;
    // The most valuable first; ties: the shorter path, then the lower ranks.
    bool operator<(const Candidate& other) const {
      if (value != other.value) return value > other.value;
      return path.size() != other.path.size() ? path.size() < other.path.size() : path < other.path;
    }
  };
  std::vector<Candidate> chosen;
  std::vector<Candidate> open;
  const auto later = [](const Candidate& a, const Candidate& b) { return b < a; };
  const auto add = [&](double above, Path path) {
    const double own = acceptance[path.size() - 1][static_cast<std::size_t>(path.back())];
    open.push_back({above * own, above, std::move(path)});
    std::push_heap(open.begin(), open.end(), later);
  };
  // Adds the children of a path that may be taken next.
  const auto add_children = [&](double above, const Path& parent) {
    if (parent.size() == acceptance.size()) return;
    const auto row = static_cast<int>(acceptance[parent.size()].size());
    for (int rank = 0; rank < (ranks == Ranks::any ? row : 1); ++rank) {
      Path path = parent;
      path.push_back(rank);
      add(above, std::move(path));
    }
  };
  add_children(1.0, {});
  while (static_cast<int>(chosen.size()) < nodes && !open.empty()) {
    std::pop_heap(open.begin(), open.end(), later);
    chosen.push_back(std::move(open.back()));
    open.pop_back();
    const Candidate own = chosen.back();
    if (ranks == Ranks::first && static_cast<std::size_t>(own.path.back()) + 1 < acceptance[own.path.size() - 1].size()) {
      Path path = own.path;
      ++path.back();
      add(own.above, std::move(path));
    }
    add_children(own.value, own.path);
  }
  std::sort(chosen.begin(), chosen.end(), [](const Candidate& a, const Candidate& b) {
    return a.path.size() != b.path.size() ? a.path.size() < b.path.size() : a.path < b.path;
  });
  tokens::Tree tree;
  std::map<Path, int> index = {{Path(), 0}};
  for (const Candidate& own : chosen)
    index[own.path] = tree.add(index.at(Path(own.path.begin(), own.path.end() - 1)), own.path.back());
  return tree;
}

}  // namespace specsim::draft
