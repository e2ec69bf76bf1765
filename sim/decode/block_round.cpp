#include "sim/decode/block_round.h"

#include "sim/base/check.h"
#include "sim/rng/address.h"

#include <algorithm>

namespace specsim::decode {

namespace {

class DraftPick final : public verify::Pickable {
 public:
  explicit DraftPick(const math::RatioTable& laws) : laws_(laws) {}
  [[nodiscard]] Token pick(std::uint64_t word) const override { return laws_.pick_draft(word); }

 private:
  const math::RatioTable& laws_;
};

class DraftWithoutPick final : public verify::Pickable {
 public:
  DraftWithoutPick(const math::RatioTable& laws, std::span<const Token> drawn) : laws_(laws), drawn_(drawn) {}
  [[nodiscard]] Token pick(std::uint64_t word) const override { return laws_.pick_draft_without(drawn_, rng::to_unit(word)); }

 private:
  const math::RatioTable& laws_;
  std::span<const Token> drawn_;
};

}  // namespace

BlockRound::BlockRound(const BlockTables& tables, const families::ContextProcess& process, rng::Key key,
                       const draft::BlockDrafter& drafter, const draft::LengthPolicy* policy)
    : tables_(&tables),
      process_(&process),
      moves_(process.moves()),
      key_(key),
      drafter_(&drafter),
      policy_(policy != nullptr && policy->looks() ? policy : nullptr),
      shape_(&drafter.shape()),
      tree_(drafter.tree() != nullptr ? drafter.tree() : &chosen_.tree),
      states_(static_cast<std::size_t>(shape_->nodes) + 1) {}

void BlockRound::begin(const Start& start, ChoiceSource& choices) {
  start_ = start;
  choices_ = &choices;
  ++round_;
  State& root = state(0);
  root.has_context = true;
  root.context = start.context;
  if (drafter_->tree() == nullptr) {
    chosen_.tree.nodes.assign(1, {});
    chosen_.tokens.clear();
    chosen_contexts_.assign(1, start.context);
    drafter_->choose(*this, chosen_);
    chosen_.tokens.resize(chosen_.tree.nodes.size());
    SPECSIM_CHECK(tree_->drafted() <= shape_->nodes && tree_->height() <= shape_->draft_length, "{} nodes, {} deep",
                  tree_->drafted(), tree_->height());
  }
}

const BlockRound::Outcome& BlockRound::play(const verify::BlockRule& rule, const Start& start, ChoiceSource& choices) {
  begin(start, choices);
  const verify::Verdict verdict = rule.verify(*this);
  const auto accepted = static_cast<std::size_t>(at(verdict.node).depth);
  outcome_.emitted.assign(accepted + 1, verdict.final_token);
  outcome_.contexts.resize(accepted + 2);
  for (int node = verdict.node; node > 0; node = at(node).parent) {
    const auto depth = static_cast<std::size_t>(at(node).depth);
    outcome_.emitted[depth - 1] = token(node);
    outcome_.contexts[depth] = context(node);
  }
  outcome_.contexts[0] = start.context;
  outcome_.contexts[accepted + 1] = context_after(verdict.node, verdict.final_token);
  outcome_.whole = children(verdict.node) == 0;
  return outcome_;
}

int BlockRound::drafted() {
  if (policy_ != nullptr) {  // a chain
    int node = 0;
    while (children(node) > 0) ++node;
    return node;
  }
  if (start_.longest >= tree_->height()) return tree_->drafted();
  const auto too_deep = [&](const draft::Tree::Node& node) { return node.depth > start_.longest; };
  return static_cast<int>(std::find_if(tree_->nodes.begin(), tree_->nodes.end(), too_deep) - tree_->nodes.begin()) - 1;
}

BlockRound::State& BlockRound::state(int node) {
  State& own = states_[static_cast<std::size_t>(node)];
  if (own.round != round_) own = {round_, false, false, 0, 0, 1.0};
  return own;
}

std::uint32_t BlockRound::context(int node) {
  if (!moves_) return start_.context;
  State& own = state(node);
  if (!own.has_context) {
    own.context = context_after(at(node).parent, token(node));
    own.has_context = true;
  }
  return own.context;
}

std::uint32_t BlockRound::context_after(int node, Token token) { return step(context(node), at(node).depth, token); }

std::uint32_t BlockRound::step(std::uint32_t context, int depth, Token token) const {
  if (!moves_) return context;
  const std::uint32_t lane = 0;
  const std::uint32_t position = start_.text_position + static_cast<std::uint32_t>(depth);
  process_->step(key_, start_.sequence, &lane, 1, &position, &token, &context);
  return context;
}

int BlockRound::children(int node) {
  const draft::Tree::Node& own = at(node);
  if (own.children == 0 || own.depth >= start_.longest) return 0;
  if (policy_ != nullptr && node > 0) {
    const BlockTables::Entry& drawn_from = entry(own.parent);
    if (!policy_->goes_on(drawn_from.laws.draft(token(node)), drawn_from.draft_entropy)) return 0;
  }
  if (shape_->siblings != draft::Siblings::without_replacement) return own.children;
  return std::min(own.children, static_cast<int>(entry(node).laws.draft_support()));
}

const verify::NodePlan* BlockRound::plan(int node) {
  const auto children = static_cast<std::size_t>(this->children(node));
  const auto& plans = entry(node).plans;
  return children < plans.size() ? plans[children].get() : nullptr;
}

Token BlockRound::token(int node) {
  State& own = state(node);
  if (!own.has_token) draw(node, own);
  return own.token;
}

double BlockRound::remaining(int node) {
  State& own = state(node);
  if (!own.has_token) draw(node, own);
  return own.remaining;
}

void BlockRound::draw(int node, State& own) {
  const draft::Tree::Node& place = at(node);
  own.has_token = true;
  if (drafter_->tree() == nullptr) {
    own.token = chosen_.tokens[static_cast<std::size_t>(node)];
    return;
  }
  if (shape_->siblings == draft::Siblings::point_mass) {
    const std::uint32_t seen_from = shape_->from_root ? start_.context : context(place.parent);
    own.token = tables_->at(seen_from, place.depth - 1).likeliest[static_cast<std::size_t>(place.rank)].token;
    return;
  }
  const math::RatioTable& laws = entry(place.parent).laws;
  if (shape_->siblings == draft::Siblings::without_replacement) {
    const int first = at(place.parent).first_child;
    for (int elder = first; elder < node; ++elder) static_cast<void>(token(elder));
    elders_.clear();
    for (int elder = first; elder < node; ++elder) {
      elders_.push_back(state(elder).token);
      own.remaining -= laws.draft(elders_.back());
    }
    own.remaining = std::max(own.remaining, 0x1.0p-53);  // there is a token left: see children()
    own.token = choices_->pick(ChoiceSource::Use::token, node, place.depth, DraftPick(laws));
    // One try with the law as it is; a token drawn before is replaced by one of the rest, which leaves the law of the rest.
    if (std::find(elders_.begin(), elders_.end(), own.token) != elders_.end())
      own.token = choices_->pick(ChoiceSource::Use::redraft, node, place.depth, DraftWithoutPick(laws, elders_));
    return;
  }
  own.token = choices_->pick(ChoiceSource::Use::token, node, place.depth, DraftPick(laws));
}

std::span<const draft::Ranked> BlockRound::likeliest(const draft::ChosenBlock& block, int node) {
  const std::vector<draft::Tree::Node>& nodes = block.tree.nodes;
  const draft::Tree::Node& own = nodes[static_cast<std::size_t>(node)];
  if (!moves_ || shape_->from_root) return tables_->at(start_.context, own.depth).likeliest;
  for (std::size_t i = chosen_contexts_.size(); i <= static_cast<std::size_t>(node); ++i) {  // parents come first
    const auto parent = static_cast<std::size_t>(nodes[i].parent);
    chosen_contexts_.push_back(step(chosen_contexts_[parent], nodes[parent].depth, block.tokens[i]));
  }
  return tables_->at(chosen_contexts_[static_cast<std::size_t>(node)], own.depth).likeliest;
}

}  // namespace specsim::decode
