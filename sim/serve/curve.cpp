#include "sim/serve/curve.h"

#include "sim/base/error.h"
#include "sim/report/csv.h"
#include "sim/report/intervals.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace specsim::serve {

const char* load_name(Load load) { return load == Load::rate ? "rate" : "concurrency"; }

ServeExperiment at_load(const ServeExperiment& experiment, Load load, double value, const std::string& option) {
  ServeExperiment one = experiment;
  one.arrivals = load == Load::rate ? experiment.arrivals->with_rate(value)
                                    : experiment.arrivals->with_concurrency(static_cast<std::uint32_t>(value));
  if (!one.arrivals)
    throw BadInput({option, 0, 0}, fmt::format("the arrivals have no {}, allowed: a process that has one", load_name(load)));
  return one;
}

std::vector<CurvePoint> load_curve(const ServeExperiment& experiment, Load load, const std::vector<double>& values, bool both,
                                   SweepRunner& runner, const std::string& option) {
  std::vector<ServeExperiment> points;
  std::vector<CurvePoint> curve;
  for (const double value : values) {
    const ServeExperiment one = at_load(experiment, load, value, option);
    for (const bool speculative : {false, true}) {
      if (speculative ? !experiment.speculation : experiment.speculation && !both) continue;
      curve.push_back({value, speculative, {}});
      points.push_back(speculative ? one : without_speculation(one));
    }
  }
  std::vector<std::vector<Summary>> summaries = runner.run(points);
  for (std::size_t i = 0; i < curve.size(); ++i) curve[i].replications = std::move(summaries[i]);
  return curve;
}

CurveFigure figure(const CurvePoint& point, double (*of)(const Summary&)) {
  std::vector<double> samples;
  for (const Summary& summary : point.replications)
    if (const double value = of(summary); !std::isnan(value)) samples.push_back(value);
  if (samples.empty()) return {NAN, NAN};
  const report::Estimate mean = report::mean_of(samples);
  return {mean.value, report::half_width(mean)};
}

std::string curve_csv(const std::vector<CurvePoint>& curve, Load load) {
  struct Interval {
    const char* name;
    double (*of)(const Summary&);
  };
  static const Interval kIntervals[] = {{"mean_ttft_ms", [](const Summary& s) { return s.ttft_ms.mean; }},
                                        {"p99_ttft_ms", [](const Summary& s) { return s.ttft_ms.p99; }},
                                        {"mean_tpot_ms", [](const Summary& s) { return s.tpot_ms.mean; }},
                                        {"p99_tpot_ms", [](const Summary& s) { return s.tpot_ms.p99; }},
                                        {"output_throughput", [](const Summary& s) { return s.output_throughput; }},
                                        {"request_goodput", [](const Summary& s) { return s.request_goodput; }},
                                        {"p99_e2el_ms", [](const Summary& s) { return s.e2el_ms.p99; }}};
  std::string text;
  for (const CurvePoint& point : curve) {
    std::vector<std::string> fields = {report::csv_real(point.load), point.speculative ? "1" : "0",
                                       std::to_string(point.replications.size())};
    std::vector<std::string> header = {load_name(load), "speculative", "replications"};
    std::vector<std::pair<std::string, double>> sums;
    for (const Summary& summary : point.replications) {
      const auto columns = summary_columns(summary);
      if (sums.empty())
        sums = columns;
      else
        for (std::size_t i = 0; i < columns.size(); ++i) sums[i].second += columns[i].second;
    }
    for (const auto& [name, sum] : sums) {
      header.push_back(name);
      fields.push_back(report::csv_real(sum / static_cast<double>(point.replications.size())));
    }
    for (const Interval& one : kIntervals) {
      header.push_back(std::string(one.name) + "_half_width");
      fields.push_back(report::csv_real(figure(point, one.of).half_width));
    }
    if (text.empty()) text = report::csv_line(header) + "\n";
    text += report::csv_line(fields) + "\n";
  }
  return text;
}

