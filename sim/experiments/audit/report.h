// Works out the output's distributions from enumerated rounds.
#pragma once

#include "sim/experiments/audit/audit.h"
#include "sim/foundation/base/token.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace specsim::audit {

// The result of an enumeration: every possible round and its probability.

constexpr std::size_t kMaxPositions = kAuditMaxDraftLength + 2;  // a faulty loop may draft more tokens than requested
constexpr std::size_t kMaxEmitted = kMaxPositions + 1;

// A state within a round, and all that can follow it.
struct RoundNode {
  struct Step {  // the round goes on
    Token token = 0;
    long double probability = 0.0L;
    std::size_t node = 0;
  };
  struct End {                     // the round ends
    std::vector<Token> tokens;     // emitted from this position on
    std::uint32_t next_start = 0;  // where the next round starts
    std::uint32_t accepted = 0;    // draft tokens, in the whole round
    std::uint32_t judged = 0;      // draft tokens that were judged by themselves, in the whole round
    long double probability = 0.0L;
  };
  std::vector<Step> steps;
  std::vector<End> ends;
};

struct RoundTree {
  std::vector<RoundNode> nodes;
  std::vector<std::size_t> roots;  // [start]: the node at which a round that starts there begins
  std::uint64_t rounds_run = 0;
};

// The text that the rounds emit. A start is a context, possibly with the text before it.
struct TargetText {
  std::vector<std::vector<double>> targets;                 // [context][vocab]
  std::function<std::uint32_t(std::uint32_t, Token)> next;  // the context after a token
  std::size_t starts = 0;                                   // the report covers contexts 0 .. starts - 1
};

// The report on the enumerated `rounds` of `text`. The first roots are the contexts of the text, in its order. If a round
// depends on more than its context, further roots follow.
AuditReport report_on(const std::string& verifier, int vocab, int draft_length, const RoundTree& rounds, const TargetText& text,
                      const AuditOptions& options);

}  // namespace specsim::audit
