// specsim serve: a server under load, with speculation and without.
#include "sim/base/files_read.h"
#include "sim/base/output.h"
#include "sim/base/token.h"
#include "sim/cli/command.h"
#include "sim/cli/numbers.h"
#include "sim/cli/options.h"
#include "sim/cli/result_files.h"
#include "sim/cli/serve_options.h"
#include "sim/cli/serve_report.h"
#include "sim/cli/stop.h"
#include "sim/report/output_folder.h"
#include "sim/rng/address.h"
#include "sim/run/journal.h"
#include "sim/serve/outputs.h"
#include "sim/serve/slo.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <utility>

namespace specsim::cli {

namespace po = boost::program_options;

namespace {

using serve::Served;
using serve::ServeExperiment;

const std::vector<std::string> kFiles = {"summary.csv", "requests.csv", "steps.csv", "curve.csv", "slo.csv", "manifest.yaml"};

struct ServeJob {
  const ServeExperiment& experiment;
  bool both;  // the plain server too, where the experiment speculates
  unsigned threads;
  const std::atomic<bool>* stop;
  report::OutputFolder* folder;  // nullptr: nothing is written
};

// What finished runs of the sweep are kept in while it lasts, so that another process can go on with it.
class SweepJournal {
 public:
  SweepJournal(const std::string& path, const run::Origin& origin, bool resume)
      : journal_(path, origin, resume, [&](const run::Record& record) {
          const std::optional<serve::Summary> summary = serve::unpack_summary(record.counts);
          if (!summary)
            throw BadInput({path, record.line, 0}, "this is no record of a finished run, allowed: --force to drop the journal");
          known_[{record.cell, record.slab}] = *summary;
        }) {
    if (journal_.damaged() > 0)
      print_error("warning: {}:{}: {} damaged lines are left out, and their runs are run again\n", path, journal_.first_damaged(),
                  journal_.damaged());
  }
  [[nodiscard]] std::optional<serve::Summary> known(std::uint64_t point, std::uint64_t replication) const {
    const auto at = known_.find({point, replication});
    return at == known_.end() ? std::nullopt : std::optional(at->second);
  }
  void done(std::uint64_t point, std::uint64_t replication, const serve::Summary& summary) {
    journal_.append(point, replication, serve::pack_summary(summary));
  }
  [[nodiscard]] bool is_lost() const { return journal_.is_lost(); }

