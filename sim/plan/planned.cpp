#include "sim/plan/planned.h"

#include "sim/judge/rows.h"
#include "sim/plan/schedule.h"
#include "sim/report/csv.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace specsim::plan {

namespace {

constexpr std::uint64_t kDefaultRounds = 200000;

}  // namespace

void check_placements(const std::vector<const spec::Cell*>& cells) {
  for (const spec::Cell* cell : cells) {
    if (!cell->pricing)
      throw BadInput(cell->places.config,
                     fmt::format("{} names no cost, allowed: cost: {{model: NAME, ...}}, which a plan weighs drafts against",
                                 cell->experiment));
    if (cell->placement && !cell->placement->setting.placement->passes_one_after_the_other())
      throw BadInput(cell->places.placement_kind,
                     fmt::format("placement {}, allowed: serial or none, which is what a plan prices; specsim run "
                                 "compares placements",
                                 config::quote_for_message(cell->placement->entry->info.name)));
  }
}

std::vector<Planned> plan_cells(const std::vector<const spec::Cell*>& cells, const PlanningOptions& options) {
  std::vector<Planned> planned;
  std::map<std::string, AcceptanceCurve> kept;  // [what the counts depend on]
  for (const spec::Cell* cell : cells) {
    Planned own{cell, {}, {}};
    if (options.own) {
      own.curve = *options.own;
    } else {
      const std::uint64_t rounds = options.rounds > 0 ? options.rounds : std::min(cell->rounds, kDefaultRounds);
      AcceptanceCurve& curve = kept[cell->simulation_key];
      if (curve.tokens_per_round.empty() && cells.size() > 1) curve = predicted_acceptance(*cell, options.longest);
      if (curve.tokens_per_round.empty()) curve = simulated_acceptance(*cell, options.longest, rounds);
      own.curve = curve;
    }
    own.plan = make_plan(cell->cost(), cell->workload, own.curve);
    planned.push_back(std::move(own));
    if (options.progress) options.progress(static_cast<double>(planned.size()), static_cast<double>(cells.size()));
  }
  return planned;
}

std::vector<std::string> axes_of(const std::vector<Planned>& planned) {
  std::vector<std::string> axes;
  for (const Planned& one : planned)
    for (const auto& [path, value] : one.cell->axes)
      if (std::find(axes.begin(), axes.end(), path) == axes.end()) axes.push_back(path);
  return axes;
}

std::vector<std::string> axis_values(const spec::Cell& cell, const std::vector<std::string>& axes) {
  std::vector<std::string> values(axes.size());
  for (const auto& [path, value] : cell.axes)
    values[static_cast<std::size_t>(std::find(axes.begin(), axes.end(), path) - axes.begin())] = value;
  return values;
}

std::string plan_csv(const std::vector<Planned>& planned) {
  const std::vector<std::string> axes = axes_of(planned);
  std::vector<std::string> header = {"cell"};
  header.insert(header.end(), axes.begin(), axes.end());
  for (const char* name : {"draft_length", "tokens_per_round", "plain_ms", "draft_ms", "verify_ms", "overhead_ms", "round_ms",
                           "tokens_per_second", "speedup", "best"})
    header.emplace_back(name);
  report::Csv file(header);
  for (std::size_t i = 0; i < planned.size(); ++i) {
    const std::vector<std::string> values = axis_values(*planned[i].cell, axes);
    for (const PlanPoint& p : planned[i].plan.points) {
      std::vector<std::string> fields = {std::to_string(i)};
      fields.insert(fields.end(), values.begin(), values.end());
      fields.push_back(std::to_string(p.draft_length));
      for (const double x :
           {p.tokens_per_round, 1e3 * p.time.plain.total(), 1e3 * p.time.draft.total(), 1e3 * p.time.verify.total(),
            1e3 * p.time.overhead, 1e3 * p.time.total(), p.tokens_per_second, p.speedup})
        fields.push_back(report::csv_real(x));
      fields.emplace_back(p.draft_length == planned[i].plan.best ? "1" : "0");
      file.add(fields);
    }
  }
  return file.text();
}

std::string waterfall_csv(const std::vector<Planned>& planned) {
  report::Csv file({"cell", "draft_length", "step", "ms", "speedup_after"});
  for (std::size_t i = 0; i < planned.size(); ++i) {
    const Plan& plan = planned[i].plan;
    judge::add_waterfall({std::to_string(i), std::to_string(plan.best)}, plan.best_point().time,
                         plan.best_point().tokens_per_round, file);
  }
  return file.text();
}

std::string map_csv(const std::vector<MapCell>& cells) {
  report::Csv file({"batch", "context", "alpha", "best_draft_length", "speedup", "break_even_alpha", "regime"});
  for (const MapCell& cell : cells)
    file.add({fmt::format("{:g}", cell.batch), fmt::format("{:g}", cell.context), fmt::format("{:g}", cell.alpha),
              cell.known() ? std::to_string(cell.best) : "", cell.known() ? report::csv_real(cell.speedup) : "",
              cell.known() && cell.break_even_alpha <= 1.0 ? report::csv_real(cell.break_even_alpha) : "", to_text(cell.regime)});
  return file.text();
}

const std::vector<std::string>& plan_file_names() {
  static const std::vector<std::string> names = {"plan.csv", "waterfall.csv", "map.csv", "own_map.csv"};
  return names;
}

std::vector<std::pair<std::string, std::string>> plan_files(const std::vector<Planned>& planned, int longest, unsigned threads) {
  std::vector<std::pair<std::string, std::string>> files = {{"plan.csv", plan_csv(planned)},
                                                            {"waterfall.csv", waterfall_csv(planned)}};
  const cost::CostModel& cost = planned[0].cell->cost();
  if (planned.size() > 1 || !cost.in_seconds()) return files;
  std::vector<double> alphas;
  for (int i = 6; i <= 19; ++i) alphas.push_back(0.05 * i);
  const std::vector<double> batches = doubling(1, 512);
  const std::vector<double> contexts = doubling(512, 131072);
  files.emplace_back("map.csv", map_csv(make_map(cost, batches, contexts, alphas, longest, threads)));
  files.emplace_back("own_map.csv", map_csv(make_own_map(cost, batches, contexts, planned[0].curve, threads)));
  return files;
}

}  // namespace specsim::plan
