// What one run says of a server with speculation beside the plain one that met the same requests, in words.
#pragma once

#include "sim/serving/serve/metrics.h"

#include <string>

namespace specsim::load {

// Whether speculation pays at this load, by mean TPOT and output throughput, and what it does to the mean TTFT. Each request's
// difference is taken by itself, over the requests that both servers finished and no warm-up leaves out: the intervals are those
// of these differences, by batches of requests in the order of sending, with what the latency model leaves open of the comparison
// (comparison_error). `closed`: clients send as fast as the server answers.
// An overloaded server has no mean TTFT. "" where both servers finished no request.
std::string single_verdict(const serve::SimulationResult& plain, const serve::Summary& plain_summary,
                           const serve::SimulationResult& speculative, const serve::Summary& speculative_summary, bool closed,
                           double latency_error);

}  // namespace specsim::load
