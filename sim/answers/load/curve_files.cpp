#include "sim/answers/load/curve.h"
#include "sim/foundation/report/csv.h"

#include <algorithm>
#include <array>
#include <functional>
#include <utility>

namespace specsim::load {

namespace {

using report::csv_real;

// Figures of a point that have intervals, with the meaning of their mean.
struct IntervalFigure {
  const char* name;
  CurveFigure (*of)(const CurvePoint&);
};
constexpr std::size_t kIntervals = 7;
const std::array<IntervalFigure, kIntervals>& interval_figures() {
  using Point = CurvePoint;
  static const std::array<IntervalFigure, kIntervals> list = {
      {{"mean_ttft_ms", [](const Point& point) { return mean_latency(point, serve::Latency::ttft); }},
       {"p99_ttft_ms", [](const Point& point) { return p99_latency(point, serve::Latency::ttft); }},
       {"mean_tpot_ms", [](const Point& point) { return mean_latency(point, serve::Latency::tpot); }},
       {"p99_tpot_ms", [](const Point& point) { return p99_latency(point, serve::Latency::tpot); }},
       {"output_throughput",
        [](const Point& point) { return figure(point, [](const serve::Summary& s) { return s.output_throughput; }); }},
       {"request_goodput",
        [](const Point& point) { return figure(point, [](const serve::Summary& s) { return s.request_goodput; }); }},
       {"p99_e2el_ms", [](const Point& point) { return p99_latency(point, serve::Latency::e2el); }}}};
  return list;
}

struct CurveLine {
  const CurvePoint* point = nullptr;
  std::array<CurveFigure, kIntervals> intervals{};
};

double mean_of(const CurvePoint& point, const std::function<double(const serve::Summary&)>& value) {
  double sum = value(point.replications.front());
  for (std::size_t i = 1; i < point.replications.size(); ++i) sum += value(point.replications[i]);
  return sum / static_cast<double>(point.replications.size());
}

report::Column<CurveLine> column_of(const serve::SummaryFigure& one) {
  const auto& intervals = interval_figures();
  const auto named =
      std::find_if(intervals.begin(), intervals.end(), [&](const IntervalFigure& other) { return other.name == one.name; });
  if (named == intervals.end())
    return {one.name, one.unit, one.meaning,
            [value = one.value](const CurveLine& line) { return csv_real(mean_of(*line.point, value)); }};
  return {one.name, one.unit, one.meaning, [i = static_cast<std::size_t>(named - intervals.begin())](const CurveLine& line) {
            return csv_real(line.intervals[i].mean);
          }};
}

// The first column is named after the load.
std::vector<report::Column<CurveLine>> curve_columns(const std::string& load) {
  using Line = CurveLine;
  std::vector<report::Column<Line>> columns = {
      {load, "1/s or 1", "the point's load: requests per second, or concurrent requests",
       [](const Line& line) { return csv_real(line.point->load); }},
      {"speculative", "0 or 1", "whether the server speculates",
       [](const Line& line) { return line.point->speculative ? "1" : "0"; }},
      {"replications", "1", "runs of the point; the figures after this column are means over them",
       [](const Line& line) { return std::to_string(line.point->replications.size()); }}};
  for (const serve::SummaryFigure& one : serve::summary_figures()) columns.push_back(column_of(one));
  for (std::size_t i = 0; i < kIntervals; ++i) {
    const std::string name = interval_figures()[i].name;
    columns.push_back({name + "_half_width", name.ends_with("_ms") ? "ms" : "as " + name, "half a 95 % interval of " + name,
                       [i](const Line& line) { return csv_real(line.intervals[i].half_width); }});
  }
  const std::vector<report::Column<Line>> last = {
      {"capacity", "1/s", "rate that the server completes if requests never run out; empty if unknown",
       [](const Line& line) { return csv_real(line.point->capacity.value); }},
      {"capacity_half_width", "1/s", "half a 95 % interval of capacity",
       [](const Line& line) { return csv_real(report::half_width(line.point->capacity)); }},
      {"needed_requests", "requests", "requests that a run needs; 0: it had enough",
       [](const Line& line) { return std::to_string(line.point->too_short); }}};
  columns.insert(columns.end(), last.begin(), last.end());
  return columns;
}

using NamedSummary = Summaries::value_type;
std::vector<report::Column<NamedSummary>> summary_columns() {
  std::vector<report::Column<NamedSummary>> columns = {
      {"server", "", "the server: speculative or plain", [](const NamedSummary& server) { return server.first; }}};
  for (const serve::SummaryFigure& one : serve::summary_figures())
    columns.push_back({one.name, one.unit, one.meaning,
                       [value = one.value](const NamedSummary& server) { return csv_real(value(server.second)); }});
  return columns;
}

// Figures of summary.csv that are those of a class's own requests.
std::vector<report::Column<ClassTable::value_type>> class_columns() {
  using Line = ClassTable::value_type;
  std::vector<report::Column<Line>> columns = {
      {"server", "", "the server: speculative or plain", [](const Line& line) { return line.first; }},
      {"class", "", "the class's name, or its number from 1", [](const Line& line) { return line.second.name; }}};
  for (const char* const name :
       {"requests",     "completed",    "total_input_tokens", "total_output_tokens", "slo_share",
        "mean_ttft_ms", "p50_ttft_ms",  "p99_ttft_ms",        "mean_tpot_ms",        "p50_tpot_ms",
        "p99_tpot_ms",  "mean_e2el_ms", "p50_e2el_ms",        "p99_e2el_ms",         "tokens_per_round",
        "drafted",      "accepted",     "acceptance_rate",    "preemptions",         "recomputed_tokens"}) {
    const auto& figures = serve::summary_figures();
    const auto one = std::find_if(figures.begin(), figures.end(), [&](const auto& figure) { return figure.name == name; });
    columns.push_back({one->name, one->unit, one->meaning,
                       [value = one->value](const Line& line) { return csv_real(value(line.second.summary)); }});
  }
  return columns;
}

}  // namespace

std::string classes_csv(const ClassTable& classes) { return report::csv(class_columns(), classes); }

std::string summary_csv(const Summaries& summaries) { return report::csv(summary_columns(), summaries); }

std::string curve_csv(const std::vector<CurvePoint>& curve, Load load) {
  if (curve.empty()) return "";
  std::vector<CurveLine> lines;
  for (const CurvePoint& point : curve) {
    lines.push_back({&point, {}});
    for (std::size_t i = 0; i < kIntervals; ++i) lines.back().intervals[i] = interval_figures()[i].of(point);
  }
  return report::csv(curve_columns(load_name(load)), lines);
}

std::vector<report::FileInfo> curve_infos() {
  std::vector<report::ColumnInfo> own = report::column_infos(curve_columns("rate"));
  std::erase_if(own, [](const report::ColumnInfo& column) {
    return std::any_of(serve::summary_figures().begin(), serve::summary_figures().end(),
                       [&](const serve::SummaryFigure& one) { return one.name == column.name; });
  });
  return {
      {"summary.csv of serve", report::column_infos(summary_columns())},
      {"classes.csv of serve", report::column_infos(class_columns()), "Written if acceptance has classes of requests."},
      {"curve.csv of serve", own,
       "`replications` is followed by the figures of summary.csv, means over the replications; in a sweep over concurrency the "
       "first column is `concurrency`."}};
}

}  // namespace specsim::load
