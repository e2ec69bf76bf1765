#include "sim/lab/llm/block_proposer.h"

#include "sim/foundation/base/check.h"
#include "sim/foundation/base/wide.h"
#include "sim/foundation/math/scan.h"
#include "sim/foundation/math/simplex.h"
#include "sim/lab/llm/drafted_block.h"

#include <boost/core/noncopyable.hpp>

#include <algorithm>
#include <map>
#include <numeric>

namespace specsim::llm {

namespace {

// The draft's distributions after nodes of a tree that grows level by level. The draft's cache holds the levels while this object
// lives, and only the text afterwards.
class GrowingDistributions : boost::noncopyable {
 public:
  GrowingDistributions(DistributionSource& draft, std::size_t sequence, std::span<const Token> text)
      : draft_(draft), sequence_(sequence), text_(text) {}
  ~GrowingDistributions() { draft_.rewind(sequence_, std::min(text_.size(), draft_.length(sequence_))); }

  // One pass over `nodes`, all of one depth, gives the distributions after them; their parents must have been prepared.
  void prepare(const draft::ChosenBlock& block, std::span<const int> nodes) {
    rows_.resize(block.tree.nodes.size());
    if (rows_[0].empty()) {
      rows_[0].resize(draft_.vocab());
      const Extension unseen{.sequence = sequence_, .tokens = text_.subspan(draft_.length(sequence_))};
      draft_.extend({&unseen, 1}, rows_[0]);
    }
    if (nodes.empty() || nodes[0] == 0) return;
    std::vector<Token> tokens;
    for (const int node : nodes) {
      const int parent = block.tree.nodes[static_cast<std::size_t>(node)].parent;
      parents_.push_back(parent == 0 ? -1 : place_.at(parent));
      place_.try_emplace(node, static_cast<int>(place_.size()));
      tokens.push_back(block.tokens[static_cast<std::size_t>(node)]);
    }
    std::vector<double> distributions(nodes.size() * draft_.vocab());
    const Extension level{.sequence = sequence_, .tokens = tokens, .logit_rows = nodes.size(), .parents = parents_};
    draft_.extend({&level, 1}, distributions);
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      const auto row = distributions.begin() + static_cast<std::ptrdiff_t>(i * draft_.vocab());
      rows_[static_cast<std::size_t>(nodes[i])].assign(row, row + static_cast<std::ptrdiff_t>(draft_.vocab()));
    }
  }
  [[nodiscard]] std::span<const double> after(int node) const { return rows_.at(static_cast<std::size_t>(node)); }
  // [node][vocab]; zeros for nodes that were not requested.
  [[nodiscard]] std::vector<double> side_by_side(std::size_t nodes) const {
    std::vector<double> distributions(nodes * draft_.vocab(), 0.0);
    for (std::size_t node = 0; node < std::min(nodes, rows_.size()); ++node)
      std::copy(rows_[node].begin(), rows_[node].end(),
                distributions.begin() + static_cast<std::ptrdiff_t>(node * draft_.vocab()));
    return distributions;
  }

 private:
  DistributionSource& draft_;
  std::size_t sequence_;
  std::span<const Token> text_;
  std::vector<std::vector<double>> rows_;  // [node]; empty: not requested
  std::map<int, int> place_;               // [node]: its place among the cached nodes of the tree
  std::vector<int> parents_;               // [place]
};

std::vector<draft::Ranked> ranked(std::span<const double> distribution, std::size_t most) {
  std::vector<draft::Ranked> likeliest;
  for (const Token token : math::likeliest(distribution, most)) likeliest.push_back({token, distribution[token]});
  return likeliest;
}

using Address = DraftedBlock::Address;

class ModelDrafterInput final : public draft::DrafterInput {
 public:
  ModelDrafterInput(DistributionSource& target, GrowingDistributions* distributions, std::size_t ranks, std::size_t sequence,
                    std::span<const Token> text, const Address& address)
      : target_(target), distributions_(distributions), ranks_(ranks), sequence_(sequence), text_(text), address_(address) {}

