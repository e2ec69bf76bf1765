// The result of one run in words: a server with speculation compared with the same server without it, on the same requests.
#pragma once

#include "sim/serving/serve/metrics.h"

#include <string>

namespace specsim::load {

// Reports whether speculation pays at this load, by mean TPOT and output throughput, and how it changes the mean TTFT. It uses
// each request's difference between the servers, for requests that both finished after the warm-up. The intervals come from
// these differences, in batches of requests in the order of sending, and include the latency model's error for this comparison
// (comparison_error). `closed`: clients send as fast as the server answers. An overloaded server has no mean TTFT. "" if no
// request finished on both servers.
std::string single_verdict(const serve::SimulationResult& plain, const serve::Summary& plain_summary,
                           const serve::SimulationResult& speculative, const serve::Summary& speculative_summary, bool closed,
                           double latency_error);

}  // namespace specsim::load
