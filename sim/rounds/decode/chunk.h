// A chunk, the unit of work: 256 sequences side by side, each for `sequence_rounds` rounds, or until its request has emitted all
// tokens. What a chunk counts depends on its address alone.
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
  std::uint64_t rounds = 0;            // all sequences' together, dealt out one after the other; for requests, their number
  std::uint32_t sequence_rounds = 64;  // 0: a sequence is a request, where the process has requests

  // Where sequences end after `sequence_rounds` rounds: how many there are, and the rounds of one. All have equally many but the
  // last, which may have fewer.
  [[nodiscard]] std::uint32_t sequences() const {
    return static_cast<std::uint32_t>(std::min<std::uint64_t>(kLanes, (rounds + sequence_rounds - 1) / sequence_rounds));
  }
  [[nodiscard]] std::uint64_t rounds_in(std::uint64_t sequence) const {
    const std::uint64_t before = sequence * sequence_rounds;
    return before < rounds ? std::min<std::uint64_t>(rounds - before, sequence_rounds) : 0;
  }
};

// When a sequence is a request and ends by itself, as families::ContextShape::ends() says.
class RequestEnds {
 public:
  // `sequence_rounds` above 0: a recorded text goes on with the request behind it, for as many rounds.
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
  // Whether no round follows once so many of its tokens are emitted.
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
  // How many drafts the round that is told next accepted: where there is no bonus token, `emitted` does not say.
  virtual void accepted(std::uint32_t /*lane*/, std::uint32_t /*round*/, std::uint32_t /*drafts*/) {}
  // The tokens that the same round drafted, over all paths, and whether the accepted path ends at a leaf of what it drafted:
  // where there is no bonus token, at the leaf that the next block is drafted behind. Told before both, and only where blocks are
  // judged.
  virtual void drafted(std::uint32_t /*lane*/, std::uint32_t /*round*/, std::uint32_t /*nodes*/, bool /*whole*/) {}
  // Told behind drafted(), where there is no bonus token: how deep that leaf lies, and how many tokens a policy that goes by what
  // was accepted lets the block behind it have; nullopt where nothing fixes them before they are drafted.
  virtual void ahead(std::uint32_t /*depth*/, std::optional<std::uint32_t> /*nodes*/) {}
  // Rows of each of the draft's passes that the same round asked for, told behind drafted(); none of a tree of one shape.
  virtual void passes(std::span<const std::uint32_t> /*rows*/) {}
};

}  // namespace specsim::decode
