#include "sim/doors/cli/serve_ties.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace specsim::cli {

namespace {

using load::CurvePoint;
using serve::Summary;

double mean_of(const CurvePoint& point, double (*of)(const Summary&)) { return load::figure(point, of).mean; }

}  // namespace

std::string latency_ties(const load::ServeExperiment& experiment, const std::vector<CurvePoint>& curve, load::Load load) {
  struct Figure {
    const char* name;
    double (*of)(const Summary&);
    bool asked_for;  // at a rate that both servers keep up with, output equals demand, whatever the latencies
    std::string loads;
  };
  std::vector<Figure> figures = {{"TPOT", [](const Summary& s) { return s.tpot_ms.mean; }, false, ""},
                                 {"output throughput", [](const Summary& s) { return s.output_throughput; }, true, ""}};
  double most = 0.0;
  for (std::size_t i = 0; i + 1 < curve.size(); ++i) {
    const CurvePoint& plain = curve[i];
    const CurvePoint& own = curve[i + 1];
    if (plain.speculative || !own.speculative) continue;
    const double noise = load::comparison_error(experiment, own.replications.front(), plain.replications.front());
    for (Figure& figure : figures) {
      const bool limited = load != load::Load::rate || load::overloaded(plain) || load::overloaded(own);
      if ((figure.asked_for && !limited) || !(std::abs(std::log(mean_of(own, figure.of) / mean_of(plain, figure.of))) < noise))
        continue;
      figure.loads += fmt::format("{}{:g}", figure.loads.empty() ? "" : ", ", plain.load);
      most = std::max(most, noise);
    }
  }
  std::string text;
  for (const Figure& figure : figures)
    if (!figure.loads.empty())
      text += fmt::format("{}{} at {} {}", text.empty() ? "" : ", ", figure.name, load::load_name(load), figure.loads);
  if (text.empty()) return "";
  return fmt::format("with and without speculation tie within the error of the latency model, {:.1f} %: {}", 100.0 * most, text);
}

}  // namespace specsim::cli
