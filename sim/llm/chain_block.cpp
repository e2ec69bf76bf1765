#include "sim/llm/chain_block.h"

#include "sim/base/check.h"

namespace specsim::llm {

ChainBlock::ChainBlock(std::span<const double> target, const Proposal& proposal, const verify::BlockRule& rule,
                       const Address& address)
    : target_(target), proposal_(proposal), rule_(rule), address_(address) {
  for (int node = 0; node < static_cast<int>(proposal.tokens.size()); ++node) chain_.add(node, 0);
  tree_ = &chain_;
  siblings_ = draft::Siblings::independent;
  round_ = placement_ = 1;  // there is one
  nodes_.resize(chain_.nodes.size());
  laws_.resize(nodes_.size());
  plans_.resize(nodes_.size());
}

void ChainBlock::draw(int node, Node& own) {
  own.drawn_in = round_;
  own.token = proposal_.tokens[static_cast<std::size_t>(node) - 1];
  own.u = rng::to_unit(accept_word(node - 1));
}

void ChainBlock::place(int node, Node& own) {
  const auto at = static_cast<std::size_t>(node);
  const std::size_t vocab = target_.size() / nodes_.size();
  const std::span<const double> target = target_.subspan(at * vocab, vocab);
  own.children = chain_.nodes[at].children;
  const bool leaf = own.children == 0;  // nothing was drafted after it
  math::AliasScratch scratch;
  own.laws = &laws_[at].emplace(target, leaf ? target : std::span(proposal_.drafted).subspan(at * vocab, vocab), scratch);
  if (!leaf) plans_[at] = rule_.plan(*own.laws, own.children);
  own.plan = plans_[at].get();
  own.placed_in = placement_;
}

bool ChainBlock::stops(int node) {
  SPECSIM_CHECK(false, "node {} was asked whether it stops the chain", node);
  return true;
}

bool ChainBlock::decide(int node, verify::Odds /*odds*/) {
  SPECSIM_CHECK(false, "node {} was drawn without the word that decides on it", node);
  return false;
}

Token ChainBlock::choose(int node, const verify::Pickable& law) { return law.pick(accept_word(node)); }

Token ChainBlock::pick(int node, const verify::Pickable& law) {
  return law.pick(
      words_at(address_.key, rng::Purpose::final_token, static_cast<std::uint32_t>(node), address_.round, address_.sequence)
          .first);
}

std::uint64_t ChainBlock::accept_word(int position) const {
  return words_at(address_.key, rng::Purpose::draft_accept, static_cast<std::uint32_t>(position), address_.round,
                  address_.sequence)
      .second;
}

}  // namespace specsim::llm
