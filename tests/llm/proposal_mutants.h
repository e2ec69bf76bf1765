// Mistakes that a comparison of proposals must detect: models, drafters and pools with one fault each.
#pragma once

#include "sim/lab/llm/decoder.h"
#include "tests/llm/remembered.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace specsim::tests {

using Path = std::vector<Token>;

enum class Lie { none, distribution_of_parent, distribution_of_neighbour, other_branch, stale_key };
inline const std::vector<std::pair<Lie, std::string>> kLies = {
    {Lie::none, "none"},
    {Lie::distribution_of_parent, "a distribution of a tree is the one before the node"},
    {Lie::distribution_of_neighbour, "a distribution of a tree is that of the row before"},
    {Lie::other_branch, "a node of a tree hangs on the neighbour of its parent"},
    {Lie::stale_key, "what is forgotten ends one token late"},  // and starts where the last remaining token was
};

// A model that answers path by path, so that a lie can change the text that the drafter asked about.
class Liar final : public llm::DistributionSource {
 public:
  Liar(Remembered& truth, Lie lie) : truth_(truth), lie_(lie) {}
  [[nodiscard]] std::size_t vocab() const override { return truth_.vocab(); }
  [[nodiscard]] std::size_t capacity() const override { return truth_.capacity(); }
  [[nodiscard]] std::size_t length(std::size_t /*sequence*/) const override { return at_.size(); }
  void rewind(std::size_t /*sequence*/, std::size_t length) override {
    if (lie_ == Lie::stale_key && length > 0 && length < at_.size()) at_[length - 1].back() = at_[length].back();
    at_.resize(length);
  }
  void keep_path(std::size_t /*sequence*/, std::size_t length, std::span<const std::uint32_t> path) override {
    for (std::size_t i = 0; i < path.size(); ++i) at_[length + i] = at_[length + path[i]];
    at_.resize(length + path.size());
  }
  void extend(std::span<const llm::Extension> batch, std::span<double> distributions) override {
    const llm::Extension& block = batch[0];
    const std::size_t base = at_.size() - (block.parents.empty() ? 0 : block.parents.size() - block.tokens.size());  // the text
    Path before;
    for (std::size_t i = 0; i < block.tokens.size(); ++i) {
      const bool tree = !block.parents.empty();
      int parent = tree ? block.parents[at_.size() - base] : static_cast<int>(i) - 1;
      if (tree && lie_ == Lie::other_branch && parent > 0) --parent;
      const std::size_t behind = parent < 0 ? base : base + static_cast<std::size_t>(parent) + 1;
      Path text = behind == 0 ? Path() : at_[behind - 1];
      text.push_back(block.tokens[i]);
      at_.push_back(text);
      if (i + block.logit_rows < block.tokens.size()) continue;
      if (tree && lie_ == Lie::distribution_of_parent) text.pop_back();
      if (tree && lie_ == Lie::distribution_of_neighbour && !before.empty()) std::swap(text, before);
      const std::vector<double>& distribution = truth_.distribution_of(text);
      std::copy(distribution.begin(), distribution.end(), distributions.begin());
      distributions = distributions.subspan(vocab());
      if (lie_ == Lie::distribution_of_neighbour) before = at_.back();
    }
  }

 private:
  Remembered& truth_;
  Lie lie_;
  std::vector<Path> at_;  // the text up to each cached token
};

// Draws with the random words of the next round.
class OtherWords final : public llm::Proposer {
 public:
  explicit OtherWords(llm::Proposer& drafter) : drafter_(drafter) {}
  [[nodiscard]] std::size_t capacity() const override { return drafter_.capacity(); }
  [[nodiscard]] std::size_t room(int draft_length) const override { return drafter_.room(draft_length); }
  void start(std::size_t sequence, std::span<const Token> prompt) override { drafter_.start(sequence, prompt); }
  void propose(std::span<const llm::Text> texts, int draft_length, std::uint32_t round, rng::Key key,
               std::vector<llm::Proposal>& proposals) override {
    drafter_.propose(texts, draft_length, round + 1, key, proposals);
  }
  void settle(std::size_t sequence, std::size_t length) override { drafter_.settle(sequence, length); }

 private:
  llm::Proposer& drafter_;
};

// Guesses from the pool of the round before.
class OlderPool final : public draft::BlockDrafter {
 public:
  explicit OlderPool(const draft::BlockDrafter& block) : block_(block) {}
  [[nodiscard]] const Shape& shape() const override { return block_.shape(); }
  [[nodiscard]] std::unique_ptr<Memory> start() const override { return std::make_unique<Both>(block_.start(), block_.start()); }
  void choose(draft::DrafterInput& input, Memory* memory, draft::ChosenBlock& block) const override {
    auto& both = static_cast<Both&>(*memory);
    const std::unique_ptr<Memory> older = std::move(both.older);
    both.older = both.newest->copy();
    draft::ChosenBlock unused;
    block_.choose(input, both.newest.get(), unused);
    block_.choose(input, older.get(), block);
  }
  [[nodiscard]] draft::BlockWork work(int nodes) const override { return block_.work(nodes); }

 private:
  struct Both final : Memory {
    Both(std::unique_ptr<Memory> one, std::unique_ptr<Memory> other) : newest(std::move(one)), older(std::move(other)) {}
    [[nodiscard]] std::unique_ptr<Memory> copy() const override { return std::make_unique<Both>(newest->copy(), older->copy()); }
    std::unique_ptr<Memory> newest;
    std::unique_ptr<Memory> older;
  };
  const draft::BlockDrafter& block_;
};

}  // namespace specsim::tests
