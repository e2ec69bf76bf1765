// specsim serve: a server under load, with and without speculation.
#include "sim/answers/load/capacity.h"
#include "sim/answers/load/outputs.h"
#include "sim/answers/load/single_verdict.h"
#include "sim/answers/load/slo.h"
#include "sim/answers/load/verdict.h"
#include "sim/doors/cli/command.h"
#include "sim/doors/cli/options.h"
#include "sim/doors/cli/output_form.h"
#include "sim/doors/cli/result_files.h"
#include "sim/doors/cli/serve_options.h"
#include "sim/doors/cli/serve_report.h"
#include "sim/doors/cli/stop.h"
#include "sim/experiments/run/journal.h"
#include "sim/foundation/base/files_read.h"
#include "sim/foundation/base/output.h"
#include "sim/foundation/base/plural.h"
#include "sim/foundation/base/shell_word.h"
#include "sim/foundation/report/output_folder.h"
#include "sim/serving/serve/percentiles.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <map>
#include <optional>
#include <utility>

namespace specsim::cli {

namespace {

using load::ServeExperiment;
using load::ServeResult;

constexpr const char* kServeExamples =
    "  specsim serve configs/serve/chat.yaml --out build/serve\n"
    "  specsim serve --hardware h100-sxm --target llama-3.1-8b --draft eagle-head-8b --position-rates 0.77,0.55,0.39 "
    "--policy fixed:3 --rate 8\n"
    "  specsim serve configs/serve/chat.yaml --sweep rate=1:40:8 --replications 4 --slo ttft=500,tpot=50 --out "
    "build/curve\n"
    "  specsim serve configs/serve/chat.yaml --trace requests.csv --policy table:1-8=5,9-64=3,65-256=0\n";

// Stores the finished runs of a sweep, so that another process can resume it.
class SweepJournal {
 public:
  SweepJournal(const std::string& path, const run::Origin& origin, bool resume)
      : path_(path), journal_(path, origin, resume, [&](const run::Record& record) {
          const std::optional<serve::Summary> summary = load::unpack_summary(record.counts);
          if (!summary)
            throw BadInput({path, record.line, 0}, "this is no record of a finished run, allowed: --force to delete the journal");
          known_[{record.cell, record.slab}] = *summary;
        }) {
    if (journal_.damaged() > 0)
      print_warning(fmt::format("{}:{}: {} damaged lines are ignored, and their runs are run again", path,
                                journal_.first_damaged(), journal_.damaged()));
  }
  [[nodiscard]] std::optional<serve::Summary> known(std::uint64_t point, std::uint64_t replication) const {
    const auto at = known_.find({point, replication});
    return at == known_.end() ? std::nullopt : std::optional(at->second);
  }
  void done(std::uint64_t point, std::uint64_t replication, const serve::Summary& summary) {
    journal_.append(point, replication, load::pack_summary(summary));
    if (journal_.is_lost() && !told_.exchange(true))
      print_warning(fmt::format("{} was removed: the sweep continues, but cannot be resumed", path_));
  }
  [[nodiscard]] std::string how_to_continue() const { return journal_.how_to_continue(); }

