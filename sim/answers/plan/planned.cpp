#include "sim/answers/plan/planned.h"

#include "sim/answers/plan/schedule.h"
#include "sim/experiments/judge/rows.h"
#include "sim/experiments/spec/axes.h"
#include "sim/foundation/report/csv.h"
#include "sim/foundation/report/intervals.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

namespace specsim::plan {

namespace {

constexpr std::uint64_t kDefaultRounds = 200000;

// A line of plan.csv: one draft length of a cell's plan.
struct PlanLine {
  const spec::Cell* cell = nullptr;
  std::size_t index = 0;  // of the cell among the planned ones
  PlanPoint point;
  bool best = false;
};

double bound(double value, double error, double side) { return value * std::exp(side * report::kIn95 * error); }
double energy_error(const PlanPoint& point) { return std::hypot(point.time_error, point.acceptance_error, point.power_error); }
std::string known(double value) { return std::isnan(value) ? "" : report::csv_real(value); }
double rate_error(const PlanPoint& point) { return std::hypot(point.time_error, point.acceptance_error); }

std::vector<report::Column<PlanLine>> plan_columns(const std::vector<std::string>& axes) {
  using Line = PlanLine;
  using report::csv_real;
  std::vector<report::Column<Line>> all = {
      {"cell", "1", "number of the cell, from 0", [](const Line& line) { return std::to_string(line.index); }}};
  const std::vector<report::Column<Line>> of_axes = judge::axis_columns<Line>(axes);
  all.insert(all.end(), of_axes.begin(), of_axes.end());
  const std::vector<report::Column<Line>> figures = {
      {"draft_length", "tokens", "tokens drafted per round; 0: plain decoding",
       [](const Line& line) { return std::to_string(line.point.draft_length); }},
      {"tokens_per_round", "tokens", "tokens that a round emits, mean",
       [](const Line& line) { return csv_real(line.point.tokens_per_round); }},
      {"plain_ms", "ms",
       "time of a target pass over one token, the time per token of plain decoding; 1000 if the cost model "
       "has only ratios, and the other times in proportion",
       [](const Line& line) { return csv_real(1e3 * line.point.time.plain.total()); }},
      {"draft_ms", "ms", "time of a round's draft passes",
       [](const Line& line) { return csv_real(1e3 * line.point.time.draft.total()); }},
      {"verify_ms", "ms", "time of the target's pass over the draft",
       [](const Line& line) { return csv_real(1e3 * line.point.time.verify.total()); }},
      {"overhead_ms", "ms", "time of a round outside its passes",
       [](const Line& line) { return csv_real(1e3 * line.point.time.overhead); }},
      {"round_ms", "ms", "draft_ms + verify_ms + overhead_ms",
       [](const Line& line) { return csv_real(1e3 * line.point.time.total()); }},
      {"round_ms_low", "ms", "lower bound of its 95 % interval",
       [](const Line& line) { return csv_real(1e3 * bound(line.point.time.total(), line.point.time_error, -1.0)); }},
      {"round_ms_high", "ms", "upper bound",
       [](const Line& line) { return csv_real(1e3 * bound(line.point.time.total(), line.point.time_error, 1.0)); }},
      {"tokens_per_second", "1/s", "tokens per second of the whole batch",
       [](const Line& line) { return csv_real(line.point.tokens_per_second); }},
      {"tokens_per_second_low", "1/s", "lower bound of its 95 % interval",
       [](const Line& line) { return csv_real(bound(line.point.tokens_per_second, rate_error(line.point), -1.0)); }},
      {"tokens_per_second_high", "1/s", "upper bound",
       [](const Line& line) { return csv_real(bound(line.point.tokens_per_second, rate_error(line.point), 1.0)); }},
      {"watts_per_gpu", "W", "power of each GPU's board over the round; empty if it is not known",
       [](const Line& line) { return known(line.point.watts); }},
      {"joules_per_token", "J", "energy of all GPUs' boards per output token",
       [](const Line& line) { return known(line.point.joules_per_token); }},
      {"joules_per_token_low", "J", "lower bound of its 95 % interval",
       [](const Line& line) { return known(bound(line.point.joules_per_token, energy_error(line.point), -1.0)); }},
      {"joules_per_token_high", "J", "upper bound",
       [](const Line& line) { return known(bound(line.point.joules_per_token, energy_error(line.point), 1.0)); }},
      {"dollars_per_million_tokens", "$",
       "cost of all GPUs per million output tokens; empty if the cost of a GPU-hour is not known",
       [](const Line& line) { return known(line.point.dollars_per_million); }},
      {"dollars_per_million_tokens_low", "$", "lower bound of its 95 % interval",
       [](const Line& line) { return known(bound(line.point.dollars_per_million, rate_error(line.point), -1.0)); }},
      {"dollars_per_million_tokens_high", "$", "upper bound",
       [](const Line& line) { return known(bound(line.point.dollars_per_million, rate_error(line.point), 1.0)); }},
      {"speedup", "1", "tokens_per_round plain_ms / round_ms", [](const Line& line) { return csv_real(line.point.speedup); }},
      {"speedup_low", "1", "lower bound of its 95 % interval, without errors that plain decoding shares",
       [](const Line& line) { return csv_real(line.point.gain.low()); }},
      {"speedup_high", "1", "upper bound", [](const Line& line) { return csv_real(line.point.gain.high()); }},
      {"pays_probability", "1", "probability that the speedup is above 1",
       [](const Line& line) { return csv_real(line.point.gain.pays()); }},
      {"best", "0 or 1", "whether it is the cell's best draft length", [](const Line& line) { return line.best ? "1" : "0"; }}};
  all.insert(all.end(), figures.begin(), figures.end());
  return all;
}

std::string plan_csv(const std::vector<Planned>& planned) {
  std::vector<PlanLine> lines;
  for (std::size_t i = 0; i < planned.size(); ++i)
    for (const PlanPoint& point : planned[i].plan.points)
      lines.push_back({planned[i].cell, i, point, point.draft_length == planned[i].plan.best});
  return report::csv(plan_columns(spec::axes_of(planned)), lines);
}

std::vector<report::Column<judge::WaterfallLine>> waterfall_columns() {
  using Line = judge::WaterfallLine;
  std::vector<report::Column<Line>> all = {
      {"cell", "1", "number of the cell, from 0", [](const Line& line) { return std::to_string(line.index); }},
      {"draft_length", "tokens", "the cell's best draft length",
       [](const Line& line) { return std::to_string(line.draft_length); }}};
  const auto& step = judge::waterfall_step_columns();
  all.insert(all.end(), step.begin(), step.end());
  return all;
}

std::string waterfall_csv(const std::vector<Planned>& planned) {
  std::vector<judge::WaterfallLine> lines;
  for (std::size_t i = 0; i < planned.size(); ++i) {
    const Plan& plan = planned[i].plan;
    for (cost::WaterfallStep& step : cost::waterfall(plan.best_point().time, plan.best_point().tokens_per_round))
      lines.push_back({planned[i].cell, i, plan.best, std::move(step)});
  }
  return report::csv(waterfall_columns(), lines);
}

const std::vector<report::Column<MapCell>>& map_columns() {
  using report::csv_real;
  static const std::vector<report::Column<MapCell>> list = {
      {"batch", "sequences", "sequences decoded together", [](const MapCell& cell) { return fmt::format("{:g}", cell.batch); }},
      {"context", "tokens", "tokens that each sequence has cached",
       [](const MapCell& cell) { return fmt::format("{:g}", cell.context); }},
      {"alpha", "1", "acceptance rate of every position; in own_map.csv the equivalent one at the best draft length",
       [](const MapCell& cell) { return fmt::format("{:g}", cell.alpha); }},
      {"best_draft_length", "tokens",
       "the best draft length; 0: plain decoding; empty if the regime is does_not_fit or not_covered",
       [](const MapCell& cell) { return cell.known() ? std::to_string(cell.best) : ""; }},
      {"speedup", "1", "speedup over plain decoding, at the best draft length",
       [](const MapCell& cell) { return cell.known() ? csv_real(cell.speedup) : ""; }},
      {"break_even_alpha", "1", "the smallest alpha at which some draft length reaches speedup 1; empty if none does",
       [](const MapCell& cell) { return cell.known() && cell.break_even_alpha <= 1.0 ? csv_real(cell.break_even_alpha) : ""; }},
      {"regime", "",
       "pays, or why drafting does not: low_acceptance, expensive_draft, compute_bound; or does_not_fit (into memory) and "
       "not_covered "
       "(outside the latency tables)",
       [](const MapCell& cell) { return to_text(cell.regime); }}};
  return list;
}

}  // namespace

void check_placements(const std::vector<const spec::Cell*>& cells) {
  for (const spec::Cell* cell : cells) {
    if (!cell->cost_choice)
      throw BadInput(cell->places.config,
                     fmt::format("{} names no cost, allowed: cost: {{model: NAME, ...}}, which a plan needs to compare drafts",
                                 cell->experiment));
    if (cell->placement && !cell->placement->setting.placement->passes_are_sequential())
      throw BadInput(cell->places.placement_kind,
                     fmt::format("placement {}, allowed: serial or none, which a plan covers; specsim run "
                                 "compares placements",
                                 config::quote_for_message(cell->placement->entry->info.name)));
  }
}

std::vector<Planned> plan_cells(const std::vector<const spec::Cell*>& cells, const PlanningOptions& options) {
  std::vector<Planned> planned;
  std::map<std::string, AcceptanceCurve> kept;  // [settings that determine the counts]
  for (const spec::Cell* cell : cells) {
    Planned own{cell, {}, {}};
    if (options.own) {
      own.curve = options.own->at(cell->workload.context);
    } else {
      const std::uint64_t rounds = options.rounds > 0 ? options.rounds : std::min(cell->rounds, kDefaultRounds);
      AcceptanceCurve& curve = kept[cell->simulation_key];
      if (curve.tokens_per_round.empty() && cells.size() > 1) curve = predicted_acceptance(*cell, options.longest);
      if (curve.tokens_per_round.empty()) curve = simulated_acceptance(*cell, options.longest, rounds);
      own.curve = curve;
      own.curve.assumed = cell->assumed_acceptance;
    }
    own.curve.end_at(cell->cost().most_drafts());
    own.plan = make_plan(cell->cost(), cell->workload, own.curve);
    add_errors(cell->cost(), cell->workload, own.curve, own.plan);
    planned.push_back(std::move(own));
    if (options.progress) options.progress(static_cast<double>(planned.size()), static_cast<double>(cells.size()));
  }
  return planned;
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
  longest = std::min(longest, cost.most_drafts());
  std::vector<double> alphas;
  for (int i = 6; i <= 19; ++i) alphas.push_back(0.05 * i);
  const std::vector<double> batches = doubling(1, 512);
  const std::vector<double> contexts = doubling(512, 131072);
  files.emplace_back("map.csv", report::csv(map_columns(), make_map(cost, batches, contexts, alphas, longest, threads)));
  files.emplace_back("own_map.csv", report::csv(map_columns(), make_own_map(cost, batches, contexts, planned[0].curve, threads)));
  return files;
}

std::vector<report::FileInfo> plan_file_infos() {
  return {
      {"plan.csv of plan", report::column_infos(plan_columns({})), "`cell` is followed by one column per sweep axis (its path)."},
      {"waterfall.csv of plan", report::column_infos(waterfall_columns())},
      {"map.csv and own_map.csv of plan", report::column_infos(map_columns())}};
}

}  // namespace specsim::plan
