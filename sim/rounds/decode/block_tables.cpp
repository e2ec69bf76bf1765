#include "sim/rounds/decode/block_tables.h"

#include "sim/foundation/base/huge_array.h"
#include "sim/foundation/math/simplex.h"

#include <cmath>
#include <iterator>
#include <numeric>

namespace specsim::decode {

namespace {

// The distinct numbers of children that a node can have. A ranked tree lacks the children that the draft does not propose.
std::vector<int> fan_outs_of(const draft::BlockDrafter& drafter) {
  std::vector<int> fan_outs;
  if (const tokens::Tree* tree = drafter.tree()) {
    for (const tokens::Tree::Node& node : tree->nodes) fan_outs.push_back(node.children);
    if (drafter.shape().siblings == tokens::Siblings::point_mass) {
      fan_outs.resize(static_cast<std::size_t>(*std::max_element(fan_outs.begin(), fan_outs.end())) + 1);
      std::iota(fan_outs.begin(), fan_outs.end(), 0);
    }
  } else {
    fan_outs.resize(static_cast<std::size_t>(drafter.shape().nodes) + 1);
    std::iota(fan_outs.begin(), fan_outs.end(), 0);
  }
  std::sort(fan_outs.begin(), fan_outs.end());
  fan_outs.erase(std::unique(fan_outs.begin(), fan_outs.end()), fan_outs.end());
  return fan_outs;
}

// LengthPolicy::TokenForecast::certainty. The probabilities of the other tokens are summed, since 1 - q loses all its digits
// near 1.
double log_odds(std::span<const double> draft) {
  const auto most = std::max_element(draft.begin(), draft.end());
  const double others = std::accumulate(draft.begin(), most, 0.0) + std::accumulate(std::next(most), draft.end(), 0.0);
  constexpr double kMost = draft::LengthPolicy::kMostCertain;
  return others > 0.0 ? std::clamp(std::log(*most / others), -kMost, kMost) : kMost;
}

}  // namespace

BlockTables::BlockTables(int vocab, int contexts, int depths, const draft::BlockDrafter& drafter, const verify::BlockRule& rule)
    : vocab_(static_cast<std::size_t>(vocab)),
      depths_(static_cast<std::size_t>(depths)),
      ranks_(std::min(static_cast<std::size_t>(drafter.shape().ranks), vocab_)),
      target_ranks_(std::min(static_cast<std::size_t>(drafter.shape().target_ranks), vocab_)),
      ranks_unaltered_(drafter.shape().ranks_unaltered),
      fan_outs_(fan_outs_of(drafter)),
      without_replacement_(drafter.shape().siblings == tokens::Siblings::without_replacement ||
                           drafter.shape().siblings == tokens::Siblings::hub),
      rule_(&rule) {
  entries_.reserve(static_cast<std::size_t>(contexts) * depths_);
  classes_.reserve(static_cast<std::size_t>(contexts) * vocab_);
}

std::size_t BlockTables::bytes_needed(std::size_t vocab, std::size_t contexts, std::size_t depths, bool joined,
                                      const draft::BlockDrafter& drafter, const verify::BlockRule& rule) {
  const std::vector<int> fan_outs = fan_outs_of(drafter);
  std::size_t entry = sizeof(Entry) + math::RatioTable::bytes_needed(vocab) +
                      std::min(static_cast<std::size_t>(drafter.shape().ranks), vocab) * sizeof(draft::Ranked) + kHeapBytes +
                      (static_cast<std::size_t>(fan_outs.back()) + 1) * sizeof(std::unique_ptr<verify::NodePlan>) + kHeapBytes;
  for (const int children : fan_outs)
    if (children > 0) entry += rule.plan_bytes(vocab, children);
  const std::size_t target_ranks = std::min(static_cast<std::size_t>(drafter.shape().target_ranks), vocab);
  return contexts * ((joined ? 1 + contexts : 1) * depths * entry + vocab * sizeof(std::uint16_t) + target_ranks * sizeof(Token));
}

void BlockTables::add(const verify::PositionDistributions& distributions, std::span<const std::uint16_t> class_of_token,
                      math::AliasScratch& scratch) {
  const std::span<const double> target = distributions.target;
  if (entries_.size() % depths_ == 0) {
    classes_.insert(classes_.end(), class_of_token.begin(), class_of_token.end());
    if (target_ranks_ > 0)
      for (const Token x : math::likeliest(target, target_ranks_)) target_likeliest_.push_back(x);
  }
  static_cast<void>(make(distributions, scratch, entries_));
}

BlockTables::Entry& BlockTables::make(const verify::PositionDistributions& distributions, math::AliasScratch& scratch,
                                      std::vector<Entry>& entries) {
  const std::span<const double> target = distributions.target;
  const std::span<const double> draft = distributions.drafted;
  Entry& entry = entries.emplace_back(math::RatioTable(target, draft, scratch));
  entry.plans.resize(static_cast<std::size_t>(fan_outs_.back()) + 1);
  for (const int children : fan_outs_) {
    // Without replacement there are no more children than tokens to draw.
    const int count = without_replacement_ ? std::min(children, static_cast<int>(entry.distributions.draft_support())) : children;
    if (count == 0) continue;
    std::unique_ptr<verify::NodePlan>& plan = entry.plans[static_cast<std::size_t>(count)];
    if (plan == nullptr) plan = rule_->plan(entry.distributions, count);
  }
  entry.target_argmax = static_cast<Token>(std::max_element(target.begin(), target.end()) - target.begin());
  const std::span<const double> looked_at = distributions.looked_at.empty() ? draft : distributions.looked_at;
  for (const double q : looked_at)
    if (q > 0.0) entry.looked_entropy -= q * std::log(q);
  entry.forecast = {1.0 - entry.distributions.residual(1.0).mass, log_odds(looked_at)};
  if (!distributions.looked_at.empty())
    entry.looked_certainty = looked_at[static_cast<std::size_t>(std::find(draft.begin(), draft.end(), 1.0) - draft.begin())];
  if (ranks_ > 0) {
    entry.likeliest.reserve(ranks_);
    const std::span<const double> ranked = ranks_unaltered_ ? distributions.draft_model : draft;
    for (const Token x : math::likeliest(ranked, ranks_)) entry.likeliest.push_back({x, ranked[x]});
  }
  return entry;
}

}  // namespace specsim::decode
