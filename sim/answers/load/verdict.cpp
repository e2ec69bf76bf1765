#include "sim/answers/load/verdict.h"

#include "sim/foundation/report/intervals.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace specsim::load {

namespace {

struct Pair {
  const CurvePoint* plain;
  const CurvePoint* speculative;
};

// "up to 12", "at every load that was tried", "at none of them", given whether speculation pays at each load.
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

// The change of a figure by speculation, replication by replication, since both servers meet the same requests.
CurveFigure difference(const Pair& pair, double (*of)(const serve::Summary&)) {
  std::vector<double> samples;
  for (std::size_t i = 0; i < pair.plain->replications.size(); ++i)
    samples.push_back(of(pair.speculative->replications[i]) - of(pair.plain->replications[i]));
  const report::Estimate mean = report::mean_of(samples);
  return {mean.value, report::half_width(mean)};
}

// The loads at which the difference's interval contains zero; "" if there are none, or no intervals.
std::string undecided(const std::vector<Pair>& pairs, double (*of)(const serve::Summary&), Load load) {
  std::string list;
  for (const Pair& pair : pairs) {
    const CurveFigure one = difference(pair, of);
    if (!std::isnan(one.half_width) && std::abs(one.mean) <= one.half_width)
      list += fmt::format("{}{:g}", list.empty() ? "" : ", ", pair.plain->load);
  }
  return list.empty() ? "" : fmt::format(" (within the noise of the replications at {} {})", load_name(load), list);
}

// The load at which one replication's ratio of the two figures (baseline = 1) crosses 1. Linear interpolation between the
// neighbouring loads, both in logarithms; the first or last load if it never crosses. `rises`: speculation pays if the ratio is
// below 1.
double crossing_of(const std::vector<Pair>& pairs, std::size_t replication, double (*of)(const serve::Summary&), bool rises) {
  double before = NAN;
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    const double ratio = of(pairs[i].speculative->replications[replication]) / of(pairs[i].plain->replications[replication]);
    const double loss = (rises ? 1.0 : -1.0) * std::log(ratio);
    if (std::isnan(loss)) continue;
    if (loss > 0.0) {
      if (std::isnan(before)) return pairs[i].plain->load;
      const double from = std::log(pairs[i - 1].plain->load);
      return std::exp(from + before / (before - loss) * (std::log(pairs[i].plain->load) - from));
    }
    before = loss;
  }
  return pairs.back().plain->load;
}

// "; the curves cross at rate 52.1 ± 1.3" if speculation pays up to some load and not at the next; "" otherwise.
std::string crossing(const std::vector<Pair>& pairs, const std::vector<bool>& pays, double (*of)(const serve::Summary&),
                     bool rises, Load load) {
  if (!pays.front() || pays.back() || !std::is_sorted(pays.rbegin(), pays.rend())) return "";
  std::vector<double> each;
  for (std::size_t i = 0; i < pairs.front().plain->replications.size(); ++i) each.push_back(crossing_of(pairs, i, of, rises));
  const report::Estimate mean = report::mean_of(each);
  // The loads around the crossing, whose ratios determine it.
  const auto after = static_cast<std::size_t>(std::find(pays.begin(), pays.end(), false) - pays.begin());
  bool told = true;
  for (const std::size_t i : {after - 1, after})
    told = told && waits_measurable(*pairs[i].plain) && waits_measurable(*pairs[i].speculative);
  return fmt::format("; the curves cross at {} {}", load_name(load),
                     with_interval(mean.value, load != Load::rate || told ? report::half_width(mean) : NAN));
}

