#include "sim/llm/block_drafter.h"

#include "sim/base/check.h"
#include "sim/base/wide.h"
#include "sim/math/scan.h"

#include <algorithm>
#include <numeric>

namespace specsim::llm {

namespace {

// The draft's laws after the nodes of a tree that grows level by level.
class GrowingLaws {
 public:
  GrowingLaws(LawSource& draft, std::size_t sequence, std::span<const Token> text)
      : draft_(draft), sequence_(sequence), text_(text) {}

  // After `node`; all nodes that the block has and that were not asked for yet are worked out with it. The tokens before `node`
  // must not change from call to call.
  std::span<const double> after(const draft::ChosenBlock& block, int node) {
    if (static_cast<std::size_t>(node) >= known_) pass(block);
    return std::span<const double>(laws_).subspan(static_cast<std::size_t>(node) * draft_.vocab(), draft_.vocab());
  }
  [[nodiscard]] std::vector<double> take() { return std::move(laws_); }

 private:
  void pass(const draft::ChosenBlock& block) {
    if (known_ == 0) {
      const Extension unseen{.sequence = sequence_, .tokens = text_.subspan(draft_.length(sequence_))};
      laws_.resize(draft_.vocab());
      draft_.extend({&unseen, 1}, laws_);
      known_ = 1;
    }
    const std::vector<draft::Tree::Node>& nodes = block.tree.nodes;
    if (nodes.size() == known_) return;
    std::vector<int> parents;
    for (std::size_t i = 1; i < nodes.size(); ++i) parents.push_back(nodes[i].parent - 1);
    laws_.resize(nodes.size() * draft_.vocab());
    const Extension level{.sequence = sequence_,
                          .tokens = std::span(block.tokens).subspan(1, nodes.size() - 1),
                          .logit_rows = nodes.size() - known_,
                          .parents = parents};
    draft_.extend({&level, 1}, std::span(laws_).subspan(known_ * draft_.vocab()));
    draft_.rewind(sequence_, text_.size());
    known_ = nodes.size();
  }

  LawSource& draft_;
  std::size_t sequence_;
  std::span<const Token> text_;
  std::size_t known_ = 0;  // nodes
  std::vector<double> laws_;
};

std::vector<draft::Ranked> ranked(std::span<const double> law, std::size_t most) {
  std::vector<Token> order(law.size());
  std::iota(order.begin(), order.end(), Token{0});
  const auto end = order.begin() + static_cast<std::ptrdiff_t>(std::min(most, law.size()));
  std::partial_sort(order.begin(), end, order.end(),
                    [&](Token a, Token b) { return law[a] != law[b] ? law[a] > law[b] : a < b; });
  std::vector<draft::Ranked> likeliest;
  for (auto token = order.begin(); token != end; ++token) likeliest.push_back({*token, law[*token]});
  return likeliest;
}

// Where a round's random numbers live.
struct Address {
  rng::Key key;
  std::uint32_t round = 0;
  std::uint64_t sequence = 0;
  [[nodiscard]] std::uint64_t draft_word(int node) const {
    return words_at(key, rng::Purpose::draft_accept, static_cast<std::uint32_t>(node - 1), round, sequence).first;
  }
};

class RealSight final : public draft::Sight {
 public:
  RealSight(LawSource& target, GrowingLaws* laws, std::size_t ranks, std::size_t sequence, std::span<const Token> text,
            const Address& address)
      : target_(target), laws_(laws), ranks_(ranks), sequence_(sequence), text_(text), address_(address) {}

  std::span<const draft::Ranked> likeliest(const draft::ChosenBlock& block, int node) override {
    likeliest_ = ranked(laws_->after(block, node), ranks_);
    return likeliest_;
  }
  [[nodiscard]] std::span<const Token> text() const override { return text_; }
  Token random_token(std::uint32_t index) override {
    return text_[scale_word(words_at(address_.key, rng::Purpose::window, 0, index, address_.sequence).first, text_.size())];
  }

  // Places are told by their tokens' place in one tree, the text's last token at its root.
  Spot end_of_text() override {
    tokens_ = {text_.back()};
    parents_ = {-1};
    return {0, 0};
  }
  Spot after(Spot spot, Token token) override {
    const auto parent = static_cast<int>(spot.context);
    for (std::size_t i = spot.context + 1; i < tokens_.size(); ++i)
      if (parents_[i] == parent && tokens_[i] == token) return {static_cast<std::uint32_t>(i), spot.depth + 1};
    tokens_.push_back(token);
    parents_.push_back(parent);
    return {static_cast<std::uint32_t>(tokens_.size() - 1), spot.depth + 1};
  }
  std::vector<Token> target_argmax(std::span<const Spot> spots) override {
    const std::size_t vocab = target_.vocab();
    std::vector<double> laws(tokens_.size() * vocab);
    const Extension window{.sequence = sequence_, .tokens = tokens_, .logit_rows = tokens_.size(), .parents = parents_};
    target_.extend({&window, 1}, laws);
    target_.rewind(sequence_, text_.size() - 1);
    std::vector<Token> tokens;
    for (const Spot& spot : spots) tokens.push_back(math::argmax(std::span(laws).subspan(spot.context * vocab, vocab)));
    return tokens;
  }

