// A run that keeps no request longer than it lasts, for as many requests as a fleet gets in a day.
#pragma once

#include "sim/serving/serve/metrics.h"
#include "sim/serving/serve/simulate.h"

#include <cstddef>
#include <functional>
#include <span>

namespace specsim::serve {

struct StreamSetting {
  std::size_t requests = 0;
  // Fills in requests `first` and later, in their order.
  std::function<void(std::size_t first, std::span<arrivals::Request> requests)> fill;
  Slo slo;
  std::size_t warm_up = 0;
  unsigned threads = 1;
  std::size_t block = std::size_t{1} << 16;  // requests that are made at a time; the results do not depend on it
};

struct StreamedRun {
  SimulationResult result;  // without sequences, replica_of, gaps and largest_batch
  Summary summary;
};

// As simulate() and summarise() for an open loop of requests that share no prefixes and wait for no answers: the same events at
// the same times. Engines that only compute prompts, observers and a horizon are not simulated. With a routing that ignores the
// state of the replicas these are simulated in parallel. The bytes do not depend on the number of threads.
StreamedRun simulate_streamed(const RunSetting& setting, const StreamSetting& stream);

}  // namespace specsim::serve
