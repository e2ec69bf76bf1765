#include "sim/serve/slo.h"

#include "sim/report/csv.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace specsim::serve {

namespace {

constexpr double kResolution = 64.0;  // of the distance between two loads of a curve

Slo limits(double ttft_ms, double tpot_ms, double percentile) {
  Slo slo;
  slo.ttft_ms = ttft_ms;
  slo.tpot_ms = tpot_ms;
  slo.percentile = percentile;
  return slo;
}

// Attainment as DistServe has it: the share of requests that keep both.
Slo jointly(Slo slo) {
  slo.jointly = true;
  return slo;
}

bool keeps_slo(const std::vector<Summary>& replications) {
  return std::all_of(replications.begin(), replications.end(), [](const Summary& one) { return one.meets_slo; });
}

// The loads between which the SLO ends, by the loads that were run: the largest of the first ones that keep it, and the next.
LoadLimit bracket(const std::vector<double>& values, const std::vector<bool>& kept) {
  std::vector<std::size_t> order(values.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return values[a] < values[b]; });
  LoadLimit limit;
  for (const std::size_t i : order) {
    if (!kept[i]) {
      limit.fails = values[i];
      break;
    }
    limit.keeps = values[i];
  }
  return limit;
}

}  // namespace

const std::vector<SloPreset>& slo_presets() {
  static const char* const kMlperf = "MLPerf Inference rules (mlcommons/inference_policies, inference_rules.adoc, 2026)";
  static const char* const kDistserve = "DistServe, arXiv 2401.09670";
  static const std::vector<SloPreset> presets = {{"mlperf:llama3.1-8b-server", limits(2000, 100, 99), kMlperf},
                                                 {"mlperf:llama3.1-8b-interactive", limits(500, 30, 99), kMlperf},
                                                 {"mlperf:llama2-70b-server", limits(2000, 200, 99), kMlperf},
                                                 {"mlperf:llama2-70b-interactive", limits(450, 40, 99), kMlperf},
                                                 {"mlperf:llama3.1-405b-server", limits(6000, 175, 99), kMlperf},
                                                 {"mlperf:llama3.1-405b-interactive", limits(4500, 80, 99), kMlperf},
                                                 {"mlperf:deepseek-r1-server", limits(2000, 80, 99), kMlperf},
                                                 {"mlperf:deepseek-r1-interactive", limits(1500, 15, 99), kMlperf},
                                                 {"mlperf:gpt-oss-120b-server", limits(3000, 80, 99), kMlperf},
                                                 {"mlperf:gpt-oss-120b-interactive", limits(2000, 20, 99), kMlperf},
                                                 {"distserve:opt-13b-sharegpt", jointly(limits(200, 100, 90)), kDistserve}};
  return presets;
}

const SloPreset* find_slo_preset(const std::string& name) {
  for (const SloPreset& one : slo_presets())
    if (one.name == name) return &one;
  return nullptr;
}

LoadLimit largest_load(const ServeExperiment& experiment, Load load, const std::vector<double>& values,
                       const std::vector<bool>& kept, SweepRunner& runner, const std::string& option) {
  LoadLimit limit = bracket(values, kept);
  if (std::isnan(limit.keeps) || std::isnan(limit.fails)) return limit;
  const double near = load == Load::concurrency ? 1.0 : (limit.fails - limit.keeps) / kResolution;
  while (limit.fails - limit.keeps > near * (1.0 + 1e-9) && !runner.stopped()) {
    double middle = 0.5 * (limit.keeps + limit.fails);
    if (load == Load::concurrency) middle = std::floor(middle);
    (keeps_slo(runner.run({at_load(experiment, load, middle, option)}).front()) ? limit.keeps : limit.fails) = middle;
  }
  return limit;
}

std::vector<LengthLimit> limits_by_length(const ServeExperiment& experiment, Load load, const std::vector<double>& values,
                                          const std::vector<int>& lengths, SweepRunner& runner, const std::string& option) {
  std::vector<LengthLimit> limits;
  for (const int length : lengths) {
    const ServeExperiment own = length > 0 ? with_fixed_length(experiment, length) : without_speculation(experiment);
    std::vector<ServeExperiment> points;
    for (const double value : values) points.push_back(at_load(own, load, value, option));
    std::vector<bool> kept;
    for (const std::vector<Summary>& replications : runner.run(points)) kept.push_back(keeps_slo(replications));
    if (runner.stopped()) return limits;
    limits.push_back({length, largest_load(own, load, values, kept, runner, option)});
  }
  return limits;
}

std::string limit_text(const LoadLimit& limit) {
  if (std::isnan(limit.keeps)) return "none of those tried";
  if (std::isnan(limit.fails)) return fmt::format("{:.5g}, the largest tried", limit.keeps);
  return fmt::format("{:.5g} ({:.5g} does not)", limit.keeps, limit.fails);
}

std::string limits_csv(const std::vector<LengthLimit>& limits, Load load) {
  std::string text = fmt::format("draft_length,largest_{0}_that_keeps,smallest_{0}_that_does_not\n", load_name(load));
  for (const LengthLimit& one : limits)
    text += fmt::format("{},{},{}\n", one.draft_length, report::csv_real(one.limit.keeps), report::csv_real(one.limit.fails));
  return text;
}

}  // namespace specsim::serve
