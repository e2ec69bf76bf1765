#include "sim/verify/scanned_chain.h"

#include "sim/rng/address.h"

namespace specsim::verify {

using Use = ChoiceSource::Use;

Token ScannedPick::pick(std::uint64_t bits) const { return sums_.pick(weights_, rng::to_unit(bits)); }

const ScannedChain::Outcome& ScannedChain::play(const PositionRule& rule, ChainDrafts& drafts, ChoiceSource& choices,
                                                bool with_bonus) {
  const int length = drafts.length();
  outcome_.emitted.clear();
  outcome_.whole = true;
  for (int position = 0; position < length && outcome_.whole; ++position) {
    const ChainDrafts::Position drafted = drafts.draft(position, choices);
    const int node = position + 1;
    Token emitted = drafted.token;
    bool accepted = false;
    if (rule.matches()) {
      emitted = pick_bonus(rule, drafted.distributions.target, Use::target_sample, node, node, choices);
      accepted = emitted == drafted.token;
    } else {
      accepted = choices.accept(node, rule.odds(drafted.distributions, drafted.token));
      if (!accepted) {
        weights_.resize(drafted.distributions.target.size());
        rule.rejected(drafted.distributions, weights_);
        sums_.sum(weights_);
        // Distributions that are equal but for rounding may reject with probability 1e-16 and leave no residual: the target's
        // distribution then.
        emitted = sums_.total() > 0.0
                      ? choices.pick(Use::final_token, position, position, ScannedPick(sums_, weights_))
                      : pick_bonus(rule, drafted.distributions.target, Use::final_token, position, position, choices);
      }
    }
    drafts.judged(position, drafted, accepted, emitted);
    outcome_.emitted.push_back(emitted);
    outcome_.whole = accepted;
  }
  outcome_.accepted = static_cast<int>(outcome_.emitted.size()) - (outcome_.whole ? 0 : 1);
  if (outcome_.whole && with_bonus) {
    outcome_.emitted.push_back(pick_bonus(rule, drafts.target_at_end(), Use::final_token, length, length, choices));
    drafts.bonus(outcome_.emitted.back());
  }
  return outcome_;
}

Token ScannedChain::pick_bonus(const PositionRule& rule, std::span<const double> target, Use use, int node, int depth,
                               ChoiceSource& choices) {
  weights_.resize(target.size());
  rule.bonus(target, weights_);
  sums_.sum(weights_);
  return choices.pick(use, node, depth, ScannedPick(sums_, weights_));
}

}  // namespace specsim::verify
