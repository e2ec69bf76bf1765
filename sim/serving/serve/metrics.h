// The results of a run, with the names and definitions of `vllm bench serve`: TTFT, TPOT, ITL, throughput, goodput.
#pragma once

#include "sim/serving/serve/percentiles.h"
#include "sim/serving/serve/simulate.h"

#include <array>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace specsim::serve {

// Latency limits for a request, in milliseconds; nullopt: no limit.
struct Slo {
  std::optional<double> ttft_ms;
  std::optional<double> tpot_ms;
  std::optional<double> e2el_ms;
  double percentile = 99.0;  // percent of requests that must keep each limit, when searching for the largest rate
  bool jointly = false;      // whether that share must keep all limits at once
  [[nodiscard]] bool any() const { return ttft_ms || tpot_ms || e2el_ms; }
};

// Figures of samples, NaN if there are none. Percentiles are interpolated linearly between neighbours, as in numpy.
struct Statistics {
  double count = 0.0;
  double mean = 0.0;
  double p50 = 0.0;
  double p90 = 0.0;
  double p95 = 0.0;
  double p99 = 0.0;
  double max = 0.0;
};
Statistics statistics(const std::vector<double>& samples);

// Figures of a request whose means and percentiles have intervals, and the samples that a run keeps for these.
enum class Latency { ttft, tpot, e2el };
constexpr std::size_t kLatencies = 3;
struct Spread {
  Tail tail{};                   // for percentiles over the requests of several runs
  double mean_half_width = 0.0;  // half widths of 95 % intervals from this run alone, by batch_intervals()
  double p99_half_width = 0.0;
};

// A run's first requests meet a server that is emptier than later. Latencies and shares of requests leave out this many of them;
// rates, totals and steps are those of the whole run, because its time was spent on all of its requests.
struct WarmUp {
  std::size_t requests = 0;  // how many are left out, unless by_mser
  bool by_mser = false;      // as many as MSER-5 drops (White 1997), by the end-to-end times in the order of sending
};

struct Summary {
  std::size_t requests = 0;          // sent
  std::size_t warm_up_requests = 0;  // the first requests, which WarmUp leaves out
  std::size_t completed = 0;
  double duration_s = 0.0;     // time from the first sending to the last end
  double sending_s = 0.0;      // time from the first to the last sending
  double prompt_tokens = 0.0;  // tokens of completed requests
  double output_tokens = 0.0;
  Statistics ttft_ms;       // first token - sending
  Statistics tpot_ms;       // (last - first token) / (output tokens - 1), over requests of more than one token
  Statistics itl_ms;        // between chunks, pooled over requests: one value per chunk, as vLLM counts
  Statistics itl_token_ms;  // between tokens: a chunk's gap divided by its tokens, once per token, as SGLang counts
  Statistics e2el_ms;       // last token - sending
  Statistics queue_ms;      // in the engine's queue before the first admission
  std::array<Spread, kLatencies> spreads{};       // [Latency]
  std::array<double, kLatencies> within_limit{};  // [Latency]: requests that keep its limit; all of them if there is no limit
  double within_all = 0.0;                        // requests that keep every limit
  double request_throughput = 0.0;                // per second
  double output_throughput = 0.0;                 // tokens per second
  // Half width of its 95 % interval from this run alone: outputs and gaps between requests are random. NaN: too few requests.
  double output_throughput_half_width = std::numeric_limits<double>::quiet_NaN();
  double total_token_throughput = 0.0;  // including prompts
  double request_goodput = 0.0;         // requests per second that keep the SLO; NaN without one
  double slo_share = 0.0;               // share of completed requests after the warm-up that keep every limit
  bool meets_slo = false;               // enough requests keep each limit (Slo::percentile), and none was left at the horizon
  double mean_concurrency = 0.0;        // requests in the system, over time
  double mean_batch = 0.0;              // requests in a step, over time
  double steps = 0.0;
  double prefill_steps = 0.0;
  double busy_share = 0.0;        // share of time that an engine works, mean over engines
  double verifying_share = 0.0;   // share of that time in steps that verify drafts
  double verifying_batch = 0.0;   // requests in such a step, over time; NaN without any
  double tokens_per_round = 0.0;  // 1 + accepted / the sequences' rounds; NaN without rounds
  double drafted = 0.0;           // verified drafts
  double accepted = 0.0;
  double acceptance_rate = 0.0;  // accepted / drafted; NaN without drafts
  double wasted_drafts = 0.0;    // drafted - accepted
  double preemptions = 0.0;
  double recomputed_tokens = 0.0;
  double prefix_hit_tokens = 0.0;        // found in the prefix cache, at every admission
  double prefix_lookup_tokens = 0.0;     // looked up there
  double host_hit_tokens = 0.0;          // found in host memory, a part of prefix_hit_tokens
  double host_loaded_bytes = 0.0;        // over the link of one GPU of each engine
  double host_stored_bytes = 0.0;        // copied there
  double host_link_share = 0.0;          // share of duration_s in which that link loads, mean over engines
  double draft_recomputed_tokens = 0.0;  // tokens loaded from host memory that a draft computed again
  double largest_batch = 0.0;
  double fewest_free_blocks = 0.0;
  double pool_tokens = 0.0;       // tokens that a replica's pool holds; 0: no limit
  double fitting_requests = 0.0;  // requests of the run's mean length, at their ends, that the pool holds at once; NaN: no limit
  double draft_cost_requests = 0.0;  // how many fewer fit than without a draft, whose weights and keys take memory
  // steps whose sequences all compute equally many rows, so that a full CUDA graph can hold them
  double uniform_steps = 0.0;
  double mixed_steps = 0.0;  // other steps, for example with prompts: piecewise graphs
  double eager_steps = 0.0;  // steps of more rows than the largest graph
  // Mean milliseconds by cause: a request's whole life, its TTFT, and its TPOT (over requests of more than one token). The
  // causes of each add up to its mean.
  std::array<double, kCauses> life_ms{};
  std::array<double, kCauses> ttft_by_cause_ms{};
  std::array<double, kCauses> tpot_by_cause_ms{};
  // An open loop's clients sent faster than the server answered: the last twentieth of the requests waited longer in its queue
  // than 2 % of the time of sending, and more than twice as long as the first half.
  bool overloaded = false;
  bool stable = true;  // false if the horizon was reached with requests left
  // Standard deviation of the logarithm of a decoding step's time at the mean batch, by the latency model; 0: not stated.
  double latency_error = 0.0;
  bool server_limits = false;  // clients wait for answers, or sent everything at once: the server decides the throughput
  // A job whose requests are all sent at once: its makespan is duration_s. NaN for other runs.
  double last_tenth_s = std::numeric_limits<double>::quiet_NaN();  // from the end of nine tenths of the requests to the last end
  double idle_places = std::numeric_limits<double>::quiet_NaN();  // share of places of the largest batch left empty, over the run
  // The boards of all GPUs, idle times included; NaN if power or cost is not known. `power_error`: standard deviation of the
  // logarithm.
  double gpus = 0.0;
  double joules = std::numeric_limits<double>::quiet_NaN();
  double power_error = 0.0;
  double dollars = std::numeric_limits<double>::quiet_NaN();
};

