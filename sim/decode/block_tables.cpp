#include "sim/decode/block_tables.h"

#include <cmath>
#include <numeric>

namespace specsim::decode {

BlockTables::BlockTables(int contexts, int depths, const draft::BlockDrafter& drafter, const verify::BlockRule& rule)
    : depths_(static_cast<std::size_t>(depths)), ranks_(static_cast<std::size_t>(drafter.shape().ranks)), rule_(&rule) {
  entries_.reserve(static_cast<std::size_t>(contexts) * depths_);
  if (const draft::Tree* tree = drafter.tree()) {
    for (const draft::Tree::Node& node : tree->nodes) fan_outs_.push_back(node.children);
  } else {
    fan_outs_.resize(static_cast<std::size_t>(drafter.shape().nodes) + 1);
    std::iota(fan_outs_.begin(), fan_outs_.end(), 0);
  }
  std::sort(fan_outs_.begin(), fan_outs_.end());
  fan_outs_.erase(std::unique(fan_outs_.begin(), fan_outs_.end()), fan_outs_.end());
}

std::size_t BlockTables::bytes_needed(std::size_t vocab, std::size_t contexts, std::size_t depths) {
  return contexts * (depths * math::RatioTable::bytes_needed(vocab) + vocab * sizeof(std::uint16_t));
}

void BlockTables::add(std::span<const double> target, std::span<const double> draft,
                      std::span<const std::uint16_t> class_of_token, math::AliasScratch& scratch) {
  if (entries_.size() % depths_ == 0) classes_.insert(classes_.end(), class_of_token.begin(), class_of_token.end());
  vocab_ = target.size();
  Entry& entry = entries_.emplace_back(math::RatioTable(target, draft, scratch));
  for (const int children : fan_outs_) {
    // Without replacement there are no more children than tokens to draw.
    const int fewest = std::min<int>(children, static_cast<int>(entry.laws.draft_support()));
    for (const int count : {fewest, children}) {
      if (count == 0) continue;
      if (entry.plans.size() <= static_cast<std::size_t>(count)) entry.plans.resize(static_cast<std::size_t>(count) + 1);
      std::unique_ptr<verify::NodePlan>& plan = entry.plans[static_cast<std::size_t>(count)];
      if (plan == nullptr) plan = rule_->plan(entry.laws, count);
    }
  }
  entry.target_argmax = static_cast<Token>(std::max_element(target.begin(), target.end()) - target.begin());
  for (const double q : draft)
    if (q > 0.0) entry.draft_entropy -= q * std::log(q);
  if (ranks_ > 0) {
    std::vector<Token> order(vocab_);
    std::iota(order.begin(), order.end(), Token{0});
    const auto end = order.begin() + static_cast<std::ptrdiff_t>(std::min(ranks_, vocab_));
    std::partial_sort(order.begin(), end, order.end(),
                      [&](Token a, Token b) { return draft[a] != draft[b] ? draft[a] > draft[b] : a < b; });
    for (auto x = order.begin(); x != end; ++x) entry.likeliest.push_back({*x, draft[*x]});
  }
}

}  // namespace specsim::decode
