// A chunk, the unit of work: 256 sequences side by side, each for `sequence_rounds` rounds, or until its request has emitted all
// tokens. What a chunk counts depends on its address alone.
#pragma once

#include "sim/base/token.h"
#include "sim/decode/counts.h"

#include <cstdint>
#include <span>

namespace specsim::decode {

constexpr std::uint32_t kLanes = 256;

struct ChunkPlan {
  std::uint64_t first_sequence = 0;  // a multiple of kLanes
  std::uint64_t rounds = 0;  // all sequences' together, dealt out one sequence after the other; for requests, their number
  std::uint32_t sequence_rounds = 64;
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
  // The same round's accepted drafts, told just before: where there is no bonus token, `emitted` does not say.
  virtual void accepted(std::uint32_t /*lane*/, std::uint32_t /*round*/, std::uint32_t /*drafts*/) {}
};

}  // namespace specsim::decode
