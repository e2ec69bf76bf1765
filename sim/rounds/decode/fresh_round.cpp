#include "sim/rounds/decode/fresh_round.h"

#include "sim/foundation/base/check.h"

namespace specsim::decode {

std::uint64_t fresh_context(std::uint64_t sequence, std::uint64_t text_position) {
  SPECSIM_CHECK(sequence < kMaxFreshSequences && text_position < std::uint64_t{1} << 32, "sequence {}, position {}", sequence,
                text_position);
  return sequence << 32 | text_position;
}

FreshRound::FreshRound(const PreparationPlan& plan, int draft_length, bool with_bonus)
    : drawer_(plan),
      with_bonus_(with_bonus),
      rule_(*std::get<PositionJudging>(plan.judging).rule,
            with_bonus ? verify::PositionsInTurn::Bonus::emitted : verify::PositionsInTurn::Bonus::none) {
  for (int node = 0; node < draft_length; ++node) chain_.add(node, 0);
  tree_ = &chain_;
  nodes_.resize(chain_.nodes.size());
}

const FreshRound::RoundResult& FreshRound::play(std::uint64_t sequence, std::uint64_t text_position,
                                                verify::ChoiceSource& choices, const Observer& observer) {
  sequence_ = sequence;
  text_position_ = text_position;
  choices_ = &choices;
  observer_ = observer ? &observer : nullptr;
  numbered_ = -1;
  ++round_;
  const verify::AcceptedPath verdict = rule_.verify(*this);
  outcome_.accepted = verdict.node;
  outcome_.whole = verdict.node == draft_length();
  outcome_.emitted.clear();
  for (int node = 1; node <= verdict.node; ++node) outcome_.emitted.push_back(token(node));
  if (!outcome_.whole || with_bonus_) outcome_.emitted.push_back(verdict.final_token);
  if (outcome_.whole && with_bonus_ && observer_ != nullptr) {
    drawer_.draft(0, context(draft_length()), 0, target_, draft_model_, drafted_);
    (*observer_)(verdict.final_token, text_position_ + static_cast<std::uint64_t>(draft_length()), target_, drafted_);
  }
  return outcome_;
}

verify::PositionDistributions FreshRound::numbers(int node) {
  const bool leaf = node == draft_length();
  if (numbered_ != node) {
    drawer_.target(0, context(node), target_);
    if (!leaf) drawer_.draft(0, context(node), static_cast<std::size_t>(node), target_, draft_model_, drafted_);
    numbered_ = node;
  }
  return leaf ? verify::PositionDistributions{target_, {}, {}} : verify::PositionDistributions{target_, drafted_, draft_model_};
}

void FreshRound::judged(int node, const verify::PositionDistributions& distributions, bool /*accepted*/, Token emitted) {
  if (observer_ != nullptr)
    (*observer_)(emitted, text_position_ + static_cast<std::uint64_t>(node) - 1, distributions.target, distributions.drafted);
}

Token FreshRound::choose(int node, const verify::Pickable& distribution) {
  return choices_->pick(verify::ChoiceSource::Use::target_sample, node + 1, node + 1, distribution);
}

Token FreshRound::pick(int node, const verify::Pickable& distribution) {
  return choices_->pick(verify::ChoiceSource::Use::final_token, node, node, distribution);
}

void FreshRound::draw(int node, Node& own) {
  own.drawn_in = round_;
  static_cast<void>(numbers(node - 1));
  sums_.sum(drafted_);
  own.token = choices_->pick(verify::ChoiceSource::Use::token, node, node, verify::ScannedPick(sums_, drafted_));
}

void FreshRound::place(int node, Node& /*own*/) {
  SPECSIM_CHECK(false, "node {} of distributions that are used once was asked for their table", node);
}

bool FreshRound::stops(int node) {
  SPECSIM_CHECK(false, "node {} was asked whether it stops the chain", node);
  return true;
}

bool FreshRound::decide(int node, verify::Odds odds) { return choices_->accept(node, odds); }

}  // namespace specsim::decode