 private:
  LawSource& target_;
  GrowingLaws* laws_;
  std::size_t ranks_;
  std::size_t sequence_;
  std::span<const Token> text_;
  Address address_;
  std::vector<draft::Ranked> likeliest_;
  std::vector<Token> tokens_;
  std::vector<int> parents_;
};

// The drafter's tree with tokens by its rule, level by level; nodes that no token is left for are left out.
draft::ChosenBlock fill(const draft::Tree& tree, draft::Siblings siblings, GrowingLaws& laws, const Address& address) {
  draft::ChosenBlock block;
  block.tokens.resize(1);
  std::vector<int> own = {0};  // [node of the tree]: its place in the block, -1: left out
  math::ScanSums sums;
  for (std::size_t node = 0; node < tree.nodes.size(); ++node) {
    const draft::Tree::Node& shape = tree.nodes[node];
    if (shape.children == 0) continue;
    own.resize(static_cast<std::size_t>(shape.first_child + shape.children), -1);
    if (own[node] < 0) continue;
    const std::span<const double> law = laws.after(block, own[node]);
    std::vector<double> rest(law.begin(), law.end());
    const std::vector<draft::Ranked> order =
        siblings == draft::Siblings::point_mass ? ranked(law, law.size()) : std::vector<draft::Ranked>();
    for (int child = shape.first_child; child < shape.first_child + shape.children; ++child) {
      const int rank = tree.nodes[static_cast<std::size_t>(child)].rank;
      Token token = 0;
      if (siblings == draft::Siblings::point_mass) {
        if (static_cast<std::size_t>(rank) >= order.size() || !(order[static_cast<std::size_t>(rank)].probability > 0.0))
          continue;
        token = order[static_cast<std::size_t>(rank)].token;
      } else {
        sums.sum(rest);
        if (!(sums.total() > 0.0)) continue;
        token = sums.pick(rest, rng::to_unit(address.draft_word(child)));
        if (siblings == draft::Siblings::without_replacement) rest[token] = 0.0;
      }
      own[static_cast<std::size_t>(child)] = block.add(own[node], token, rank);
    }
  }
  return block;
}

}  // namespace

std::size_t BlockModelDrafter::room(int /*draft_length*/) const {
  return static_cast<std::size_t>(block_.work(block_.shape().nodes).verified_rows);
}

void BlockModelDrafter::start(std::size_t sequence, std::span<const Token> prompt) {
  memories_.resize(std::max(memories_.size(), sequence + 1));
  memories_[sequence] = block_.start();
  if (draft_ == nullptr) return;
  draft_->rewind(sequence, 0);
  prefill(*draft_, sequence, prompt.first(prompt.size() - 1));
}

void BlockModelDrafter::propose(std::span<const Text> texts, int draft_length, std::uint32_t round, rng::Key key,
                                std::vector<Proposal>& proposals) {
  const draft::BlockDrafter::Shape& shape = block_.shape();
  SPECSIM_CHECK(draft_length == shape.draft_length, "{} levels of a block of {}", draft_length, shape.draft_length);
  const std::size_t vocab = target_.vocab();
  for (std::size_t s = 0; s < texts.size(); ++s) {
    const std::span<const Token> text = texts[s].tokens;
    const Address address{key, round, texts[s].id};
    std::optional<GrowingLaws> laws;
    if (draft_ != nullptr) laws.emplace(*draft_, s, text);
    draft::ChosenBlock block;
    if (const draft::Tree* tree = block_.tree()) {
      block = fill(*tree, shape.siblings, *laws, address);
    } else {
      RealSight sight(target_, laws ? &*laws : nullptr, static_cast<std::size_t>(shape.ranks), s, text, address);
      block_.choose(sight, memories_[s].get(), block);
      block.tokens.resize(block.tree.nodes.size());
    }
    Proposal& proposal = proposals[s];
    proposal.siblings = shape.siblings;
    proposal.tokens.assign(block.tokens.begin() + 1, block.tokens.end());
    if (shape.siblings == draft::Siblings::point_mass) {  // rules look at no law of them
      proposal.drafted.assign(block.tree.nodes.size() * vocab, 1.0 / static_cast<double>(vocab));
    } else {
      proposal.drafted = laws->take();
    }
    proposal.tree = std::move(block.tree);
  }
  if (draft_ != nullptr) first_pass_end_ = now(clock_);
}

void BlockModelDrafter::settle(std::size_t sequence, std::size_t length) {
  if (draft_ != nullptr) draft_->rewind(sequence, std::min(length, draft_->length(sequence)));
}

}  // namespace specsim::llm
