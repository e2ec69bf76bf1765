// A run: clients, replicas, and the clock that they share.
#pragma once

#include "sim/serving/serve/client.h"
#include "sim/serving/serve/routing.h"
#include "sim/serving/serve/server.h"

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

namespace specsim::serve {

// Prompts are computed by separate engines, and their caches are sent to those that decode, one after the other.
struct DisaggregatedPrefill {
  std::function<Server::Parts()> make_engine;
  std::uint32_t engines = 0;               // 0: every engine does both
  double link_ps_per_token = 0.0;          // time to transfer the cache of one prompt token
  arrivals::Picoseconds link_latency = 0;  // latency of each cache's transfer
  bool silent = false;                     // their token is dropped: the engine that decodes computes it again
};

struct RunSetting {
  DisaggregatedPrefill prefill;
  std::function<Server::Parts()> make_engine;  // for each replica
  std::uint32_t replicas = 1;
  bool in_step = false;                              // all of them begin and end their steps together because they share experts
  std::shared_ptr<const Routing> routing;            // may be nullptr for one replica
  arrivals::Picoseconds frontend = 0;                // between the client and the engine's queue
  arrivals::Picoseconds horizon = arrivals::kNever;  // the run ends there
  StepObserver* observer = nullptr;
  const std::atomic<bool>* stop = nullptr;
  std::function<void(std::size_t finished)> progress;  // called from time to time
};

struct SimulationResult {
  std::vector<Sequence> sequences;        // [request]
  std::vector<std::uint32_t> replica_of;  // [request]; only if there are several replicas
  std::vector<ServerTotals> totals;       // [replica]; after them the engines that only compute prompts
  std::vector<Gap> gaps;                  // of all replicas together
  std::uint32_t largest_batch = 0;        // requests in the steps of all replicas at once
  std::uint32_t pool_blocks = 0;          // usable, of a replica
  std::uint32_t pool_tokens = 0;
  // Requests 0 to sent - 1 were sent, except for turns that still wait for an answer, whose Sequence::sent is kNever.
  std::size_t sent = 0;
  std::size_t finished = 0;
  arrivals::Picoseconds end = 0;        // when the last request ended, or the horizon
  arrivals::Picoseconds link_busy = 0;  // time that the link transferred caches, one after the other
  bool reached_end = true;              // every request was sent and ended
  bool interrupted = false;
};

// Throws BadInput at a moment at which simulated time has ended.
void check_moment(arrivals::Picoseconds now);

// Runs the engines on the requests until all have ended, the horizon is reached or `stop` is set. Throws BadInput if simulated
// time ends.
SimulationResult simulate(const arrivals::RequestTrace& workload, const RunSetting& setting);

// Share of the run in which the link between engines that compute prompts and those that decode transfers caches; at most 1, also
// if transfers are unfinished at the end.
double link_busy_share(const SimulationResult& result);

// Requests that were sent before the answer that their prompt contains was complete: no client can do that.
std::size_t early_requests(const arrivals::RequestTrace& workload, const SimulationResult& result);

}  // namespace specsim::serve
