// specsim plan: which draft length, when not to speculate, and the flags to start a server with.
#include "sim/base/output.h"
#include "sim/base/whole_file.h"
#include "sim/cli/command.h"
#include "sim/cli/numbers.h"
#include "sim/cli/options.h"
#include "sim/cli/plan_report.h"
#include "sim/cli/workload_options.h"
#include "sim/plan/advice.h"
#include "sim/plan/planned.h"

#include <fmt/format.h>

#include <filesystem>
#include <optional>

namespace specsim::cli {

namespace po = boost::program_options;

namespace {

using plan::AcceptanceCurve;

// What a plan without a config starts from.
std::string base_config() {
  return fmt::format(R"(experiment: plan
pair: {{vocab: 2, target: {{family: uniform}}, draft: {{family: uniform}}}}
decode: {{drafter: {{kind: chain, draft_length: 1}}}}
cost: {{model: roofline, hardware: {}, target: {}, draft: {}}}
workload: {{batch: 1, context_length: {}}}
)",
                     kDefaultHardware, kDefaultTarget, kDefaultDraft, kDefaultContext);
}

// The acceptance that options state; nothing where the config's distributions are to say it.
std::optional<AcceptanceCurve> stated_acceptance(const Options& options, int longest) {
  std::vector<std::string> given;
  for (const char* name : {"alpha", "position-rates", "conditional-rates", "mean-acceptance-length", "acceptance-rate", "trace"})
    if (options.has(name)) given.push_back(std::string("--") + name);
  if (given.size() > 1)
    throw BadInput({given[1], 0, 0}, fmt::format("given together with {}, allowed: one figure of acceptance", given[0]));
  const bool one_length = options.has("mean-acceptance-length") || options.has("acceptance-rate");
  if (options.has("at-draft-length") != one_length)
    throw BadInput({"--at-draft-length", 0, 0},
                   "allowed with --mean-acceptance-length or --acceptance-rate, which need it: the draft length that they were "
                   "measured at");
  const auto at = [&] {
    return static_cast<int>(read_integer(options.text("at-draft-length"), "--at-draft-length", config::between(1, kMaxDraftLength)));
  };
  if (options.has("alpha")) return plan::constant_acceptance(read_share(options.text("alpha"), "--alpha"), longest);
  if (options.has("position-rates"))
    return plan::unconditional_acceptance(read_shares(options.text("position-rates"), "--position-rates"), longest,
                                          {"--position-rates", 0, 0});
  if (options.has("conditional-rates"))
    return plan::conditional_acceptance(read_shares(options.text("conditional-rates"), "--conditional-rates"), longest);
  if (options.has("mean-acceptance-length"))
    return plan::length_acceptance(read_number(options.text("mean-acceptance-length"), "--mean-acceptance-length",
                                               config::between(1, kMaxDraftLength + 1.0)),
                                   at(), longest, {"--mean-acceptance-length", 0, 0});
  if (options.has("acceptance-rate"))
    return plan::rate_acceptance(read_share(options.text("acceptance-rate"), "--acceptance-rate"), at(), longest);
  if (options.has("trace")) return plan::trace_acceptance(options.text("trace"), longest);
  return std::nullopt;
}

std::vector<spec::Experiment> experiments_of(const Options& options, const std::vector<std::string>& files) {
  std::vector<std::string> sets = named_sets(options, files.empty());
  sets.emplace_back("decode.drafter.draft_length=1");  // the plan looks for it itself, whatever the config sweeps
  const std::string seed = options.has("seed") ? options.text("seed") : "";
  if (!files.empty()) return read_experiments(files, sets, seed);
  Diagnostics diagnostics;
  std::vector<spec::Experiment> experiments;
  experiments.push_back(spec::read_experiment(config::parse_text(base_config(), "the built-in plan", diagnostics),
                                              "the built-in plan", read_overrides(sets, seed, diagnostics), diagnostics));
  diagnostics.throw_if_any();
  return experiments;
}

// Writes the files of --out and returns their names.
std::string write_files(const std::string& out, const std::vector<plan::Planned>& planned, int longest, unsigned threads) {
  make_directories(out);
  write_whole_file(out + "/plan.csv", plan::plan_csv(planned));
  write_whole_file(out + "/waterfall.csv", plan::waterfall_csv(planned));
  const cost::CostModel& cost = planned[0].cell->cost();
  if (planned.size() > 1 || !cost.in_seconds()) {
    std::error_code none;
    for (const char* name : {"/map.csv", "/own_map.csv"}) std::filesystem::remove(out + name, none);  // of another plan
    return "plan.csv, waterfall.csv";
  }
  std::vector<double> alphas;
  for (int i = 6; i <= 19; ++i) alphas.push_back(0.05 * i);
  const std::vector<double> batches = plan::doubling(1, 512);
  const std::vector<double> contexts = plan::doubling(512, 131072);
  write_whole_file(out + "/map.csv", plan::map_csv(plan::make_map(cost, batches, contexts, alphas, longest, threads)));
  write_whole_file(out + "/own_map.csv", plan::map_csv(plan::make_own_map(cost, batches, contexts, planned[0].curve, threads)));
  return "plan.csv, waterfall.csv, map.csv, own_map.csv";
}

}  // namespace