 private:
  std::map<std::pair<std::uint64_t, std::uint64_t>, serve::Summary> known_;
  run::Journal journal_;
};

// Where the SLO ends: of the config's server and of the plain one, and of every draft length that was asked for.
void print_limits(const ServeJob& job, const Sweep& sweep, const std::vector<serve::CurvePoint>& curve,
                  const std::vector<int>& lengths, serve::SweepRunner& runner) {
  std::vector<serve::LengthLimit> limits;
  for (const bool speculative : {false, true}) {
    std::vector<double> values;
    std::vector<bool> kept;
    for (const serve::CurvePoint& point : curve) {
      if (point.speculative != speculative) continue;
      values.push_back(point.load);
      kept.push_back(serve::figure(point, [](const serve::Summary& s) { return s.meets_slo ? 1.0 : 0.0; }).mean == 1.0);
    }
    if (values.empty()) continue;
    const ServeExperiment own = speculative ? job.experiment : serve::without_speculation(job.experiment);
    limits.push_back({speculative ? -1 : 0, serve::largest_load(own, sweep.load, values, kept, runner, "--sweep")});
    if (runner.stopped()) return;
    print_output("largest {} that keeps the SLO {}: {}\n", load_name(sweep.load), speculative ? "with speculation" : "without",
                 serve::limit_text(limits.back().limit));
  }
  if (!lengths.empty()) {
    const auto by_length = serve::limits_by_length(job.experiment, sweep.load, sweep.values, lengths, runner, "--sweep");
    if (runner.stopped()) return;
    const serve::LengthLimit* best = nullptr;
    for (const serve::LengthLimit& one : by_length) {
      print_output("  draft length {}: {}\n", one.draft_length, serve::limit_text(one.limit));
      if (!std::isnan(one.limit.keeps) && (best == nullptr || one.limit.keeps > best->limit.keeps)) best = &one;
    }
    if (best != nullptr)
      print_output("draft length that keeps the SLO up to the largest {}: {}\n", load_name(sweep.load), best->draft_length);
    limits.insert(limits.end(), by_length.begin(), by_length.end());
  }
  if (job.folder != nullptr) job.folder->write("slo.csv", serve::limits_csv(limits, sweep.load));
}

// Both return the names of the files, "none" where there is no folder, and "" after an interruption.
std::string run_sweep(const ServeJob& job, const Sweep& sweep, int replications, const std::vector<int>& lengths,
                      SweepJournal* journal) {
  Progress progress("runs");
  const double runs =
      static_cast<double>(sweep.values.size()) * replications * (job.experiment.speculation && job.both ? 2.0 : 1.0);
  serve::SweepRunner::Setting setting;
  setting.replications = replications;
  setting.threads = job.threads;
  setting.stop = job.stop;
  setting.progress = [&](std::size_t done) { progress.show(std::min(static_cast<double>(done), runs), runs); };
  if (journal != nullptr) {
    setting.known = [&](std::uint64_t point, std::uint64_t replication) { return journal->known(point, replication); };
    setting.done = [&](std::uint64_t point, std::uint64_t replication, const serve::Summary& summary) {
      journal->done(point, replication, summary);
    };
  }
  serve::SweepRunner runner(std::move(setting));
  const auto curve = serve::load_curve(job.experiment, sweep.load, sweep.values, job.both, runner, "--sweep");
  progress.finish();
  if (runner.stopped()) return "";
  print_curve(curve, sweep.load);
  for (const std::string& line : serve::verdict(curve, sweep.load)) print_output("{}\n", line);
  if (job.experiment.slo.any()) print_limits(job, sweep, curve, lengths, runner);
  if (runner.stopped()) return "";
  if (job.experiment.speculation) print_best_lengths(job.experiment, serve::make_workload(job.experiment));
  if (job.folder == nullptr) return "none";
  job.folder->write("curve.csv", serve::curve_csv(curve, sweep.load));
  return job.experiment.slo.any() ? "curve.csv, slo.csv" : "curve.csv";
}

std::string run_once(const ServeJob& job, bool with_steps, const std::string& timeline_file, std::size_t tracks) {
  const serve::Workload workload = serve::make_workload(job.experiment);
  Progress progress("requests");
  serve::ServeOptions options;
  options.stop = job.stop;
  options.progress = [&](std::size_t done) {
    progress.show(static_cast<double>(done), static_cast<double>(workload.requests.size()));
  };
  std::optional<serve::StepLog> log;
  std::optional<serve::StepTimeline> timeline;
  serve::StepObservers observers;
  if (with_steps) observers.add(log.emplace(job.folder->file("steps.csv")));
  if (!timeline_file.empty()) observers.add(timeline.emplace(timeline_file, tracks));
  if (observers.any()) options.observer = &observers;
  const Served own = serve::serve(job.experiment, workload, options);
  options.observer = nullptr;
  bool interrupted = own.result.interrupted;
  Summaries summaries = {{job.experiment.speculation ? "speculative" : "plain", own.summary}};
  if (job.experiment.speculation && job.both && !interrupted) {
    const Served plain = serve::serve(serve::without_speculation(job.experiment), workload, options);
    interrupted = plain.result.interrupted;
    summaries.emplace_back("plain", plain.summary);
  }
  progress.finish();
  if (interrupted) return "";
  print_summaries(summaries);
  if (!own.summary.stable)
    print_output("UNSTABLE: {} of {} requests had not ended when the horizon was reached\n",
                 workload.requests.size() - own.summary.completed, workload.requests.size());
  if (job.experiment.speculation) print_best_lengths(job.experiment, workload);
  if (timeline) {
    timeline->close();
    print_output("wrote {}\n", timeline_file);
  }
  if (job.folder == nullptr) return "none";
  job.folder->write("summary.csv", summary_csv(summaries));
  job.folder->write("requests.csv", serve::requests_csv(own.result));
  if (!log) return "summary.csv, requests.csv";
  log->commit();
  job.folder->wrote("steps.csv");
  return "summary.csv, requests.csv, steps.csv";
}

// The files that the simulation reads beside the config, whose text is in the identity already.
std::vector<FileSum> inputs_of(const std::string& config, const FilesRead& read) {
  std::vector<FileSum> inputs = read.sums();
  std::erase_if(inputs, [&](const FileSum& one) { return one.name == config; });
  return inputs;
}

// Options that belong to a sweep, or to a single run.
void check_modes(const po::variables_map& values, const ServeExperiment& experiment, bool swept) {
  const auto needs = [&](const char* option, bool met, const char* what) {
    if (values.count(option) > 0 && !met)
      throw BadInput({std::string("--") + option, 0, 0}, fmt::format("given without {0}, allowed: with {0}", what));
  };
  needs("resume", swept, "--sweep");
  needs("resume", values.count("out") > 0, "--out");
  needs("draft-lengths", swept, "--sweep");
  needs("draft-lengths", experiment.slo.any(), "--slo");
  needs("draft-lengths", experiment.speculation.has_value(), "speculation");
  if (values.count("resume") > 0 && values.count("force") > 0)
    throw BadInput({"--resume", 0, 0}, "given together with --force, allowed: one of them");
  for (const char* const option : {"timeline", "steps"})
    if (values.count(option) > 0 && swept)
      throw BadInput({std::string("--") + option, 0, 0}, "given together with --sweep, allowed: with a single run");
  if (values.count("timeline") > 0 && values["timeline"].as<std::string>().empty())
    throw BadInput({"--timeline", 0, 0}, "\"\", allowed: a file");
}

}  // namespace

ExitCode serve_command(const std::vector<std::string>& arguments) {
  po::options_description description;
  const auto text = [] { return po::value<std::string>(); };
  description.add_options()("set", po::value<std::vector<std::string>>()->composing(),
                            "PATH=VALUE replaces a value of the config")("seed", text(), "in place of the config's")(
      "hardware", text(), "the GPU: a name (specsim list hardware) or a file")(
      "target", text(), "the target model: a name (specsim list model) or a file")("draft", text(), "the draft model, or none")(
      "rate", text(), "requests a second, a Poisson process")("concurrency", text(), "clients that each wait for their answer")(
      "trace", text(), "recorded requests: CSV or JSON lines")("requests", text(), "how many are sent")(
      "warm-up", text(), "first requests that no figure of requests counts: a number, or mser (MSER-5's rule)")(
      "prompt", text(), "tokens of a prompt: a number or {lognormal: {mean: 512, cv: 1}}")(
      "output", text(), "tokens of an output, as --prompt")("policy", text(),
                                                            "off, fixed:3, table:1-4=5,5-64=3, goodput, adaptive:ema_tiers")(
      "alpha", text(), "acceptance of a draft token, the same at every position")(
      "position-rates", text(), "acceptance by position, of all rounds, as vLLM logs it")(
      "method", text(), "eagle, draft_model or ngram")("replicas", text(), "engines")(
      "routing", text(), "round_robin, least_loaded, join_shortest_queue, prefix_affinity")(
      "slo", text(),
      "limits in milliseconds: ttft=500,tpot=50,e2el=10000,percentile=99; or by name, as mlperf:llama2-70b-server")(
      "sweep", text(), "rate=1:40:8 or concurrency=1,2,4,8")("replications", po::value<std::string>()->default_value("1"),
                                                             "of every point of a sweep, with random numbers of their own")(
      "alone", "the config's server alone, without the plain one beside a speculating one")(
      "out", text(), "directory for the CSV files")("steps", "steps.csv as well")(
      "timeline", text(), "FILE.json: a track for each request, for Perfetto or chrome://tracing")(
      "timeline-requests", po::value<std::string>()->default_value("1000"), "the first requests, which have tracks")(
      "draft-lengths", text(), "0,1,2,3: the largest load of --sweep that keeps --slo at each, by bisection")(
      "resume", "go on with the unfinished sweep in --out")(
      "force", "drop an unfinished sweep in --out, or replace what another run left there")(
      "threads", po::value<std::string>()->default_value("0"), kThreadsHelp);
  po::variables_map values;
  if (!parse(arguments, description, "config", "specsim serve [CONFIG] [options]",
             "  specsim serve configs/serve/chat.yaml --out build/serve\n"
             "  specsim serve --hardware h100-sxm --target llama-3.1-8b --draft eagle-head-8b --position-rates 0.77,0.55,0.39 "
             "--policy fixed:3 --rate 8\n"
             "  specsim serve configs/serve/chat.yaml --sweep rate=1:40:8 --replications 4 --slo ttft=500,tpot=50 --out "
             "build/curve\n"
             "  specsim serve configs/serve/chat.yaml --trace requests.csv --policy table:1-8=5,9-64=3,65-256=0\n",
             values))
    return ExitCode::fine;
  const double started = wall_clock();
  const FilesRead read;
  Diagnostics diagnostics;
  std::string file;
  const config::Value config = serve_config(values, diagnostics, file);
  diagnostics.throw_if_any();
  const ServeExperiment experiment = serve::read_serve_experiment(config, file, diagnostics);
  diagnostics.throw_if_any();
  const unsigned threads = read_threads(values["threads"].as<std::string>());
  const auto replications =
      static_cast<int>(read_integer(values["replications"].as<std::string>(), "--replications", config::between(1, 10000)));
  const std::string out = values.count("out") > 0 ? values["out"].as<std::string>() : "";
  if (values.count("out") > 0 && out.empty()) throw BadInput({"--out", 0, 0}, "\"\", allowed: a directory");
  if (values.count("steps") > 0 && out.empty()) throw BadInput({"--steps", 0, 0}, "given without --out, allowed: with --out");
  for (const std::string& warning : experiment.cost->warnings()) print_error("warning: {}\n", warning);

  const bool swept = values.count("sweep") > 0;
  const std::string timeline = values.count("timeline") > 0 ? values["timeline"].as<std::string>() : "";
  check_modes(values, experiment, swept);
  check_not_read(timeline, "--timeline", read);
  const auto tracks = static_cast<std::size_t>(
      read_integer(values["timeline-requests"].as<std::string>(), "--timeline-requests", config::between(1, 1e8)));
  std::vector<int> lengths;
  if (values.count("draft-lengths") > 0)
    for (const std::int64_t length :
         read_integers(values["draft-lengths"].as<std::string>(), "--draft-lengths", config::between(0, kMaxDraftLength)))
      lengths.push_back(static_cast<int>(length));
  for (const int length : lengths)  // each can be drafted
    if (length > 0) static_cast<void>(serve::with_fixed_length(experiment, length));

  const std::string task = fmt::format("{} sweep {} replications {} alone {} lengths {}", config::to_canonical_text(config),
                                       swept ? values["sweep"].as<std::string>() : "none", replications, values.count("alone"),
                                       values.count("draft-lengths") > 0 ? values["draft-lengths"].as<std::string>() : "none");
  report::Manifest manifest = report::new_manifest(command_line());
  manifest.files = {file};
  manifest.configs = {config::to_flow_text(config)};
  manifest.threads = threads;
  manifest.identity = fmt::format("serve {:016x}", rng::hash_text(task));
  std::optional<report::OutputFolder> folder;
  std::optional<SweepJournal> journal;
  if (!out.empty()) {
    folder.emplace(out);
    const bool force = values.count("force") > 0;
    if (force) folder->remove(kJournal);
    const bool begun = folder->has(kJournal);
    if (begun && !swept)
      throw BadInput({folder->file(kJournal), 0, 0}, "an unfinished run is here, allowed: another --out, or --force to drop it");
    folder->claim({kFiles, manifest.identity, force || begun});
    const bool resume = values.count("resume") > 0;
    if (resume && !begun && folder->has("manifest.yaml")) print_error("{} is finished already; running it again\n", out);
    if (swept) journal.emplace(folder->file(kJournal), run::new_origin(manifest.identity, inputs_of(file, read)), resume);
  }
  std::optional<StopOnSignal> stop(std::in_place);
  const ServeJob job{experiment, values.count("alone") == 0, threads, stop->flag(), folder ? &*folder : nullptr};
  std::string written;
  try {
    written = swept ? run_sweep(job, read_sweep(values["sweep"].as<std::string>()), replications, lengths,
                                journal ? &*journal : nullptr)
                    : run_once(job, values.count("steps") > 0, timeline, tracks);
  } catch (const BadInput&) {  // there is nothing to go on with
    if (journal) folder->remove(kJournal);
    throw;
  }
  stop.reset();  // the journal has everything from here on
  if (written.empty()) {
    print_error("stopped before the end; {}\n",
                !journal             ? "nothing was kept"
                : journal->is_lost() ? "nothing was kept: the journal was removed"
                                     : fmt::format("the same command with --resume goes on ({})", folder->file(kJournal)));
    return ExitCode::interrupted;
  }
  if (folder) {
    manifest.inputs = read.sums();
    manifest.wall_seconds = wall_clock() - started;
    folder->finish(manifest);
    if (journal) folder->remove(kJournal);
    print_output("wrote {}/{}, manifest.yaml\n", out, written);
  }
  return ExitCode::fine;
}

}  // namespace specsim::cli
