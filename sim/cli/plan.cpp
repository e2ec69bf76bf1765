// specsim plan: which draft length, when not to speculate, and the flags to start a server with.
#include "sim/base/files_read.h"
#include "sim/base/output.h"
#include "sim/cli/command.h"
#include "sim/cli/numbers.h"
#include "sim/cli/options.h"
#include "sim/cli/plan_report.h"
#include "sim/cli/result_files.h"
#include "sim/cli/server_log.h"
#include "sim/cli/workload_options.h"
#include "sim/plan/advice.h"
#include "sim/plan/built_in.h"
#include "sim/plan/planned.h"
#include "sim/plan/stated_acceptance.h"
#include "sim/report/output_folder.h"
#include "sim/run/identity.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <optional>

namespace specsim::cli {

namespace po = boost::program_options;

namespace {

using plan::AcceptanceCurve;

// A share that holds for all positions together. A list is refused: whoever gives one means rates by position.
double read_one_share(const Options& options, const char* name) {
  const std::string text = options.text(name);
  const std::string option = std::string("--") + name;
  if (text.find(',') != std::string::npos)
    throw BadInput({option, 0, 0},
                   fmt::format("{}, allowed: one figure; rates by position are --position-rates, or --conditional-rates "
                               "where each is of the rounds that reach it",
                               config::quote_for_message(text)));
  return read_share(text, option);
}

// What a server's log says of acceptance, and warnings of what it contradicts.
AcceptanceCurve logged_acceptance(const Options& options, int at, int longest) {
  const std::string path = options.text("log");
  const Location option{"--log", 0, 0};
  const logs::LogContents contents = read_server_log(path, {});
  const logs::ReportedAcceptance log =
      one_acceptance(contents, options.has("server") ? read_server(options.text("server")) : "", at, option);
  const logs::Findings findings = logs::find(log, at);
  AcceptanceCurve acceptance = plan::logged_acceptance(log.kind, findings, longest, option, "with --at-draft-length");
  acceptance.source = fmt::format("{}, {}", path == "-" ? "standard input" : path, acceptance.source);
  for (const logs::Check& check : findings.checks)
    if (!check.holds) print_warning(fmt::format("{}: {}: {}", path, check.what, check.told));
  return acceptance;
}

// The acceptance that options state; nothing where the config's distributions are to say it.
std::optional<AcceptanceCurve> stated_acceptance(const Options& options, int longest) {
  std::vector<std::string> given;
  for (const char* name : {"alpha", "position-rates", "conditional-rates", "mean-acceptance-length", "acceptance-rate",
                           "acceptance", "trace", "log"})
    if (options.has(name)) given.push_back(std::string("--") + name);
  if (given.size() > 1)
    throw BadInput({given[1], 0, 0}, fmt::format("given together with {}, allowed: one figure of acceptance", given[0]));
  const char* const of_length = options.has("mean-acceptance-length") ? "mean-acceptance-length" : "acceptance-rate";
  if (options.has(of_length) && !options.has("at-draft-length"))
    throw BadInput({std::string("--") + of_length, 0, 0},
                   "given without --at-draft-length, allowed: with the draft length that it was measured at");
  if (!options.has(of_length) && !options.has("log") && options.has("at-draft-length"))
    throw BadInput({"--at-draft-length", 0, 0},
                   "given without --mean-acceptance-length, --acceptance-rate or --log, allowed: with one of them, measured at "
                   "this length");
  const auto at = [&] {
    return static_cast<int>(
        read_integer(options.text("at-draft-length"), "--at-draft-length", config::between(1, kMaxDraftLength)));
  };
  if (options.has("alpha")) return plan::constant_acceptance(read_one_share(options, "alpha"), longest);
  if (options.has("position-rates"))
    return plan::unconditional_acceptance(read_shares(options.text("position-rates"), "--position-rates"), longest,
                                          {"--position-rates", 0, 0});
  if (options.has("conditional-rates"))
    return plan::conditional_acceptance(read_shares(options.text("conditional-rates"), "--conditional-rates"), longest);
  if (options.has("mean-acceptance-length"))
    return plan::length_acceptance(read_number(options.text("mean-acceptance-length"), "--mean-acceptance-length",
                                               config::between(1, kMaxDraftLength + 1.0)),
                                   at(), longest, {"--mean-acceptance-length", 0, 0});
  if (options.has("acceptance-rate")) return plan::rate_acceptance(read_one_share(options, "acceptance-rate"), at(), longest);
  if (options.has("acceptance")) return plan::table_acceptance(options.text("acceptance"), {"--acceptance", 0, 0}, longest);
  if (options.has("trace")) return plan::trace_acceptance(options.text("trace"), longest);
  if (options.has("log")) return logged_acceptance(options, options.has("at-draft-length") ? at() : 0, longest);
  return std::nullopt;
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
  description.add_options()("batch", text(), "sequences decoded together; 1,4,16: a plan for each")(
      "alpha", text(), "acceptance: the same at every position")(
      "position-rates", text(), "acceptance: by position, of all rounds, as vLLM logs it (0.7,0.45,0.3 or 70%,45%,30%)")(
      "conditional-rates", text(), "acceptance: by position, given that it is reached (0.7,0.64,0.67)")(
      "mean-acceptance-length", text(), "acceptance: emitted tokens per round, bonus included")(
      "acceptance-rate", text(), "acceptance: accepted / drafted tokens, as logs show it")(
      "acceptance", text(), "acceptance: by depth, a published table (specsim list acceptance) or a file of one's own")(
      "at-draft-length", text(),
      "draft length at which --mean-acceptance-length or --acceptance-rate was measured, or that --log does not tell")(
      "log", text(), "acceptance: the log or metrics of a server (specsim import explains them); - for standard input")(
      "server", text(), "the server in --log, where several wrote into it")("trace", text(), "acceptance: a JSONL trace")(
      "longest", po::value<std::string>()->default_value("16"), "longest draft length that is tried")(
      "rounds", text(), "rounds simulated at each draft length where the config's distributions say the acceptance")(
      "out", text(), "directory for plan.csv, map.csv, own_map.csv, waterfall.csv")("force", kForceHelp)(
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
    "  scripts/plot_plan.py build/plan\n";

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
  if (planned.size() == 1)
    print_advice(planned[0], plan::advise(planned[0].cell->cost(), planned[0].cell->workload, planned[0].curve));
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
