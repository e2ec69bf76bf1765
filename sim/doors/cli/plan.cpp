// specsim plan: which draft length, when not to speculate, and the flags to start a server with.
#include "sim/answers/plan/advice.h"
#include "sim/answers/plan/built_in.h"
#include "sim/answers/plan/planned.h"
#include "sim/doors/cli/command.h"
#include "sim/doors/cli/describe_model.h"
#include "sim/doors/cli/numbers.h"
#include "sim/doors/cli/option_partners.h"
#include "sim/doors/cli/options.h"
#include "sim/doors/cli/plan_report.h"
#include "sim/doors/cli/result_files.h"
#include "sim/doors/cli/stated_acceptance.h"
#include "sim/doors/cli/workload_options.h"
#include "sim/experiments/run/identity.h"
#include "sim/foundation/base/files_read.h"
#include "sim/foundation/base/output.h"
#include "sim/foundation/report/output_folder.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>

namespace specsim::cli {

namespace po = boost::program_options;

namespace {

// Options, and changes by --set, that nothing is left for where the acceptance is stated: nothing is simulated then.
void check_effects(const po::variables_map& values, const Options& options) {
  const std::string why = "says the acceptance, so that nothing is simulated";
  check_partners(values, {{"server", {"log"}, {}, ""},
                          {"force", {"out"}, {}, ""},
                          {"rounds", {}, acceptance_options(), why},
                          {"seed", {}, acceptance_options(), why}});
  const auto stated = std::find_if(acceptance_options().begin(), acceptance_options().end(),
                                   [&](const std::string& name) { return options.has(name.c_str()); });
  if (stated == acceptance_options().end()) return;
  for (const std::string& set : options.texts("set")) {
    const std::string path = set.substr(0, set.find('='));
    const std::string key = path.substr(0, path.find('.'));
    for (const char* idle : {"rounds", "seed", "replicates", "context", "pair", "theory"})
      if (key == idle)
        throw BadInput({"--set " + path, 0, 0}, fmt::format("given with --{}, which {}; allowed: one of them", *stated, why));
  }
}

// What the table of --acceptance was recorded with.
RecordedPair recorded_models(const Options& options) {
  if (!options.has("acceptance")) return {};
  return recorded_pair(spec::named_acceptance_table(options.text("acceptance"), {"--acceptance", 0, 0}));
}

std::vector<spec::Experiment> experiments_of(const Options& options, const std::vector<std::string>& files) {
  std::vector<spec::Override> changes =
      workload_overrides(options, files.empty(), files.empty() ? recorded_models(options) : RecordedPair());
  const std::string seed = options.has("seed") ? options.text("seed") : "";
  if (!files.empty()) {
    // The plan looks for the draft length itself, whatever the config sweeps.
    changes.push_back(spec::override_setting("decode.drafter.draft_length", std::int64_t{1}, {"specsim plan", 0, 0}));
    return read_experiments(files, options.texts("set"), seed, spec::Misfits::left_out, changes);
  }
  Diagnostics diagnostics;
  const std::vector<spec::Override> given = read_overrides(options.texts("set"), seed, diagnostics);
  changes.insert(changes.end(), given.begin(), given.end());
  std::vector<spec::Experiment> experiments;
  experiments.push_back(
      spec::make_experiment(plan::planning_experiment(), "the built-in plan", changes, diagnostics, spec::Misfits::left_out));
  diagnostics.throw_if_any();
  return experiments;
}

void add_plan_options(po::options_description& description) {
  const auto text = [] { return po::value<std::string>(); };
  add_workload_options(description);
  description.add_options()("batch", text(), "sequences decoded together; 1,4,16: a plan for each");
  add_acceptance_options(description);
  description.add_options()("trace", text(), "acceptance: a JSONL trace")(
      "longest", po::value<std::string>()->default_value("16"), "longest draft length that is tried")(
      "rounds", text(), "rounds simulated at each draft length where the config's distributions say the acceptance")(
      "out", text(), "directory for plan.csv, map.csv, own_map.csv, waterfall.csv")("force", kForceHelp)(
      "verbose", "print more: best draft lengths by context, memory, commands of all servers")(
      "threads", po::value<std::string>()->default_value("0"), kThreadsHelp);
}

constexpr const char* kPlanExamples =
    "  specsim plan --hardware h100-sxm --target llama-3.1-70b --tensor-parallel 4 --draft llama-3.2-1b --alpha 0.7 --batch 8\n"
    "  specsim plan --hardware a100-80gb-sxm --target llama-2-7b --draft llama-68m --position-rates 0.7,0.45,0.31 --out "
    "build/plan\n"
    "  specsim plan --hardware h100-sxm --target llama-3.1-8b --draft eagle-head-8b --acceptance-rate 54% --at-draft-length 3 "
    "--batch 1,8,64\n"
    "  specsim plan --hardware rtx-4090 --target llama-3.1-8b --draft none --mean-acceptance-length 1.8 --at-draft-length 5\n"
    "  specsim plan configs/examples/h100_8b.yaml --batch 8 --context 8192\n"
    "  specsim plan --hardware h100-sxm --target llama-3.1-8b --draft eagle-head-8b --acceptance eagle-code-edits\n"
    "  specsim plan --log vllm.log --hardware h100-sxm --target llama-3.1-8b --draft eagle-head-8b --batch 16\n"
    "  specsim plan --trace accepted.jsonl --hardware h100-sxm --target llama-3.1-8b --draft llama-3.2-1b\n"
    "  scripts/plots/plot_plan.py build/plan\n";

plan::PlanningOptions read_planning(const Options& options, bool built_in) {
  plan::PlanningOptions planning;
  planning.longest = static_cast<int>(read_integer(options.text("longest"), "--longest", config::between(1, kMaxDraftLength)));
  if (options.has("rounds"))
    planning.rounds = static_cast<std::uint64_t>(read_integer(options.text("rounds"), "--rounds", config::between(1000, 1e12)));
  planning.own = stated_acceptance(options, planning.longest);
  if (built_in && !planning.own)
    throw BadInput(
        {"", 0, 0},
        "specsim plan needs a config, whose distributions say the acceptance, or one of --alpha, --position-rates, "
        "--conditional-rates, "
        "--mean-acceptance-length, --acceptance-rate, --acceptance, --trace, --log; specsim plan --help shows examples");
  return planning;
}

}  // namespace

ExitCode plan_command(const std::vector<std::string>& arguments) {
  po::options_description description;
  add_plan_options(description);
  po::variables_map values;
  if (!parse(arguments, description, "config", "specsim plan [CONFIG...] [options]", kPlanExamples, values))
    return ExitCode::fine;
  const double started = wall_clock();
  const Options options(values);
  check_effects(values, options);
  const FilesRead read;
  const std::vector<std::string> files = options.texts("config");
  const unsigned threads = read_threads(options.text("threads"));
  plan::PlanningOptions planning = read_planning(options, files.empty());
  const std::vector<spec::Experiment> experiments = experiments_of(options, files);
  std::optional<report::OutputFolder> folder;
  if (options.has("out")) {
    folder.emplace(options.text("out"));
    // A log may come from standard input: what it says stands for it.
    const std::string logged = options.has("log") ? fmt::format("{}", fmt::join(planning.own->tokens_per_round, " ")) : "";
    const std::string what = run::identity(experiments) + logged;
    folder->claim(claim_at_once(plan::plan_file_names(), command_identity("plan", values, {"config", "set"}, what),
                                options.has("force"), run::inputs_of(experiments, read.sums())));
  }
  const std::vector<const spec::Cell*> cells = cells_of(experiments);
  plan::check_placements(cells);
  print_warnings(cells);

  Progress progress;
  if (cells.size() > 1) planning.progress = [&](double done, double all) { progress.show(done, all); };
  const std::vector<plan::Planned> planned = plan::plan_cells(cells, planning);
  progress.finish();
  if (files.empty()) {
    const RecordedPair recorded = recorded_models(options);
    if (const std::string assumed = assumptions(options, recorded); !assumed.empty())
      print_output("ASSUMED, for nothing else was said: {}\n", assumed);
    warn_of_left_out_draft(options, recorded);
    if (const std::string taken = taken_of(options, recorded); !taken.empty())
      print_output("the models of the table: {}\n", taken);
  }
  for (const spec::Experiment& one : experiments)
    for (const std::string& line : one.left_out) print_output("left out: {}\n", line);
  if (options.has("verbose"))
    if (const cost::Deployment* const deployment = planned[0].cell->cost().deployment(); deployment != nullptr)
      for (const std::optional<cost::ModelShape>* const model : {&deployment->target, &deployment->draft})
        if (*model) print_model(**model);
  if (planned.size() == 1)
    print_advice(planned[0], plan::advise(planned[0].cell->cost(), planned[0].cell->workload, planned[0].curve), options.has("verbose"));
  else
    print_planned(planned);
  if (folder) {
    for (const auto& [name, text] : plan::plan_files(planned, planning.longest, threads)) folder->write(name, text);
    folder->finish(new_manifest(experiments, threads, started));
    print_output("wrote {0}/{1}, manifest.yaml; specsim plot {0} draws them\n", folder->path(),
                 fmt::join(folder->written(), ", "));
  }
  return ExitCode::fine;
}

}  // namespace specsim::cli
