// specsim plan: which draft length, when not to speculate, and the flags to start a server with.
#include "sim/base/output.h"
#include "sim/base/whole_file.h"
#include "sim/cli/command.h"
#include "sim/cli/numbers.h"
#include "sim/cli/options.h"
#include "sim/cli/plan_report.h"
#include "sim/cli/workload_options.h"
#include "sim/judge/rows.h"
#include "sim/plan/planner.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <map>

namespace specsim::cli {

namespace po = boost::program_options;

namespace {

using plan::AcceptanceCurve;
using plan::MapCell;
using plan::Plan;
using plan::PlanPoint;

// What a plan without a config starts from.
constexpr const char* kBase = R"(experiment: plan
pair: {vocab: 2, target: {family: uniform}, draft: {family: uniform}}
decode: {drafter: {kind: chain, draft_length: 1}}
cost: {model: roofline, hardware: h100-sxm, target: llama-3.1-8b, draft: llama-3.2-1b}
workload: {batch: 1, context_length: 2048}
)";

constexpr std::uint64_t kDefaultRounds = 200000;

// The acceptance that options state; nothing where the config's distributions are to say it.
bool stated_acceptance(const Options& options, int longest, AcceptanceCurve& curve) {
  std::vector<std::string> given;
  for (const char* name : {"alpha", "position-rates", "conditional-rates", "mean-acceptance-length", "trace"})
    if (options.has(name)) given.push_back(std::string("--") + name);
  if (given.size() > 1)
    throw BadInput({given[1], 0, 0}, fmt::format("given together with {}, allowed: one figure of acceptance", given[0]));
  if (options.has("at-draft-length") != options.has("mean-acceptance-length"))
    throw BadInput({"--at-draft-length", 0, 0},
                   "allowed with --mean-acceptance-length, which needs it: the draft length that it was measured at");
  const config::Interval share = config::between(0, 1);
  if (options.has("alpha"))
    curve = plan::constant_acceptance(read_number(options.text("alpha"), "--alpha", share), longest);
  else if (options.has("position-rates"))
    curve = plan::unconditional_acceptance(read_numbers(options.text("position-rates"), "--position-rates", share), longest,
                                           {"--position-rates", 0, 0});
  else if (options.has("conditional-rates"))
    curve = plan::conditional_acceptance(read_numbers(options.text("conditional-rates"), "--conditional-rates", share), longest);
  else if (options.has("mean-acceptance-length"))
    curve = plan::length_acceptance(
        read_number(options.text("mean-acceptance-length"), "--mean-acceptance-length",
                    config::between(1, kMaxDraftLength + 1.0)),
        static_cast<int>(read_integer(options.text("at-draft-length"), "--at-draft-length", config::between(1, kMaxDraftLength))),
        longest, {"--mean-acceptance-length", 0, 0});
  else if (options.has("trace"))
    curve = plan::trace_acceptance(options.text("trace"), longest);
  return !given.empty();
}

std::string plan_csv(const std::vector<std::vector<std::string>>& prefix, const std::vector<std::string>& axes,
                     const std::vector<Plan>& plans) {
  std::string text = "cell";
  for (const std::string& axis : axes) text += "," + axis;
  text += ",draft_length,tokens_per_round,plain_ms,draft_ms,verify_ms,overhead_ms,round_ms,tokens_per_second,speedup,best\n";
  for (std::size_t i = 0; i < plans.size(); ++i) {
    for (const PlanPoint& p : plans[i].points) {
      text += std::to_string(i);
      for (const std::string& value : prefix[i]) text += "," + value;
      text += fmt::format(",{},{},{},{},{},{},{},{},{},{}\n", p.draft_length, judge::real_text(p.tokens_per_round),
                          judge::real_text(1e3 * p.time.plain.total()), judge::real_text(1e3 * p.time.draft.total()),
                          judge::real_text(1e3 * p.time.verify.total()), judge::real_text(1e3 * p.time.overhead),
                          judge::real_text(1e3 * p.time.total()), judge::real_text(p.tokens_per_second),
                          judge::real_text(p.speedup), p.draft_length == plans[i].best ? 1 : 0);
    }
  }
  return text;
}

std::string waterfall_csv(const std::vector<Plan>& plans) {
  std::string text = "cell,draft_length,step,ms,speedup_after\n";
  for (std::size_t i = 0; i < plans.size(); ++i)
    text += judge::waterfall_lines(fmt::format("{},{}", i, plans[i].best), plans[i].best_point().time,
                                   plans[i].best_point().tokens_per_round);
  return text;
}

std::string map_csv(const std::vector<MapCell>& cells) {
  std::string text = "batch,context,alpha,best_draft_length,speedup,break_even_alpha,regime\n";
  for (const MapCell& cell : cells) {
    text += fmt::format("{:g},{:g},{:g},", cell.batch, cell.context, cell.alpha);
    if (cell.known())
      text += fmt::format("{},{},{},", cell.best, judge::real_text(cell.speedup),
                          cell.break_even_alpha <= 1.0 ? judge::real_text(cell.break_even_alpha) : "");
    else
      text += ",,,";
    text += fmt::format("{}\n", to_text(cell.regime));
  }
  return text;
}

}  // namespace

