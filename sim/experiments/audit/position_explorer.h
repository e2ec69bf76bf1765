// Every way for a round over positions to go: the hot loop is run with scripted random bits, and each branch gets the share of
// random numbers that the code really gives it.
#pragma once

#include "sim/experiments/audit/audit.h"
#include "sim/experiments/audit/round_tree.h"

#include <array>
#include <cstdint>
#include <functional>

namespace specsim::audit {

// The random bits of a round.
struct Script {
  std::array<std::uint64_t, kMaxPositions> draft{};
  std::array<std::uint64_t, kMaxPositions> accept{};
  std::uint64_t final_token = 0;
};

// All that can be seen of a round.
struct Outcome {
  std::array<Token, kMaxEmitted> emitted{};
  std::uint32_t length = 0;
  std::uint32_t next_context = 0;
  std::uint32_t accepted = 0;  // draft tokens, as the simulation counts them
  std::uint32_t judged = 0;    // draft tokens, likewise counted
  std::uint32_t asked = 0;     // positions that asked for random bits
  bool operator==(const Outcome&) const = default;
};

// What is explored: rounds that start in a context.
struct Subject {
  int vocab = 0;
  std::uint32_t starts = 0;
  std::function<std::uint32_t(std::uint32_t, Token)> next;            // the context after a token
  std::function<Outcome(std::uint32_t, const Script&)> run;           // one round from a context
  std::function<void(std::uint32_t, const Script&)> check_unwatched;  // the same round as production runs it, unwatched
};

// `share`: what was found at a (context, position) holds wherever it is met again.
RoundTree explore_positions(const Subject& subject, bool share);

}  // namespace specsim::audit
