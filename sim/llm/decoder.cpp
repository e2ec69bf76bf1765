#include "sim/llm/decoder.h"

#include "sim/base/check.h"

#include <algorithm>
#include <utility>

namespace specsim::llm {

Decoder::Decoder(LawSource& target, Drafter* drafter, const verify::PositionRule& rule, int draft_length, rng::Key key,
                 Clock clock)
    : target_(target),
      drafter_(drafter),
      rule_(rule),
      draft_length_(draft_length),
      key_(key),
      clock_(clock),
      weights_(target.vocab()) {
  SPECSIM_CHECK(draft_length == 0 || drafter != nullptr, "draft_length {} without a drafter", draft_length);
}

void Decoder::start(std::vector<Text> texts) {
  texts_ = std::move(texts);
  accepted_.assign(texts_.size(), 0);
  proposals_.assign(texts_.size(), {});
  round_ = 0;
  for (std::size_t s = 0; s < texts_.size(); ++s) {
    const std::vector<Token>& tokens = texts_[s].tokens;
    SPECSIM_CHECK(!tokens.empty(), "sequence {} has no prompt", s);
    target_.rewind(s, 0);
    prefill(target_, s, std::span(tokens).first(tokens.size() - 1));
    if (draft_length_ > 0) drafter_->start(s, tokens);
  }
}

bool Decoder::fits() const {
  const std::size_t room = draft_length_ > 0 ? std::min(target_.capacity(), drafter_->capacity()) : target_.capacity();
  return std::all_of(texts_.begin(), texts_.end(),
                     [&](const Text& text) { return text.tokens.size() + static_cast<std::size_t>(draft_length_) <= room; });
}

void Decoder::round() {
  const double begin = now(clock_);
  if (draft_length_ > 0) drafter_->propose(texts_, draft_length_, round_, key_, proposals_);

  std::vector<Extension> batch;
  std::vector<std::vector<Token>> rows(texts_.size());
  std::size_t count = 0;
  for (std::size_t s = 0; s < texts_.size(); ++s) {
    rows[s] = {texts_[s].tokens.back()};
    rows[s].insert(rows[s].end(), proposals_[s].tokens.begin(), proposals_[s].tokens.end());
    batch.push_back({.sequence = s, .tokens = rows[s], .logit_rows = rows[s].size()});
    count += rows[s].size();
  }
  laws_.resize(count * target_.vocab());
  target_.extend(batch, laws_);

  std::span<const double> rest = laws_;
  for (std::size_t s = 0; s < texts_.size(); ++s) {
    judge(s, rest);
    rest = rest.subspan(rows[s].size() * target_.vocab());
    const std::size_t kept = texts_[s].tokens.size() - 1;  // the final token has been in no pass
    target_.rewind(s, kept);
    if (draft_length_ > 0) drafter_->settle(s, kept);
  }
  ++round_;
  round_seconds_ = now(clock_) - begin;
}

void Decoder::judge(std::size_t s, std::span<const double> target) {
  const std::size_t vocab = target_.vocab();
  const Proposal& proposal = proposals_[s];
  std::vector<Token>& text = texts_[s].tokens;
  const std::uint64_t final_word = words_at(key_, rng::Purpose::final_token, 0, round_, texts_[s].id).first;
  int& accepted = accepted_[s];
  accepted = 0;
  for (std::size_t i = 0; i < proposal.tokens.size(); ++i) {
    const auto law = [&](std::span<const double> laws) { return laws.subspan(i * vocab, vocab); };
    const verify::PositionLaws laws{law(target), law(proposal.drafted), law(proposal.draft_model)};
    const Token token = proposal.tokens[i];
    const std::uint64_t word =
        words_at(key_, rng::Purpose::draft_accept, static_cast<std::uint32_t>(i), round_, texts_[s].id).second;
    Token sampled = 0;
    bool accepts = false;
    if (rule_.matches()) {
      rule_.bonus(laws.target, weights_);
      sampled = pick(word);
      accepts = sampled == token;
    } else {
      accepts = verify::accepts(rng::to_unit(word), rule_.odds(laws, token));
    }
    if (observer_) observer_({s, static_cast<int>(i), laws, token, accepts});
    if (!accepts) {
      if (!rule_.matches()) {
        rule_.rejected(laws, weights_);
        sampled = pick(final_word);
      }
      text.push_back(sampled);
      return;
    }
    text.push_back(token);
    ++accepted;
  }
  rule_.bonus(target.subspan(proposal.tokens.size() * vocab, vocab), weights_);
  text.push_back(pick(final_word));
}

Token Decoder::pick(std::uint64_t word) {
  sums_.sum(weights_);
  return sums_.pick(weights_, rng::to_unit(word));
}

}  // namespace specsim::llm