namespace {

struct Pair {
  const CurvePoint* plain;
  const CurvePoint* speculative;
};

// "up to 12", "at every load that was tried", "at none of them"; by whether it pays at each load.
std::string up_to(const std::vector<Pair>& pairs, const std::vector<bool>& pays, Load load) {
  if (std::all_of(pays.begin(), pays.end(), [](bool yes) { return yes; })) return "at every load tried";
  if (std::none_of(pays.begin(), pays.end(), [](bool yes) { return yes; })) return "at no load tried";
  const auto first_not = static_cast<std::size_t>(std::find(pays.begin(), pays.end(), false) - pays.begin());
  const bool once = std::none_of(pays.begin() + static_cast<std::ptrdiff_t>(first_not), pays.end(), [](bool yes) { return yes; });
  if (once)
    return fmt::format("up to {} {:g}, no longer at {:g}", load_name(load), pairs[first_not - 1].plain->load,
                       pairs[first_not].plain->load);
  std::string list;
  for (std::size_t i = 0; i < pairs.size(); ++i)
    if (pays[i]) list += fmt::format("{}{:g}", list.empty() ? "" : ", ", pairs[i].plain->load);
  return fmt::format("at {} {}", load_name(load), list);
}

// Replication by replication, since both meet the same requests: what speculation adds to a figure.
CurveFigure difference(const Pair& pair, double (*of)(const Summary&)) {
  std::vector<double> samples;
  for (std::size_t i = 0; i < pair.plain->replications.size(); ++i)
    samples.push_back(of(pair.speculative->replications[i]) - of(pair.plain->replications[i]));
  const report::Estimate mean = report::mean_of(samples);
  return {mean.value, report::half_width(mean)};
}

// The loads at which the interval of the difference holds zero; "" where there are none, or no intervals.
std::string undecided(const std::vector<Pair>& pairs, double (*of)(const Summary&), Load load) {
  std::string list;
  for (const Pair& pair : pairs) {
    const CurveFigure one = difference(pair, of);
    if (!std::isnan(one.half_width) && std::abs(one.mean) <= one.half_width)
      list += fmt::format("{}{:g}", list.empty() ? "" : ", ", pair.plain->load);
  }
  return list.empty() ? "" : fmt::format(" (within the noise of the replications at {} {})", load_name(load), list);
}

// What is said of output throughput. At a rate that both keep up with they emit what the clients ask for, whatever the server: a
// difference there is how soon the last request ends.
std::string throughput_line(const std::vector<Pair>& pairs, Load load) {
  const auto throughput = [](const Summary& s) { return s.output_throughput; };
  std::vector<Pair> limited;
  for (const Pair& pair : pairs)
    if (load != Load::rate || overloaded(*pair.plain) || overloaded(*pair.speculative)) limited.push_back(pair);
  if (limited.empty()) return "both keep up with every rate tried: output throughput is what the clients ask for";
  std::vector<bool> more;
  for (const Pair& pair : limited)
    more.push_back(figure(*pair.speculative, throughput).mean > figure(*pair.plain, throughput).mean);
  return (limited.size() < pairs.size() ? "where one of them is overloaded, speculation raises output throughput "
                                        : "speculation raises output throughput ") +
         up_to(limited, more, load) + undecided(limited, throughput, load);
}

}  // namespace

bool overloaded(const CurvePoint& point) {
  return figure(point, [](const Summary& s) { return s.overloaded || !s.stable ? 1.0 : 0.0; }).mean > 0.5;
}

std::vector<std::string> verdict(const std::vector<CurvePoint>& curve, Load load) {
  std::vector<Pair> pairs;
  for (std::size_t i = 0; i + 1 < curve.size(); ++i)
    if (!curve[i].speculative && curve[i + 1].speculative) pairs.push_back({&curve[i], &curve[i + 1]});
  std::vector<std::string> lines;
  if (!pairs.empty()) {
    std::vector<bool> faster;
    const auto tpot = [](const Summary& s) { return s.tpot_ms.mean; };
    for (const Pair& pair : pairs) faster.push_back(figure(*pair.speculative, tpot).mean < figure(*pair.plain, tpot).mean);
    lines.push_back("speculation lowers the mean TPOT " + up_to(pairs, faster, load) + undecided(pairs, tpot, load));
    lines.push_back(throughput_line(pairs, load));
  }
  if (load == Load::rate)
    for (const bool speculative : {false, true}) {
      double largest = NAN;
      double overload = NAN;
      bool any = false;
      for (const CurvePoint& point : curve) {
        if (point.speculative != speculative) continue;
        any = true;
        const bool over = overloaded(point);
        if (over && std::isnan(overload)) overload = point.load;
        if (!over && std::isnan(overload)) largest = point.load;
      }
      if (any && !std::isnan(overload))
        lines.push_back(fmt::format("{}: overloaded at rate {:g}; largest rate below that keeps up: {}",
                                    speculative ? "with speculation" : "plain", overload,
                                    std::isnan(largest) ? "none of those tried" : fmt::format("{:g}", largest)));
    }
  return lines;
}

}  // namespace specsim::serve
