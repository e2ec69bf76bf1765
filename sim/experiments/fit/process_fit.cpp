#include "sim/experiments/fit/process_fit.h"

#include "sim/foundation/base/parallel.h"
#include "sim/foundation/base/wide.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <mutex>
#include <numeric>
#include <optional>
#include <string>

namespace specsim::fit {

namespace {

double likelihood(const FittedProcess& model, const std::vector<RecordedRequest>& requests) {
  double sum = 0.0;
  for (const RecordedRequest& request : requests) sum += model.log_likelihood(request);
  return sum;
}

// Fits kept_state or regimes with the number of states that Bayes' information criterion prefers.
FittedProcess fit_best_size(Process process, const std::vector<RecordedRequest>& requests, const std::atomic<bool>* stop) {
  const auto fitted = [&](std::size_t states) { return fit_process(process, states, requests, kMaxDraftLength, stop); };
  if (process == Process::constant || process == Process::by_depth) return fitted(1);
  if (process == Process::requests_and_regimes) return fitted(4);
  std::optional<FittedProcess> best;
  double least = std::numeric_limits<double>::infinity();
  double size = 0.0;
  for (const RecordedRequest& request : requests) size += static_cast<double>(request.rounds.size());
  for (const std::size_t states : {2U, 3U}) {
    FittedProcess model = fitted(states);
    const double criterion = model.parameters() * std::log(size) - 2.0 * likelihood(model, requests);
    if (criterion < least) best = std::move(model);
    least = std::min(least, criterion);
  }
  return *best;
}

// Statistics that the bootstrap compares; each is a list of counts or figures.
enum Statistic : std::size_t { kByDepth, kDistribution, kRuns, kSpread, kStatistics };
using Figures = std::array<std::vector<double>, kStatistics>;

Figures figures(const std::vector<RecordedRequest>& requests, int draft_length) {
  constexpr std::size_t kRunBins = 12;
  Figures all;
  const auto depths = static_cast<std::size_t>(draft_length);
  std::vector<double> judged(depths, 0.0);
  all[kByDepth].assign(depths, 0.0);
  all[kDistribution].assign(depths + 1, 0.0);
  all[kRuns].assign(kRunBins, 0.0);
  double rounds = 0.0;
  double runs = 0.0;
  double mean = 0.0;
  double squares = 0.0;
  for (const RecordedRequest& request : requests) {
    std::size_t run = 0;
    double own = 0.0;
    double own_judged = 0.0;
    for (const RecordedRound& round : request.rounds) {
      const auto accepted = static_cast<std::size_t>(round.accepted);
      for (std::size_t depth = 0; depth < accepted; ++depth) all[kByDepth][depth] += 1.0;
      for (std::size_t depth = 0; depth <= accepted && depth < static_cast<std::size_t>(round.drafted); ++depth)
        judged[depth] += 1.0;
      all[kDistribution][accepted] += 1.0;
      rounds += 1.0;
      own += static_cast<double>(accepted);
      own_judged += static_cast<double>(accepted) + (round.accepted < round.drafted ? 1.0 : 0.0);
      run += accepted;
      if (round.accepted < round.drafted) {
        all[kRuns][std::min(run, kRunBins - 1)] += 1.0;
        runs += 1.0;
        run = 0;
      }
    }
    const double rate = own_judged > 0.0 ? own / own_judged : 0.0;
    mean += rate;
    squares += rate * rate;
  }
  // Shares, since the number of rounds of a request is not tested.
  for (std::size_t depth = 0; depth < depths; ++depth) all[kByDepth][depth] /= std::max(judged[depth], 1.0);
  for (double& x : all[kDistribution]) x /= rounds;
  for (double& x : all[kRuns]) x /= std::max(runs, 1.0);
  const auto n = static_cast<double>(requests.size());
  all[kSpread] = {squares / n - mean * mean / (n * n)};
  return all;
}

// The distance of `x` from the replicates' mean, in units of their variances.
double distance(const std::vector<double>& x, const std::vector<double>& mean, const std::vector<double>& variance) {
  double sum = 0.0;
  for (std::size_t i = 0; i < x.size(); ++i)
    if (variance[i] > 0.0)
      sum += (x[i] - mean[i]) * (x[i] - mean[i]) / variance[i];
    else if (std::abs(x[i] - mean[i]) > 1e-9)  // a value that no replicate has
      return std::numeric_limits<double>::infinity();
  return sum;
}

// The number of tokens that a request was to emit, as far as its record determines it: the last round began before the request
// had them. Alternatively the number of rounds, if that is not 0.
struct Length {
  std::uint64_t least = 1;
  std::uint64_t most = 1;
  std::uint64_t rounds = 0;
};

std::vector<Length> lengths_of(const std::vector<RecordedRequest>& requests) {
  std::vector<Length> lengths;
  Length common{0, std::numeric_limits<std::uint64_t>::max()};
  for (const RecordedRequest& request : requests) {
    const std::uint64_t most = emitted(request);
    lengths.push_back({most - static_cast<std::uint64_t>(request.rounds.back().accepted), most, 0});
    common = {std::max(common.least, lengths.back().least), std::min(common.most, most)};
  }
  if (common.least <= common.most) {
    lengths.assign(requests.size(), {common.least, common.least, 0});
    return lengths;
  }
  // Every request has equally many rounds, and no common length fits. The record was cut by rounds, so requests that accept more
  // contain more tokens.
  const std::size_t rounds = requests.front().rounds.size();
  if (std::all_of(requests.begin(), requests.end(), [&](const RecordedRequest& one) { return one.rounds.size() == rounds; }))
    for (Length& length : lengths) length.rounds = rounds;
  return lengths;
}

// Runs the parts of a fit on several threads.
class Workers {
 public:
  Workers(const FitRun& run, double all) : run_(run), all_(all) {}

