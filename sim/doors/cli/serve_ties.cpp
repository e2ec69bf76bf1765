#include "sim/doors/cli/serve_ties.h"

#include "sim/answers/plan/price_noise.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace specsim::cli {

namespace {

using load::CurvePoint;
using serve::Summary;

double mean_of(const CurvePoint& point, double (*of)(const Summary&)) { return load::figure(point, of).mean; }

double batch_of(const Summary& s) { return s.mean_batch; }
// Cached tokens of a sequence that is halfway through its output.
double context_of(const Summary& s) { return (s.prompt_tokens + 0.5 * s.output_tokens) / static_cast<double>(s.completed); }

// A round of the policy's longest drafts.
plan::RoundPrice price_of(const load::ServeExperiment& experiment, bool speculative, double batch, double context) {
  const cost::Workload workload{std::max(1.0, batch), context};
  const int drafts = speculative ? experiment.speculation->longest : 0;
  return {experiment.cost.get(), workload, drafts + 1.0, cost::round_time(*experiment.cost, workload, drafts, 0.0)};
}

plan::RoundPrice price_of(const load::ServeExperiment& experiment, const CurvePoint& point) {
  return price_of(experiment, point.speculative, mean_of(point, batch_of), mean_of(point, context_of));
}

}  // namespace

std::string price_ties(const load::ServeExperiment& experiment, const std::vector<CurvePoint>& curve, load::Load load) {
  struct Figure {
    const char* name;
    double (*of)(const Summary&);
    bool asked_for;  // what servers that keep up with a rate emit is what clients ask for, whatever the prices
    std::string loads;
  };
  std::vector<Figure> figures = {{"TPOT", [](const Summary& s) { return s.tpot_ms.mean; }, false, ""},
                                 {"output throughput", [](const Summary& s) { return s.output_throughput; }, true, ""}};
  double most = 0.0;
  for (std::size_t i = 0; i + 1 < curve.size(); ++i) {
    const CurvePoint& plain = curve[i];
    const CurvePoint& own = curve[i + 1];
    if (plain.speculative || !own.speculative) continue;
    const double noise = plan::price_noise(price_of(experiment, plain), price_of(experiment, own));
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
  return fmt::format("with and without speculation tie within the noise of the prices, {:.1f} %: {}", 100.0 * most, text);
}

std::string price_errors(const load::ServeExperiment& experiment, const Summary& own, const Summary* plain) {
  if (own.completed == 0 || (plain != nullptr && plain->completed == 0)) return "";
  const bool speculative = experiment.speculation.has_value();
  const plan::RoundPrice round = price_of(experiment, speculative, batch_of(own), context_of(own));
  const double error = plan::price_error(round);
  if (!(error > 0.0)) return "";
  if (plain == nullptr)
    return fmt::format("standard error of the prices at the mean batch: {:.1f} % of a {}", 100.0 * error,
                       speculative ? "round" : "step");
  const plan::RoundPrice step = price_of(experiment, false, batch_of(*plain), context_of(*plain));
  return fmt::format(
      "standard error of the prices at the mean batch: {:.1f} % of a round with speculation, {:.1f} % of a step without, {:.1f} "
      "% of "
      "how the two compare",
      100.0 * error, 100.0 * plan::price_error(step), 100.0 * plan::price_noise(step, round));
}

}  // namespace specsim::cli
