#include "sim/llm/chain_block.h"

namespace specsim::llm {

ChainBlock::ChainBlock(std::span<const double> target, const Proposal& proposal, const verify::BlockRule& rule,
                       const Address& address)
    : target_(target), proposal_(proposal), rule_(rule), address_(address) {
  for (int node = 0; node < static_cast<int>(proposal.tokens.size()); ++node) tree_.add(node, 0);
  laws_.resize(tree_.nodes.size());
  plans_.resize(tree_.nodes.size());
}

const math::RatioTable& ChainBlock::laws(int node) {
  const auto at = static_cast<std::size_t>(node);
  if (!laws_[at]) {
    const std::size_t vocab = target_.size() / laws_.size();
    const std::span<const double> target = target_.subspan(at * vocab, vocab);
    const bool leaf = children(node) == 0;  // nothing was drafted after it
    math::AliasScratch scratch;
    laws_[at].emplace(target, leaf ? target : std::span(proposal_.drafted).subspan(at * vocab, vocab), scratch);
  }
  return *laws_[at];
}

const verify::NodePlan* ChainBlock::plan(int node) {
  if (children(node) == 0) return nullptr;
  std::unique_ptr<verify::NodePlan>& plan = plans_[static_cast<std::size_t>(node)];
  if (plan == nullptr) plan = rule_.plan(laws(node), 1);
  return plan.get();
}

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