  // Calls work(i) for every i < count, in any order, unless the run is stopped. Each call counts as `share` of the total
  // progress.
  void each(std::size_t count, double share, const std::function<void(std::size_t)>& work) {
    for_each(count, run_.threads, [&](std::size_t i) {
      if (stopped()) return;
      work(i);
      const std::scoped_lock lock(mutex_);
      done_ += share;
      if (run_.progress) run_.progress(done_, all_);
    });
  }
  [[nodiscard]] bool stopped() const { return run_.stop != nullptr && *run_.stop; }

 private:
  const FitRun& run_;
  double all_;
  double done_ = 0.0;
  std::mutex mutex_;
};

void bootstrap(ProcessReport& report, const std::vector<RecordedRequest>& requests, const std::vector<Length>& lengths,
               int draft_length, std::uint64_t seed, Workers& workers) {
  std::vector<Figures> replicates(kReplicates);
  std::vector<double> per_round(kReplicates);
  workers.each(kReplicates, 1.0, [&](std::size_t b) {
    rng::Stream random(rng::make_key(seed, rng::hash_text(to_text(report.model.process))), rng::Purpose::start, 0, b);
    std::vector<RecordedRequest> simulated;
    for (const auto& [least, most, rounds] : lengths) {
      const std::uint64_t tokens = rounds > 0 || least == most ? least : least + scale_bits(random(), most - least + 1);
      simulated.push_back(report.model.simulate(draft_length, {tokens, rounds}, random));
    }
    replicates[b] = figures(simulated, draft_length);
    per_round[b] = tokens_per_round(simulated);
  });
  if (workers.stopped()) return;
  report.tokens_per_round = std::accumulate(per_round.begin(), per_round.end(), 0.0) / static_cast<double>(kReplicates);
  const Figures seen = figures(requests, draft_length);
  const std::array<double*, kStatistics> p = {&report.p_by_depth, &report.p_accepted, &report.p_runs, &report.p_requests};
  for (std::size_t k = 0; k < kStatistics; ++k) {
    const std::size_t size = seen[k].size();
    std::vector<double> mean(size, 0.0);
    std::vector<double> variance(size, 0.0);
    for (const Figures& one : replicates)
      for (std::size_t i = 0; i < size; ++i) mean[i] += one[k][i] / static_cast<double>(kReplicates);
    for (const Figures& one : replicates)
      for (std::size_t i = 0; i < size; ++i)
        variance[i] += (one[k][i] - mean[i]) * (one[k][i] - mean[i]) / static_cast<double>(kReplicates);
    const double own = distance(seen[k], mean, variance);
    const auto beyond = std::count_if(replicates.begin(), replicates.end(),
                                      [&](const Figures& one) { return distance(one[k], mean, variance) >= own; });
    *p[k] = (1.0 + static_cast<double>(beyond)) / (1.0 + static_cast<double>(kReplicates));
  }
}

// Predicted tokens per round of texts of these lengths, at a draft length that the model need not have been fitted at.
double foretell(const FittedProcess& model, int draft_length, const std::vector<Length>& lengths, rng::Key key) {
  constexpr std::uint64_t kTexts = 50;  // leaves a fiftieth of the record's own variance
  double sum = 0.0;
  for (std::uint64_t i = 0; i < kTexts; ++i) {
    rng::Stream random(key, rng::Purpose::start, 0, i);
    std::vector<RecordedRequest> simulated;
    for (const Length& length : lengths) simulated.push_back(model.simulate(draft_length, {length.most, length.rounds}, random));
    sum += tokens_per_round(simulated);
  }
  return sum / static_cast<double>(kTexts);
}

// Extrapolates a fit to short drafts to the recorded draft length.
void extrapolate(ProcessReport& report, const FittedProcess& from_short, const FitReport& all, const std::vector<Length>& lengths,
                 std::uint64_t seed) {
  report.extrapolated = foretell(from_short, all.draft_length, lengths,
                                 rng::make_key(seed, rng::hash_text(std::string("short ") + to_text(from_short.process))));
  // If all requests went alike, the only standard error is that of rounding.
  report.extrapolated_z = all.tokens_per_round_error > 1e-9 * all.tokens_per_round
                              ? (report.extrapolated - all.tokens_per_round) / all.tokens_per_round_error
                              : std::numeric_limits<double>::quiet_NaN();
}

}  // namespace

report::Estimate ratio_of(std::span<const double> y, std::span<const double> x) {
  double sum_y = 0.0;
  double sum_x = 0.0;
  double sum_xx = 0.0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    sum_y += y[i];
    sum_x += x[i];
    sum_xx += x[i] * x[i];
  }
  const double ratio = sum_y / sum_x;
  double squares = 0.0;
  for (std::size_t i = 0; i < x.size(); ++i)
    if (x[i] < sum_x) squares += std::pow((y[i] - ratio * x[i]) / (sum_x - x[i]), 2);
  const auto n = static_cast<double>(x.size());
  return {ratio, std::sqrt(squares * (n - 1.0) / n), sum_x * sum_x / sum_xx - 1.0};
}

