#include "sim/doors/cli/serve_options.h"

#include "sim/answers/load/from_options.h"
#include "sim/doors/cli/numbers.h"
#include "sim/doors/cli/options.h"
#include "sim/doors/cli/single_file.h"
#include "sim/doors/cli/stated_acceptance.h"
#include "sim/experiments/spec/read_acceptance_table.h"
#include "sim/foundation/base/token.h"
#include "sim/foundation/rng/address.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace specsim::cli {

namespace {

constexpr double kMostRuns = 1e5;  // per sweep, since their summaries are kept

// Checks options that belong to a sweep, or to a single run.
void check_modes(const CommandLine& line, const load::ServeExperiment& experiment, bool without_config) {
  const bool swept = line.given("sweep");
  const auto needs = [&](const char* option, bool met, const char* what) {
    if (line.given(option) && !met)
      throw BadInput({std::string("--") + option, 0, 0}, fmt::format("given without {0}, allowed: with {0}", what));
  };
  line.check({{"timeline-requests", {"timeline"}, {}, ""}, {"server", {"log"}, {}, ""}, {"force", {"out", "timeline"}, {}, ""}});
  needs("resume", swept, "--sweep");
  needs("resume", line.given("out"), "--out");
  needs("replications", swept, "--sweep");
  needs("routing", experiment.replicas > 1 || experiment.prefill_engines > 1, "several --replicas");
  needs("draft-lengths", swept, "--sweep");
  needs("draft-lengths", experiment.slo.any(), "--slo");
  needs("draft-lengths", experiment.speculation.has_value(), "speculation");
  // Users who compare policies keep the acceptance options, so for a server without speculation this is only a warning.
  const bool drafts = experiment.speculation && experiment.speculation->longest > 0;
  std::vector<std::string> of_drafts = acceptance_options();
  of_drafts.emplace_back("method");
  if (line.text("draft") != "none") of_drafts.emplace_back("draft");
  for (const std::string& option : of_drafts)
    if (option != "trace" && line.given(option) && !drafts && !line.given("draft-lengths"))
      print_warning(fmt::format("--{} has no effect: the server does not speculate", option));
  const bool states = std::any_of(of_drafts.begin(), of_drafts.end(), [&](const std::string& option) {
    return option != "draft" && option != "method" && line.given(option);
  });
  if (!experiment.speculation && !states && !line.given("policy") && line.given("draft") && line.text("draft") != "none" &&
      without_config)
    throw BadInput(
        {"--draft", 0, 0},
        "given without its acceptance, allowed: with --alpha, --position-rates, --acceptance or another acceptance option" +
            published_for(line.given("target") ? line.text("target") : plan::kDefaultTarget, line.text("draft")));
  if (line.given("resume") && line.given("force"))
    throw BadInput({"--resume", 0, 0}, "given together with --force, allowed: one of them");
  for (const char* const option : {"timeline", "steps"})
    if (line.given(option) && swept)
      throw BadInput({std::string("--") + option, 0, 0}, "given together with --sweep, allowed: with a single run");
  needs("steps", line.given("out"), "--out");
}

// Applies the acceptance that the options state, as rates by position. If neither config nor options name models, also applies
// those of the acceptance table.
void take_acceptance(const CommandLine& line, const AcceptanceOptions& options, load::ServeRequest& request) {
  constexpr int kPositions = 16;  // number of rates; longer drafts of a server repeat the last one
  const std::optional<plan::AcceptanceCurve> stated = stated_acceptance(line, options, kPositions, false);
  if (!stated) return;
  request.alpha = options.alpha;
  request.position_rates = options.position_rates;
  request.rates_by_context = stated->by_context;
  if (!options.alpha && !options.position_rates && stated->by_context.empty())
    request.position_rates = std::vector<double>(stated->full_rate.begin() + 1, stated->full_rate.end());
  if (options.table.empty() || request.config) return;
  const spec::AcceptanceTable table =
      spec::named_acceptance_table(options.table, {"--acceptance", 0, 0}, spec::Contexts::several);
  if (!request.target && !table.target.empty()) {
    request.target = table.target;
    if (!request.tensor_parallel && table.tensor_parallel > 1) request.tensor_parallel = std::to_string(table.tensor_parallel);
  }
  if (request.draft || table.draft.empty()) return;
  const bool named = table.draft != "none" && table.draft.find('{') == std::string::npos;
  request.draft = named && table.one_pass ? fmt::format("{{preset: {}, one_pass: true}}", table.draft) : table.draft;
}

// The server that the options describe.
load::ServeExperiment read_served(const CommandLine& line, ServeTask& task) {
  Diagnostics diagnostics;
  load::ServeRequest& request = task.request;
  const std::vector<std::string>& files = task.configs.files;
  if (files.size() > 1) throw BadInput({files[1], 0, 0}, "a second config, allowed: one");
  if (!files.empty()) request.config = files.front();
  request.changes = read_overrides(task.configs, diagnostics);
  if (task.sweep) request.sweep = task.sweep->load;
  take_acceptance(line, task.acceptance, request);
  const std::string hardware = request.hardware.value_or(request.config ? "" : "h100-sxm");
  if (task.spending.power_cap) request.power_cap = fmt::format("{}", *task.spending.power_cap);
  if (const auto dollars = price_given(task.spending, hardware, {hardware}))
    request.dollars_per_hour = fmt::format("{}", *dollars);
  return load::read_request(request, diagnostics);
}

// rate=1:40:8 (from, to, how many), rate=1,2,4, concurrency=1,2,4,8.
Sweep read_sweep(const std::string& text, const std::string& option) {
  const std::size_t equals = text.find('=');
  const std::string name = text.substr(0, equals);
  if (equals == std::string::npos || (name != "rate" && name != "concurrency"))
    throw BadInput({option, 0, 0}, fmt::format("{}, allowed: rate=FROM:TO:COUNT, rate=1,2,4 or concurrency=1,2,4",
                                               config::quote_for_message(text)));
  Sweep sweep;
  sweep.load = name == "rate" ? load::Load::rate : load::Load::concurrency;
  const std::string list = text.substr(equals + 1);
  const config::Interval allowed = sweep.load == load::Load::rate ? config::between(1e-9, 1e9) : config::between(1, 1e7);
  if (const std::size_t colon = list.find(':'); colon != std::string::npos) {
    const std::size_t second = list.find(':', colon + 1);
    if (second == std::string::npos)
      throw BadInput({option, 0, 0}, fmt::format("{}, allowed: FROM:TO:COUNT or a list", config::quote_for_message(list)));
    const double from = read_number(list.substr(0, colon), option, allowed);
    const double to = read_number(list.substr(colon + 1, second - colon - 1), option, allowed);
    const std::int64_t count = read_integer(list.substr(second + 1), option, config::between(2, 10000));
    for (std::int64_t i = 0; i < count; ++i) {
      const double value = from + (to - from) * static_cast<double>(i) / static_cast<double>(count - 1);
      sweep.values.push_back(sweep.load == load::Load::rate ? value : std::round(value));
    }
  } else if (sweep.load == load::Load::rate) {
    sweep.values = read_numbers(list, option, allowed);
  } else {
    for (const std::int64_t value : read_integers(list, option, allowed)) sweep.values.push_back(static_cast<double>(value));
  }
  // The verdict needs ascending loads, and the same load twice would be the same run.
  std::sort(sweep.values.begin(), sweep.values.end());
  sweep.values.erase(std::unique(sweep.values.begin(), sweep.values.end()), sweep.values.end());
  return sweep;
}

}  // namespace

