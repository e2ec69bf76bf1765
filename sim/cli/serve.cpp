// specsim serve: a server under load, with speculation and without.
#include "sim/base/files_read.h"
#include "sim/base/output.h"
#include "sim/cli/command.h"
#include "sim/cli/numbers.h"
#include "sim/cli/options.h"
#include "sim/cli/serve_options.h"
#include "sim/cli/serve_report.h"
#include "sim/cli/stop.h"
#include "sim/report/output_folder.h"
#include "sim/rng/address.h"
#include "sim/serve/outputs.h"

#include <fmt/format.h>

#include <optional>
#include <utility>

namespace specsim::cli {

namespace po = boost::program_options;

namespace {

using serve::Served;
using serve::ServeExperiment;

const std::vector<std::string> kFiles = {"summary.csv", "requests.csv", "steps.csv", "curve.csv", "manifest.yaml"};

struct ServeJob {
  const ServeExperiment& experiment;
  bool both;  // the plain server too, where the experiment speculates
  unsigned threads;
  const std::atomic<bool>* stop;
  report::OutputFolder* folder;  // nullptr: nothing is written
};

// Both return the names of the files, "none" where there is no folder, and "" after an interruption.
std::string run_sweep(const ServeJob& job, const Sweep& sweep, int replications) {
  Progress progress("runs");
  const double runs =
      static_cast<double>(sweep.values.size()) * replications * (job.experiment.speculation && job.both ? 2.0 : 1.0);
  serve::ServeOptions options;
  options.stop = job.stop;
  options.progress = [&](std::size_t done) { progress.show(static_cast<double>(done), runs); };
  const auto curve =
      serve::load_curve(job.experiment, sweep.load, sweep.values, replications, job.both, job.threads, "--sweep", options);
  progress.finish();
  if (job.stop->load()) return "";
  print_curve(curve, sweep.load);
  for (const std::string& line : serve::verdict(curve, sweep.load, job.experiment.slo)) print_output("{}\n", line);
  if (job.experiment.speculation) print_best_lengths(job.experiment, serve::make_workload(job.experiment));
  if (job.folder == nullptr) return "none";
  job.folder->write("curve.csv", serve::curve_csv(curve, sweep.load));
  return "curve.csv";
}

std::string run_once(const ServeJob& job, bool with_steps) {
  const serve::Workload workload = serve::make_workload(job.experiment);
  Progress progress("requests");
  serve::ServeOptions options;
  options.stop = job.stop;
  options.progress = [&](std::size_t done) {
    progress.show(static_cast<double>(done), static_cast<double>(workload.requests.size()));
  };
  std::optional<serve::StepLog> log;
  if (with_steps) options.observer = &log.emplace(job.folder->file("steps.csv"));
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
  if (job.folder == nullptr) return "none";
  job.folder->write("summary.csv", summary_csv(summaries));
  job.folder->write("requests.csv", serve::requests_csv(own.result));
  if (!log) return "summary.csv, requests.csv";
  log->commit();
  job.folder->wrote("steps.csv");
  return "summary.csv, requests.csv, steps.csv";
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
      "prompt", text(), "tokens of a prompt: a number or {lognormal: {mean: 512, cv: 1}}")(
      "output", text(), "tokens of an output, as --prompt")("policy", text(), "off, fixed:3, table:1-4=5,5-64=3, goodput")(
      "alpha", text(), "acceptance of a draft token, the same at every position")(
      "position-rates", text(), "acceptance by position, of all rounds, as vLLM logs it")(
      "method", text(), "eagle, draft_model or ngram")("replicas", text(), "engines")(
      "routing", text(), "round_robin, least_loaded, join_shortest_queue, prefix_affinity")(
      "slo", text(), "limits in milliseconds: ttft=500,tpot=50,e2el=10000")(
      "sweep", text(), "rate=1:40:8 or concurrency=1,2,4,8")("replications", po::value<std::string>()->default_value("1"),
                                                             "of every point of a sweep, with random numbers of their own")(
      "alone", "the config's server alone, without the plain one beside a speculating one")(
      "out", text(), "directory for the CSV files")("steps", "steps.csv as well")(
      "force", "replace what another run left in --out")("threads", po::value<std::string>()->default_value("0"), kThreadsHelp);
  po::variables_map values;
  if (!parse(arguments, description, "config", "specsim serve [CONFIG] [options]",
             "  specsim serve configs/serve/chat.yaml --out build/serve\n"
             "  specsim serve --hardware h100-sxm --target llama-3.1-8b --draft eagle-head-8b --position-rates 0.77,0.55,0.39 "
             "--policy fixed:3 "
             "--rate 8\n"
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

  report::Manifest manifest = report::new_manifest(command_line());
  manifest.files = {file};
  manifest.configs = {config::to_flow_text(config)};
  manifest.threads = threads;
  manifest.identity = fmt::format("serve {:016x}", rng::hash_text(config::to_canonical_text(config) + command_line()));
  std::optional<report::OutputFolder> folder;
  if (!out.empty()) {
    folder.emplace(out);
    folder->claim({kFiles, manifest.identity, values.count("force") > 0});
  }
  const StopOnSignal stop;
  const ServeJob job{experiment, values.count("alone") == 0, threads, stop.flag(), folder ? &*folder : nullptr};
  const std::string written = values.count("sweep") > 0
                                  ? run_sweep(job, read_sweep(values["sweep"].as<std::string>()), replications)
                                  : run_once(job, values.count("steps") > 0);
  if (written.empty()) {
    print_error("stopped before the end; nothing was kept\n");
    return ExitCode::interrupted;
  }
  if (folder) {
    manifest.inputs = read.sums();
    manifest.wall_seconds = wall_clock() - started;
    folder->finish(manifest);
    print_output("wrote {}/{}, manifest.yaml\n", out, written);
  }
  return ExitCode::fine;
}

}  // namespace specsim::cli
