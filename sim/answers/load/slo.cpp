#include "sim/answers/load/slo.h"

#include "sim/foundation/report/csv.h"
#include "sim/foundation/report/intervals.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>
#include <utility>

namespace specsim::load {

namespace {

constexpr double kResolution = 64.0;  // the search ends at this fraction of the distance between two loads of a curve

serve::Slo limits(double ttft_ms, double tpot_ms, double percentile) {
  serve::Slo slo;
  slo.ttft_ms = ttft_ms;
  slo.tpot_ms = tpot_ms;
  slo.percentile = percentile;
  return slo;
}

// Attainment as in DistServe: the share of requests that keep both limits.
serve::Slo jointly(serve::Slo slo) {
  slo.jointly = true;
  return slo;
}

CurvePoint point_at(const ServeExperiment& experiment, double load, const report::Estimate& capacity) {
  return {load, experiment.speculation.has_value(), {}, capacity, 0};
}

// The load at which one replication's margin is zero, by linear interpolation between the loads that were run. At most the
// capacity; the first or last load if the margin never crosses zero. `tried`: by load.
double own_limit(const std::vector<CurvePoint>& tried, std::size_t replication, const serve::Slo& slo) {
  double before = NAN;
  double at = NAN;
  for (const CurvePoint& point : tried) {
    const double margin = serve::slo_margin({&point.replications[replication], 1}, slo);
    if (std::isnan(margin)) continue;
    if (margin < 0.0 || point.beyond()) {
      if (std::isnan(before)) return point.load;
      const double reached = margin < 0.0 ? at + before / (before - margin) * (point.load - at) : point.load;
      return std::isnan(point.capacity.value) ? reached : std::max(at, std::min(reached, point.capacity.value));
    }
    before = margin;
    at = point.load;
  }
  return at;
}

}  // namespace

const std::vector<SloPreset>& slo_presets() {
  // MLPerf Inference rules (mlcommons/inference_policies, inference_rules.adoc, 2026); DistServe, arXiv 2401.09670.
  static const std::vector<SloPreset> presets = {
      {"mlperf:llama3.1-8b-server", limits(2000, 100, 99)},         {"mlperf:llama3.1-8b-interactive", limits(500, 30, 99)},
      {"mlperf:llama2-70b-server", limits(2000, 200, 99)},          {"mlperf:llama2-70b-interactive", limits(450, 40, 99)},
      {"mlperf:llama3.1-405b-server", limits(6000, 175, 99)},       {"mlperf:llama3.1-405b-interactive", limits(4500, 80, 99)},
      {"mlperf:deepseek-r1-server", limits(2000, 80, 99)},          {"mlperf:deepseek-r1-interactive", limits(1500, 15, 99)},
      {"mlperf:gpt-oss-120b-server", limits(3000, 80, 99)},         {"mlperf:gpt-oss-120b-interactive", limits(2000, 20, 99)},
      {"distserve:opt-13b-sharegpt", jointly(limits(200, 100, 90))}};
  return presets;
}

const SloPreset* find_slo_preset(const std::string& name) {
  for (const SloPreset& one : slo_presets())
    if (one.name == name) return &one;
  return nullptr;
}

bool keeps_slo(const CurvePoint& point, const serve::Slo& slo) {
  return !point.beyond() && serve::slo_margin(point.replications, slo) >= 0.0;
}

LoadLimit largest_load(const ServeExperiment& experiment, Load load, std::vector<CurvePoint> tried, SweepRunner& runner,
                       const std::string& option) {
  const auto by_load = [](const CurvePoint& a, const CurvePoint& b) { return a.load < b.load; };
  std::sort(tried.begin(), tried.end(), by_load);
  LoadLimit limit;
  limit.capacity = tried.front().capacity.value;
  for (const CurvePoint& point : tried) {
    if (!keeps_slo(point, experiment.slo)) {
      limit.fails = point.load;
      break;
    }
    limit.keeps = point.load;
    limit.too_short = point.too_short;
  }
  if (!std::isnan(limit.keeps) && !std::isnan(limit.fails)) {
    const double near = load == Load::concurrency ? 1.0 : (limit.fails - limit.keeps) / kResolution;
    while (limit.fails - limit.keeps > near * (1.0 + 1e-9) && !runner.stopped()) {
      double middle = 0.5 * (limit.keeps + limit.fails);
      if (load == Load::concurrency) middle = std::floor(middle);
      std::vector<CurvePoint> point = {point_at(experiment, middle, tried.front().capacity)};
      if (point.front().beyond()) {  // no run needed
        limit.fails = middle;
        continue;
      }
      run_points(point, {at_load(experiment, load, middle, option)}, runner);
      if (runner.stopped()) return limit;
      const bool keeps = keeps_slo(point.front(), experiment.slo);
      (keeps ? limit.keeps : limit.fails) = middle;
      if (keeps) limit.too_short = point.front().too_short;
      tried.push_back(std::move(point.front()));
    }
    std::sort(tried.begin(), tried.end(), by_load);
    std::vector<double> own;
    for (std::size_t i = 0; i < tried.front().replications.size(); ++i) own.push_back(own_limit(tried, i, experiment.slo));
    const auto at = std::find_if(tried.begin(), tried.end(), [&](const CurvePoint& point) { return point.load == limit.keeps; });
    if (load != Load::rate || waits_measurable(*at)) limit.half_width = report::half_width(report::mean_of(own));
  }
  return limit;
}

double largest_load_if_slower(const ServeExperiment& experiment, Load load, const LoadLimit& limit, double factor,
                              const std::string& option, const std::atomic<bool>* stop) {
  ServeExperiment strict = experiment;
  for (std::optional<double>* const one : {&strict.slo.ttft_ms, &strict.slo.tpot_ms, &strict.slo.e2el_ms})
    if (*one) **one /= factor;
  const double of_time = load == Load::rate ? factor : 1.0;
  const auto keeps = [&](double value) {
    const double scaled = load == Load::rate ? value * of_time : std::floor(value);
    if (scaled > limit.capacity || scaled <= 0.0) return false;
    const ServeExperiment one = at_load(strict, load, scaled, option);
    ServeOptions options;
    options.stop = stop;
    const serve::Summary summary = serve(one, make_requests(one), options).summary;
    return serve::slo_margin({&summary, 1}, strict.slo) >= 0.0;
  };
  const auto stopped = [&] { return stop != nullptr && stop->load(); };
  constexpr int kWidenings = 6;
  constexpr int kHalvings = 5;
  const double stride = std::max(factor, 1.0 / factor) * std::max(factor, 1.0 / factor);
  double low = limit.keeps;
  double high = limit.keeps;
  if (factor > 1.0) {
    low /= stride;
    for (int i = 0; i < kWidenings && !stopped() && !keeps(low); ++i) {
      high = low;
      low /= stride;
    }
  } else {
    high *= stride;
    for (int i = 0; i < kWidenings && !stopped() && keeps(high); ++i) {
      low = high;
      high *= stride;
    }
  }
  for (int i = 0; i < kHalvings && !stopped(); ++i) {
    const double middle = std::sqrt(low * high);
    (keeps(middle) ? low : high) = middle;
  }
  return load == Load::rate ? low : std::floor(low);
}

void add_range(const ServeExperiment& experiment, Load load, LoadLimit& limit, const std::string& option,
               const std::atomic<bool>* stop) {
  if (std::isnan(limit.keeps) || std::isnan(limit.fails) || experiment.streamed) return;
  if (load == Load::rate && std::isnan(limit.capacity)) return;  // a short run keeps the limits at any rate
  const ServeExperiment one = at_load(experiment, load, limit.keeps, option);
  ServeOptions options;
  options.stop = stop;
  const double error = serve(one, make_requests(one), options).summary.latency_error;
  if (!(error > 0.0)) return;
  limit.low = largest_load_if_slower(experiment, load, limit, std::exp(report::kIn95 * error), option, stop);
  limit.high = largest_load_if_slower(experiment, load, limit, std::exp(-report::kIn95 * error), option, stop);
}

std::vector<LengthLimit> limits_by_length(const ServeExperiment& experiment, Load load, const std::vector<double>& values,
                                          const std::vector<int>& lengths, SweepRunner& runner, const std::string& option) {
  std::vector<LengthLimit> limits;
  for (const int length : lengths) {
    const ServeExperiment own = length > 0 ? with_fixed_length(experiment, length) : without_speculation(experiment);
    std::vector<CurvePoint> points = load_curve(own, load, values, false, runner, option);
    if (runner.stopped()) return limits;
    limits.push_back({length, largest_load(own, load, std::move(points), runner, option)});
  }
  return limits;
}

std::string limit_text(const LoadLimit& limit) {
  const std::string most = limit.fails > limit.capacity ? fmt::format("its capacity is {:.4g}", limit.capacity)
                                                        : fmt::format("{:.5g} does not", limit.fails);
  if (std::isnan(limit.keeps)) return fmt::format("none of those tried{}", limit.fails > limit.capacity ? "; " + most : "");
  if (std::isnan(limit.fails)) return fmt::format("{:.5g}, the largest tried", limit.keeps);
  return fmt::format("{:.5g}{} ({}{}){}", limit.keeps,
                     std::isnan(limit.half_width) ? "" : fmt::format(" ± {:.2g}", limit.half_width),
                     std::isnan(limit.low) ? "" : fmt::format("95 %: {:.3g} to {:.3g}; ", limit.low, limit.high), most,
                     limit.too_short == 0 ? "" : fmt::format("; run too short, at least {} requests", limit.too_short));
}

std::string best_length_text(const std::vector<LengthLimit>& limits, Load load) {
  const auto reach = [](const LengthLimit& one) {  // if all loads tried keep the SLO, the limit may be any higher load
    return std::isnan(one.limit.keeps) ? -1.0 : std::isnan(one.limit.fails) ? INFINITY : one.limit.keeps;
  };
  double most = 0.0;
  for (const LengthLimit& one : limits) most = std::max(most, reach(one));
  if (most == 0.0) return "";
  std::set<std::optional<int>> best;
  for (const LengthLimit& one : limits)
    if (reach(one) == most) best.insert(one.draft_length);
  if (best.size() > 1) best.erase(std::nullopt);  // it equals one of them, or is no better
  std::string list;
  for (const std::optional<int> length : best)
    list += (list.empty() ? "" : ", ") + (length ? std::to_string(*length) : "the config's own");
  if (!std::isinf(most)) return fmt::format("draft length that keeps the SLO up to the largest {}: {}", load_name(load), list);
  return fmt::format("draft lengths that keep the SLO at every {} tried: {}", load_name(load), list);
}

namespace {

std::vector<report::Column<LengthLimit>> limit_columns(const std::string& load) {
  using Line = LengthLimit;
  using report::csv_real;
  return {
      {"draft_length", "tokens", "draft length of policy fixed; -1: the config's own policy",
       [](const Line& line) { return std::to_string(line.draft_length.value_or(-1)); }},
      {fmt::format("largest_{}_that_keeps", load), "1/s or 1",
       "largest load found that keeps the SLO; empty: none of those tried",
       [](const Line& line) { return csv_real(line.limit.keeps); }},
      {fmt::format("smallest_{}_that_does_not", load), "1/s or 1",
       "smallest load above it that does not; empty: all loads tried keep it",
       [](const Line& line) { return csv_real(line.limit.fails); }},
      {"half_width", "1/s or 1", "half a 95 % interval of that limit, from the replications' own; empty: one replication",
       [](const Line& line) { return csv_real(line.limit.half_width); }},
      {"capacity", "1/s", "rate that the server completes, above which no load keeps the SLO; empty if unknown",
       [](const Line& line) { return csv_real(line.limit.capacity); }},
      {"low", "1/s or 1",
       "lower bound of a 95 % interval of the limit, by the error of the estimated latencies; empty: not stated, or policy fixed",
       [](const Line& line) { return csv_real(line.limit.low); }},
      {"high", "1/s or 1", "upper bound", [](const Line& line) { return csv_real(line.limit.high); }}};
}

}  // namespace

std::string limits_csv(const std::vector<LengthLimit>& limits, Load load) {
  return report::csv(limit_columns(load_name(load)), limits);
}

report::FileInfo limits_info() {
  return {"slo.csv of serve", report::column_infos(limit_columns("rate")),
          "In a sweep over concurrency the column `concurrency` replaces `rate`."};
}

}  // namespace specsim::load
