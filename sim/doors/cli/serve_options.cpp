#include "sim/doors/cli/serve_options.h"

#include "sim/answers/load/from_options.h"
#include "sim/doors/cli/numbers.h"
#include "sim/doors/cli/option_partners.h"
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

namespace po = boost::program_options;

namespace {

constexpr double kMostRuns = 1e5;  // of a sweep: their summaries are kept

// Options that belong to a sweep, or to a single run.
void check_modes(const po::variables_map& values, const load::ServeExperiment& experiment, bool swept) {
  const auto needs = [&](const char* option, bool met, const char* what) {
    if (values.count(option) > 0 && !met)
      throw BadInput({std::string("--") + option, 0, 0}, fmt::format("given without {0}, allowed: with {0}", what));
  };
  check_partners(
      values, {{"timeline-requests", {"timeline"}, {}, ""}, {"server", {"log"}, {}, ""}, {"force", {"out", "timeline"}, {}, ""}});
  needs("resume", swept, "--sweep");
  needs("resume", values.count("out") > 0, "--out");
  if (!values["replications"].defaulted()) needs("replications", swept, "--sweep");
  needs("routing", experiment.replicas > 1 || experiment.prefill_engines > 1, "several --replicas");
  needs("draft-lengths", swept, "--sweep");
  needs("draft-lengths", experiment.slo.any(), "--slo");
  needs("draft-lengths", experiment.speculation.has_value(), "speculation");
  // Whoever tries policies one after the other leaves the acceptance as it is: that it says nothing of a plain server is told.
  const bool drafts = experiment.speculation && experiment.speculation->longest > 0;
  std::vector<std::string> of_drafts = acceptance_options();
  of_drafts.emplace_back("method");
  if (was_given(values, "draft") && values["draft"].as<std::string>() != "none") of_drafts.emplace_back("draft");
  for (const std::string& option : of_drafts)
    if (option != "trace" && was_given(values, option) && !drafts && !was_given(values, "draft-lengths"))
      print_warning(fmt::format("--{} changes nothing: the server does not speculate", option));
  if (values.count("resume") > 0 && values.count("force") > 0)
    throw BadInput({"--resume", 0, 0}, "given together with --force, allowed: one of them");
  for (const char* const option : {"timeline", "steps"})
    if (values.count(option) > 0 && swept)
      throw BadInput({std::string("--") + option, 0, 0}, "given together with --sweep, allowed: with a single run");
  for (const auto& [option, what] : {std::pair{"out", "a directory"}, {"timeline", "a file"}})
    if (values.count(option) > 0 && values[option].as<std::string>().empty())
      throw BadInput({std::string("--") + option, 0, 0}, fmt::format("\"\", allowed: {}", what));
  needs("steps", values.count("out") > 0, "--out");
}

// The acceptance that the options state, as rates by position; and the models that a table of it was recorded with, where no
// config and no option says any.
void take_acceptance(const po::variables_map& values, load::ServeRequest& request) {
  const Options options(values);
  constexpr int kPositions = 16;  // rates of positions; a server's draft length beyond them holds the last one on
  const std::optional<plan::AcceptanceCurve> stated = stated_acceptance(options, kPositions, Trace::of_requests);
  if (!stated) return;
  if (options.has("alpha"))
    request.alpha = read_share(options.text("alpha"), "--alpha");
  else if (options.has("position-rates"))
    request.position_rates = read_shares(options.text("position-rates"), "--position-rates");
  else
    request.position_rates = std::vector<double>(stated->full_rate.begin() + 1, stated->full_rate.end());
  if (!options.has("acceptance") || request.config) return;
  const spec::AcceptanceTable table = spec::named_acceptance_table(options.text("acceptance"), {"--acceptance", 0, 0});
  if (!request.target && !table.target.empty()) {
    request.target = table.target;
    if (!request.tensor_parallel && table.tensor_parallel > 1) request.tensor_parallel = std::to_string(table.tensor_parallel);
  }
  if (request.draft || table.draft.empty()) return;
  const bool named = table.draft != "none" && table.draft.find('{') == std::string::npos;
  request.draft = named && table.one_pass ? fmt::format("{{preset: {}, one_pass: true}}", table.draft) : table.draft;
}

// The server that the options describe.
load::ServeExperiment read_served(const po::variables_map& values) {
  const auto text = [&](const char* option) {
    return values.count(option) > 0 ? std::optional(values[option].as<std::string>()) : std::nullopt;
  };
  Diagnostics diagnostics;
  load::ServeRequest request;
  if (values.count("config") > 0) {
    const auto& files = values["config"].as<std::vector<std::string>>();
    if (files.size() > 1) throw BadInput({files[1], 0, 0}, "a second config, allowed: one");
    request.config = files.front();
  }
  if (values.count("set") > 0) request.changes = read_overrides(values["set"].as<std::vector<std::string>>(), "", diagnostics);
  request.seed = text("seed");
  request.hardware = text("hardware");
  request.target = text("target");
  request.draft = text("draft");
  request.tensor_parallel = text("tensor-parallel");
  request.dtype = text("dtype");
  request.engine = text("engine");
  request.rate = text("rate");
  request.concurrency = text("concurrency");
  request.trace = text("trace");
  if (const auto sweep = text("sweep"))
    request.sweep = sweep->starts_with("concurrency") ? load::Load::concurrency : load::Load::rate;
  request.requests = text("requests");
  request.warm_up = text("warm-up");
  request.prompt = text("prompt");
  request.output = text("output");
  request.policy = text("policy");
  take_acceptance(values, request);
  request.method = text("method");
  request.replicas = text("replicas");
  request.routing = text("routing");
  if (const auto limits = text("slo")) request.slo = read_texts(*limits, "--slo");
  return load::read_request(request, diagnostics);
}

// rate=1:40:8 (from, to, how many), rate=1,2,4, concurrency=1,2,4,8.
Sweep read_sweep(const std::string& text) {
  const std::size_t equals = text.find('=');
  const std::string name = text.substr(0, equals);
  if (equals == std::string::npos || (name != "rate" && name != "concurrency"))
    throw BadInput({"--sweep", 0, 0}, fmt::format("{}, allowed: rate=FROM:TO:COUNT, rate=1,2,4 or concurrency=1,2,4",
                                                  config::quote_for_message(text)));
  Sweep sweep;
  sweep.load = name == "rate" ? load::Load::rate : load::Load::concurrency;
  const std::string list = text.substr(equals + 1);
  const config::Interval allowed = sweep.load == load::Load::rate ? config::between(1e-9, 1e9) : config::between(1, 1e7);
  if (const std::size_t colon = list.find(':'); colon != std::string::npos) {
    const std::size_t second = list.find(':', colon + 1);
    if (second == std::string::npos)
      throw BadInput({"--sweep", 0, 0}, fmt::format("{}, allowed: FROM:TO:COUNT or a list", config::quote_for_message(list)));
    const double from = read_number(list.substr(0, colon), "--sweep", allowed);
    const double to = read_number(list.substr(colon + 1, second - colon - 1), "--sweep", allowed);
    const std::int64_t count = read_integer(list.substr(second + 1), "--sweep", config::between(2, 10000));
    for (std::int64_t i = 0; i < count; ++i) {
      const double value = from + (to - from) * static_cast<double>(i) / static_cast<double>(count - 1);
      sweep.values.push_back(sweep.load == load::Load::rate ? value : std::round(value));
    }
  } else if (sweep.load == load::Load::rate) {
    sweep.values = read_numbers(list, "--sweep", allowed);
  } else {
    for (const std::int64_t value : read_integers(list, "--sweep", allowed)) sweep.values.push_back(static_cast<double>(value));
  }
  // A verdict goes from the lowest load to the highest; the same load again would be the same run.
  std::sort(sweep.values.begin(), sweep.values.end());
  sweep.values.erase(std::unique(sweep.values.begin(), sweep.values.end()), sweep.values.end());
  return sweep;
}

}  // namespace

