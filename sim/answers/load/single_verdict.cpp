#include "sim/answers/load/single_verdict.h"

#include "sim/answers/load/sweep_runner.h"
#include "sim/answers/plan/gain.h"
#include "sim/foundation/base/check.h"
#include "sim/foundation/report/intervals.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>
#include <vector>

namespace specsim::load {

namespace {

constexpr double kPicosecondsPerMillisecond = 1e9;

// Milliseconds of each request on both servers, in the order of sending.
struct Paired {
  std::vector<double> plain;
  std::vector<double> speculative;
};

struct Change {
  double before = 0.0;
  double after = 0.0;
  double half_width = 0.0;  // half of the 95 % interval of after / before, from the requests alone; NaN: unknown
  [[nodiscard]] bool falls() const { return after < before; }
  // The gain of speculation, with the latency model's error.
  [[nodiscard]] plan::Gain gain(double latency_error) const {
    const double sampled = std::isnan(half_width) ? 0.0 : half_width / report::kIn95 * before / after;
    return {std::log(before / after), std::hypot(sampled, latency_error)};
  }
};

// A request that is slow on both servers moves both means, but hardly their ratio r. So the error of r is that of the mean of
// (speculative - r plain) / (mean plain), from means over stretches of requests (the delta method).
Change change_of(const Paired& pairs) {
  Change change;
  for (std::size_t i = 0; i < pairs.plain.size(); ++i) {
    change.before += pairs.plain[i];
    change.after += pairs.speculative[i];
  }
  change.before /= static_cast<double>(pairs.plain.size());
  change.after /= static_cast<double>(pairs.plain.size());
  std::vector<double> off;
  for (std::size_t i = 0; i < pairs.plain.size(); ++i)
    off.push_back((pairs.speculative[i] - change.after / change.before * pairs.plain[i]) / change.before);
  change.half_width = serve::batch_intervals(off).mean_half_width;
  return change;
}

std::string percent(double before, double after) { return fmt::format("{:+.1f} %", 100.0 * (after / before - 1.0)); }

// Four digits, without exponents.
std::string digits(double value) { return value >= 1000.0 ? fmt::format("{:.0f}", value) : fmt::format("{:.4g}", value); }

// "27.4 -> 12.8 ms (-53.2 %, 95 %: -58.1 to -47.6)".
std::string in_words(const Change& change, double latency_error, const char* unit = "ms") {
  const plan::Gain gain = change.gain(latency_error);
  return fmt::format("{} -> {} {} ({}, 95 %: {:+.1f} to {:+.1f})", digits(change.before), digits(change.after), unit,
                     percent(change.before, change.after), 100.0 * (1.0 / gain.high() - 1.0), 100.0 * (1.0 / gain.low() - 1.0));
}

// "output tokens/s 1186 -> 1254 (+5.7 %, 95 %: -19.4 to +38.7)".
std::string throughput_in_words(const serve::Summary& plain, const serve::Summary& speculative, const plan::Gain& gain) {
  return fmt::format("output tokens/s {} -> {} ({}, 95 %: {:+.1f} to {:+.1f})", digits(plain.output_throughput),
                     digits(speculative.output_throughput), percent(plain.output_throughput, speculative.output_throughput),
                     100.0 * (gain.low() - 1.0), 100.0 * (gain.high() - 1.0));
}

// The verdicts by TPOT and by throughput: one if they agree, else the settled one first.
std::string in_both(const plan::Gain& tpot, const plan::Gain& throughput) {
  const plan::Verdict first = plan::verdict_of(tpot);
  const plan::Verdict second = plan::verdict_of(throughput);
  if (first == second) return plan::verdict_text(tpot);
  if (first == plan::Verdict::pays && second == plan::Verdict::does_not_pay) return "pays in TPOT but not in throughput";
  if (first == plan::Verdict::does_not_pay && second == plan::Verdict::pays) return "pays in throughput but not in TPOT";
  return first == plan::Verdict::too_close
             ? fmt::format("{} in throughput, by TPOT {}", plan::verdict_text(throughput), plan::verdict_text(tpot))
             : fmt::format("{} in TPOT, by throughput {}", plan::verdict_text(tpot), plan::verdict_text(throughput));
}

// Of a job: the makespan decides. One job has one makespan, so the interval by requests is that of the TPOT's ratio.
std::string job_verdict(const serve::Summary& plain, const serve::Summary& speculative, const Change& tpot,
                        double latency_error) {
  const Change makespan{plain.duration_s, speculative.duration_s, tpot.half_width};
  const std::string whether = plan::verdict_text(makespan.gain(latency_error));
  return fmt::format("speculation for this job {}{}: makespan {}, {}", whether.starts_with("too") ? "is " : "", whether,
                     in_words(makespan, latency_error, "s"),
                     throughput_in_words(plain, speculative, makespan.gain(latency_error)));
}

}  // namespace

RunSpread spread_of_runs(const ServeExperiment& experiment, const ServeOptions& options, const serve::Summary& speculative,
                         const serve::Summary* plain) {
  const serve::ServerPolicyEntry* const policy =
      experiment.speculation ? serve::server_policies().find(experiment.speculation->policy_name) : nullptr;
  if (policy == nullptr || !policy->settles) return {};
  constexpr double kT4 = 2.776;  // Student's t of four degrees of freedom, at 97.5 %
  struct Figure {
    std::vector<double> logs;
    [[nodiscard]] double half_width() const {
      double mean = 0.0;
      for (const double one : logs) mean += one / static_cast<double>(logs.size());
      double squares = 0.0;
      for (const double one : logs) squares += (one - mean) * (one - mean);
      return kT4 * std::sqrt(squares / static_cast<double>(logs.size() - 1));
    }
  };
  Figure ttft;
  Figure tpot;
  Figure ttft_change;
  Figure tpot_change;
  const auto add = [&](const serve::Summary& own, const serve::Summary* other) {
    ttft.logs.push_back(std::log(own.ttft_ms.mean));
    tpot.logs.push_back(std::log(own.tpot_ms.mean));
    if (other == nullptr) return;
    ttft_change.logs.push_back(std::log(own.ttft_ms.mean / other->ttft_ms.mean));
    tpot_change.logs.push_back(std::log(own.tpot_ms.mean / other->tpot_ms.mean));
  };
  add(speculative, plain);
  for (int run = 1; run < kRunsOfSpread; ++run) {
    const ServeExperiment one = replicated(experiment, static_cast<std::size_t>(run));
    const arrivals::RequestTrace workload = make_requests(one, options.stop);
    if (options.stop != nullptr && *options.stop) return {};
    const ServeResult own = serve(one, workload, options);
    if (own.result.interrupted) return {};
    std::optional<ServeResult> other;
    if (plain != nullptr) other = serve(without_speculation(one), workload, options);
    if (other && other->result.interrupted) return {};
    add(own.summary, other ? &other->summary : nullptr);
  }
  return {ttft.half_width(), tpot.half_width(), plain != nullptr ? ttft_change.half_width() : 0.0,
          plain != nullptr ? tpot_change.half_width() : 0.0};
}

void widen(serve::Summary& summary, const RunSpread& spread) {
  const auto widened = [&](serve::Latency which, double half) {
    double& own = summary.spreads[static_cast<std::size_t>(which)].mean_half_width;
    if (half > 0.0 && !(own >= half)) own = half;
  };
  widened(serve::Latency::ttft, spread.ttft * summary.ttft_ms.mean);
  widened(serve::Latency::tpot, spread.tpot * summary.tpot_ms.mean);
}

std::string single_verdict(const serve::SimulationResult& plain, const serve::Summary& plain_summary,
                           const serve::SimulationResult& speculative, const serve::Summary& speculative_summary, bool closed,
                           double latency_error, const RunSpread& spread) {
  SPECSIM_CHECK(plain.sequences.size() == speculative.sequences.size(), "{} and {} requests", plain.sequences.size(),
                speculative.sequences.size());
  Paired ttft;
  Paired tpot;
  for (std::size_t i = std::max(plain_summary.warm_up_requests, speculative_summary.warm_up_requests); i < plain.sequences.size();
       ++i) {
    const serve::Sequence& a = plain.sequences[i];
    const serve::Sequence& b = speculative.sequences[i];
    if (a.status != serve::Status::finished || b.status != serve::Status::finished) continue;
    const auto ms = [](arrivals::Picoseconds from, arrivals::Picoseconds to) {
      return static_cast<double>(to - from) / kPicosecondsPerMillisecond;
    };
    ttft.plain.push_back(ms(a.sent, a.first_token));
    ttft.speculative.push_back(ms(b.sent, b.first_token));
    if (a.emitted < 2 || b.emitted < 2) continue;
    tpot.plain.push_back(ms(a.first_token, a.last_token) / (a.emitted - 1.0));
    tpot.speculative.push_back(ms(b.first_token, b.last_token) / (b.emitted - 1.0));
  }
  if (tpot.plain.empty()) return "";
  Change first = change_of(ttft);
  Change each = change_of(tpot);
  const auto widened = [](Change& change, double relative) {
    const double half = relative * change.after / change.before;
    if (half > 0.0 && !(change.half_width >= half)) change.half_width = half;
  };
  widened(first, spread.ttft_change);
  widened(each, spread.tpot_change);
  if (!std::isnan(plain_summary.last_tenth_s)) return job_verdict(plain_summary, speculative_summary, each, latency_error);
  const bool limited = closed || plain_summary.overloaded || speculative_summary.overloaded || !plain_summary.stable ||
                       !speculative_summary.stable;
  const Change tokens{1.0 / plain_summary.output_throughput, 1.0 / speculative_summary.output_throughput, each.half_width};
  const std::string whether =
      limited ? in_both(each.gain(latency_error), tokens.gain(latency_error)) : plan::verdict_text(each.gain(latency_error));
  const std::string throughput = limited ? throughput_in_words(plain_summary, speculative_summary, tokens.gain(latency_error))
                                         : "both servers keep up with the load";
  const std::string waiting = limited && !closed ? "TTFT grows without limit on an overloaded server"
                                                 : fmt::format("mean TTFT {}", in_words(first, latency_error));
  return fmt::format("speculation at this load {}{}: mean TPOT {}, {}; {}", whether.starts_with("too") ? "is " : "", whether,
                     in_words(each, latency_error), waiting, throughput);
}

}  // namespace specsim::load
