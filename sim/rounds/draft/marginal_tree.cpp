#include "sim/rounds/draft/marginal_tree.h"

#include "sim/rounds/draft/candidates.h"

#include <algorithm>
#include <limits>
#include <map>
#include <queue>
#include <utility>

namespace specsim::draft {

namespace {

// A node that may be added: a child of a node of the tree.
struct Candidate {
  double value = 0.0;
  std::size_t order = 0;  // ties go to the one that was found first
  int parent = 0;
  std::size_t depth = 0;
  std::size_t rank = 0;
};

struct LowerValue {
  bool operator()(const Candidate& a, const Candidate& b) const {
    return a.value != b.value ? a.value < b.value : a.order > b.order;
  }
};

// Continuations of the text with less probability than this are left out of the positions' distributions.
constexpr double kNegligible = 1e-4;

// The places that the draft model's continuations of the text may have reached, and the probability of each.
struct ReachedNode {
  int node = 0;  // node of the walk at which continuations end
  DrafterInput::Prefix prefix;
  double weight = 0.0;
};

}  // namespace

MarginalTree::MarginalTree(int positions, int passes, const Budget& budget)
    : positions_(positions), passes_(passes), budget_(budget) {
  shape_.siblings = tokens::Siblings::point_mass;
  shape_.draft_length = std::min(positions, budget.nodes);
  shape_.nodes = budget.nodes;
  // Also with a width: a position's distribution is the mean over more continuations than the tree has.
  shape_.ranks = budget.nodes;
  shape_.whole_vocabulary = true;
  shape_.ranks_model = true;
  shape_.branches = budget.nodes > 1;
  shape_.on_target_state = true;
}

std::vector<std::vector<Ranked>> MarginalTree::marginals(DrafterInput& input) const {
  std::vector<std::vector<Ranked>> positions;
  ChosenBlock walk;
  std::vector<ReachedNode> reached = {{0, input.end_of_text(), 1.0}};
  for (int depth = 0; depth < positions_; ++depth) {
    std::map<Token, double> mass;
    std::map<std::uint32_t, ReachedNode> next;  // by context
    for (const ReachedNode& from : reached) {
      // Copied, because the next question to `input` may overwrite the answer.
      const std::span<const Ranked> likeliest = input.likeliest(walk, from.node);
      const std::vector<Ranked> children(likeliest.begin(), likeliest.end());
      for (std::size_t rank = 0; rank < children.size(); ++rank) {
        const double weight = from.weight * children[rank].probability;
        if (!(weight > kNegligible)) break;
        mass[children[rank].token] += weight;
        if (depth + 1 == positions_) continue;
        const DrafterInput::Prefix prefix = input.after(from.prefix, children[rank].token);
        const auto [at, fresh] = next.try_emplace(prefix.context);
        if (fresh) at->second = {walk.add_candidate(from.node, children[rank].token, static_cast<int>(rank)), prefix, 0.0};
        at->second.weight += weight;
      }
    }
    std::vector<Ranked> ranked;
    for (const auto& [token, probability] : mass) ranked.push_back({token, probability});
    std::stable_sort(ranked.begin(), ranked.end(),
                     [](const Ranked& a, const Ranked& b) { return a.probability > b.probability; });
    positions.push_back(std::move(ranked));
    reached.clear();
    for (const auto& [context, one] : next) reached.push_back(one);
  }
  return positions;
}

void MarginalTree::grow_families(const std::vector<std::vector<Ranked>>& positions, ChosenBlock& block) const {
  Candidates all;
  std::priority_queue<Candidate, std::vector<Candidate>, LowerValue> open;  // nodes without children; their rank is not used
  std::size_t order = 0;
  open.push({1.0, order++, 0, 0, 0});
  int nodes = 0;
  while (nodes < budget_.nodes && !open.empty()) {
    const Candidate best = open.top();
    open.pop();
    if (best.depth >= positions.size()) continue;
    const std::vector<Ranked>& own = positions[best.depth];
    const auto children =
        std::min({static_cast<std::size_t>(budget_.width), own.size(), static_cast<std::size_t>(budget_.nodes - nodes)});
    for (std::size_t rank = 0; rank < children; ++rank, ++nodes) {
      const double value = best.value * own[rank].probability;
      const int node = all.add({{best.parent, static_cast<int>(rank), own[rank].token, value}}).front();
      open.push({value, order++, node, best.depth + 1, 0});
    }
  }
  all.best(static_cast<std::size_t>(nodes), block);
}

void MarginalTree::choose(DrafterInput& input, Memory* /*memory*/, ChosenBlock& block) const {
  const std::vector<std::vector<Ranked>> positions = marginals(input);
  if (budget_.families) {
    grow_families(positions, block);
    return;
  }
  const std::size_t width = budget_.width > 0 ? static_cast<std::size_t>(budget_.width) : std::numeric_limits<std::size_t>::max();
  Candidates all;
  std::priority_queue<Candidate, std::vector<Candidate>, LowerValue> open;
  std::size_t order = 0;
  const auto offer = [&](int parent, std::size_t depth, std::size_t rank) {
    if (depth >= positions.size() || rank >= std::min(width, positions[depth].size())) return;
    open.push({all.value[static_cast<std::size_t>(parent)] * positions[depth][rank].probability, order++, parent, depth, rank});
  };
  offer(0, 0, 0);
  double tokens = 1.0;
  double time = 1.0 + budget_.draft_time;
  int nodes = 0;
  for (; nodes < budget_.nodes && !open.empty(); ++nodes) {
    const Candidate best = open.top();
    if (budget_.row_time > 0.0 && !((tokens + best.value) * time > tokens * (time + budget_.row_time))) break;
    open.pop();
    tokens += best.value;
    time += budget_.row_time;
    const Token token = positions[best.depth][best.rank].token;
    const int node = all.add({{best.parent, static_cast<int>(best.rank), token, best.value}}).front();
    offer(best.parent, best.depth, best.rank + 1);
    offer(node, best.depth + 1, 0);
  }
  all.best(static_cast<std::size_t>(nodes), block);
}

BlockWork MarginalTree::work(int nodes) const {
  // The block is drafted before its tree is known: each pass covers all its positions and the text's last token.
  return {std::vector<double>(static_cast<std::size_t>(passes_), positions_ + 1.0), 1.0 + nodes};
}

}  // namespace specsim::draft