ExitCode plan_command(const std::vector<std::string>& arguments) {
  po::options_description description;
  const auto text = [] { return po::value<std::string>(); };
  add_workload_options(description);
  description.add_options()("batch", text(), "sequences decoded together")("alpha", text(),
                                                                           "acceptance: the same at every position")(
      "position-rates", text(), "acceptance: by position, of all rounds, as vLLM logs it (0.7,0.45,0.3)")(
      "conditional-rates", text(), "acceptance: by position, given that it is reached (0.7,0.64,0.67)")(
      "mean-acceptance-length", text(), "acceptance: emitted tokens per round, bonus included")(
      "at-draft-length", text(), "the draft length that it was measured at")("trace", text(), "acceptance: a JSONL trace")(
      "longest", po::value<std::string>()->default_value("16"), "longest draft length that is tried")(
      "rounds", text(), "simulated at each draft length where the config's distributions say the acceptance")(
      "out", text(), "directory for plan.csv, map.csv, waterfall.csv")("threads", po::value<std::string>()->default_value("0"),
                                                                       kThreadsHelp);
  po::variables_map values;
  if (!parse(arguments, description, "config", "specsim plan [CONFIG...] [options]",
             "  specsim plan --hardware h100-sxm --target llama-3.1-70b --tensor-parallel 4 --draft llama-3.2-1b --alpha 0.7 "
             "--batch 8\n"
             "  specsim plan --hardware a100-80gb-sxm --target llama-2-7b --draft llama-68m --position-rates 0.7,0.45,0.31 --out "
             "build/plan\n"
             "  specsim plan configs/examples/h100_8b.yaml --batch 8 --context 8192\n"
             "  specsim plan --trace accepted.jsonl --hardware h100-sxm --target llama-3.1-8b --draft llama-3.2-1b\n"
             "  scripts/plot_plan.py build/plan\n",
             values))
    return ExitCode::fine;
  const double started = wall_clock();
  const Options options(values);
  const auto longest = static_cast<int>(read_integer(options.text("longest"), "--longest", config::between(1, kMaxDraftLength)));
  const unsigned threads = read_threads(options.text("threads"));
  const auto rounds_asked =
      options.has("rounds")
          ? static_cast<std::uint64_t>(read_integer(options.text("rounds"), "--rounds", config::between(1000, 1e12)))
          : 0;
  AcceptanceCurve stated;
  const bool is_stated = stated_acceptance(options, longest, stated);
  const std::vector<std::string> files = options.texts("config");
  if (files.empty() && !is_stated)
    throw BadInput({"", 0, 0},
                   "specsim plan needs a config, whose distributions say the acceptance, or one of --alpha, --position-rates, "
                   "--conditional-rates, "
                   "--mean-acceptance-length, --trace; specsim plan --help shows examples");

  std::vector<std::string> sets = named_sets(options, files.empty());
  sets.emplace_back("decode.drafter.draft_length=1");  // the plan looks for it itself, whatever the config sweeps
  std::vector<spec::Experiment> experiments;
  if (files.empty()) {
    Diagnostics diagnostics;
    experiments.push_back(
        spec::read_experiment(config::parse_text(kBase, "the built-in plan", diagnostics), "the built-in plan",
                              read_overrides(sets, options.has("seed") ? options.text("seed") : "", diagnostics), diagnostics));
    diagnostics.throw_if_any();
  } else {
    experiments = read_experiments(files, sets, options.has("seed") ? options.text("seed") : "");
  }
  std::vector<const spec::Cell*> cells;
  for (const spec::Experiment& one : experiments)
    for (const spec::Cell& cell : one.cells) cells.push_back(&cell);

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
  const std::string out = options.has("out") ? options.text("out") : "";
  if (options.has("out")) guard_results(out);
  print_warnings(cells);
  const bool single = cells.size() == 1;
  std::vector<Plan> plans;
  std::vector<AcceptanceCurve> curves;
  std::map<std::string, AcceptanceCurve> kept;  // by distributions: cells that differ in prices share one
  Progress progress;
  for (const spec::Cell* cell : cells) {
    AcceptanceCurve curve = stated;
    if (!is_stated) {
      const std::uint64_t rounds = rounds_asked > 0 ? rounds_asked : std::min(cell->rounds, kDefaultRounds);
      AcceptanceCurve& of_distributions = kept[cell->simulation_key];
      if (of_distributions.tokens_per_round.empty() && !single) of_distributions = plan::predicted_acceptance(*cell, longest);
      if (of_distributions.tokens_per_round.empty()) of_distributions = plan::simulated_acceptance(*cell, longest, rounds);
      curve = of_distributions;
    }
    plans.push_back(plan::make_plan(cell->cost(), cell->workload, curve));
    curves.push_back(std::move(curve));
    if (!single) progress.show(static_cast<double>(plans.size()), static_cast<double>(cells.size()));
  }
  progress.finish();

  std::vector<std::string> axes;
  for (const spec::Cell* cell : cells)
    for (const auto& [path, value] : cell->axes)
      if (std::find(axes.begin(), axes.end(), path) == axes.end()) axes.push_back(path);
  std::vector<std::vector<std::string>> prefix;
  for (const spec::Cell* cell : cells) {
    std::vector<std::string> own(axes.size());
    for (const auto& [path, value] : cell->axes)
      own[static_cast<std::size_t>(std::find(axes.begin(), axes.end(), path) - axes.begin())] = judge::csv_text(value);
    prefix.push_back(std::move(own));
  }
  if (single) {
    print_plan(*cells[0], plans[0], curves[0]);
  } else {
    constexpr std::size_t kShown = 60;
    print_output("{:>5}  {:>12}  {:>12}  {:>8}  {}\n", "cell", "draft_length", "tokens/round", "speedup", fmt::join(axes, ", "));
    for (std::size_t i = 0; i < std::min(plans.size(), kShown); ++i)
      print_output("{:>5}  {:>12}  {:>12.4f}  {:>8.4f}  {}\n", i, plans[i].best > 0 ? std::to_string(plans[i].best) : "none",
                   plans[i].best_point().tokens_per_round, plans[i].best_point().speedup, fmt::join(prefix[i], ", "));
    if (plans.size() > kShown) print_output("  ... and {} more, in plan.csv with --out\n", plans.size() - kShown);
  }
  if (options.has("out")) {
    make_directories(out);
    write_whole_file(out + "/plan.csv", plan_csv(prefix, axes, plans));
    write_whole_file(out + "/waterfall.csv", waterfall_csv(plans));
    std::string files_written = "plan.csv, waterfall.csv";
    if (single && cells[0]->cost().in_seconds()) {
      std::vector<double> alphas;
      for (int i = 6; i <= 19; ++i) alphas.push_back(0.05 * i);
      write_whole_file(out + "/map.csv", map_csv(plan::make_map(cells[0]->cost(), doubling(1, 512), doubling(512, 131072), alphas,
                                                                longest, threads)));
      files_written += ", map.csv";
    } else {
      std::error_code none;
      std::filesystem::remove(out + "/map.csv", none);  // of another plan
    }
    write_whole_file(out + "/manifest.yaml", report::manifest_text(new_manifest(experiments, threads, started)));
    print_output("wrote {}/{}, manifest.yaml; scripts/plot_plan.py {} draws them\n", out, files_written, out);
  }
  return ExitCode::fine;
}

}  // namespace specsim::cli
