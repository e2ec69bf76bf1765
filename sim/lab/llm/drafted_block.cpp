#include "sim/lab/llm/drafted_block.h"

#include "sim/foundation/base/check.h"

namespace specsim::llm {

DraftedBlock::DraftedBlock(std::span<const double> target, const Proposal& proposal, const verify::BlockRule& rule,
                           const Address& address)
    : target_(target), proposal_(proposal), rule_(rule), address_(address) {
  tree_ = &proposal.tree;
  siblings_ = proposal.siblings;
  round_ = placement_ = 1;  // there is one
  nodes_.resize(tree_->nodes.size());
  distributions_.resize(nodes_.size());
  plans_.resize(nodes_.size());
}

void DraftedBlock::draw(int node, Node& own) {
  own.drawn_in = round_;
  own.token = proposal_.tokens[static_cast<std::size_t>(node) - 1];
  own.u = rng::to_unit(address_.accept_bits(node));
  if (siblings_ != tokens::Siblings::without_replacement) return;
  const int parent = tree_->nodes[static_cast<std::size_t>(node)].parent;
  std::vector<Token> earlier;
  for (int sibling = tree_->nodes[static_cast<std::size_t>(parent)].first_child; sibling < node; ++sibling)
    earlier.push_back(token(sibling));
  own.remaining = distributions(parent).draft_without(earlier);
}

void DraftedBlock::place(int node, Node& own) {
  const auto at = static_cast<std::size_t>(node);
  const std::size_t vocab = target_.size() / nodes_.size();
  const std::span<const double> target = target_.subspan(at * vocab, vocab);
  own.children = tree_->nodes[at].children;
  const bool leaf = own.children == 0;  // nothing was drafted after it
  math::AliasScratch scratch;
  const bool chosen = siblings_ == tokens::Siblings::point_mass;
  own.distributions = &distributions_[at].emplace(
      target, leaf || chosen ? target : std::span(proposal_.drafted).subspan(at * vocab, vocab), scratch);
  if (!leaf) plans_[at] = rule_.plan(*own.distributions, own.children);
  own.plan = plans_[at].get();
  own.placed_in = placement_;
}

verify::PositionDistributions DraftedBlock::numbers(int node) {
  const auto at = static_cast<std::size_t>(node);
  const std::size_t vocab = target_.size() / nodes_.size();
  const std::span<const double> target = target_.subspan(at * vocab, vocab);
  if (tree_->nodes[at].children == 0) return {target, {}, {}};
  return {target, std::span(proposal_.drafted).subspan(at * vocab, vocab),
          std::span(proposal_.draft_model).subspan(at * vocab, vocab)};
}

void DraftedBlock::judged(int node, const verify::PositionDistributions& distributions, bool accepted, Token /*emitted*/) {
  if (observer_) observer_(node, distributions, accepted);
}

bool DraftedBlock::stops(int node) {
  SPECSIM_CHECK(false, "node {} was asked whether it stops the chain", node);
  return true;
}

bool DraftedBlock::decide(int node, verify::Odds /*odds*/) {
  SPECSIM_CHECK(false, "node {} was drawn without the random number that decides on it", node);
  return false;
}

// Children that are chosen from are not decided on one by one, so their random bits are unused.
Token DraftedBlock::choose(int node, const verify::Pickable& distribution) {
  return distribution.pick(address_.accept_bits(tree_->nodes[static_cast<std::size_t>(node)].first_child));
}

Token DraftedBlock::pick(int node, const verify::Pickable& distribution) {
  return distribution.pick(bits_at(address_.key, rng::Purpose::final_token,
                                   static_cast<std::uint32_t>(tree_->nodes[static_cast<std::size_t>(node)].depth), address_.round,
                                   address_.sequence)
                               .first);
}

}  // namespace specsim::llm