void add_serve_options(CommandLine& line, ServeTask& task) {
  load::ServeRequest& request = task.request;
  line.add_words("config", task.configs.files);
  line.add(
      {{"set", task.configs.sets, "PATH=VALUE replaces a value of the config"},
       {"seed", request.seed, "replaces the config's seed"},
       {"hardware", request.hardware, "the GPU: a name (specsim list hardware) or a file"},
       {"target", request.target, "the target model: a name (specsim list model) or a file"},
       {"draft", request.draft, "the draft model, or none"},
       {"draft-hardware", request.draft_hardware, "a separate GPU for the draft, as --hardware; default: it shares the target's"},
       {"draft-link-us", request.draft_link_us,
        "latency one way, in microseconds, between --draft-hardware and the target's GPU; default: 0, two GPUs of one machine"},
       {"tensor-parallel", request.tensor_parallel, "GPUs that share each layer of the target, and of the draft if there is one"},
       {"dtype", request.dtype, "types of the target: fp8, int4, q4_k_m, ..., or {weights: int4, activations: bf16, cache: fp8}"},
       {"engine", request.engine, "engine, which sets host and launch times: a name (specsim list engine) or a file"},
       {"rate", request.rate, "requests per second, a Poisson process"},
       {"concurrency", request.concurrency, "clients that each wait for their answer"},
       {"trace", request.trace, "recorded requests: CSV or JSON lines"},
       {"requests", request.requests, "number of requests"},
       {"warm-up", request.warm_up, "first requests that figures exclude: a number, or mser (MSER-5's rule)"},
       {"prompt", request.prompt, "tokens of a prompt: a number or {lognormal: {mean: 512, cv: 1}}"},
       {"output", request.output, "tokens of an output, as --prompt"},
       {"policy", request.policy, "off, fixed:3, table:1-4=5,5-64=3, goodput, adaptive:ema_tiers"}});
  add_spending_options(line, task.spending);
  add_acceptance_options(line, task.acceptance);
  line.add(
      {{"method", request.method, "eagle, draft_model or ngram; default: by the draft"},
       {"replicas", request.replicas, "engines"},
       {"routing", request.routing, "round_robin, least_loaded, join_shortest_queue, prefix_affinity"},
       {"slo", request.slo, read_texts,
        "limits in milliseconds: ttft=500,tpot=50,e2el=10000,percentile=99; or by name, such as mlperf:llama2-70b-server"},
       {"sweep", task.sweep, read_sweep, "rate=1:40:8 or concurrency=1,2,4,8"},
       {"replications", task.replications, config::between(1, 10000), "runs per point of a sweep, with different random numbers"},
       {"no-capacity", task.capacity, "omit the run for the largest stable rate, which may take far longer than the others"},
       {"dry-run", task.dry_run, "print what would be run, and stop"},
       {"alone", task.alone, "run only the config's server, without the plain one for comparison"},
       {"out", task.out, directory_name, "directory for the CSV files"},
       {"steps", task.steps, "also write steps.csv"},
       {"timeline", task.timeline, file_name, "FILE.json: one track per request, for Perfetto or chrome://tracing"},
       {"timeline-requests", task.tracks, config::between(1, 1e8), "number of requests with tracks"},
       {"draft-lengths", task.lengths, config::between(0, kMaxDraftLength),
        "0,1,2,3: find the largest load of --sweep that keeps --slo at each, by bisection"},
       {"resume", task.resume, "continue the unfinished sweep in --out"},
       {"force", task.force,
        "delete an unfinished sweep, and replace another run's results or other files, in --out and at --timeline"},
       {"threads", task.threads, read_threads, kThreadsHelp}});
}

