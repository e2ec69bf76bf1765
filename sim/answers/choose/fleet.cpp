// How many engines keep the limits in the busiest hour of a day, and what a day costs.
#include "sim/answers/choose/choose.h"
#include "sim/hardware/latency/energy.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

namespace specsim::choose {

namespace {

// Requests of a run: fleets are simulated as a whole up to so many, of larger ones as many engines as have them, at least eight.
constexpr double kMostRequests = 50000.0;
constexpr std::int64_t kFewestSimulated = 8;
// Requests for each engine: so many times those that it has at once, and at least so many. The first quarter is no part of the
// figures.
constexpr double kTimesBatch = 16.0;
constexpr double kLeastRequests = 250.0;
constexpr double kWarmUp = 0.25;

// The fleet's engines that are simulated, with their share of the load.
load::ServeExperiment experiment_of(const Question& question, const MeanLoad& load, const Choice& choice) {
  const double each = std::max(kLeastRequests, std::ceil(kTimesBatch * choice.estimate.batch));
  const std::int64_t engines =
      std::min(choice.replicas, std::max(kFewestSimulated, static_cast<std::int64_t>(kMostRequests / each)));
  Choice part = choice;
  part.replicas = engines;
  load::ServeRequest request = server_of(question, part, load);
  const double requests = static_cast<double>(engines) * each;
  request.rate = fmt::format("{:.17g}", load.rate * static_cast<double>(engines) / static_cast<double>(choice.replicas));
  request.requests = fmt::format("{:.0f}", requests);
  request.warm_up = fmt::format("{:.0f}", kWarmUp * requests);
  Diagnostics diagnostics;
  request.changes.push_back(*spec::read_override("serve.metrics", "streamed", "--rate-by-hour", diagnostics));
  return load::read_request(request, diagnostics);
}

// Engines of an hour with this rate, if the busiest hour needs `busiest` of them for its `peak`.
std::int64_t of_hour(double rate, double peak, std::int64_t busiest) {
  return std::max<std::int64_t>(1, std::llround(std::ceil(static_cast<double>(busiest) * rate / peak - 1e-9)));
}

}  // namespace

std::optional<std::int64_t> fewest(std::int64_t guess, std::int64_t most, const std::function<bool(std::int64_t)>& keeps) {
  std::int64_t low = 0;  // does not keep it
  std::int64_t high = std::clamp<std::int64_t>(guess, 1, most);
  while (!keeps(high)) {
    if (high == most) return std::nullopt;
    low = high;
    high = std::min(most, high + std::max<std::int64_t>(1, high / 4));
  }
  while (high - low > 1) {
    // Guesses are seldom far too high: just below the last number first.
    const std::int64_t next = low > 0 ? (low + high) / 2 : high - std::max<std::int64_t>(1, high / 8);
    (keeps(next) ? high : low) = next;
  }
  return high;
}

double engine_hours(const std::vector<double>& rates, std::int64_t busiest) {
  const double peak = *std::max_element(rates.begin(), rates.end());
  double hours = 0.0;
  for (const double rate : rates) hours += static_cast<double>(of_hour(rate, peak, busiest));
  return hours;
}

void size_fleet(const Question& question, const MeanLoad& load, const serve::Slo& slo, const SearchOptions& options,
                Choice& choice) {
  EnginePlans plans(*choice.engine, load, question.lengths);
  std::map<std::int64_t, Choice> tried;
  const auto keeps = [&](std::int64_t replicas) {
    if (options.stop != nullptr && options.stop->load()) return true;
    const auto [at, fresh] = tried.try_emplace(replicas, choice);
    Choice& one = at->second;
    if (!fresh) return one.keeps_slo;
    one.replicas = replicas;
    one.estimate = plans.estimate(static_cast<double>(replicas), 0.0, slo);
    if (one.estimate.verdict == Estimate::Verdict::overloaded) return false;
    const load::ServeExperiment experiment = experiment_of(question, load, one);
    load::ServeOptions how;
    how.stop = options.stop;
    one.summary = load::serve_streamed(experiment, how, 1).summary;
    one.keeps_slo = one.summary->stable && !one.summary->overloaded && one.summary->meets_slo;
    return one.keeps_slo;
  };
  const std::optional<std::int64_t> found = fewest(choice.replicas, kMostReplicas, keeps);
  if (!found || (options.stop != nullptr && options.stop->load())) {
    if (!tried.empty()) choice.summary = tried.rbegin()->second.summary;
    return;
  }
  choice = tried.at(*found);
  const std::vector<double>& rates = question.rates_by_hour;
  choice.fewest_replicas = of_hour(*std::min_element(rates.begin(), rates.end()), load.rate, choice.replicas);
  const std::optional<double> an_hour = cost::dollars(*choice.engine->cost, 3600.0);
  if (!an_hour) return;
  choice.dollars_per_day = static_cast<double>(choice.replicas) * static_cast<double>(rates.size()) * *an_hour;
  choice.dollars_by_hour = engine_hours(rates, choice.replicas) * *an_hour;
}

}  // namespace specsim::choose