  void prepare(const draft::ChosenBlock& block, std::span<const int> nodes) override { distributions_->prepare(block, nodes); }
  std::span<const draft::Ranked> likeliest(const draft::ChosenBlock& /*block*/, int node) override {
    likeliest_ = ranked(distributions_->after(node), ranks_);
    return likeliest_;
  }
  [[nodiscard]] std::size_t vocab() const override { return target_.vocab(); }
  [[nodiscard]] std::span<const Token> text() const override { return text_; }
  Token random_token(std::uint32_t index) override {
    return text_[scale_bits(bits_at(address_.key, rng::Purpose::window, 0, index, address_.sequence).first, text_.size())];
  }

  // A place is identified by its tokens' place in one tree, whose root is the text's last token.
  Prefix end_of_text() override {
    tokens_ = {text_.back()};
    parents_ = {-1};
    return {0, 0};
  }
  Prefix after(Prefix prefix, Token token) override {
    const auto parent = static_cast<int>(prefix.context);
    for (std::size_t i = prefix.context + 1; i < tokens_.size(); ++i)
      if (parents_[i] == parent && tokens_[i] == token) return {static_cast<std::uint32_t>(i), prefix.depth + 1};
    tokens_.push_back(token);
    parents_.push_back(parent);
    return {static_cast<std::uint32_t>(tokens_.size() - 1), prefix.depth + 1};
  }
  std::vector<Token> target_argmax(std::span<const Prefix> prefixes) override {
    const std::size_t vocab = target_.vocab();
    std::vector<double> distributions(tokens_.size() * vocab);
    const Extension window{.sequence = sequence_, .tokens = tokens_, .logit_rows = tokens_.size(), .parents = parents_};
    target_.extend({&window, 1}, distributions);
    target_.rewind(sequence_, text_.size() - 1);
    std::vector<Token> tokens;
    for (const Prefix& prefix : prefixes)
      tokens.push_back(math::argmax(std::span(distributions).subspan(prefix.context * vocab, vocab)));
    return tokens;
  }

 private:
  DistributionSource& target_;
  GrowingDistributions* distributions_;
  std::size_t ranks_;
  std::size_t sequence_;
  std::span<const Token> text_;
  Address address_;
  std::vector<draft::Ranked> likeliest_;
  std::vector<Token> tokens_;
  std::vector<int> parents_;
};

// The distribution from which the second sibling around a hub is drawn, after the first one.
void leave_for_second(std::span<const double> distribution, Token first, std::vector<double>& rest) {
  const Token hub = math::argmax(distribution);
  if (first == hub) {
    rest[hub] = 0.0;
    return;
  }
  std::fill(rest.begin(), rest.end(), 0.0);
  rest[hub] = 1.0;
}

// Fills the drafter's tree with tokens by its rule, level by level; nodes for which no token is left are omitted.
draft::ChosenBlock fill(const tokens::Tree& tree, tokens::Siblings siblings, std::size_t ranks,
                        GrowingDistributions& distributions, const Address& address) {
  draft::ChosenBlock block;
  block.tokens.resize(1);
  std::vector<int> own = {0};  // [node of the tree]: its place in the block, -1: omitted
  math::ScanSums sums;
  int prepared = -1;  // depth
  for (std::size_t node = 0; node < tree.nodes.size(); ++node) {
    const tokens::Tree::Node& shape = tree.nodes[node];
    if (shape.depth > prepared) {
      std::vector<int> level;
      for (std::size_t i = node; i < own.size(); ++i)
        if (own[i] >= 0 && tree.nodes[i].children > 0) level.push_back(own[i]);
      if (!level.empty()) distributions.prepare(block, level);
      prepared = shape.depth;
    }
    own.resize(std::max(own.size(), static_cast<std::size_t>(shape.first_child + shape.children)), -1);
    if (shape.children == 0 || own[node] < 0) continue;
    const std::span<const double> distribution = distributions.after(own[node]);
    std::vector<double> rest(distribution.begin(), distribution.end());
    const std::vector<draft::Ranked> order =
        siblings == tokens::Siblings::point_mass ? ranked(distribution, ranks) : std::vector<draft::Ranked>();
    for (int child = shape.first_child; child < shape.first_child + shape.children; ++child) {
      const int rank = tree.nodes[static_cast<std::size_t>(child)].rank;
      Token token = 0;
      if (siblings == tokens::Siblings::point_mass) {
        if (static_cast<std::size_t>(rank) >= order.size() || !(order[static_cast<std::size_t>(rank)].probability > 0.0))
          continue;
        token = order[static_cast<std::size_t>(rank)].token;
      } else {
        sums.sum(rest);
        if (!(sums.total() > 0.0)) continue;
        token = sums.pick(rest, rng::to_unit(address.draft_bits(child)));
        if (siblings == tokens::Siblings::without_replacement) rest[token] = 0.0;
        if (siblings == tokens::Siblings::hub) leave_for_second(distribution, token, rest);
      }
      own[static_cast<std::size_t>(child)] = block.add(own[node], token, rank);
    }
  }
  return block;
}

}  // namespace

