#include "sim/answers/tune/prediction.h"

#include "sim/foundation/base/parallel.h"
#include "sim/hardware/latency/deployment.h"
#include "sim/hardware/latency/roofline.h"

#include <boost/math/tools/roots.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <mutex>

namespace specsim::tune {

namespace {

constexpr double kUsualRequests = 100.0;
constexpr double kMostRequests = 1000.0;
// Natural texts differ in length: the coefficient of variation that is assumed where a file states means alone.
constexpr double kPromptSpread = 0.5;
constexpr double kOutputSpread = 0.3;
// Standard deviations of the logarithm of tokens per round: from another run of the same lengths, and of other texts.
constexpr double kSameTexts = 0.02;
constexpr double kOtherTexts = 0.15;
constexpr double kNoTexts = 0.3;  // from no run at all
constexpr double kTypicalAlpha = 0.65;

struct Simulated {
  Logarithms metrics{};
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
  return {{std::log(summary.ttft_ms.mean), std::log(summary.tpot_ms.mean), std::log(summary.output_throughput)},
          std::max(1.0, summary.mean_batch), summary.duration_s};
}

// A mean that is a whole multiple of 16 (or one more, with the end of the text) is a limit that all requests reach, or a length that
// a benchmark fixed.
bool is_fixed(double tokens) {
  const double next = std::round(tokens / 16.0) * 16.0;
  return tokens == next || tokens == next + 1.0 || tokens == next - 1.0;
}

std::string lengths(double tokens, double spread) {
  return is_fixed(tokens) ? fmt::format("{:.0f}", tokens) : fmt::format("{{lognormal: {{mean: {:.6g}, cv: {}}}}}", tokens, spread);
}

// Rates that fall geometrically to `length` tokens per round.
std::vector<double> geometric_rates(double length, int draft_length) {
  const auto tokens = [&](double alpha) {
    double rate = 1.0;
    double sum = 1.0;
    for (int i = 0; i < draft_length; ++i) sum += rate *= alpha;
    return sum;
  };
  double alpha = 1.0;
  if (tokens(1.0) > length) {
    const auto [low, high] = boost::math::tools::bisect([&](double x) { return tokens(x) - length; }, 0.0, 1.0,
                                                        boost::math::tools::eps_tolerance<double>(40));
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

// Rates of one draft length for another: deeper positions go on with the last conditional rate.
std::vector<double> rates_at(std::vector<double> rates, int draft_length) {
  const double before = rates.size() > 1 ? rates[rates.size() - 2] : 1.0;
  const double last = before > 0.0 ? rates.back() / before : 0.0;
  while (static_cast<int>(rates.size()) < draft_length) rates.push_back(rates.back() * last);
  rates.resize(static_cast<std::size_t>(draft_length));
  return rates;
}

// How unlike the lengths of two runs are, as a distance of logarithms.
double unlike(const Run& a, const Run& b) {
  const auto apart = [](const std::optional<double>& x, const std::optional<double>& y) {
    return x && y ? std::abs(std::log(*x / *y)) : 0.0;
  };
  return apart(a.prompt_tokens, b.prompt_tokens) + apart(a.output_tokens, b.output_tokens);
}

}  // namespace

Acceptance acceptance_of(const Run& run, const std::vector<Run>& known) {
  if (!run.speculates()) return {};
  if (const std::vector<double> own = stated_rates(run); !own.empty()) return {rates_at(own, run.draft_length), 0.0};
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
    return {rates, kNoTexts};
  }
  const double longer = std::max(0, run.draft_length - best->draft_length) / static_cast<double>(run.draft_length);
  return {rates_at(stated_rates(*best), run.draft_length),
          std::hypot(unlike(run, *best) < 0.1 ? kSameTexts : kOtherTexts, 0.1 * longer)};
}

load::ServeExperiment experiment_of(const load::ServeRequest& server, const Run& run, const std::vector<double>& position_rates) {
  load::ServeRequest request = server;
  if (run.concurrency)
    request.concurrency = fmt::format("{}", *run.concurrency);
  else
    request.rate = fmt::format("{}", *run.rate);
  if (run.concurrency && run.rate) request.changes.push_back(spec::override_setting("serve.arrivals.rate", *run.rate, run.where));
  const double clients = run.concurrency.value_or(1.0);
  const double requests = run.requests.value_or(std::max(kUsualRequests, 4.0 * clients));
  request.requests = fmt::format("{:.0f}", std::min(requests, std::max(kMostRequests, 4.0 * clients)));
  if (run.prompt_tokens) request.prompt = lengths(*run.prompt_tokens, kPromptSpread);
  if (run.output_tokens) request.output = lengths(*run.output_tokens, kOutputSpread);
  if (run.speculates()) {
    request.policy = fmt::format("fixed:{}", run.draft_length);
    request.position_rates = position_rates;
    request.alpha.reset();
  } else if (!request.config) {  // a config's own speculation is left out below
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
    throw BadInput({experiment.file, 0, 0}, "the cost model knows no GPU and engine, allowed: cost model roofline");
  return run.speculates() || !experiment.speculation ? experiment : load::without_speculation(std::move(experiment));
}

std::vector<Prediction> predict(const std::vector<load::ServeExperiment>& runs, const cost::ServerFactors& at,
                                const PredictOptions& options) {
  const std::size_t each = options.step > 0.0 ? cost::kFactors + 1 : 1;
  std::vector<arrivals::RequestTrace> requests(runs.size());
  for (std::size_t run = 0; run < runs.size(); ++run) requests[run] = load::make_requests(runs[run]);
  std::vector<Simulated> simulated(runs.size() * each);
  std::mutex mutex;
  std::size_t done = 0;
  for_each(simulated.size(), options.threads, [&](std::size_t job) {
    cost::ServerFactors factors = at;
    if (const std::size_t factor = job % each; factor < cost::kFactors && each > 1)
      factors.values[factor] += options.step * cost::factor_infos()[factor].error;
    simulated[job] = simulate(runs[job / each], requests[job / each], factors, options.stop);
    const std::lock_guard lock(mutex);
    if (options.progress) options.progress(static_cast<double>(++done) / static_cast<double>(simulated.size()));
  });
  std::vector<Prediction> predictions(runs.size());
  for (std::size_t run = 0; run < runs.size(); ++run) {
    const Simulated& here = simulated[run * each + each - 1];
    predictions[run].mean = here.metrics;
    predictions[run].batch = here.batch;
    predictions[run].seconds = here.seconds;
    for (std::size_t metric = 0; metric < kMetrics; ++metric)
      for (std::size_t factor = 0; factor + 1 < each; ++factor) {
        const double change = simulated[run * each + factor].metrics[metric] - here.metrics[metric];
        if (std::isfinite(change))  // outputs of one token have no TPOT
          predictions[run].slope[metric][factor] = change / (options.step * cost::factor_infos()[factor].error);
      }
  }
  return predictions;
}

}  // namespace specsim::tune
