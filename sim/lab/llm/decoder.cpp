#include "sim/lab/llm/decoder.h"

#include "sim/foundation/base/check.h"
#include "sim/lab/llm/drafted_block.h"

#include <algorithm>
#include <utility>

namespace specsim::llm {

Decoder::Decoder(DistributionSource& target, Proposer* drafter, const verify::BlockRule& rule, int draft_length, rng::Key key,
                 Clock clock)
    : target_(target), drafter_(drafter), rule_(rule), draft_length_(draft_length), key_(key), clock_(clock) {
  SPECSIM_CHECK(draft_length == 0 || drafter != nullptr, "draft_length {} without a drafter", draft_length);
}

void Decoder::start(std::vector<Text> texts) {
  texts_ = std::move(texts);
  accepted_.assign(texts_.size(), 0);
  proposals_.assign(texts_.size(), {});
  given_.clear();
  round_ = 0;
  for (std::size_t s = 0; s < texts_.size(); ++s) {
    const std::vector<Token>& tokens = texts_[s].tokens;
    SPECSIM_CHECK(!tokens.empty(), "sequence {} has no prompt", s);
    given_.push_back(tokens.size());
    target_.rewind(s, 0);
    prefill(target_, s, std::span(tokens).first(tokens.size() - 1));
    if (draft_length_ > 0) drafter_->start(s, tokens);
  }
}

std::size_t Decoder::last_start() const {
  const std::size_t capacity = draft_length_ > 0 ? std::min(target_.capacity(), drafter_->capacity()) : target_.capacity();
  const std::size_t room = draft_length_ > 0 ? drafter_->room(draft_length_) : 0;
  return capacity - std::min(room, capacity);
}

bool Decoder::fits() const {
  return std::all_of(texts_.begin(), texts_.end(), [&](const Text& text) { return text.tokens.size() <= last_start(); });
}

void Decoder::forget(std::size_t unseen) {
  for (std::size_t s = 0; s < texts_.size(); ++s) {
    texts_[s].tokens.resize(given_[s]);
    target_.rewind(s, given_[s] - 1);
    if (drafter_ != nullptr) drafter_->settle(s, given_[s] - std::min(unseen, given_[s]));
  }
}

void Decoder::round(int draft_length) {
  SPECSIM_CHECK(draft_length <= draft_length_, "{} of {} drafts", draft_length, draft_length_);
  double last = now(clock_);
  const auto lap = [&] { return std::exchange(last, now(clock_)); };
  seconds_ = {};
  proposals_.assign(texts_.size(), {});
  if (draft_length > 0) {
    drafter_->propose(texts_, draft_length, round_, key_, proposals_);
    const double begin = lap();
    seconds_.first_draft = std::min(last, drafter_->first_pass_end().value_or(last)) - begin;
    seconds_.other_drafts = last - begin - seconds_.first_draft;
  }

  std::vector<Extension> batch;
  std::vector<std::vector<Token>> rows(texts_.size());
  std::vector<std::vector<int>> parents(texts_.size());
  std::size_t count = 0;
  for (std::size_t s = 0; s < texts_.size(); ++s) {
    rows[s] = {texts_[s].tokens.back()};  // the root of the draft
    rows[s].insert(rows[s].end(), proposals_[s].tokens.begin(), proposals_[s].tokens.end());
    for (const tokens::Tree::Node& node : proposals_[s].tree.nodes) parents[s].push_back(node.parent);
    batch.push_back({.sequence = s, .tokens = rows[s], .logit_rows = rows[s].size()});
    if (!proposals_[s].tree.is_chain()) batch.back().parents = parents[s];
    count += rows[s].size();
  }
  distributions_.resize(count * target_.vocab());
  target_.extend(batch, distributions_);
  const double target_begin = lap();
  seconds_.target = last - target_begin;

  std::span<const double> rest = distributions_;
  for (std::size_t s = 0; s < texts_.size(); ++s) {
    const std::span<const double> own = rest.first(rows[s].size() * target_.vocab());
    const std::size_t cached = texts_[s].tokens.size() - 1;
    const std::vector<std::uint32_t> path = judge(s, own);
    rest = rest.subspan(own.size());
    accepted_[s] = static_cast<int>(path.size()) - 1;
    const bool chain = proposals_[s].tree.is_chain();
    chain ? target_.rewind(s, cached + path.size()) : target_.keep_path(s, cached, path);
    if (draft_length > 0) drafter_->settle(s, chain ? cached + path.size() : cached + 1);
  }
  ++round_;
  const double judging_begin = lap();
  seconds_.judging = last - judging_begin;
}

std::vector<std::uint32_t> Decoder::judge(std::size_t s, std::span<const double> target) {
  const Proposal& proposal = proposals_[s];
  DraftedBlock block(target, proposal, rule_, {key_, round_, texts_[s].id});
  if (observer_)
    block.observe([&](int node, const verify::PositionDistributions& distributions, bool accepted) {
      observer_({s, node - 1, distributions, proposal.tokens[static_cast<std::size_t>(node) - 1], accepted});
    });
  const verify::AcceptedPath verdict = rule_.verify(block);
  std::vector<std::uint32_t> path;
  for (int node = verdict.node; node >= 0; node = proposal.tree.nodes[static_cast<std::size_t>(node)].parent)
    path.insert(path.begin(), static_cast<std::uint32_t>(node));
  std::vector<Token>& text = texts_[s].tokens;
  for (std::size_t i = 1; i < path.size(); ++i) text.push_back(proposal.tokens[path[i] - 1]);
  text.push_back(verdict.final_token);
  return path;
}

}  // namespace specsim::llm
