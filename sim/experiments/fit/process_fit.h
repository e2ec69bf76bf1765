// Which of the simulator's context processes reproduces recorded acceptance.
#pragma once

#include "sim/experiments/fit/fitted_process.h"
#include "sim/foundation/report/intervals.h"

#include <atomic>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace specsim::fit {

constexpr std::size_t kReplicates = 499;  // data sets of the bootstrap

// sum y / sum x over independent groups, as tokens over rounds of requests: the jackknife's error, in which a large group, which
// draws the ratio to itself, counts as if it were left out, and Kish's effective number of groups, less one, as its degrees of
// freedom. Groups may differ in size.
report::Estimate ratio_of(std::span<const double> y, std::span<const double> x);

// What a process that was fitted at one draft length says of another, which was recorded too.
struct Foretold {
  int draft_length = 0;
  double recorded = 0.0;        // tokens per round
  double recorded_error = 0.0;  // standard error, over requests
  double foretold = 0.0;
  [[nodiscard]] double relative_error() const { return foretold / recorded - 1.0; }
};

// How a process stands to the data.
struct ProcessReport {
  FittedProcess model;
  double log_likelihood = 0.0;
  double held_out = 0.0;      // log score of a judged position, each fifth of the requests by a fit of the others
  double behind_best = 0.0;   // by how much the best of the processes that may be used is ahead in held_out
  double behind_error = 0.0;  // its standard error, over requests
  double tokens_per_round = 0.0;
  // Parametric bootstrap: each p is the share of data sets simulated by the fitted model that lie at least as far from the
  // model's mean as the recorded data do. The model was fitted to the recorded data, which brings it closer to them, and is not
  // fitted again to each simulated data set. So p is rather too large than too small: right processes are rejected less often
  // than the level says, and some wrong ones are kept that a new fit each time would reject.
  double p_by_depth = 1.0;  // accepted by depth
  double p_accepted = 1.0;  // distribution of accepted in a round
  double p_runs = 1.0;      // lengths of runs of accepted positions, across rounds
  double p_requests = 1.0;  // spread of the acceptance rate over requests
  // What a fit to the outcomes at depths below FitReport::short_length alone says of the recorded draft length: tokens per round,
  // and how far that is from the recorded figure, in the latter's standard errors (NaN where it has none). It shows how far the
  // process may be trusted beyond the drafts that were recorded.
  double extrapolated = 0.0;
  double extrapolated_z = 0.0;
  std::vector<Foretold> foretold = {};  // [FitRun::held_out], by the fit to the whole record
  [[nodiscard]] bool rejected() const;
};

struct FitReport {
  std::size_t requests = 0;  // requests that the processes were fitted to
  std::size_t checked = 0;   // those that the bootstrap looks at: all, or about 2,000 of more
  int draft_length = 0;
  std::uint64_t tokens = 0;    // tokens that a request was to emit, mean
  std::uint64_t rounds = 0;    // rounds of a request, mean
  bool cut_by_rounds = false;  // all requests took as many rounds, and no number of tokens fits them all
  double tokens_per_round = 0.0;
  double tokens_per_round_error = 0.0;  // standard error, over requests, and its degrees of freedom
  double tokens_per_round_freedom = 0.0;
  int short_length = 0;                 // half the draft length; 0: drafts of one token, which have no shorter ones
  std::vector<ProcessReport> processes;
  // The process to use: of those that the data do not reject (of all, where they reject all) the simplest that is within one
  // standard error of the best held-out score.
  std::size_t best = 0;
  // The process whose extrapolation from the short drafts came nearest to the recorded figure: where draft lengths are held out,
  // the least squared relative error over those; else from half the depths.
  std::size_t nearest = 0;
};

struct FitRun {
  std::uint64_t seed = 0;                     // fixes the bootstrap's random numbers
  std::vector<RecordedLength> held_out = {};  // other draft lengths, at which the fits are judged
  unsigned threads = 1;                       // results do not depend on it
  std::function<void(double done, double all)> progress = {};
  const std::atomic<bool>* stop = nullptr;  // set: return soon, without processes
};

// Requests may differ in length. How much one was to emit is known from its record up to the last round: where one length fits
// all of them it is taken; else, where all took as many rounds, that is where they end; else each replicate draws a request's
// length from what its own record allows, all equally likely.
FitReport fit_processes(const std::vector<RecordedRequest>& requests, const FitRun& run);

}  // namespace specsim::fit
