// Which draft length gives the most tokens a second at which batch: what a server's table of draft lengths should say.
#pragma once

#include "sim/answers/load/experiment.h"
#include "sim/answers/plan/draft_lengths.h"

#include <cstdint>
#include <string>
#include <vector>

namespace specsim::load {

struct BestLengths {
  std::vector<plan::LengthRange> ranges;  // by requests in the step
  double worst_loss = 0.0;                // the largest share of its tokens a second that a step loses by them
  // [requests - 1]: by which share a server without a draft emits more tokens a second than one with these ranges. It is no
  // range of length 0: there the server still computes the draft's cache, to draft again later.
  std::vector<double> plain_gain;
};

// The best draft lengths for steps of up to `most` requests that decode, with `cached` tokens of context each, among lengths up
// to `longest`: by expected tokens over the step's seconds, both with the acceptance and the prices of the experiment, which
// must speculate. They rise with the requests where `rise` says so and it is worth it.
BestLengths best_lengths(const ServeExperiment& experiment, const serve::Acceptance& acceptance, double cached,
                         std::uint32_t most, int longest, plan::Rise rise);

// The best draft lengths of an experiment: among those up to the policy's longest (the server's num_speculative_tokens) whose
// acceptance is stated, for steps of up to as many requests as scheduler and pool let run at once.
struct LengthTable {
  BestLengths best;
  double cached = 0.0;        // tokens of a request in the middle of its output, in the mean
  int longest = 0;            // the longest that the policy drafts; 0: it drafts nothing, and the table is empty
  int stated = 0;             // the longest whose acceptance is known
  std::uint32_t running = 0;  // requests that the scheduler runs at once at most
  std::uint32_t fitting = 0;  // requests that the pool holds at such a length, where those are fewer; 0: they are not
};
LengthTable length_table(const ServeExperiment& experiment, const arrivals::RequestTrace& workload, plan::Rise rise);
// The draft length of the ranges for a step of so many requests.
int length_at(const BestLengths& best, double requests);
// Whether a server without a draft emits more tokens a second than one with these ranges, in a step of so many requests or in
// every step.
bool plain_is_faster(const BestLengths& best, double requests);
bool plain_is_faster(const BestLengths& best);
// Where it does, in words; "" where it nowhere does.
std::string plain_text(const BestLengths& best);

}  // namespace specsim::load
