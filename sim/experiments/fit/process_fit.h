// Finds the context process of the simulator that reproduces recorded acceptance.
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

// sum y / sum x over independent groups, for example tokens over rounds of requests. Groups may differ in size. The error is the
// jackknife's: a large group pulls the ratio towards itself, and the jackknife counts it as if it were left out. The degrees of
// freedom are Kish's effective number of groups, less one.
report::Estimate ratio_of(std::span<const double> y, std::span<const double> x);

// The prediction for a recorded draft length, by a process that was fitted at another one.
struct HeldOutPrediction {
  int draft_length = 0;
  double recorded = 0.0;        // tokens per round
  double recorded_error = 0.0;  // standard error, over requests
  double predicted = 0.0;
  [[nodiscard]] double relative_error() const { return predicted / recorded - 1.0; }
};

// How well a process fits the data.
struct ProcessReport {
  FittedProcess model;
  double log_likelihood = 0.0;
  double held_out = 0.0;      // log score per judged position; each fifth of the requests is scored by a fit to the others
  double behind_best = 0.0;   // how much higher held_out is for the best of the allowed processes
  double behind_error = 0.0;  // its standard error, over requests
  double tokens_per_round = 0.0;
  // Parametric bootstrap. Each p is the share of simulated data sets that lie at least as far from the model's mean as the
  // recorded data do. The model was fitted to the recorded data, which brings it closer to them, and is not fitted again to each
  // simulated data set. Therefore p tends to be too large: right processes are rejected less often than the level allows, and
  // some wrong ones are kept that a new fit per data set would reject.
  double p_by_depth = 1.0;  // accepted by depth
  double p_accepted = 1.0;  // distribution of accepted tokens per round
  double p_runs = 1.0;      // lengths of runs of accepted positions, across rounds
  double p_requests = 1.0;  // spread of the acceptance rate over requests
  // Extrapolation to the recorded draft length from a fit to the outcomes at depths below FitReport::short_length: tokens per
  // round, and their distance from the recorded figure in standard errors of the latter (NaN if it has none). It shows how far
  // the process can be trusted beyond the recorded drafts.
  double extrapolated = 0.0;
  double extrapolated_z = 0.0;
  std::vector<HeldOutPrediction> predicted = {};  // [FitRun::held_out], by the fit to the whole record
  [[nodiscard]] bool rejected() const;
};

struct FitReport {
  std::size_t requests = 0;  // requests used in the fit
  std::size_t checked = 0;   // requests used in the bootstrap: all, or about 2,000 of more
  int draft_length = 0;
  std::uint64_t tokens = 0;    // mean tokens that a request was to emit
  std::uint64_t rounds = 0;    // mean rounds of a request
  bool cut_by_rounds = false;  // all requests have equally many rounds, and no number of tokens fits them all
  double tokens_per_round = 0.0;
  double tokens_per_round_error = 0.0;  // standard error, over requests, and its degrees of freedom
  double tokens_per_round_freedom = 0.0;
  int short_length = 0;  // half the draft length; 0: drafts of one token, which cannot be shortened
  std::vector<ProcessReport> processes;
  // The process to use: the simplest that is within one standard error of the best held-out score. Only processes that the data
  // do not reject are candidates, or all if the data reject all.
  std::size_t best = 0;
  // The process that predicts best beyond its data. If draft lengths are held out, it has the least squared relative error over
  // them. Otherwise its extrapolation from half the depths is nearest to the recorded figure.
  std::size_t nearest = 0;
};

struct FitRun {
  std::uint64_t seed = 0;                     // fixes the bootstrap's random numbers
  std::vector<RecordedLength> held_out = {};  // other draft lengths, which test the fits
  unsigned threads = 1;                       // results do not depend on it
  std::function<void(double done, double all)> progress = {};
  const std::atomic<bool>* stop = nullptr;  // set: return soon, without processes
};

// Requests may differ in length. A request's record shows its length up to its last round. If one length fits all requests, it
// is used. Otherwise, if all requests have equally many rounds, they end by rounds. Otherwise each replicate draws a request's
// length uniformly from those that its own record allows.
FitReport fit_processes(const std::vector<RecordedRequest>& requests, const FitRun& run);

}  // namespace specsim::fit