void read_serve_task(const CommandLine& line, const FilesRead& read, ServeTask& task) {
  task.experiment = read_served(line, task);
  check_modes(line, task.experiment, !task.request.config);
  check_single_files({{"--timeline", task.timeline, kTimelineStart}}, read, task.out, kServeFiles, task.force);
  for (const int length : task.lengths)  // checks that each can be drafted
    if (length > 0) static_cast<void>(load::with_fixed_length(task.experiment, length));
  // A server that never drafts runs once, under the name of the one without speculation.
  if (task.lengths.empty() && task.experiment.speculation && task.experiment.speculation->longest == 0)
    task.experiment = load::without_speculation(task.experiment);
  const double runs = task.sweep ? static_cast<double>(task.sweep->values.size()) * task.replications : 1.0;
  if (runs > kMostRuns)
    throw BadInput({"--replications", 0, 0}, fmt::format("{} loads, {} times each, are {:g} runs, allowed: at most {:g}",
                                                         task.sweep->values.size(), task.replications, runs, kMostRuns));
  const std::string what = fmt::format("{} sweep {} replications {} alone {} lengths {}", task.experiment.config.canonical,
                                       task.sweep ? line.text("sweep") : "none", task.replications, task.alone ? 1 : 0,
                                       task.lengths.empty() ? "none" : line.text("draft-lengths")) +
                           (task.capacity ? "" : " without capacity");
  task.identity = fmt::format("serve {:016x}", rng::hash_text(what));
}

}  // namespace specsim::cli
