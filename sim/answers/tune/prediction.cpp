#include "sim/answers/tune/learn.h"

#include "sim/foundation/base/parallel.h"
#include "sim/foundation/report/intervals.h"
#include "sim/hardware/latency/deployment.h"
#include "sim/hardware/latency/roofline.h"
#include "sim/serving/logs/findings.h"

#include <fmt/format.h>
#include <boost/math/tools/roots.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <mutex>
#include <numeric>
#include <optional>

namespace specsim::tune {

namespace {

constexpr double kUsualRequests = 100.0;
constexpr double kMostRequests = 1000.0;
// Natural texts differ in length. This coefficient of variation is assumed if a file states only means.
constexpr double kPromptSpread = 0.5;
constexpr double kOutputSpread = 0.3;
// Runs of fewer requests per client depend on the lengths of the last ones.
constexpr double kManyPerClient = 16.0;
// Powers of the drawn output lengths over their mean: all equal, and a coefficient of variation of .8.
constexpr std::array kOtherSpreads = {0.0, 2.4};
// Standard deviations of the logarithm of tokens per round if the acceptance comes from another run: one of the same lengths,
// and one of other texts.
constexpr double kSameTexts = 0.02;
constexpr double kOtherTexts = 0.15;
constexpr double kNoTexts = 0.2;  // without any run
constexpr double kTypicalAlpha = 0.65;

struct Simulated {
  Logarithms metrics{};
  Logarithms sampling{};
  double batch = 1.0;
  double seconds = 0.0;
};

load::ServeExperiment with_factors(const load::ServeExperiment& experiment, const cost::ServerFactors& factors) {
  load::ServeExperiment changed = experiment;
  cost::Deployment deployment = *experiment.cost->deployment();
  deployment.engine.tuned = cost::FactorBelief{factors, {}};
  changed.cost = cost::make_roofline(std::move(deployment));
  return changed;
}

Simulated simulate(const load::ServeExperiment& experiment, const arrivals::RequestTrace& requests,
                   const cost::ServerFactors& factors, const std::atomic<bool>* stop) {
  load::ServeOptions options;
  options.stop = stop;
  const serve::Summary summary = load::serve(with_factors(experiment, factors), requests, options).summary;
  const auto sampling = [&](serve::Latency which, double mean) {
    const double half_width = summary.spreads[static_cast<std::size_t>(which)].mean_half_width;
    return std::isfinite(half_width) && mean > 0.0 ? half_width / (report::kIn95 * mean) : 0.0;
  };
  const double of_tpot = sampling(serve::Latency::tpot, summary.tpot_ms.mean);
  return {{std::log(summary.ttft_ms.mean), std::log(summary.tpot_ms.mean), std::log(summary.output_throughput)},
          {sampling(serve::Latency::ttft, summary.ttft_ms.mean), of_tpot, of_tpot},
          std::max(1.0, summary.mean_batch),
          summary.duration_s};
}

// Adds to the throughput what the unknown lengths do to it: the mean over them, and their standard deviation.
void take_lengths(std::vector<double> throughputs, Prediction& prediction) {
  constexpr auto kThroughput = static_cast<std::size_t>(Metric::throughput);
  throughputs.push_back(prediction.mean[kThroughput]);
  const auto count = static_cast<double>(throughputs.size());
  const double mean = std::accumulate(throughputs.begin(), throughputs.end(), 0.0) / count;
  double squares = 0.0;
  for (const double one : throughputs) squares += (one - mean) * (one - mean);
  prediction.mean[kThroughput] = mean;
  prediction.sampling[kThroughput] = std::hypot(prediction.sampling[kThroughput], std::sqrt(squares / (count - 1.0)));
}

// Whether the factor can change a measurement on this server. The others need no simulation.
bool acts(cost::Factor factor, const load::ServeExperiment& experiment) {
  const cost::Deployment& deployment = *experiment.cost->deployment();
  const auto any = [&](auto&& has) {
    return (deployment.target && has(*deployment.target)) || (deployment.draft && has(*deployment.draft));
  };
  switch (factor) {
    case cost::Factor::experts:
    case cost::Factor::routing:
      return any([](const cost::ModelShape& model) { return model.experts > 0.0; });
    case cost::Factor::communication:
      return any([](const cost::ModelShape& model) { return model.tensor_parallel * model.expert_parallel > 1.0; });
    case cost::Factor::verification:
    case cost::Factor::speculation:
    case cost::Factor::row:
    case cost::Factor::round:
    case cost::Factor::draft_pass:
      return experiment.speculation.has_value();
    default:
      return true;
  }
}

Logarithms discrepancy_of(const load::ServeExperiment& experiment) {
  const std::optional<cost::ModelShape>& target = experiment.cost->deployment()->target;
  const bool mixture = target && target->experts > 0.0;
  const cost::Discrepancies& of = mixture ? cost::kDiscrepanciesOfMixtures : cost::kDiscrepancies;
  return {of.ttft, of.tpot, of.throughput};
}

double mean_of(const arrivals::RequestTrace& trace, std::uint32_t arrivals::Request::*tokens) {
  double sum = 0.0;
  for (const arrivals::Request& request : trace.requests) sum += request.*tokens;
  return sum / static_cast<double>(std::max<std::size_t>(1, trace.requests.size()));
}

// Scales drawn lengths to the mean that the run states, since a mean of few draws is wrong by several percent.
void scale_to(arrivals::RequestTrace& trace, std::uint32_t arrivals::Request::*tokens, const std::optional<double>& stated) {
  if (!stated) return;
  const double factor = *stated / std::max(1.0, mean_of(trace, tokens));
  for (arrivals::Request& request : trace.requests)
    request.*tokens = static_cast<std::uint32_t>(std::max(1.0, std::round(factor * request.*tokens)));
}

// A mean that is a round number (or one more, with the end-of-text token) is taken as a limit that all requests reach, or as a
// length that a benchmark fixed: a multiple of 100, or of a large power of two. Requests of one length run in waves, so that
// means of drawn lengths must not count as fixed by chance.
bool is_round(double tokens) {
  if (std::fmod(tokens, 100.0) == 0.0) return true;
  while (tokens >= 1.0 && std::fmod(tokens, 2.0) == 0.0) tokens /= 2.0;
  return tokens <= 7.0;
}

bool is_fixed(double tokens) {
  const double next = std::round(tokens / 4.0) * 4.0;
  return std::abs(tokens - next) <= 1.0 && tokens == std::round(tokens) && is_round(next);
}

std::string lengths(double tokens, double spread) {
  return is_fixed(tokens) ? fmt::format("{:.0f}", tokens)
                          : fmt::format("{{lognormal: {{mean: {:.6g}, cv: {}}}}}", tokens, spread);
}

// The requests with the output lengths of another draw, and with those of other spreads.
std::vector<arrivals::RequestTrace> with_other_lengths(const arrivals::RequestTrace& requests, double mean) {
  std::vector<arrivals::RequestTrace> list = {requests};
  const std::size_t count = requests.requests.size();
  for (std::size_t i = 0; i < count; ++i) list.back().requests[i].output = requests.requests[(i + count / 2) % count].output;
  for (const double power : kOtherSpreads) {
    list.push_back(requests);
    for (arrivals::Request& request : list.back().requests)
      request.output = static_cast<std::uint32_t>(std::max(1.0, std::round(mean * std::pow(request.output / mean, power))));
    scale_to(list.back(), &arrivals::Request::output, mean);
  }
  return list;
}

// Rates that fall geometrically and give `length` tokens per round.
std::vector<double> geometric_rates(double length, int draft_length) {
  double alpha = 1.0;
  if (logs::length_of(1.0, draft_length) > length) {
    const auto [low, high] = boost::math::tools::bisect([&](double x) { return logs::length_of(x, draft_length) - length; }, 0.0,
                                                        1.0, boost::math::tools::eps_tolerance<double>(40));
    alpha = 0.5 * (low + high);
  }
  std::vector<double> rates;
  double rate = 1.0;
  for (int i = 0; i < draft_length; ++i) rates.push_back(rate *= alpha);
  return rates;
}

std::vector<double> stated_rates(const Run& run) {
  std::vector<double> rates = run.position_rates;
  if (rates.empty() && run.acceptance_length) return geometric_rates(*run.acceptance_length, run.draft_length);
  return rates;
}

// Converts rates of one draft length to another: deeper positions use the last conditional rate.
std::vector<double> rates_at(std::vector<double> rates, int draft_length) {
  const double before = rates.size() > 1 ? rates[rates.size() - 2] : 1.0;
  const double last = before > 0.0 ? rates.back() / before : 0.0;
  while (static_cast<int>(rates.size()) < draft_length) rates.push_back(rates.back() * last);
  rates.resize(static_cast<std::size_t>(draft_length));
  return rates;
}

// The distance between the lengths of two runs, in logarithms.
double unlike(const Run& a, const Run& b) {
  const auto distance = [](const std::optional<double>& x, const std::optional<double>& y) {
    return x && y ? std::abs(std::log(*x / *y)) : 0.0;
  };
  return distance(a.prompt_tokens, b.prompt_tokens) + distance(a.output_tokens, b.output_tokens);
}

}  // namespace

bool alike(const Run& a, const Run& b) { return unlike(a, b) < 0.1; }

Acceptance acceptance_of(const Run& run, const std::vector<Run>& known) {
  if (!run.speculates()) return {};
  if (const std::vector<double> own = stated_rates(run); !own.empty()) return {rates_at(own, run.draft_length), 0.0, {}};
  const Run* best = nullptr;
  for (const Run& other : known) {
    if (!other.speculates() || stated_rates(other).empty()) continue;
    const auto order = [&](const Run& one) {
      return std::pair{std::floor(10.0 * unlike(run, one)), std::abs(one.draft_length - run.draft_length)};
    };
    if (best == nullptr || order(other) < order(*best)) best = &other;
  }
  if (best == nullptr) {
    std::vector<double> rates;
    for (int i = 0; i < run.draft_length; ++i) rates.push_back(std::pow(kTypicalAlpha, i + 1));
    return {rates, kNoTexts, {}};
  }
  const double longer = std::max(0, run.draft_length - best->draft_length) / static_cast<double>(run.draft_length);
  return {rates_at(stated_rates(*best), run.draft_length), std::hypot(alike(run, *best) ? kSameTexts : kOtherTexts, 0.1 * longer),
          static_cast<std::size_t>(best - known.data())};
}

Benchmark benchmark_of(const load::ServeRequest& server, const Run& run, const std::vector<double>& position_rates) {
  load::ServeRequest request = server;
  if (run.concurrency)
    request.concurrency = fmt::format("{}", *run.concurrency);
  else
    request.rate = fmt::format("{}", *run.rate);
  if (run.concurrency && run.rate) request.changes.push_back(spec::override_setting("serve.arrivals.rate", *run.rate, run.where));
  const double clients = run.concurrency.value_or(1.0);
  const double count = run.requests.value_or(std::max(kUsualRequests, 4.0 * clients));
  request.requests = fmt::format("{:.0f}", std::min(count, std::max(kMostRequests, 4.0 * clients)));
  const auto stated = [&](const char* path) {  // by the user, with the distribution that the benchmark draws from
    return std::any_of(server.changes.begin(), server.changes.end(),
                       [&](const spec::Override& change) { return change.path == path; });
  };
  if (run.prompt_tokens && !stated("serve.lengths.prompt")) request.prompt = lengths(*run.prompt_tokens, kPromptSpread);
  if (run.output_tokens && !stated("serve.lengths.output")) request.output = lengths(*run.output_tokens, kOutputSpread);
  if (run.speculates()) {
    request.policy = fmt::format("fixed:{}", run.draft_length);
    request.position_rates = position_rates;
    request.alpha.reset();
  } else if (!request.config) {  // a config's own speculation is removed below
    request.policy.reset();
    request.method.reset();
    request.alpha.reset();
    request.position_rates.reset();
    request.draft = "none";
  }
  Diagnostics diagnostics;
  load::ServeExperiment experiment = load::read_request(request, diagnostics);
  diagnostics.throw_if_any();
  if (experiment.cost->deployment() == nullptr)
    throw BadInput({experiment.file, 0, 0}, "the cost model has no GPU and engine, allowed: cost model roofline");
  if (!run.speculates() && experiment.speculation) experiment = load::without_speculation(std::move(experiment));
  arrivals::RequestTrace requests = load::make_requests(experiment);
  scale_to(requests, &arrivals::Request::prompt, run.prompt_tokens);
  scale_to(requests, &arrivals::Request::output, run.output_tokens);
  Benchmark benchmark{std::move(experiment), std::move(requests), {}};
  if (run.concurrency && run.output_tokens && !is_fixed(*run.output_tokens) && !stated("serve.lengths.output") &&
      static_cast<double>(benchmark.requests.requests.size()) < kManyPerClient * clients)
    benchmark.other_lengths = with_other_lengths(benchmark.requests, *run.output_tokens);
  return benchmark;
}

std::vector<Prediction> predict(const std::vector<Benchmark>& runs, const cost::ServerFactors& at,
                                const PredictOptions& options) {
  struct Job {
    std::size_t run;
    std::optional<std::size_t> factor;   // nullopt: the server at `at`
    std::optional<std::size_t> lengths;  // nullopt: the run's own
    Simulated simulated;
  };
  std::vector<Job> jobs;
  for (std::size_t run = 0; run < runs.size(); ++run) {
    jobs.push_back({run, {}, {}, {}});
    for (std::size_t other = 0; other < runs[run].other_lengths.size(); ++other) jobs.push_back({run, {}, other, {}});
    for (std::size_t factor = 0; factor < cost::kFactors && options.step > 0.0; ++factor)
      if (acts(static_cast<cost::Factor>(factor), runs[run].experiment)) jobs.push_back({run, factor, {}, {}});
  }
  const auto change_of = [&](std::size_t factor) { return options.step * cost::factor_infos()[factor].error; };
  std::mutex mutex;
  std::size_t done = 0;
  for_each(jobs.size(), options.threads, [&](std::size_t i) {
    Job& job = jobs[i];
    cost::ServerFactors factors = at;
    if (job.factor) factors.values[*job.factor] += change_of(*job.factor);
    const Benchmark& run = runs[job.run];
    job.simulated = simulate(run.experiment, job.lengths ? run.other_lengths[*job.lengths] : run.requests, factors, options.stop);
    const std::lock_guard lock(mutex);
    if (options.progress) options.progress(static_cast<double>(++done) / static_cast<double>(jobs.size()));
  });
  std::vector<Prediction> predictions(runs.size());
  std::vector<std::vector<double>> throughputs(runs.size());  // logarithms, with other lengths
  for (const Job& job : jobs) {                               // a run's server at `at` comes first
    Prediction& prediction = predictions[job.run];
    if (job.lengths) {
      throughputs[job.run].push_back(job.simulated.metrics[static_cast<std::size_t>(Metric::throughput)]);
      continue;
    }
    if (!job.factor) {
      prediction.mean = job.simulated.metrics;
      prediction.sampling = job.simulated.sampling;
      prediction.discrepancy = discrepancy_of(runs[job.run].experiment);
      prediction.batch = job.simulated.batch;
      prediction.prompt_tokens = std::max(1.0, mean_of(runs[job.run].requests, &arrivals::Request::prompt));
      prediction.seconds = job.simulated.seconds;
      continue;
    }
    for (std::size_t metric = 0; metric < kMetrics; ++metric)
      if (const double change = job.simulated.metrics[metric] - prediction.mean[metric]; std::isfinite(change))
        prediction.slope[metric][*job.factor] = change / change_of(*job.factor);  // outputs of one token have no TPOT
  }
  for (std::size_t run = 0; run < runs.size(); ++run)
    if (!throughputs[run].empty()) take_lengths(std::move(throughputs[run]), predictions[run]);
  return predictions;
}

}  // namespace specsim::tune
