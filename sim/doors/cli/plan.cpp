// specsim plan: the best draft length, when not to speculate, and the flags to start a server.
#include "sim/answers/plan/advice.h"
#include "sim/answers/plan/built_in.h"
#include "sim/answers/plan/planned.h"
#include "sim/doors/cli/command.h"
#include "sim/doors/cli/describe_model.h"
#include "sim/doors/cli/options.h"
#include "sim/doors/cli/plan_report.h"
#include "sim/doors/cli/result_files.h"
#include "sim/doors/cli/stated_acceptance.h"
#include "sim/doors/cli/workload_options.h"
#include "sim/experiments/run/identity.h"
#include "sim/foundation/base/files_read.h"
#include "sim/foundation/base/output.h"
#include "sim/foundation/base/shell_word.h"
#include "sim/foundation/report/output_folder.h"
#include "sim/hardware/presets/presets.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>

namespace specsim::cli {

namespace {

struct PlanOptions {
  WorkloadOptions workload;
  AcceptanceOptions acceptance;
  int longest = 16;
  std::optional<std::uint64_t> rounds;
  std::optional<std::string> out;
  bool force = false;
  bool verbose = false;
  unsigned threads = 0;
};

// Rejects options, and changes by --set, that have no effect if the acceptance is stated, since nothing is simulated then.
void check_effects(const CommandLine& line, const PlanOptions& options) {
  const std::string why = "states the acceptance, so nothing is simulated";
  line.check({{"server", {"log"}, {}, ""},
              {"force", {"out"}, {}, ""},
              {"rounds", {}, acceptance_options(), why},
              {"seed", {}, acceptance_options(), why}});
  refuse_two_types(line, options.workload.dtype.value_or(""));
  const std::string stated = stated_by(line);
  if (stated.empty()) return;
  for (const std::string& set : options.workload.configs.sets) {
    const std::string path = set.substr(0, set.find('='));
    const std::string key = path.substr(0, path.find('.'));
    for (const char* idle : {"rounds", "seed", "replicates", "context", "pair", "theory"})
      if (key == idle)
        throw BadInput({"--set " + path, 0, 0}, fmt::format("given with --{}, which {}; allowed: one of them", stated, why));
  }
}

// The models with which the table of --acceptance was recorded.
RecordedPair recorded_models(const PlanOptions& options) {
  if (options.acceptance.table.empty()) return {};
  return recorded_pair(spec::named_acceptance_table(options.acceptance.table, {"--acceptance", 0, 0}, spec::Contexts::several));
}

std::vector<spec::Experiment> experiments_of(const PlanOptions& options) {
  const ConfigOptions& configs = options.workload.configs;
  const bool built_in = configs.files.empty();
  std::vector<spec::Override> changes =
      workload_overrides(options.workload, built_in, built_in ? recorded_models(options) : RecordedPair());
  if (!built_in) {
    // The plan searches the draft length itself, whatever the config sweeps.
    changes.push_back(spec::override_setting("decode.drafter.draft_length", std::int64_t{1}, {"specsim plan", 0, 0}));
    return read_experiments(configs, spec::Misfits::left_out, changes);
  }
  Diagnostics diagnostics;
  const std::vector<spec::Override> given = read_overrides(configs, diagnostics);
  changes.insert(changes.end(), given.begin(), given.end());
  std::vector<spec::Experiment> experiments;
  experiments.push_back(
      spec::make_experiment(plan::planning_experiment(), "the built-in plan", changes, diagnostics, spec::Misfits::left_out));
  diagnostics.throw_if_any();
  return experiments;
}

void add_plan_options(CommandLine& line, PlanOptions& options) {
  line.add_words("config", options.workload.configs.files);
  add_workload_options(line, options.workload);
  line.add(
      {{"batch", options.workload.batches, workload_interval("batch"), "sequences decoded together; 1,4,16: one plan each"}});
  add_spending_options(line, options.workload.spending);
  add_acceptance_options(line, options.acceptance);
  line.add({{"trace", options.acceptance.trace, "acceptance: a JSONL trace"},
            {"longest", options.longest, config::between(1, kMaxDraftLength), "longest candidate draft length"},
            {"rounds", options.rounds, config::between(1000, 1e12),
             "rounds simulated per draft length if the config's distributions determine the acceptance"},
            {"out", options.out, "directory for plan.csv, map.csv, own_map.csv, waterfall.csv"},
            {"force", options.force, kForceHelp},
            {"verbose", options.verbose, "print more: best draft lengths by context, memory, commands of all servers"},
            {"threads", options.threads, read_threads, kThreadsHelp}});
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

plan::PlanningOptions read_planning(const CommandLine& line, const PlanOptions& options, bool built_in) {
  plan::PlanningOptions planning;
  planning.longest = options.longest;
  if (options.rounds) planning.rounds = *options.rounds;
  planning.own = stated_acceptance(line, options.acceptance, planning.longest);
  if (built_in && !planning.own)
    throw BadInput(
        {"", 0, 0},
        std::string() +
            "specsim plan needs a config, whose distributions determine the acceptance, or one of --alpha, --position-rates, "
            "--conditional-rates, "
            "--mean-acceptance-length, --acceptance-rate, --acceptance, --trace, --log; specsim plan --help shows examples" +
            published_for(options.workload.target.value_or(plan::kDefaultTarget), options.workload.draft));
  return planning;
}

}  // namespace

ExitCode plan_command(const std::vector<std::string>& arguments) {
  PlanOptions options;
  CommandLine line("specsim plan [CONFIG...] [options]", kPlanExamples);
  add_plan_options(line, options);
  if (!line.read(arguments)) return ExitCode::fine;
  const double started = wall_clock();
  check_effects(line, options);
  const FilesRead read;
  const bool built_in = options.workload.configs.files.empty();
  plan::PlanningOptions planning = read_planning(line, options, built_in);
  const std::vector<spec::Experiment> experiments = experiments_of(options);
  std::optional<report::OutputFolder> folder;
  if (options.out) {
    folder.emplace(*options.out);
    // The log's figures are part of the identity, since a log may come from standard input.
    const std::string logged =
        !options.acceptance.log.empty() ? fmt::format("{}", fmt::join(planning.own->tokens_per_round, " ")) : "";
    const std::string what = run::identity(experiments) + logged;
    folder->claim(claim_at_once(plan::plan_file_names(), line.identity({"set"}, what), options.force,
                                run::inputs_of(experiments, read.sums())));
  }
  const std::vector<const spec::Cell*> cells = cells_of(experiments);
  plan::check_placements(cells);
  print_warnings(cells);

  Progress progress;
  if (cells.size() > 1) planning.progress = [&](double done, double all) { progress.show(done, all); };
  const std::vector<plan::Planned> planned = plan::plan_cells(cells, planning);
  progress.finish();
  if (built_in) {
    const RecordedPair recorded = recorded_models(options);
    if (const std::string assumed = assumptions(options.workload, recorded); !assumed.empty())
      print_output("ASSUMED (defaults): {}\n", assumed);
    warn_of_missing_draft(options.workload, recorded);
    if (const std::string taken = taken_of(options.workload, recorded); !taken.empty())
      print_output("the models of the table: {}\n", taken);
  }
  if (std::any_of(planned.begin(), planned.end(), [](const plan::Planned& one) { return one.curve.assumed; }))
    print_output("ASSUMED (pair.assumed of the config): how often drafts are accepted; nothing is known of this pair\n");
  for (const spec::Experiment& one : experiments)
    for (const std::string& left_out : one.left_out) print_output("omitted: {}\n", left_out);
  if (options.verbose)
    if (const cost::Deployment* const deployment = planned[0].cell->cost().deployment(); deployment != nullptr)
      for (const std::optional<cost::ModelShape>* const model : {&deployment->target, &deployment->draft})
        if (*model) print_model(**model);
  if (planned.size() == 1) {
    print_advice(planned[0], plan::advise(planned[0].cell->cost(), planned[0].cell->workload, planned[0].curve), options.verbose);
  } else {
    warn_of_pair(planned[0].cell->cost().deployment(), options.acceptance.table);
    print_planned(planned);
  }
  if (folder) {
    for (const auto& [name, text] : plan::plan_files(planned, planning.longest, options.threads)) folder->write(name, text);
    folder->finish(new_manifest(experiments, options.threads, started));
    print_output("wrote {0}/{1}, manifest.yaml; specsim plot {2} draws them\n", folder->path(),
                 fmt::join(folder->written(), ", "), shell_word(folder->path()));
  }
  return ExitCode::fine;
}

}  // namespace specsim::cli