void add_serve_options(po::options_description& description) {
  const auto text = [] { return po::value<std::string>(); };
  description.add_options()("set", po::value<std::vector<std::string>>()->composing(),
                            "PATH=VALUE replaces a value of the config")("seed", text(), "seed in place of the config's")(
      "hardware", text(), "the GPU: a name (specsim list hardware) or a file")(
      "target", text(), "the target model: a name (specsim list model) or a file")("draft", text(), "the draft model, or none")(
      "tensor-parallel", text(), "GPUs that share each layer of the target, and of the draft if there is one")(
      "dtype", text(), "types of the target: fp8, int4, q4_k_m, ..., or {weights: int4, activations: bf16, cache: fp8}")(
      "engine", text(), "what host and launches add: a name (specsim list engine) or a file")(
      "rate", text(), "requests a second, a Poisson process")("concurrency", text(), "clients that each wait for their answer")(
      "trace", text(), "recorded requests: CSV or JSON lines")("requests", text(), "how many are sent")(
      "warm-up", text(), "first requests that no figure of requests counts: a number, or mser (MSER-5's rule)")(
      "prompt", text(), "tokens of a prompt: a number or {lognormal: {mean: 512, cv: 1}}")(
      "output", text(), "tokens of an output, as --prompt")("policy", text(),
                                                            "off, fixed:3, table:1-4=5,5-64=3, goodput, adaptive:ema_tiers");
  add_acceptance_options(description);
  description.add_options()("method", text(), "eagle, draft_model or ngram; by the draft where left out")(
      "replicas", text(), "engines")("routing", text(), "round_robin, least_loaded, join_shortest_queue, prefix_affinity")(
      "slo", text(),
      "limits in milliseconds: ttft=500,tpot=50,e2el=10000,percentile=99; or by name, as mlperf:llama2-70b-server")(
      "sweep", text(), "rate=1:40:8 or concurrency=1,2,4,8")("replications", po::value<std::string>()->default_value("1"),
                                                             "runs of every point of a sweep, with random numbers of their own")(
      "no-capacity", "leave out the run that tells the largest stable rate: it may take far longer than the others")(
      "dry-run", "say what would be run, and stop")("alone",
                                                    "the config's server alone, without the plain one beside a speculating one")(
      "out", text(), "directory for the CSV files")("steps", "steps.csv as well")(
      "timeline", text(), "FILE.json: a track for each request, for Perfetto or chrome://tracing")(
      "timeline-requests", po::value<std::string>()->default_value("1000"), "the first requests, which have tracks")(
      "draft-lengths", text(), "0,1,2,3: the largest load of --sweep that keeps --slo at each, by bisection")(
      "resume", "go on with the unfinished sweep in --out")(
      "force", "drop an unfinished sweep, and replace another run's results or somebody's files, in --out and at --timeline")(
      "threads", po::value<std::string>()->default_value("0"), kThreadsHelp);
}