// The bounds of a mean's 95 % interval, by the run's requests and the latency model together.
struct Bounds {
  double low = 0.0;
  double high = 0.0;
};
// Means, and the 99th percentiles of the latencies.
enum class Bounded { ttft, tpot, ttft_p99, tpot_p99, throughput, joules_per_token, dollars_per_million };
Bounds bounds(const Summary& summary, Bounded which);

// Of completed requests' output tokens.
double joules_per_token(const Summary& summary);
double dollars_per_million(const Summary& summary);

const Statistics& latency(const Summary& summary, Latency which);
// The share of requests that keep a limit, among the requests of all runs together, minus the required share (Slo::percentile),
// for the limit with the smallest difference. NaN without limits; -1 if a run reached its horizon with requests left.
double slo_margin(std::span<const Summary> runs, const Slo& slo);

// The figures of a run. `replicas`: all engines, including those that only compute prompts.
// `counts`: whether a request counts; empty: all do.
Summary summarise(const arrivals::RequestTrace& workload, const SimulationResult& result, const Slo& slo, std::uint32_t replicas,
                  const WarmUp& warm_up, const std::function<bool(arrivals::RequestId)>& counts = {});

// The figures of a streamed run, request by request as they end: counts and sums are exact, percentiles are those of
// math::QuantileSketch, within its relative error. Figures of parts of a run merge. There are no intervals from the run alone.
class StreamedFigures {
 public:
  // `requests`: of the whole run; `warm_up`: how many of the first are left out of latencies and shares.
  StreamedFigures(const Slo& slo, std::size_t requests, std::size_t warm_up);
  StreamedFigures(StreamedFigures&&) noexcept;
  ~StreamedFigures();
  // A request that ended, or that was in flight at the end of the run.
  void add(arrivals::RequestId request, const Sequence& sequence, arrivals::Picoseconds end);
  void add_gaps(const std::vector<Gap>& gaps);
  void merge(const StreamedFigures& other);
  [[nodiscard]] Summary summary(const SimulationResult& result, std::uint32_t replicas) &&;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

// A figure of a run, with its name in summary.csv and curve.csv.
struct SummaryFigure {
  std::string name;
  std::string unit;
  std::string meaning;
  std::function<double(const Summary&)> value;
};
// All of them, in the order of the columns.
const std::vector<SummaryFigure>& summary_figures();

}  // namespace specsim::serve