 private:
  std::string path_;
  std::atomic<bool> told_{false};
  std::map<std::pair<std::uint64_t, std::uint64_t>, serve::Summary> known_;
  run::Journal journal_;
};

// Why no server's largest stable rate is given; "" if it is. `where`: the output that shows it otherwise.
std::string no_capacity(const ServeExperiment& experiment, const arrivals::RequestTrace& workload, const char* where) {
  if (workload.concurrency > 0 || !load::hits_decide(experiment, workload)) return "";
  return fmt::format(
      "no largest stable rate is given: prompts share cached prefixes, whose hits depend on when requests come; {} where the "
      "server stops keeping up",
      where);
}

// Options without effect on these requests.
std::vector<std::string> idle_options(const ServeExperiment& experiment, const arrivals::RequestTrace& workload) {
  const auto same = [&](const arrivals::Request& one) { return one.priority == workload.requests.front().priority; };
  const serve::RequestTraits traits = {std::all_of(workload.requests.begin(), workload.requests.end(), same),
                                       !workload.hashes.empty()};
  std::vector<std::string> lines = experiment.scheduler()->idle_options(traits);
  if (experiment.replicas > 1 && experiment.routing && experiment.routing->by_prefix() && !traits.shared_prefixes)
    lines.emplace_back("the routing finds no prefixes: no prompts share one (use sessions, or traces with hashes)");
  return lines;
}

// A note that the server's own default limit of concurrent requests was reached; "" if it was not, or if the user set it.
std::string own_limit(const ServeExperiment& experiment, const serve::Summary& summary) {
  if (!experiment.speculation) return "";
  const serve::RunningLimit limit = experiment.scheduler()->running_limit();
  if (limit.unset.empty() || summary.largest_batch < limit.requests) return "";
  return fmt::format(
      "{} by default runs at most {} concurrent requests with speculation, and this limit was reached: {} raises it",
      experiment.product, limit.requests, limit.unset);
}

// Prints the load at which the SLO ends, for the config's server, the one without speculation, and every requested draft length.
void print_limits(const ServeTask& task, const std::vector<load::CurvePoint>& curve, load::SweepRunner& runner,
                  report::OutputFolder* folder) {
  const Sweep& sweep = *task.sweep;
  std::vector<load::LengthLimit> limits;
  for (const bool speculative : {false, true}) {
    std::vector<load::CurvePoint> tried;
    for (const load::CurvePoint& point : curve)
      if (point.speculative == speculative) tried.push_back(point);
    if (tried.empty()) continue;
    const ServeExperiment own = speculative ? task.experiment : load::without_speculation(task.experiment);
    limits.push_back({speculative ? std::nullopt : std::optional(0),
                      load::largest_load(own, sweep.load, std::move(tried), runner, "--sweep")});
    if (runner.stopped()) return;
    load::add_range(own, sweep.load, limits.back().limit, "--sweep", runner.setting().stop);
    if (runner.stopped()) return;
    print_output("largest {} that keeps the SLO {}: {}\n", load_name(sweep.load), speculative ? "with speculation" : "without",
                 load::limit_text(limits.back().limit));
  }
  if (!task.lengths.empty()) {
    const auto by_length = load::limits_by_length(task.experiment, sweep.load, sweep.values, task.lengths, runner, "--sweep");
    if (runner.stopped()) return;
    for (const load::LengthLimit& one : by_length)
      print_output("  draft length {}: {}\n", *one.draft_length, load::limit_text(one.limit));
    limits.insert(limits.end(), by_length.begin(), by_length.end());
    if (const std::string best = load::best_length_text(limits, sweep.load); !best.empty()) print_output("{}\n", best);
  }
  if (folder != nullptr) folder->write("slo.csv", load::limits_csv(limits, sweep.load));
}

void print_assumed(const ServeExperiment& experiment) {
  if (!experiment.assumed.empty()) print_words(fmt::format("assumed (defaults): {}", fmt::join(experiment.assumed, ", ")));
  for (const std::string& note : experiment.arrivals->notes()) print_words("note: " + note);
}

// Both functions return the names of the files, "none" without a folder, and "" after an interruption.
std::string run_sweep(const ServeTask& task, const std::atomic<bool>* stop, report::OutputFolder* folder, SweepJournal* journal) {
  if (task.experiment.streamed)
    throw BadInput({"--sweep", 0, 0}, "metrics is streamed, allowed: one run, or serve.metrics: exact");
  const Sweep& sweep = *task.sweep;
  Progress progress("runs");
  const double runs = static_cast<double>(sweep.values.size()) * task.replications * (task.both() ? 2.0 : 1.0);
  Progress saturating("of the runs for the largest stable rate");
  load::SweepRunner::Options setting;
  setting.replications = task.replications;
  setting.threads = task.threads;
  setting.stop = stop;
  setting.capacity = task.capacity;
  setting.capacity_progress = [&](double share) { saturating.show(share, 1.0); };
  setting.progress = [&](std::size_t done) { progress.show(std::min(static_cast<double>(done), runs), runs); };
  if (journal != nullptr) {
    setting.known = [&](std::uint64_t point, std::uint64_t replication) { return journal->known(point, replication); };
    setting.done = [&](std::uint64_t point, std::uint64_t replication, const serve::Summary& summary) {
      journal->done(point, replication, summary);
    };
  }
  load::SweepRunner runner(std::move(setting));
  const auto curve = load::load_curve(task.experiment, sweep.load, sweep.values, task.both(), runner, "--sweep");
  saturating.finish();
  progress.finish();
  if (runner.stopped()) return "";
  print_assumed(task.experiment);
  print_curve(curve, sweep.load, task.experiment.slo);
  for (const std::string& line : load::verdict(curve, sweep.load)) print_output("{}\n", line);
  if (sweep.load == load::Load::rate && task.capacity) {
    const ServeExperiment first = load::at_load(task.experiment, sweep.load, sweep.values.front(), "--sweep");
    const std::string why = no_capacity(first, load::make_requests(first), "the curve shows");
    if (!why.empty()) print_output("{}\n", why);
  }
  if (const std::string ties = latency_ties(task.experiment, curve, sweep.load); !ties.empty()) print_output("{}\n", ties);
  if (task.experiment.slo.any()) print_limits(task, curve, runner, folder);
  if (runner.stopped()) return "";
  if (task.experiment.speculation) {
    double requests = 1.0;  // requests in a step at the largest load that the server keeps up with
    double most = 1.0;      // and in its largest step
    for (const load::CurvePoint& point : curve)
      if (point.speculative && !load::overloaded(point)) {
        requests = std::max(requests, load::figure(point, [](const serve::Summary& s) { return s.mean_batch; }).mean);
        most = std::max(most, load::figure(point, [](const serve::Summary& s) { return s.largest_batch; }).mean);
      }
    print_best_lengths(task.experiment, load::make_requests(task.experiment), requests, most);
  }
  if (folder == nullptr) return "none";
  folder->write("curve.csv", load::curve_csv(curve, sweep.load));
  return task.experiment.slo.any() ? "curve.csv, slo.csv" : "curve.csv";
}

// The task's experiment with as many requests as its load needs, if their number is not given. The servers with and without
// speculation get equally many, the larger of both needs, so that both meet the same requests. `points`: the runs that
// determined the number.
struct SingleRun {
  ServeExperiment experiment;
  std::vector<load::CurvePoint> points;  // for the experiment's own server and, if it runs too, the one without speculation
};
SingleRun sized(const ServeTask& task, const std::atomic<bool>* stop) {
  load::SweepRunner::Options setting;
  setting.threads = task.threads;
  setting.stop = stop;
  setting.capacity = task.capacity;
  Progress saturating("of the run for the largest stable rate");
  setting.capacity_progress = [&](double share) { saturating.show(share, 1.0); };
  load::SweepRunner runner(std::move(setting));
  SingleRun run{task.experiment, {}};
  const arrivals::RequestTrace workload = load::make_requests(task.experiment, stop);
  if (stop->load()) return run;
  const double seconds =
      static_cast<double>(workload.requests.back().due - workload.requests.front().due) / arrivals::kPicosecondsPerSecond;
  const bool closed = workload.concurrency > 0;  // its clients slow down with the server, so no rate exceeds its capacity
  if (!closed && !(seconds > 0.0)) return run;
  const double load = closed ? workload.concurrency : static_cast<double>(workload.requests.size() - 1) / seconds;
  // For a recorded load, the capacity is only computed if the load turns out to be too high.
  const bool recorded = !task.experiment.arrivals->with_requests(1);
  std::vector<ServeExperiment> servers = {task.experiment};
  if (task.both()) servers.push_back(load::without_speculation(task.experiment));
  for (const ServeExperiment& server : servers)
    run.points.push_back({load,
                          server.speculation.has_value(),
                          {},
                          closed || recorded ? report::Estimate{NAN, NAN, 0.0} : load::capacity_of(server, runner),
                          0});
  if (task.experiment.counts_requests || runner.stopped()) return run;
  load::run_points(run.points, servers, runner);
  if (runner.stopped()) return run;
  const std::size_t requests = run.points.front().replications.front().requests;
  if (requests > workload.requests.size()) run.experiment = load::with_requests(task.experiment, requests);
  return run;
}

// The rate that these clients sent; the points' loads were those of their first few requests. A run may be too short to show that
// its load is above the capacity.
void compare_with_capacity(SingleRun& run, Summaries& summaries) {
  for (std::size_t i = 0; i < run.points.size(); ++i) {
    load::CurvePoint& point = run.points[i];
    serve::Summary& summary = summaries[i].second;
    if (summary.sending_s > 0.0) point.load = static_cast<double>(summary.requests - 1) / summary.sending_s;
    if (point.beyond()) summary.overloaded = true;
  }
}

// Prints what each server of an open loop completes when saturated and whether it was sent more. For any server, prints whether
// its run was too short.
void print_stability(const ServeTask& task, SingleRun& run, const Summaries& summaries, const std::atomic<bool>* stop) {
  for (std::size_t i = 0; i < run.points.size(); ++i) {
    load::CurvePoint& point = run.points[i];
    const auto& [name, summary] = summaries[i];
    point.replications = {summary};
    if (task.capacity && std::isnan(point.capacity.value) && (summary.overloaded || !summary.stable)) {
      const ServeExperiment& own = task.experiment;
      point.capacity.value = load::saturated_rate(i == 0 ? own : load::without_speculation(own), stop).value_or(NAN);
    }
    if (!std::isnan(point.capacity.value))
      print_output("{}: capacity {:.4g} requests/s (largest stable rate){}\n", name, point.capacity.value,
                   point.beyond() ? fmt::format("; {:.4g} are sent", point.load) : "");
    // No run is long enough for a load above the capacity, or one that may be above it.
    if (point.beyond() || !summary.stable || (std::isnan(point.capacity.value) && summary.overloaded)) continue;
    const std::size_t needed = load::requests_needed(summary, point.load, point.capacity.value);
    const bool recorded = !task.experiment.arrivals->with_requests(1);
    if (task.experiment.counts_requests && needed > summary.requests)
      print_output("{}: run too short for steady state: use {} requests or more{}\n", name, needed,
                   recorded ? "" : " (--requests)");
  }
}

// Prints the planned runs, without their duration, which depends on how full the server gets.
void print_plan(const ServeTask& task) {
  const bool two = task.both();
  const ServeExperiment first =
      task.sweep ? load::at_load(task.experiment, task.sweep->load, task.sweep->values.front(), "--sweep") : task.experiment;
  const arrivals::RequestTrace workload = load::make_requests(first);
  const std::size_t loads = task.sweep ? task.sweep->values.size() : 1;
  const std::size_t runs = loads * static_cast<std::size_t>(task.replications) * (two ? 2 : 1);
  print_output("{} of {}{} requests: {}, {}, {}\n", plural(runs, "run"), task.experiment.counts_requests ? "" : "at least ",
               workload.requests.size(), plural(loads, "load"), two ? "with speculation and without" : "one server",
               plural(static_cast<std::size_t>(task.replications), "time"));
  if (task.capacity && workload.concurrency == 0 && !load::hits_decide(first, workload))
    print_output("the largest stable rate: {} more, long enough to fill the batch 32 times (--no-capacity omits them)\n",
                 plural(static_cast<std::size_t>(task.replications) * (two ? 2 : 1), "run"));
  print_assumed(task.experiment);
}

// A run whose requests are not kept.
std::string run_streamed(const ServeTask& task, const std::atomic<bool>* stop, report::OutputFolder* folder) {
  if (task.steps || !task.timeline.empty())
    throw BadInput({task.steps ? "--steps" : "--timeline", 0, 0},
                   "metrics is streamed, so that no request is kept, allowed: serve.metrics: exact");
  const auto requests = static_cast<double>(task.experiment.arrivals->requests());
  Progress progress("requests");
  load::ServeOptions options;
  options.stop = stop;
  options.progress = [&](std::size_t done) { progress.show(static_cast<double>(done), requests); };
  std::vector<ServeExperiment> servers = {task.experiment};
  if (task.both()) servers.push_back(load::without_speculation(task.experiment));
  Summaries summaries;
  for (const ServeExperiment& one : servers) {
    const ServeResult served = load::serve_streamed(one, options, task.threads);
    if (served.result.interrupted) return "";
    summaries.emplace_back(one.speculation ? "speculative" : "plain", served.summary);
  }
  progress.finish();
  print_assumed(task.experiment);
  print_summaries(summaries);
  for (const auto& [name, summary] : summaries)
    if (!summary.stable)
      print_output("{}: UNSTABLE: {} of {:.0f} requests are never admitted again: the pool is too small for them\n", name,
                   requests - static_cast<double>(summary.completed), requests);
  print_output("percentiles are within {:g} % of the exact ones (metrics: streamed)\n",
               100.0 * math::QuantileSketch::kRelativeError);
  if (folder == nullptr) return "none";
  folder->write("summary.csv", load::summary_csv(summaries));
  return "summary.csv";
}

std::string run_once(const ServeTask& task, const std::atomic<bool>* stop, report::OutputFolder* folder) {
  if (task.experiment.streamed) return run_streamed(task, stop, folder);
  SingleRun single = sized(task, stop);
  if (stop->load()) return "";
  const ServeExperiment& experiment = single.experiment;
  const arrivals::RequestTrace workload = load::make_requests(experiment, stop);
  if (stop->load()) return "";
  Progress progress("requests");
  load::ServeOptions options;
  options.stop = stop;
  options.progress = [&](std::size_t done) {
    progress.show(static_cast<double>(done), static_cast<double>(workload.requests.size()));
  };
  std::optional<load::StepLog> log;
  std::optional<load::StepTimeline> timeline;
  load::StepObservers observers;
  if (task.steps) observers.add(log.emplace(folder->file("steps.csv")));
  if (!task.timeline.empty()) observers.add(timeline.emplace(task.timeline, task.tracks));
  if (observers.any()) options.observer = &observers;
  ServeResult own = load::serve(experiment, workload, options);
  options.observer = nullptr;
  bool interrupted = own.result.interrupted;
  Summaries summaries = {{task.experiment.speculation ? "speculative" : "plain", own.summary}};
  std::optional<ServeResult> plain;
  if (task.both() && !interrupted) {
    plain = load::serve(load::without_speculation(experiment), workload, options);
    interrupted = plain->result.interrupted;
    summaries.emplace_back("plain", plain->summary);
  }
  progress.finish();
  if (interrupted) return "";
  const load::RunSpread spread = load::spread_of_runs(experiment, options, own.summary, plain ? &plain->summary : nullptr);
  if (stop->load()) return "";
  progress.finish();
  load::widen(summaries.front().second, spread);
  if (workload.concurrency == 0) compare_with_capacity(single, summaries);
  print_assumed(experiment);
  print_summaries(summaries);
  if (spread.tpot > 0.0)
    print_words(
        fmt::format("policy {} can settle on other draft lengths in another run: intervals of TTFT and TPOT are from {} runs",
                    experiment.speculation->policy_name, load::kRunsOfSpread));
  load::ClassTable classes;
  for (load::ClassSummary& one : load::class_summaries(experiment, workload, own.result))
    classes.push_back({summaries.front().first, std::move(one)});
  if (plain)
    for (load::ClassSummary& one : load::class_summaries(experiment, workload, plain->result))
      classes.push_back({summaries.back().first, std::move(one)});
  print_classes(classes);
  if (!own.summary.stable)
    print_output("UNSTABLE: {} of {} requests {}\n", workload.requests.size() - own.summary.completed, workload.requests.size(),
                 experiment.horizon == arrivals::kNever ? "are never admitted again: the pool is too small for them"
                                                        : "had not ended when the horizon was reached");
  if (plain) {
    const std::string said =
        load::single_verdict(plain->result, summaries.back().second, own.result, summaries.front().second,
                             workload.concurrency > 0, load::comparison_error(experiment, own.summary, plain->summary), spread);
    if (!said.empty()) print_words(said);
  }
  print_stability(task, single, summaries, stop);
  if (const std::string why = no_capacity(experiment, workload, "a sweep shows"); !why.empty()) print_output("{}\n", why);
  const bool unknown = std::any_of(single.points.begin(), single.points.end(),
                                   [](const load::CurvePoint& point) { return std::isnan(point.capacity.value); });
  if (unknown && task.capacity && workload.concurrency == 0 && task.experiment.arrivals->with_requests(1) &&
      !load::hits_decide(experiment, workload))
    print_words(
        "no largest stable rate is given: the longer run for it meets a request that can never be served, or does "
        "not "
        "end (--requests with a larger number shows which)");
  for (const std::string& line : idle_options(experiment, workload)) print_output("{}\n", line);
  if (const std::string limit = own_limit(experiment, own.summary); !limit.empty()) print_words(limit);
  if (experiment.prefill_engines > 0)
    print_output("first tokens come from the engines that {}; the link between them is busy for {:.3g} % of the run{}\n",
                 experiment.first_token_of_decode ? "decode" : "compute prompts", 100.0 * serve::link_busy_share(own.result),
                 serve::link_busy_share(own.result) > 0.9 ? ": it limits the rate" : "");
  if (const std::size_t early = serve::early_requests(workload, own.result); early > 0)
    print_output(
        "TOO EARLY: {} of {} requests were sent before the answer in their prompt was complete, which no client "
        "can do, allowed: closed: true, a longer gap_s or less load\n",
        early, workload.requests.size());
  if (experiment.speculation) print_best_lengths(experiment, workload, own.summary.mean_batch, own.summary.largest_batch);
  if (timeline) {
    timeline->close();
    print_output("wrote {}\n", task.timeline);
  }
  if (folder == nullptr) return "none";
  folder->write("summary.csv", load::summary_csv(summaries));
  folder->write("requests.csv", load::requests_csv(own.result));
  if (plain) folder->write("requests_plain.csv", load::requests_csv(plain->result));
  std::string written = plain ? "summary.csv, requests.csv, requests_plain.csv" : "summary.csv, requests.csv";
  if (!classes.empty()) {
    folder->write("classes.csv", load::classes_csv(classes));
    written += ", classes.csv";
  }
  if (!log) return written;
  log->commit();
  folder->wrote("steps.csv");
  return written + ", steps.csv";
}

// The input files of the simulation except the config, whose text the identity already covers.
std::vector<FileSum> inputs_of(const std::string& config, std::vector<FileSum> inputs) {
  std::erase_if(inputs, [&](const FileSum& one) { return one.name == config; });
  return inputs;
}

// Claims the output folder. A single run does not resume an unfinished sweep in it.
void claim(const ServeTask& task, const std::vector<FileSum>& inputs, report::OutputFolder& folder) {
  if (!task.sweep && !task.force && folder.has(kJournal))
    throw BadInput({folder.file(kJournal), 0, 0}, "an unfinished run is here, allowed: another --out, or --force to delete it");
  claim_run(folder, kServeFiles, task.identity, inputs, task.resume, task.force);
}

}  // namespace

ExitCode serve_command(const std::vector<std::string>& arguments) {
  ServeTask task;
  CommandLine line("specsim serve [CONFIG] [options]", kServeExamples);
  add_serve_options(line, task);
  if (!line.read(arguments)) return ExitCode::fine;
  const double started = wall_clock();
  const FilesRead read;
  read_serve_task(line, read, task);
  for (const auto& warnings : {task.experiment.cost->warnings(), task.experiment.warnings})
    for (const std::string& warning : warnings) print_warning(warning);
  if (task.experiment.speculation) warn_of_pair(task.experiment.cost->deployment(), task.acceptance.table);
  if (task.dry_run) {
    print_plan(task);
    return ExitCode::fine;
  }

  std::optional<report::OutputFolder> folder;
  std::optional<SweepJournal> journal;
  const std::vector<FileSum> sums = read.sums();
  const std::vector<FileSum> inputs = inputs_of(task.experiment.file, sums);
  if (!task.out.empty()) claim(task, inputs, folder.emplace(task.out));
  if (folder && task.sweep) journal.emplace(folder->file(kJournal), run::new_origin(task.identity, inputs), task.resume);
  std::optional<StopOnSignal> stop(std::in_place);
  report::OutputFolder* const into = folder ? &*folder : nullptr;
  std::string written;
  try {
    written =
        task.sweep ? run_sweep(task, stop->flag(), into, journal ? &*journal : nullptr) : run_once(task, stop->flag(), into);
  } catch (const BadInput&) {  // the run cannot be resumed
    if (journal) folder->remove(kJournal);
    throw;
  }
  stop.reset();  // from here on the journal has everything
  if (written.empty()) {
    print_error("stopped before the end; {}\n", journal ? journal->how_to_continue() : "nothing was kept");
    return ExitCode::interrupted;
  }
  if (folder) {
    report::Manifest manifest = report::new_manifest(command_line());
    manifest.files = {task.experiment.file};
    manifest.configs = {task.experiment.config.line};
    manifest.threads = task.threads;
    manifest.identity = task.identity;
    manifest.inputs = sums;
    manifest.wall_seconds = wall_clock() - started;
    folder->finish(manifest);
    if (journal) folder->remove(kJournal);
    print_output("wrote {}/{}, manifest.yaml; specsim plot {} draws them\n", task.out, written, shell_word(task.out));
  }
  return ExitCode::fine;
}

}  // namespace specsim::cli