ServeTask read_serve_task(const po::variables_map& values, const FilesRead& read) {
  const auto has = [&](const char* option) { return values.count(option) > 0; };
  const auto text = [&](const char* option) { return has(option) ? values[option].as<std::string>() : std::string(); };
  ServeTask task;
  task.experiment = read_served(values);
  task.threads = read_threads(text("threads"));
  task.replications = static_cast<int>(read_integer(text("replications"), "--replications", config::between(1, 10000)));
  check_modes(values, task.experiment, has("sweep"));
  task.both = !has("alone");
  task.capacity = !has("no-capacity");
  task.dry_run = has("dry-run");
  if (has("sweep")) task.sweep = read_sweep(text("sweep"));
  task.out = text("out");
  task.resume = has("resume");
  task.force = has("force");
  task.steps = has("steps");
  task.timeline = text("timeline");
  check_single_files({{"--timeline", task.timeline, kTimelineStart}}, read, task.out, kServeFiles, task.force);
  task.tracks = static_cast<std::size_t>(read_integer(text("timeline-requests"), "--timeline-requests", config::between(1, 1e8)));
  if (has("draft-lengths"))
    for (const std::int64_t length : read_integers(text("draft-lengths"), "--draft-lengths", config::between(0, kMaxDraftLength)))
      task.lengths.push_back(static_cast<int>(length));
  for (const int length : task.lengths)  // each can be drafted
    if (length > 0) static_cast<void>(load::with_fixed_length(task.experiment, length));
  // A server that never drafts is the plain one, under its name too.
  if (task.lengths.empty() && task.experiment.speculation && task.experiment.speculation->longest == 0)
    task.experiment = load::without_speculation(task.experiment);
  const double runs = task.sweep ? static_cast<double>(task.sweep->values.size()) * task.replications : 1.0;
  if (runs > kMostRuns)
    throw BadInput({"--replications", 0, 0}, fmt::format("{} loads, {} times each, are {:g} runs, allowed: at most {:g}",
                                                         task.sweep->values.size(), task.replications, runs, kMostRuns));
  const std::string what = fmt::format("{} sweep {} replications {} alone {} lengths {}", task.experiment.config.canonical,
                                       task.sweep ? text("sweep") : "none", task.replications, values.count("alone"),
                                       has("draft-lengths") ? text("draft-lengths") : "none") +
                           (task.capacity ? "" : " without capacity");
  task.identity = fmt::format("serve {:016x}", rng::hash_text(what));
  return task;
}

}  // namespace specsim::cli
