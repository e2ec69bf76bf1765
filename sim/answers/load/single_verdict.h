// The result of one run in words: a server with speculation compared with the same server without it, on the same requests.
#pragma once

#include "sim/answers/load/experiment.h"
#include "sim/serving/serve/metrics.h"

#include <string>

namespace specsim::load {

// Half widths of the 95 % interval of one run's figures, relative to them, from the spread over several runs of other seeds.
// 0: not known.
struct RunSpread {
  double ttft = 0.0;  // mean of the server with speculation
  double tpot = 0.0;
  double ttft_change = 0.0;  // ratio of the means with speculation and without
  double tpot_change = 0.0;
};
constexpr int kRunsOfSpread = 5;  // the given runs and four more
// Of a server whose policy can settle by chance (ServerPolicyEntry::settles); all 0 for others, and after an interruption.
RunSpread spread_of_runs(const ServeExperiment& experiment, const ServeOptions& options, const serve::Summary& speculative,
                         const serve::Summary* plain);
// Widens the intervals of the summary's means.
void widen(serve::Summary& summary, const RunSpread& spread);

// Reports whether speculation pays at this load, by mean TPOT and output throughput, and how it changes the mean TTFT. It uses
// each request's difference between the servers, for requests that both finished after the warm-up. The intervals come from
// these differences, in batches of requests in the order of sending, and include the latency model's error for this comparison
// (comparison_error). `closed`: clients send as fast as the server answers. An overloaded server has no mean TTFT. "" if no
// request finished on both servers.
std::string single_verdict(const serve::SimulationResult& plain, const serve::Summary& plain_summary,
                           const serve::SimulationResult& speculative, const serve::Summary& speculative_summary, bool closed,
                           double latency_error, const RunSpread& spread = {});

}  // namespace specsim::load