namespace {

report::Estimate tokens_per_round_estimate(const std::vector<RecordedRequest>& requests) {
  std::vector<double> tokens;
  std::vector<double> rounds;
  for (const RecordedRequest& request : requests) {
    tokens.push_back(static_cast<double>(emitted(request)));
    rounds.push_back(static_cast<double>(request.rounds.size()));
  }
  return ratio_of(tokens, rounds);
}

// The bootstrap uses all requests, or about so many of a large record. These suffice to reject what can be rejected, and each
// request is simulated kReplicates times.
constexpr std::size_t kMostChecked = 2000;

template <class T>
std::vector<T> some_of(const std::vector<T>& all, const std::vector<std::size_t>& chosen) {
  std::vector<T> some;
  for (const std::size_t i : chosen) some.push_back(all[i]);
  return some;
}

constexpr std::size_t kFolds = 5;
constexpr double kFitShare = 50.0;  // progress of one fit, in replicates

// The requests outside a fold.
std::vector<RecordedRequest> without_fold(const std::vector<RecordedRequest>& requests, std::size_t fold) {
  std::vector<RecordedRequest> others;
  for (std::size_t i = 0; i < requests.size(); ++i)
    if (i % kFolds != fold) others.push_back(requests[i]);
  return others;
}

// The part of the report that needs no fit.
FitReport report_of(const std::vector<RecordedRequest>& requests, const std::vector<Length>& lengths) {
  FitReport report;
  report.requests = requests.size();
  double rounds = 0.0;
  for (const RecordedRequest& request : requests) {
    for (const RecordedRound& round : request.rounds) report.draft_length = std::max(report.draft_length, round.drafted);
    rounds += static_cast<double>(request.rounds.size());
  }
  double tokens = 0.0;
  for (const auto& [least, most, cut] : lengths) tokens += 0.5 * static_cast<double>(least + most);
  const auto n = static_cast<double>(requests.size());
  report.tokens = static_cast<std::uint64_t>(std::llround(tokens / n));
  report.rounds = static_cast<std::uint64_t>(std::llround(rounds / n));
  report.cut_by_rounds = lengths.front().rounds > 0;
  report.tokens_per_round = tokens_per_round(requests);
  const report::Estimate estimate = tokens_per_round_estimate(requests);
  report.tokens_per_round_error = estimate.error;
  report.tokens_per_round_freedom = estimate.freedom;
  report.short_length = report.draft_length / 2;
  return report;
}

// Chooses the process to use and the process to trust beyond the record. scores: [process][request], log scores of held-out
// requests; `judged`: positions of the whole record.
void choose_processes(FitReport& report, const std::vector<std::vector<double>>& scores, double judged) {
  const auto n = static_cast<double>(report.requests);
  const auto missed = [&](const ProcessReport& one) {
    if (one.predicted.empty()) return std::abs(one.extrapolated - report.tokens_per_round);
    double squares = 0.0;
    for (const HeldOutPrediction& at : one.predicted) squares += at.relative_error() * at.relative_error();
    return squares;
  };
  for (std::size_t f = 0; f < report.processes.size(); ++f)
    if (missed(report.processes[f]) < missed(report.processes[report.nearest])) report.nearest = f;
  const bool all_rejected =
      std::all_of(report.processes.begin(), report.processes.end(), [](const ProcessReport& one) { return one.rejected(); });
  const auto usable = [&](const ProcessReport& one) { return all_rejected || !one.rejected(); };
  std::size_t best = report.processes.size();
  for (std::size_t f = 0; f < report.processes.size(); ++f)
    if (usable(report.processes[f]) &&
        (best == report.processes.size() || report.processes[f].held_out > report.processes[best].held_out))
      best = f;
  report.best = best;
  for (std::size_t f = report.processes.size(); f-- > 0;) {
    ProcessReport& one = report.processes[f];
    double squares = 0.0;
    const double mean = (report.processes[best].held_out - one.held_out) * judged / n;  // per request
    for (std::size_t i = 0; i < report.requests; ++i) squares += std::pow(scores[best][i] - scores[f][i] - mean, 2);
    one.behind_best = report.processes[best].held_out - one.held_out;
    one.behind_error = std::sqrt(squares * n / (n - 1.0)) / judged;
    const bool simpler = one.model.parameters() < report.processes[report.best].model.parameters();
    if (simpler && usable(one) && one.behind_best <= one.behind_error) report.best = f;
  }
}

}  // namespace

