// Sources of draft tokens when real models decode.
#pragma once

#include "sim/foundation/rng/address.h"
#include "sim/lab/llm/distributions.h"
#include "sim/lab/llm/measure.h"
#include "sim/rounds/draft/drafter.h"

#include <boost/core/noncopyable.hpp>

#include <cstdint>
#include <optional>
#include <vector>

namespace specsim::llm {

// A sequence and the address of its random numbers.
struct Text {
  std::vector<Token> tokens;  // prompt and emitted
  std::uint64_t id = 0;       // its address: the same in any batch
};

// The draft of one sequence, a chain or a tree, with the distributions of its tokens side by side, vocab values each.
struct Proposal {
  tokens::Tree tree;
  tokens::Siblings siblings = tokens::Siblings::independent;
  std::vector<Token> tokens;        // [node - 1]
  std::vector<double> drafted;      // [node]: distribution of its children, up to the last node that has any; empty if tokens
                                    // were chosen and not drawn
  std::vector<double> draft_model;  // [node]: the draft model's own distribution; for chains
};

class Proposer : boost::noncopyable {
 public:
  virtual ~Proposer() = default;
  [[nodiscard]] virtual std::size_t capacity() const = 0;  // most tokens of a sequence
  // Most tokens that a pass of either model adds after the text in a round.
  [[nodiscard]] virtual std::size_t room(int draft_length) const { return static_cast<std::size_t>(draft_length); }
  // Reads a prompt before the first round.
  virtual void start(std::size_t sequence, std::span<const Token> prompt) = 0;
  // A block of at most `draft_length` levels after each text. Uses the uniforms of `round` under `key` (Purpose::draft_accept,
  // the first of the two).
  virtual void propose(std::span<const Text> texts, int draft_length, std::uint32_t round, rng::Key key,
                       std::vector<Proposal>& proposals) = 0;
  // The sequence's first `length` tokens are final; later draft tokens are dropped.
  virtual void settle(std::size_t sequence, std::size_t length) = 0;
  // End time of the first pass of the last proposals, for a drafter with several passes.
  [[nodiscard]] virtual std::optional<double> first_pass_end() const { return std::nullopt; }
};

// A draft model drafts token by token, sampled from its distribution or its argmax. An early exit of the target is such a model
// too.
class ModelProposer final : public Proposer {
 public:
  ModelProposer(DistributionSource& distributions, bool argmax, Clock clock = Clock::wall)
      : distributions_(distributions), argmax_(argmax), clock_(clock) {}
  [[nodiscard]] std::size_t capacity() const override { return distributions_.capacity(); }
  void start(std::size_t sequence, std::span<const Token> prompt) override;
  void propose(std::span<const Text> texts, int draft_length, std::uint32_t round, rng::Key key,
               std::vector<Proposal>& proposals) override;
  void settle(std::size_t sequence, std::size_t length) override;
  [[nodiscard]] std::optional<double> first_pass_end() const override { return first_pass_end_; }

 private:
  DistributionSource& distributions_;
  bool argmax_;
  Clock clock_;
  double first_pass_end_ = 0.0;
};

// The two random numbers at (purpose, position, round, sequence).
rng::BitsPair bits_at(rng::Key key, rng::Purpose purpose, std::uint32_t position, std::uint32_t round, std::uint64_t sequence);

}  // namespace specsim::llm
