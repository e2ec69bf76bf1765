// What a server completes where requests never run out, and how long a run must be for its figures to be those of a server that
// has been running for long. No load above the first is kept up with, however well a short run looks.
#pragma once

#include "sim/answers/load/sweep_runner.h"
#include "sim/foundation/report/intervals.h"

#include <cstddef>
#include <functional>
#include <optional>

namespace specsim::load {

// Requests a second, of the experiment's mean length, that all replicas together complete while requests never run out. The
// experiment's requests are all sent at the start: enough to fill the batch 32 times, and at least 1,024 for each replica up to
// four. What counts are the tokens that come from the moment when a quarter of the requests have ended until none waits any more. nullopt
// where prompts share cached prefixes, whose hits depend on when requests come; where even the most requests never fill the
// batch; and after a stop. `done`: is told the share of the run that is done, as it goes on; empty: nobody asks.
std::optional<double> saturated_rate(const ServeExperiment& experiment, const std::atomic<bool>* stop,
                                     const std::function<void(double)>& done = {});

// Whether prompts share prefixes and the server caches their blocks, so that what it completes depends on when requests come.
bool hits_decide(const ServeExperiment& experiment, const arrivals::RequestTrace& requests);

// saturated_rate() of the runner's replications: mean and standard error. NaN where one of them has none,
// and where the runner's setting leaves it out.
report::Estimate capacity_of(const ServeExperiment& experiment, const SweepRunner& runner);

// Requests that make a run at a load below the capacity (NaN: not known) long enough: so many that clients send for 40 times as
// long as a request stays in the server, and of an open loop also for 100 relaxation times of a queue at that share of the
// capacity, 1 / (1 - share)^2 requests each, the share taken as .92 at most. Rounded up to two digits. `run`: a shorter run at
// that load.
std::size_t requests_needed(const serve::Summary& run, double load, double capacity);
// Whether so many requests of an open loop, in all replications together, say how far off their mean wait may be: 600 relaxation
// times. Shorter runs may have met none of the rare long queues, and state errors that are far too small (tests/serve/
// coverage_test.cpp). True where the capacity is not known.
bool tells_waits(double requests, double load, double capacity);
// Requests to simulate for an overloaded server, whose latencies have no end: 40 times its mean batch, so that the time in which
// it fills and empties is little of the run.
std::size_t requests_in_full_batches(const serve::Summary& run);
// No run is made longer than that.
constexpr std::size_t kMostRequests = 100000;

}  // namespace specsim::load