ExitCode plan_command(const std::vector<std::string>& arguments) {
  po::options_description description;
  const auto text = [] { return po::value<std::string>(); };
  add_workload_options(description);
  description.add_options()("batch", text(), "sequences decoded together; 1,4,16: a plan for each")(
      "alpha", text(), "acceptance: the same at every position")(
      "position-rates", text(), "acceptance: by position, of all rounds, as vLLM logs it (0.7,0.45,0.3 or 70%,45%,30%)")(
      "conditional-rates", text(), "acceptance: by position, given that it is reached (0.7,0.64,0.67)")(
      "mean-acceptance-length", text(), "acceptance: emitted tokens per round, bonus included")(
      "acceptance-rate", text(), "acceptance: accepted / drafted tokens, as logs show it")(
      "at-draft-length", text(), "the draft length that these two were measured at")("trace", text(), "acceptance: a JSONL trace")(
      "longest", po::value<std::string>()->default_value("16"), "longest draft length that is tried")(
      "rounds", text(), "simulated at each draft length where the config's distributions say the acceptance")(
      "out", text(), "directory for plan.csv, map.csv, own_map.csv, waterfall.csv")(
      "threads", po::value<std::string>()->default_value("0"), kThreadsHelp);
  po::variables_map values;
  if (!parse(arguments, description, "config", "specsim plan [CONFIG...] [options]",
             "  specsim plan --hardware h100-sxm --target llama-3.1-70b --tensor-parallel 4 --draft llama-3.2-1b --alpha 0.7 "
             "--batch 8\n"
             "  specsim plan --hardware a100-80gb-sxm --target llama-2-7b --draft llama-68m --position-rates 0.7,0.45,0.31 --out "
             "build/plan\n"
             "  specsim plan --hardware h100-sxm --target llama-3.1-8b --draft eagle-head-8b --acceptance-rate 54% --at-draft-length 3 "
             "--batch 1,8,64\n"
             "  specsim plan --hardware rtx-4090 --target llama-3.1-8b --draft none --mean-acceptance-length 1.8 --at-draft-length 5\n"
             "  specsim plan configs/examples/h100_8b.yaml --batch 8 --context 8192\n"
             "  specsim plan --trace accepted.jsonl --hardware h100-sxm --target llama-3.1-8b --draft llama-3.2-1b\n"
             "  scripts/plot_plan.py build/plan\n",
             values))
    return ExitCode::fine;
  const double started = wall_clock();
  const Options options(values);
  plan::PlanningOptions planning;
  planning.longest = static_cast<int>(read_integer(options.text("longest"), "--longest", config::between(1, kMaxDraftLength)));
  const unsigned threads = read_threads(options.text("threads"));
  if (options.has("rounds"))
    planning.rounds = static_cast<std::uint64_t>(read_integer(options.text("rounds"), "--rounds", config::between(1000, 1e12)));
  planning.own = stated_acceptance(options, planning.longest);
  const std::vector<std::string> files = options.texts("config");
  if (files.empty() && !planning.own)
    throw BadInput({"", 0, 0},
                   "specsim plan needs a config, whose distributions say the acceptance, or one of --alpha, --position-rates, "
                   "--conditional-rates, "
                   "--mean-acceptance-length, --acceptance-rate, --trace; specsim plan --help shows examples");
  const std::vector<spec::Experiment> experiments = experiments_of(options, files);
  const std::string out = options.has("out") ? options.text("out") : "";
  if (options.has("out")) guard_results(out);
  std::vector<const spec::Cell*> cells;
  for (const spec::Experiment& one : experiments)
    for (const spec::Cell& cell : one.cells) cells.push_back(&cell);
  plan::check_placements(cells);
  print_warnings(cells);

  Progress progress;
  if (cells.size() > 1) planning.progress = [&](double done, double all) { progress.show(done, all); };
  const std::vector<plan::Planned> planned = plan::plan_cells(cells, planning);
  progress.finish();
  if (const std::string assumed = files.empty() ? assumptions(options) : ""; !assumed.empty())
    print_output("ASSUMED, for nothing else was said: {}\n", assumed);
  if (planned.size() == 1)
    print_advice(planned[0], plan::advise(planned[0].cell->cost(), planned[0].cell->workload, planned[0].curve));
  else
    print_planned(planned);
  if (options.has("out")) {
    const std::string names = write_files(out, planned, planning.longest, threads);
    write_whole_file(out + "/manifest.yaml", report::manifest_text(new_manifest(experiments, threads, started)));
    print_output("wrote {}/{}, manifest.yaml; scripts/plot_plan.py {} draws them\n", out, names, out);
  }
  return ExitCode::fine;
}

}  // namespace specsim::cli
