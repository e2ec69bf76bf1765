// The rate that a server completes when requests never run out, and the length of a run whose figures are those of the steady
// state. No server keeps up with a load above that rate, however good a short run looks.
#pragma once

#include "sim/answers/load/sweep_runner.h"
#include "sim/foundation/report/intervals.h"

#include <cstddef>
#include <functional>
#include <optional>

namespace specsim::load {

// Requests per second, of the experiment's mean length, that all replicas together complete while requests never run out. The
// experiment's requests are all sent at the start: enough to fill the batch 32 times, and at least 1,024 per replica up to four.
// The rate counts the tokens from the moment when a quarter of the requests have ended until no request waits any more. nullopt
// if prompts share cached prefixes (their hits depend on when requests come), if even the largest number of requests never fills
// the batch, and after a stop. `done` is called with the finished share of the run; it may be empty.
std::optional<double> saturated_rate(const ServeExperiment& experiment, const std::atomic<bool>* stop,
                                     const std::function<void(double)>& done = {});

// Whether prompts share prefixes and the server caches their blocks. Then its throughput depends on when requests come.
bool hits_decide(const ServeExperiment& experiment, const arrivals::RequestTrace& requests);

// saturated_rate() of the runner's replications: mean and standard error. NaN if one of them has none, or if the runner's
// setting omits it.
report::Estimate capacity_of(const ServeExperiment& experiment, const SweepRunner& runner);

// Requests that make a run long enough at a load below the capacity (NaN: unknown). Clients must send for 40 times as long as a
// request stays in the server. An open loop must also cover 100 relaxation times of a queue at that share of the capacity, 1 /
// (1 - share)^2 requests each, with the share limited to .92. Rounded up to two digits. `run`: a shorter run at that load.
std::size_t requests_needed(const serve::Summary& run, double load, double capacity);
// Whether this many requests of an open loop, in all replications together, suffice to state the error of their mean wait: 600
// relaxation times. Shorter runs may miss the rare long queues and state errors that are far too small
// (tests/serve/coverage_test.cpp). True if the capacity is unknown.
bool waits_measurable(double requests, double load, double capacity);
// Requests to simulate for an overloaded server, whose latencies grow without limit: 40 times its mean batch, so that filling
// and emptying take a small part of the run.
std::size_t requests_in_full_batches(const serve::Summary& run);
// Upper limit for the length of a run.
constexpr std::size_t kMostRequests = 100000;

}  // namespace specsim::load
