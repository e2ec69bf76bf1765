#include "sim/serving/serve/metrics.h"

#include <fmt/format.h>

#include <cmath>

namespace specsim::serve {

namespace {

SummaryFigure of(const char* name, const char* unit, const char* meaning, double Summary::*value) {
  return {name, unit, meaning, [value](const Summary& summary) { return summary.*value; }};
}
SummaryFigure of(const char* name, const char* unit, const char* meaning, std::size_t Summary::*value) {
  return {name, unit, meaning, [value](const Summary& summary) { return static_cast<double>(summary.*value); }};
}
SummaryFigure of(const char* name, const char* meaning, bool Summary::*value) {
  return {name, "0 or 1", meaning, [value](const Summary& summary) { return summary.*value ? 1.0 : 0.0; }};
}

// The figures of a distribution of times.
void add_times(std::vector<SummaryFigure>& list, const char* name, const char* meaning, Statistics Summary::*times) {
  struct Figure {
    const char* name;
    const char* meaning;
    double Statistics::*value;
  };
  for (const Figure& one :
       {Figure{"mean", "mean", &Statistics::mean}, Figure{"p50", "median", &Statistics::p50},
        Figure{"p90", "90th percentile", &Statistics::p90}, Figure{"p95", "95th percentile", &Statistics::p95},
        Figure{"p99", "99th percentile", &Statistics::p99}, Figure{"max", "greatest", &Statistics::max}})
    list.push_back({fmt::format("{}_{}_ms", one.name, name), "ms", fmt::format("{} {}", one.meaning, meaning),
                    [times, value = one.value](const Summary& summary) { return (summary.*times).*value; }});
}

void add_bounds(std::vector<SummaryFigure>& list, const char* name, const char* unit, Bounded which) {
  list.push_back({fmt::format("{}_low", name), unit, fmt::format("lower bound of the 95 % interval of {}", name),
                  [which](const Summary& summary) { return bounds(summary, which).low; }});
  list.push_back({fmt::format("{}_high", name), unit, "upper bound",
                  [which](const Summary& summary) { return bounds(summary, which).high; }});
}

// The means of a request's time, cause by cause.
void add_causes(std::vector<SummaryFigure>& list, const char* before, const char* meaning,
                std::array<double, kCauses> Summary::*causes) {
  for (std::size_t cause = 0; cause < kCauses; ++cause)
    list.push_back({fmt::format("mean_{}{}_ms", before, cause_names()[cause]), "ms",
                    fmt::format("mean part of {} that went to {}", meaning, cause_names()[cause]),
                    [causes, cause](const Summary& summary) { return (summary.*causes)[cause]; }});
}

std::vector<SummaryFigure> all_figures() {
  std::vector<SummaryFigure> list = {
      of("requests", "1", "requests that were sent", &Summary::requests),
      of("completed", "requests", "requests that got their whole output", &Summary::completed),
      of("stable", "0 if the horizon was reached with requests left", &Summary::stable),
      of("overloaded", "1 if an open loop's clients sent faster than the server answered", &Summary::overloaded),
      of("duration_s", "s", "time from the first sending to the last end", &Summary::duration_s),
      of("total_input_tokens", "tokens", "prompts of completed requests", &Summary::prompt_tokens),
      of("total_output_tokens", "tokens", "outputs of completed requests", &Summary::output_tokens),
      of("request_throughput", "1/s", "completed / duration_s", &Summary::request_throughput),
      of("output_throughput", "tokens/s", "total_output_tokens / duration_s", &Summary::output_throughput),
      of("total_token_throughput", "tokens/s", "(total_input_tokens + total_output_tokens) / duration_s",
         &Summary::total_token_throughput),
      of("request_goodput", "1/s", "requests that keep every limit of the SLO; empty without one", &Summary::request_goodput),
      of("slo_share", "1", "share of the requests after the warm-up that keep them", &Summary::slo_share),
      {"meets_slo", "0 or 1", "1 if the SLO's percentile of requests keeps each limit and no request was left; empty without one",
       [](const Summary& summary) { return std::isnan(summary.request_goodput) ? NAN
                                           : summary.meets_slo                 ? 1.0
                                                                               : 0.0; }}};
  add_times(list, "ttft", "time to first token", &Summary::ttft_ms);
  add_times(list, "tpot", "time per output token of a request", &Summary::tpot_ms);
  add_times(list, "itl", "time between chunks of tokens", &Summary::itl_ms);
  add_times(list, "itl_token", "time between chunks divided by the chunk's tokens, once per token", &Summary::itl_token_ms);
  add_times(list, "e2el", "time from the sending to the last token", &Summary::e2el_ms);
  add_times(list, "queue", "time in the engine's queue before the first admission", &Summary::queue_ms);
  add_bounds(list, "mean_ttft_ms", "ms", Bounded::ttft);
  add_bounds(list, "mean_tpot_ms", "ms", Bounded::tpot);
  add_bounds(list, "output_throughput", "tokens/s", Bounded::throughput);
  list.insert(
      list.end(),
      {of("mean_concurrency", "requests", "requests in the system, mean over time", &Summary::mean_concurrency),
       of("mean_batch", "requests", "requests in a step, mean over time", &Summary::mean_batch),
       of("largest_batch", "requests", "largest number of requests in a step", &Summary::largest_batch),
       of("steps", "1", "steps of all engines", &Summary::steps),
       of("prefill_steps", "1", "how many of them computed tokens of prompts", &Summary::prefill_steps),
       of("busy_share", "1", "share of duration_s that an engine works, mean over engines", &Summary::busy_share),
       of("tokens_per_round", "tokens", "1 + accepted / rounds, the rounds of requests.csv", &Summary::tokens_per_round),
       of("drafted", "tokens", "drafts that were verified", &Summary::drafted),
       of("accepted", "tokens", "drafts that were accepted", &Summary::accepted),
       of("acceptance_rate", "1", "accepted / drafted", &Summary::acceptance_rate),
       of("wasted_drafts", "tokens", "drafted - accepted", &Summary::wasted_drafts),
       of("preemptions", "1", "times that a request lost its blocks", &Summary::preemptions),
       of("recomputed_tokens", "tokens", "tokens computed again after that", &Summary::recomputed_tokens),
       of("pool_tokens", "tokens", "tokens that the cache of one replica holds; 0: no limit", &Summary::pool_tokens),
       of("fewest_free_blocks", "blocks", "smallest number of its blocks that were free", &Summary::fewest_free_blocks),
       of("fitting_requests", "requests", "requests of the run's mean length, at their ends, that it holds at once",
          &Summary::fitting_requests),
       of("draft_cost_requests", "requests", "how many fewer it holds because of the draft", &Summary::draft_cost_requests),
       of("uniform_steps", "1", "steps in which every request computes equally many rows and none a prompt",
          &Summary::uniform_steps),
       of("mixed_steps", "1", "steps in which requests compute different numbers of rows, or some compute a prompt",
          &Summary::mixed_steps),
       of("eager_steps", "1", "steps of more rows than a captured graph holds", &Summary::eager_steps)});
  list.insert(
      list.end(),
      {of("last_tenth_s", "s", "time from the end of nine tenths of the requests to the last end, where all are sent at once",
          &Summary::last_tenth_s),
       of("idle_places", "1", "share of the largest batch's places that were empty over such a run", &Summary::idle_places),
       of("gpus", "1", "GPUs of all engines", &Summary::gpus),
       of("joules", "J", "energy of their boards over duration_s; empty where the GPU's power is not known", &Summary::joules),
       {"watts_per_gpu", "W", "joules / (gpus duration_s)",
        [](const Summary& summary) { return summary.joules / (summary.gpus * summary.duration_s); }},
       {"joules_per_token", "J", "joules / total_output_tokens", joules_per_token},
       {"dollars_per_million_tokens", "$",
        "cost of the GPUs over duration_s, per million output tokens; empty if the cost of a GPU-hour is not known",
        dollars_per_million}});
  add_bounds(list, "joules_per_token", "J", Bounded::joules_per_token);
  add_bounds(list, "dollars_per_million_tokens", "$", Bounded::dollars_per_million);
  add_causes(list, "e2el_", "a request's life", &Summary::life_ms);
  add_causes(list, "ttft_", "a request's time to first token", &Summary::ttft_by_cause_ms);
  add_causes(list, "tpot_", "a request's time per output token", &Summary::tpot_by_cause_ms);
  list.push_back(
      of("warm_up_requests", "requests", "first requests, excluded from latencies and shares", &Summary::warm_up_requests));
  list.push_back(
      of("prefix_hit_tokens", "tokens", "tokens found in the prefix cache, at every admission", &Summary::prefix_hit_tokens));
  list.push_back({"prefix_hit_rate", "1", "prefix_hit_tokens over the requests' tokens at these admissions",
                  [](const Summary& summary) { return summary.prefix_hit_tokens / summary.prefix_lookup_tokens; }});
  list.push_back({"prefill_tokens", "tokens", "the other tokens at these admissions, which are computed",
                  [](const Summary& summary) { return summary.prefix_lookup_tokens - summary.prefix_hit_tokens; }});
  list.insert(
      list.end(),
      {of("host_hit_tokens", "tokens", "how many of prefix_hit_tokens were loaded from host memory", &Summary::host_hit_tokens),
       of("host_loaded_bytes", "bytes", "loaded over the link of one GPU of each engine", &Summary::host_loaded_bytes),
       of("host_stored_bytes", "bytes", "copied to host memory by one GPU of each engine", &Summary::host_stored_bytes),
       of("host_link_share", "1", "share of duration_s in which that link loads, mean over engines", &Summary::host_link_share),
       of("draft_recomputed_tokens", "tokens", "loaded tokens that the draft computed again",
          &Summary::draft_recomputed_tokens)});
  return list;
}

}  // namespace

double joules_per_token(const Summary& summary) { return summary.joules / summary.output_tokens; }
double dollars_per_million(const Summary& summary) { return 1e6 * summary.dollars / summary.output_tokens; }

Bounds bounds(const Summary& summary, Bounded which) {
  constexpr double kIn95 = 1.959963984540054;
  // Prompts are estimated with a larger error than decoding steps, and waits for them with a larger one still: standard deviation
  // of the logarithm of TTFT over the servers of results/tune.
  constexpr double kOfTtft = 0.3;
  if (which == Bounded::joules_per_token || which == Bounded::dollars_per_million) {
    // Both grow with the time that the tokens take.
    const bool energy = which == Bounded::joules_per_token;
    const double mean = energy ? joules_per_token(summary) : dollars_per_million(summary);
    const Bounds tokens = bounds(summary, Bounded::throughput);
    const double slower = tokens.low > 0.0 ? std::log(summary.output_throughput / tokens.low) / kIn95 : 0.0;
    const double error = std::hypot(slower, energy ? summary.power_error : 0.0);
    return {mean * std::exp(-kIn95 * error), mean * std::exp(kIn95 * error)};
  }
  const bool first = which == Bounded::ttft || which == Bounded::ttft_p99;
  const bool tail = which == Bounded::ttft_p99 || which == Bounded::tpot_p99;
  const Statistics& latency = first ? summary.ttft_ms : summary.tpot_ms;
  const double mean = which == Bounded::throughput ? summary.output_throughput : tail ? latency.p99 : latency.mean;
  if (!(mean > 0.0)) return {mean, mean};
  double error = summary.latency_error;
  if (which == Bounded::throughput) {
    // Otherwise the clients decide the throughput, unless slower steps would fill the memory.
    const double slower = std::exp(2.0 * kIn95 * error) * summary.mean_batch;
    const bool limited = summary.server_limits || summary.overloaded || !summary.stable || !std::isnan(summary.last_tenth_s) ||
                         slower > summary.fitting_requests;
    const double half = summary.output_throughput_half_width;
    error = std::hypot(limited ? error : 0.0, std::isnan(half) ? 0.0 : half / (kIn95 * mean));
  } else {
    const Spread& spread = summary.spreads[static_cast<std::size_t>(first ? Latency::ttft : Latency::tpot)];
    const double half = tail ? spread.p99_half_width : spread.mean_half_width;
    const double sampled = std::isnan(half) ? 0.0 : half / (kIn95 * mean);
    error = std::hypot(error, sampled, first && error > 0.0 && std::isnan(summary.last_tenth_s) ? kOfTtft : 0.0);
  }
  return {mean * std::exp(-kIn95 * error), mean * std::exp(kIn95 * error)};
}

const std::vector<SummaryFigure>& summary_figures() {
  static const std::vector<SummaryFigure> list = all_figures();
  return list;
}

}  // namespace specsim::serve