std::size_t room_of(const draft::BlockDrafter& block) {
  const draft::BlockWork work = block.work(block.shape().nodes);
  return static_cast<std::size_t>(
      std::max(work.verified_rows, std::accumulate(work.pass_rows.begin(), work.pass_rows.end(), 0.0)));
}

std::size_t BlockProposer::room(int /*draft_length*/) const { return room_of(block_); }

void BlockProposer::start(std::size_t sequence, std::span<const Token> prompt) {
  memories_.resize(std::max(memories_.size(), sequence + 1));
  memories_[sequence] = block_.start();
  if (draft_ == nullptr) return;
  draft_->rewind(sequence, 0);
  prefill(*draft_, sequence, prompt.first(prompt.size() - 1));
}

void BlockProposer::propose(std::span<const Text> texts, int draft_length, std::uint32_t round, rng::Key key,
                            std::vector<Proposal>& proposals) {
  const draft::BlockDrafter::Shape& shape = block_.shape();
  SPECSIM_CHECK(draft_length == shape.draft_length, "{} levels of a block of {}", draft_length, shape.draft_length);
  for (std::size_t s = 0; s < texts.size(); ++s) {
    const std::span<const Token> text = texts[s].tokens;
    const Address address{key, round, texts[s].id};
    std::optional<GrowingDistributions> distributions;
    if (draft_ != nullptr) distributions.emplace(*draft_, s, text);
    draft::ChosenBlock block;
    if (const tokens::Tree* tree = block_.tree()) {
      block = fill(*tree, shape.siblings, static_cast<std::size_t>(shape.ranks), *distributions, address);
    } else {
      ModelDrafterInput input(target_, distributions ? &*distributions : nullptr, static_cast<std::size_t>(shape.ranks), s, text,
                              address);
      block_.choose(input, memories_[s].get(), block);
      block.tokens.resize(block.tree.nodes.size());
    }
    Proposal& proposal = proposals[s];
    proposal.siblings = shape.siblings;
    proposal.tokens.assign(block.tokens.begin() + 1, block.tokens.end());
    // No rule looks at a distribution of chosen tokens.
    if (shape.siblings != tokens::Siblings::point_mass) proposal.drafted = distributions->side_by_side(block.tree.nodes.size());
    proposal.tree = std::move(block.tree);
  }
}

void BlockProposer::settle(std::size_t sequence, std::size_t length) {
  if (draft_ != nullptr) draft_->rewind(sequence, std::min(length, draft_->length(sequence)));
}

}  // namespace specsim::llm
