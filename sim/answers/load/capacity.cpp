#include "sim/answers/load/capacity.h"

#include "sim/foundation/base/error.h"
#include "sim/foundation/base/parallel.h"

#include <algorithm>
#include <cmath>
#include <mutex>
#include <numeric>
#include <vector>

namespace specsim::load {

namespace {

constexpr std::size_t kFirstRequests = 1024;  // per replica, of kMostReplicas at most
constexpr double kBatches = 32.0;  // length of the run in batches; the first batch is in step, and the last one runs empty

// This number of replicas represents any larger number. If all requests are there at the start, a routing by numbers of requests
// gives each replica equally many, and each works independently. More replicas are simulated if other engines may limit the rate
// (those that compute prompts). Nearly idle replicas need no requests of their own, since the batch decides.
constexpr std::uint32_t kMostReplicas = 4;

bool stand_for_others(const ServeExperiment& experiment) {
  return experiment.replicas > kMostReplicas && experiment.prefill_engines == 0 && !experiment.routing->by_prefix() &&
         !in_step(experiment);
}

// The start of a request's decoding rounds. If another engine computed its prompt and sent its first token, the cache first
// crosses the link, and the request waits for a decoding engine. It gets no token in that time.
arrivals::Picoseconds decodes_from(const serve::Sequence& sequence) {
  arrivals::Picoseconds from = sequence.first_token;
  for (const serve::Cause cause : {serve::Cause::transfer, serve::Cause::queue})
    from += sequence.spent[static_cast<std::size_t>(cause)] - sequence.spent_first[static_cast<std::size_t>(cause)];
  return from;
}

// The tokens that a request got between two moments, with its rounds spread evenly from decodes_from() to its last token.
// `first`: its first token counts.
double tokens_between(const serve::Sequence& sequence, arrivals::Picoseconds from, arrivals::Picoseconds to, bool first) {
  if (sequence.first_token == arrivals::kNever) return 0.0;
  const arrivals::Picoseconds begin = decodes_from(sequence);
  double tokens = first && sequence.first_token > from && sequence.first_token <= to ? 1.0 : 0.0;
  const arrivals::Picoseconds inside = std::min(sequence.last_token, to) - std::max(begin, from);
  if (inside > 0)
    tokens += (sequence.emitted - 1.0) * static_cast<double>(inside) / static_cast<double>(sequence.last_token - begin);
  return tokens;
}

// The experiment's requests, all sent at the start. A recorded trace is repeated from its beginning.
arrivals::RequestTrace saturating(const ServeExperiment& experiment, std::size_t requests) {
  const std::unique_ptr<arrivals::ArrivalProcess> longer = experiment.arrivals->with_requests(requests);
  arrivals::RequestTrace own = make_requests(longer ? with_requests(experiment, requests) : experiment);
  const std::size_t given = own.requests.size();
  for (std::size_t i = given; i < requests; ++i) own.requests.push_back(own.requests[i % given]);
  for (arrivals::Request& request : own.requests) request.due = 0;
  return own;
}

using ShareDone = std::function<void(double)>;  // receives the finished share of a run's requests

std::optional<double> rate_of(const ServeExperiment& experiment, const std::atomic<bool>* stop, const ShareDone& done) {
  ServeExperiment saturated = experiment;
  saturated.horizon = arrivals::kNever;
  saturated.warm_up = {};
  saturated.slo = {};
  if (stand_for_others(experiment)) saturated.replicas = kMostReplicas;
  const double share = static_cast<double>(saturated.replicas) / experiment.replicas;
  std::size_t requests = kFirstRequests * std::min(saturated.replicas, kMostReplicas);
  for (;;) {
    const arrivals::RequestTrace workload = saturating(saturated, requests);
    if (hits_decide(saturated, workload)) return std::nullopt;
    ServeOptions options;
    options.stop = stop;
    options.summarise = false;
    if (done) options.progress = [&](std::size_t ended) { done(static_cast<double>(ended) / static_cast<double>(requests)); };
    const serve::SimulationResult result = serve(saturated, workload, options).result;
    if (result.interrupted || !result.reached_end) return std::nullopt;
    const auto needed = static_cast<std::size_t>(kBatches * result.largest_batch);
    if (requests < needed) {
      // All requests ran at once, so the limit of the batch is unknown.
      if (requests >= kMostRequests || needed > 4 * kMostRequests) return std::nullopt;
      // at least twice as many, so the last run is at least half of all the work
      requests = std::min(std::max(needed, 2 * requests), kMostRequests);
      continue;
    }
    double outputs = 0.0;
    std::vector<arrivals::Picoseconds> ends;
    arrivals::Picoseconds to = 0;
    for (std::size_t i = 0; i < result.sequences.size(); ++i) {
      outputs += workload.requests[i].output;
      ends.push_back(result.sequences[i].last_token);
      // Until this moment some request waits for the engines that limit the rate: the decoding ones, if they are separate.
      const serve::Sequence& sequence = result.sequences[i];
      to = std::max(to, experiment.prefill_engines > 0 ? decodes_from(sequence) : sequence.first_scheduled);
    }
    const auto quarter = ends.begin() + static_cast<std::ptrdiff_t>(ends.size() / 4);
    std::nth_element(ends.begin(), quarter, ends.end());
    const arrivals::Picoseconds from = *quarter;
    if (to <= from) return std::nullopt;
    double tokens = 0.0;
    // If other engines send the first tokens, these all come early. Then only the other tokens measure the completed work.
    const auto count = static_cast<double>(result.sequences.size());
    const bool first = experiment.prefill_engines == 0 || experiment.first_token_of_decode || outputs <= count;
    for (const serve::Sequence& sequence : result.sequences) tokens += tokens_between(sequence, from, to, first);
    const double completed = tokens / (outputs / count - (first ? 0.0 : 1.0));
    return completed / (static_cast<double>(to - from) / arrivals::kPicosecondsPerSecond) / share;
  }
}

}  // namespace

bool hits_decide(const ServeExperiment& experiment, const arrivals::RequestTrace& requests) {
  return !requests.hashes.empty() && experiment.scheduler()->prefix_caching();
}

std::optional<double> saturated_rate(const ServeExperiment& experiment, const std::atomic<bool>* stop, const ShareDone& done) {
  try {
    return rate_of(experiment, stop, done);
  } catch (const BadInput&) {  // the run itself reports the error, with its own requests
    return std::nullopt;
  }
}

report::Estimate capacity_of(const ServeExperiment& experiment, const SweepRunner& runner) {
  const SweepRunner::Options& setting = runner.setting();
  if (!setting.capacity) return {NAN, NAN, 0.0};
  std::vector<double> rates(static_cast<std::size_t>(setting.replications));
  std::vector<double> shares(rates.size(), 0.0);
  std::mutex telling;
  for_each(rates.size(), setting.threads, [&](std::size_t i) {
    const auto tell = [&](double share) {
      const std::lock_guard lock(telling);
      shares[i] = share;
      if (setting.capacity_progress)
        setting.capacity_progress(std::accumulate(shares.begin(), shares.end(), 0.0) / static_cast<double>(shares.size()));
    };
    rates[i] = saturated_rate(replicated(experiment, i), setting.stop, tell).value_or(NAN);
  });
  return report::mean_of(rates);
}

namespace {

constexpr double kStays = 40.0;

std::size_t two_digits(double requests) {
  const double digits = std::pow(10.0, std::max(0.0, std::floor(std::log10(std::max(requests, 1.0))) - 1.0));
  return static_cast<std::size_t>(std::min(digits * std::ceil(requests / digits), 1e9));
}

}  // namespace

std::size_t requests_in_full_batches(const serve::Summary& run) {
  return std::isnan(run.mean_batch) ? 0 : two_digits(kStays * run.mean_batch);
}

bool waits_measurable(double requests, double load, double capacity) {
  constexpr double kRelaxations = 600.0;
  return std::isnan(capacity) || (load < capacity && requests * std::pow(1.0 - load / capacity, 2) >= kRelaxations);
}

std::size_t requests_needed(const serve::Summary& run, double load, double capacity) {
  constexpr double kRelaxations = 100.0;
  constexpr double kMostShare = 0.92;
  if (!(run.sending_s > 0.0) || run.e2el_ms.count == 0.0) return 0;
  const double in_system = static_cast<double>(run.requests) / run.sending_s * 1e-3 * run.e2el_ms.mean;
  double needed = kStays * in_system;
  if (!std::isnan(capacity)) needed = std::max(needed, kRelaxations / std::pow(1.0 - std::min(load / capacity, kMostShare), 2));
  return two_digits(needed);
}

}  // namespace specsim::load
