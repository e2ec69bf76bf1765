// The options and the results of an audit.
#pragma once

#include "sim/experiments/spec/spec.h"
#include "sim/foundation/base/token.h"
#include "sim/rounds/decode/chunk.h"
#include "sim/rounds/decode/random_bits.h"

#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

namespace specsim::decode {
struct RoundSetup;
}

namespace specsim::audit {

constexpr double kAuditTolerance = 1e-12;

struct AuditOptions {
  bool share = true;         // reuse results at each (context, position); false: find them again
  bool keep_rounds = false;  // fills AuditStart::rounds
};

// One possible round.
struct AuditRound {
  std::vector<Token> emitted;
  std::uint32_t next_context = 0;
  double probability = 0.0;
};

// Rounds and text that start in one context.
struct AuditStart {
  std::uint32_t context = 0;
  std::vector<AuditRound> rounds;             // the round's distribution over (emitted, next context); each pair once
  std::vector<double> accepted_distribution;  // [draft_length + 1]: of the round, as the simulator counts it
  std::vector<double> emitted_distribution;   // [.]: P(the round emits j tokens), j = 0, 1, ...
  double expected_accepted = 0.0;
  double expected_emitted = 0.0;
  double alpha = 0.0;  // expected accepted / expected judged; NaN if nothing is judged
  // Distributions of the text. `joint` covers its first draft_length + 1 tokens, completed by further rounds, in lexicographic
  // order.
  std::vector<double> first_token;     // [vocab]
  std::vector<double> target;          // [vocab]
  std::vector<double> joint;           // [vocab^(draft_length + 1)]
  std::vector<double> target_joint;    // of the target alone, under the same context process
  double largest_difference = 0.0;     // over the joint distribution's entries
  double first_token_variation = 0.0;  // total variation from the target
  double joint_variation = 0.0;
  double impossible = 0.0;  // probability of texts that the target cannot emit; a lossless verifier's is 0 exactly
};

struct AuditReport {
  std::string verifier;
  int vocab = 0;
  int draft_length = 0;
  std::vector<AuditStart> starts;   // [context]; sequences start in context 0
  double largest_difference = 0.0;  // the worst over all starts, as are the next figures
  double first_token_variation = 0.0;
  double joint_variation = 0.0;
  double impossible = 0.0;
  double most_accepted = 0.0;  // expected, in the round that accepts most: a first round or a later one
  std::uint64_t rounds_run = 0;
  [[nodiscard]] bool lossless() const { return largest_difference <= kAuditTolerance && impossible == 0.0; }
};

// Thrown for cells that cannot be enumerated at any size. what() is the reason, written for the user.
class NotAudited final : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// A loop that replaces run_staged<ShippedBehaviour>.
using RoundLoop = std::function<void(const decode::RoundSetup&, const decode::ChunkPlan&, decode::BitSource&, decode::Counts&,
                                     decode::RoundSink*)>;

}  // namespace specsim::audit
