// A speculative round as a sequence of passes, and the steps from its ideal to its achieved speedup.
#pragma once

#include "sim/hardware/latency/cost_model.h"

#include <string>
#include <vector>

namespace specsim::cost {

struct RoundTime {
  PassTime plain;             // one target pass over one token: the cost of a token without speculation
  PassTime draft;             // sequential draft passes
  double draft_passes = 0.0;  // how many
  double catch_up = 0.0;      // the part of it for the token that the draft has not seen after a full acceptance
  PassTime verify;            // one target pass over draft_length + 1 tokens
  double overhead = 0.0;      // outside the passes
  double link = 0.0;          // the part of it for messages to and from the draft's own GPU

  // At draft length 0: one pass without speculation.
  [[nodiscard]] double total() const { return draft.total() + verify.total() + overhead; }
  // Adds `share` of another round's time; the time without speculation is the same for both.
  void add(double share, const RoundTime& other);
};

// `full_rate`: share of rounds that accept every draft token. The draft has then not seen its own last token, so the next round's
// first pass takes two tokens for those sequences. Times as the model gives them (CostModel::in_seconds).
RoundTime round_time(const CostModel& model, const Workload& workload, int draft_length, double full_rate);

// The time that the token to catch up with adds to a round whose first draft pass takes `first_rows` tokens per sequence.
PassTime catch_up_time(const CostModel& model, const Workload& workload, double first_rows, double full_rate);

// Sequential passes of the draft, of `pass_rows` tokens per sequence each.
PassTime draft_passes_time(const CostModel& model, const Workload& workload, const std::vector<double>& pass_rows);

// A round that drafts a block: `pass_rows` tokens per sequence in each sequential draft pass, and one target pass over
// `verified_rows` tokens per sequence, all of them through the LM head. Without draft passes and with verified_rows 1 it is a
// step without speculation.
RoundTime block_time(const CostModel& model, const Workload& workload, const std::vector<double>& pass_rows, double verified_rows,
                     double full_rate);

// Derivative of the logarithm of a round's time with respect to the server's factors. `verified_rows`: as in block_time.
FactorVector round_slope(const RoundTime& time, const Workload& workload, double verified_rows);

// speedup = tokens_per_round plain / total.
double speedup(const RoundTime& time, double tokens_per_round);

// The steps from tokens_per_round, which is the speedup if a round cost one target pass, down to the actual speedup: one step for
// each part of a round that exists only with speculation. `after` is the speedup with this part and all parts before it; the last
// is the speedup.
struct WaterfallStep {
  std::string name;
  double seconds = 0.0;  // a round's
  double after = 0.0;
};
std::vector<WaterfallStep> waterfall(const RoundTime& time, double tokens_per_round);

}  // namespace specsim::cost