// The line on output throughput. At a rate that both servers keep up with, output throughput is what the clients ask for,
// whatever the server. A difference there only reflects when the last request ends.
std::string throughput_line(const std::vector<Pair>& pairs, Load load) {
  const auto throughput = [](const serve::Summary& s) { return s.output_throughput; };
  std::vector<Pair> limited;
  for (const Pair& pair : pairs)
    if (load != Load::rate || overloaded(*pair.plain) || overloaded(*pair.speculative)) limited.push_back(pair);
  if (limited.empty()) return "both keep up with every rate tried: output throughput equals the clients' demand";
  std::vector<bool> more;
  for (const Pair& pair : limited)
    more.push_back(figure(*pair.speculative, throughput).mean > figure(*pair.plain, throughput).mean);
  return (limited.size() < pairs.size() ? "if one of them is overloaded, speculation raises output throughput "
                                        : "speculation raises output throughput ") +
         up_to(limited, more, load) + undecided(limited, throughput, load) + crossing(limited, more, throughput, false, load);
}

// The largest rate that one of the two servers completes, and the first rate of the curve above it. "" without such points.
std::string largest_stable(const std::vector<CurvePoint>& curve, bool speculative) {
  double largest = NAN;
  double overload = NAN;
  const CurvePoint* any = nullptr;
  for (const CurvePoint& point : curve) {
    if (point.speculative != speculative) continue;
    any = &point;
    const bool over = overloaded(point);
    if (over && !(overload <= point.load)) overload = point.load;
    if (!over && !(largest >= point.load)) largest = point.load;
  }
  if (any == nullptr) return "";
  const std::string who = speculative ? "with speculation: " : "plain: ";
  if (std::isnan(any->capacity.value)) {
    if (std::isnan(overload)) return "";
    return fmt::format("{}overloaded at rate {:g}; largest rate tried that keeps up: {}", who, overload,
                       largest < overload ? fmt::format("{:g}", largest) : "none");
  }
  return fmt::format("{}capacity {} requests/s (largest stable rate){}", who,
                     with_interval(any->capacity.value, report::half_width(any->capacity)),
                     std::isnan(overload) ? "" : fmt::format("; overloaded at rate {:g}", overload));
}

// The loads at which clients sent for too short a time. Excludes overloaded servers, since no time is long enough for them.
std::string too_short(const std::vector<CurvePoint>& curve, Load load) {
  std::size_t needed = 0;
  std::string list;
  double last = NAN;
  for (const CurvePoint& point : curve) {
    if (point.too_short == 0) continue;
    needed = std::max(needed, point.too_short);
    if (last != point.load) list += fmt::format("{}{:g}", list.empty() ? "" : ", ", point.load);
    last = point.load;
  }
  if (list.empty()) return "";
  return fmt::format(
      "run too short for steady state at {} {}: use --requests {} or "
      "more",
      load_name(load), list, needed);
}

}  // namespace

std::string with_interval(double value, double half_width) {
  return std::isnan(half_width) ? fmt::format("{:.4g}", value) : fmt::format("{:.4g} ± {:.2g}", value, half_width);
}

std::vector<std::string> verdict(const std::vector<CurvePoint>& curve, Load load) {
  std::vector<Pair> pairs;
  for (std::size_t i = 0; i + 1 < curve.size(); ++i)
    if (!curve[i].speculative && curve[i + 1].speculative) pairs.push_back({&curve[i], &curve[i + 1]});
  std::vector<std::string> lines;
  if (!pairs.empty()) {
    std::vector<bool> faster;
    const auto tpot = [](const serve::Summary& s) { return s.tpot_ms.mean; };
    for (const Pair& pair : pairs) faster.push_back(figure(*pair.speculative, tpot).mean < figure(*pair.plain, tpot).mean);
    lines.push_back("speculation lowers the mean TPOT " + up_to(pairs, faster, load) + undecided(pairs, tpot, load) +
                    crossing(pairs, faster, tpot, true, load));
    lines.push_back(throughput_line(pairs, load));
  }
  if (load == Load::rate)
    for (const bool speculative : {false, true}) lines.push_back(largest_stable(curve, speculative));
  lines.push_back(too_short(curve, load));
  std::erase(lines, "");
  return lines;
}

}  // namespace specsim::load
