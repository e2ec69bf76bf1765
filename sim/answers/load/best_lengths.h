// The draft length with the most tokens per second at each batch: the contents of a server's table of draft lengths.
#pragma once

#include "sim/answers/load/experiment.h"
#include "sim/answers/plan/draft_lengths.h"

#include <cstdint>
#include <string>
#include <vector>

namespace specsim::load {

struct BestLengths {
  std::vector<plan::LengthRange> ranges;  // by requests in the step
  double worst_loss = 0.0;                // the largest share of its tokens per second that a step loses with these ranges
  // [requests - 1]: how many more tokens per second a server without a draft emits, as a share, than one with these ranges. This
  // differs from a range of length 0, in which the server still computes the draft's cache so that it can draft again later.
  std::vector<double> plain_gain;
};

// The best draft lengths for steps of up to `most` decoding requests with `cached` tokens of context each, among lengths up to
// `longest`. The best length has the most expected tokens per second of the step, with the experiment's acceptance and
// latencies; the experiment must speculate. With `rise`, lengths may rise with the number of requests where that gains enough.
BestLengths best_lengths(const ServeExperiment& experiment, const serve::Acceptance& acceptance, double cached,
                         std::uint32_t most, int longest, plan::Rise rise);

// The best draft lengths of an experiment. Candidates are lengths up to the policy's longest (the server's
// num_speculative_tokens) whose acceptance is stated. Steps have up to as many requests as scheduler and pool can run at once.
struct LengthTable {
  BestLengths best;
  double cached = 0.0;        // mean tokens of a request halfway through its output
  int longest = 0;            // the longest that the policy drafts; 0: no drafting, and the table is empty
  int stated = 0;             // the longest whose acceptance is known
  std::uint32_t running = 0;  // most requests that the scheduler runs at once
  std::uint32_t fitting = 0;  // requests that fit the pool at such a length, if that is fewer; 0: all fit
};
LengthTable length_table(const ServeExperiment& experiment, const arrivals::RequestTrace& workload, plan::Rise rise);
// The draft length for a step of this many requests.
int length_at(const BestLengths& best, double requests);
// Whether a server without a draft emits more tokens per second than one with these ranges, in a step of this many requests or in
// every step.
bool baseline_is_faster(const BestLengths& best, double requests);
bool baseline_is_faster(const BestLengths& best);
// The numbers of requests at which it does, in words; "" if there are none.
std::string plain_text(const BestLengths& best);

}  // namespace specsim::load
