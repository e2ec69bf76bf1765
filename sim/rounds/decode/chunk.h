// A chunk is the unit of work: 256 sequences side by side, each for `sequence_rounds` rounds, or until its request has emitted
// all tokens. The counts of a chunk depend on its address alone.
#pragma once

#include "sim/foundation/base/token.h"
#include "sim/rounds/decode/counts.h"
#include "sim/rounds/families/context_process.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>

namespace specsim::decode {

constexpr std::uint32_t kLanes = 256;

struct ChunkPlan {
  std::uint64_t first_sequence = 0;    // a multiple of kLanes
  std::uint64_t rounds = 0;            // total of all sequences, dealt out in turn; for requests, their number
  std::uint32_t sequence_rounds = 64;  // 0: a sequence is a request, if the process has requests

  // For sequences that end after `sequence_rounds` rounds: the number of sequences, and the rounds of one. The last sequence may
  // have fewer rounds.
  [[nodiscard]] std::uint32_t sequences() const {
    return static_cast<std::uint32_t>(std::min<std::uint64_t>(kLanes, (rounds + sequence_rounds - 1) / sequence_rounds));
  }
  [[nodiscard]] std::uint64_t rounds_in(std::uint64_t sequence) const {
    const std::uint64_t before = sequence * sequence_rounds;
    return before < rounds ? std::min<std::uint64_t>(rounds - before, sequence_rounds) : 0;
  }
};

// Used when a sequence is a request that ends by itself (families::ContextShape::ends()).
class RequestEnds {
 public:
  // `sequence_rounds` above 0: a recorded text continues with the next request, for as many rounds.
  RequestEnds(const families::ContextShape& shape, std::uint32_t sequence_rounds, std::uint32_t draft_length)
      : shape_(&shape),
        recorded_(sequence_rounds == 0 && shape.kind == families::ContextShape::Kind::trace),
        uncut_(recorded_ ? draft_length : 0) {}
  [[nodiscard]] bool any() const { return recorded_ || shape_->request_tokens > 0; }
  // How many tokens the request that begins in this context emits.
  [[nodiscard]] std::uint64_t tokens(std::uint32_t first_context) const {
    if (!recorded_) return shape_->request_tokens;
    const auto at = std::lower_bound(shape_->starts.begin(), shape_->starts.end(), first_context);
    return shape_->recorded_tokens(static_cast<std::size_t>(at - shape_->starts.begin()));
  }
  // Whether the request is complete once `emitted` tokens are emitted.
  [[nodiscard]] bool done(std::uint64_t tokens, std::uint64_t emitted) const { return emitted + uncut_ >= tokens; }

 private:
  const families::ContextShape* shape_;
  bool recorded_;
  std::uint64_t uncut_;
};

// Receives each round as it was emitted; for tests and audits, off in production.
class RoundSink {
 public:
  RoundSink() = default;
  RoundSink(const RoundSink&) = delete;
  RoundSink& operator=(const RoundSink&) = delete;
  virtual ~RoundSink() = default;
  // `emitted`: the accepted draft tokens and the final one. `next_context`: where the next round starts.
  virtual void round(std::uint32_t lane, std::uint32_t round, std::span<const Token> emitted, std::uint32_t next_context) = 0;
  // Draft tokens that the next reported round accepted. Without a bonus token `emitted` does not show this number.
  virtual void accepted(std::uint32_t /*lane*/, std::uint32_t /*round*/, std::uint32_t /*drafts*/) {}
  // Draft tokens of the same round over all paths, and whether the accepted path ends at a leaf. Without a bonus token that is
  // the leaf after which the next block is drafted. Called before the other two, and only if blocks are judged.
  virtual void drafted(std::uint32_t /*lane*/, std::uint32_t /*round*/, std::uint32_t /*nodes*/, bool /*whole*/) {}
  // Called after drafted() when there is no bonus token: the depth of that leaf, and the number of tokens that a policy that
  // depends on acceptance allows in the block after it. nullopt: the policy does not fix this number before drafting.
  virtual void ahead(std::uint32_t /*depth*/, std::optional<std::uint32_t> /*nodes*/) {}
  // Rows of each draft pass of the same round; called after drafted(). Empty for a tree of one shape.
  virtual void passes(std::span<const std::uint32_t> /*rows*/) {}
};

}  // namespace specsim::decode