bool ProcessReport::rejected() const {
  constexpr double kLevel = 0.01 / static_cast<double>(kStatistics);
  return std::min({p_by_depth, p_accepted, p_runs, p_requests}) < kLevel;
}

FitReport fit_processes(const std::vector<RecordedRequest>& requests, const FitRun& run) {
  constexpr std::array kProcesses = {
      Process::requests_and_regimes, Process::regimes_by_depth, Process::regimes,
      Process::kept_state,           Process::by_depth,         Process::constant};  // the slowest first
  const std::vector<Length> lengths = lengths_of(requests);
  FitReport report = report_of(requests, lengths);
  double judged = 0.0;
  for (const RecordedRequest& request : requests) judged += static_cast<double>(judged_positions(request));
  const std::vector<std::size_t> checked = spread_choice(requests.size(), kMostChecked);
  report.checked = checked.size();
  const std::vector<RecordedRequest> checked_requests = some_of(requests, checked);
  const std::vector<Length> checked_lengths = some_of(lengths, checked);

  constexpr std::size_t kFits = kFolds + 1;  // fits per process; the last uses all requests
  Workers workers(run, static_cast<double>(kProcesses.size()) * (static_cast<double>(kFits + 1) * kFitShare + kReplicates));
  std::array<std::array<FittedProcess, kFits>, kProcesses.size()> models;
  workers.each(kProcesses.size() * kFits, kFitShare, [&](std::size_t i) {
    models[i / kFits][i % kFits] = fit_best_size(kProcesses[i / kFits], without_fold(requests, i % kFits), run.stop);
  });
  // Fits to the short drafts alone, with the number of states that all data prefer.
  std::array<FittedProcess, kProcesses.size()> from_short;
  workers.each(kProcesses.size(), kFitShare, [&](std::size_t f) {
    if (report.short_length > 0)
      from_short[f] = fit_process(kProcesses[f], models[f][kFolds].start.size(), requests, report.short_length, run.stop);
  });
  std::vector<std::vector<double>> scores;
  for (std::size_t f = kProcesses.size(); f-- > 0 && !workers.stopped();) {
    ProcessReport one;
    one.model = models[f][kFolds];
    one.log_likelihood = likelihood(one.model, requests);
    scores.emplace_back();
    for (std::size_t i = 0; i < requests.size(); ++i) scores.back().push_back(models[f][i % kFolds].log_likelihood(requests[i]));
    one.held_out = std::accumulate(scores.back().begin(), scores.back().end(), 0.0) / judged;
    bootstrap(one, checked_requests, checked_lengths, report.draft_length, run.seed, workers);
    if (report.short_length > 0) extrapolate(one, from_short[f], report, lengths, run.seed);
    for (const RecordedLength& other : run.held_out) {
      const double recorded = tokens_per_round(other.requests);
      const rng::Key key =
          rng::make_key(run.seed, rng::hash_text(fmt::format("at {} {}", other.draft_length, to_text(one.model.process))));
      one.predicted.push_back({other.draft_length, recorded, tokens_per_round_estimate(other.requests).error,
                               foretell(one.model, other.draft_length, lengths_of(other.requests), key)});
    }
    report.processes.push_back(std::move(one));
  }
  if (workers.stopped()) {
    report.processes.clear();
    return report;
  }
  choose_processes(report, scores, judged);
  return report;
}

}  // namespace specsim::fit
