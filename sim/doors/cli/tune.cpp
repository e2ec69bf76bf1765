// specsim tune: learns from benchmark runs how a server differs from the estimate, and suggests what to measure next.
#include "sim/answers/tune/suggest.h"
#include "sim/doors/cli/command.h"
#include "sim/doors/cli/options.h"
#include "sim/doors/cli/output_form.h"
#include "sim/doors/cli/result_files.h"
#include "sim/doors/cli/stop.h"
#include "sim/foundation/base/output.h"
#include "sim/foundation/base/plural.h"
#include "sim/foundation/base/shell_word.h"
#include "sim/foundation/report/csv.h"
#include "sim/foundation/report/intervals.h"
#include "sim/foundation/report/output_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

namespace specsim::cli {

namespace {

constexpr double kDisagrees = 0.3;  // weight below which a run is reported

const std::vector<std::string> kTuneFiles = {"server.yaml", "runs.csv", "predicted.csv", "slopes.csv"};

constexpr const char* kTuneExamples =
    "  specsim tune plain.json k3.json --hardware h100-sxm --target llama-3.1-8b --draft eagle3-llama-3.1-8b --out build/server\n"
    "  specsim tune plain.jsonl k3.jsonl@k=3 --engine sglang --hardware h100-sxm --target llama-3.1-8b --draft "
    "eagle3-llama-3.1-8b\n"
    "  specsim plan --engine build/server/server.yaml --hardware h100-sxm --target llama-3.1-8b --draft eagle3-llama-3.1-8b "
    "--alpha 0.7\n"
    "  specsim tune runs.csv --predict cells.csv --hardware a100-80gb-sxm --target llama-3.1-8b --draft eagle3-llama-3.1-8b "
    "--out build/server\n"
    "  specsim tune --suggest 2 --hardware h100-sxm --target llama-3.1-8b --draft eagle3-llama-3.1-8b\n";

struct TuneTask {
  tune::TuneRequest request;
  ConfigOptions configs;  // files: runs, and a config
  std::string predict;    // cells to predict; "": none
  std::optional<double> prompt_tokens;
  std::optional<double> output_tokens;
  int longest = 7;
  double clients = 64.0;
  std::optional<std::size_t> suggest;
  tune::Question question = tune::Question::best_draft_length;
  int draft_length = 3;
  std::optional<double> minutes;
  double settled = 0.5;  // percent; below it no run is suggested
  std::string out;
  bool force = false;
};

bool is_config(const std::string& path) { return path.ends_with(".yaml") || path.ends_with(".yml"); }

// The lengths for suggested runs: those of the last run, or of the options.
tune::Run typical(const TuneTask& task) {
  tune::Run run;
  if (!task.request.runs.empty()) run = task.request.runs.back();
  if (task.prompt_tokens) run.prompt_tokens = task.prompt_tokens;
  if (task.output_tokens) run.output_tokens = task.output_tokens;
  if (!run.prompt_tokens) run.prompt_tokens = 512.0;
  if (!run.output_tokens) run.output_tokens = 256.0;
  return run;
}

void add_tune_options(CommandLine& line, TuneTask& task) {
  load::ServeRequest& server = task.request.server;
  task.request.options.threads = 0;
  line.add_words("file", task.configs.files);
  line.add(
      {{"hardware", server.hardware, "the GPU: a name (specsim list hardware) or a file"},
       {"target", server.target, "the target model: a name (specsim list model) or a file"},
       {"draft", server.draft, "the draft model"},
       {"tensor-parallel", server.tensor_parallel, "GPUs that share each layer of the models"},
       {"dtype", server.dtype, "types of the target: fp8, int4, q4_k_m, ..., or {weights: int4, activations: bf16, cache: fp8}"},
       {"engine", server.engine,
        "the server's engine: a name (specsim list engine), or a server.yaml of earlier runs to continue"},
       {"method", server.method, "eagle, draft_model or ngram; default: by the draft"},
       {"set", task.configs.sets, "PATH=VALUE changes a value of the server's config"},
       {"seed", server.seed, "seed of the simulated runs"},
       {"predict", task.predict, file_name, "CSV file of runs to predict, written to OUT/predicted.csv"},
       {"suggest", task.suggest, config::between(1, 100),
        "print the next N runs to measure, the most valuable one first; among those of --predict if given"},
       {"question",
        task.question,
        {{"best-draft-length", tune::Question::best_draft_length},
         {"pays", tune::Question::pays},
         {"max-rate", tune::Question::max_rate}},
        "the decision that the runs serve: best-draft-length, pays, max-rate"},
       {"draft-length", task.draft_length, config::between(1, 1024),
        "draft length that --question pays compares with no speculation"},
       {"settled", task.settled, config::between(0, 100),
        "suggest no more runs once perfect knowledge of every speed would gain less than this percentage"},
       {"minutes", task.minutes, config::between(0.01, 1e5), "longest total time of suggested runs"},
       {"prompt", task.prompt_tokens, config::between(1, 1e7), "tokens of a prompt in suggested runs"},
       {"output", task.output_tokens, config::between(1, 1e7), "tokens of an output in suggested runs"},
       {"longest", task.longest, config::between(1, 64), "longest draft length in suggested runs"},
       {"clients", task.clients, config::between(1, 4096), "maximum number of clients in suggested runs"},
       {"out", task.out, "directory for server.yaml, runs.csv, predicted.csv and slopes.csv"},
       {"force", task.force, "replace other files in --out"},
       {"threads", task.request.options.threads, read_threads, kThreadsHelp}});
}

// Reads the files that the options name.
void read_files(TuneTask& task) {
  Diagnostics diagnostics;
  std::vector<std::string> warnings;
  load::ServeRequest& server = task.request.server;
  for (const std::string& path : task.configs.files) {
    if (!is_config(path)) {
      for (tune::Run& run : tune::read_runs(path, diagnostics, &warnings)) task.request.runs.push_back(std::move(run));
    } else if (server.config) {
      diagnostics.add({path, 0, 0}, "a second config, allowed: one");
    } else {
      server.config = path;
    }
  }
  server.changes = read_overrides(task.configs, diagnostics);
  if (!task.predict.empty()) task.request.cells = tune::read_runs(task.predict, diagnostics, &warnings);
  diagnostics.throw_if_any();
  for (const std::string& warning : warnings) print_warning(warning);
  if (task.request.runs.empty() && !task.suggest && task.predict.empty())
    throw BadInput({"", 0, 0}, "specsim tune needs runs, --suggest or --predict; specsim tune --help shows examples");
  if (task.suggest && task.predict.empty())
    task.request.cells = tune::usual_candidates(typical(task), task.longest, task.clients);
}

// The factors on which the runs have information: change of GPU time in percent, or milliseconds of host time, with 95 %
// intervals.
void print_factors(const tune::TuneResult& result) {
  report::Table table(
      report::heads("<factor,<unit,before,before low,before high,after,after low,after high,<what it scales or adds"));
  for (std::size_t i = 0; i < cost::kFactors; ++i) {
    const cost::FactorInfo& info = cost::factor_infos()[i];
    const double before = std::sqrt(result.prior.covariance[i][i]);
    const double after = std::sqrt(result.belief.covariance[i][i]);
    if (std::abs(after - before) < 1e-6 * before) continue;
    std::vector<std::string> cells = {info.key, info.logarithm ? "%" : "ms"};
    for (const auto& [mean, error] :
         {std::pair{result.prior.mean.values[i], before}, std::pair{result.belief.mean.values[i], after}})
      for (const double z : {0.0, -report::kIn95, report::kIn95})
        cells.push_back(info.logarithm ? fmt::format("{:.1f}", 100.0 * std::expm1(mean + z * error))
                                       : fmt::format("{:.3g}", 1e-3 * (mean + z * error)));
    cells.emplace_back(info.meaning);
    table.add(cells);
  }
  print_table(table);
}

void print_runs(const TuneTask& task, const tune::TuneResult& result) {
  report::Table table(
      report::heads("<run,TTFT ms,TTFT error %,TPOT ms,TPOT error %,tokens/s,tokens/s error %,weight,TTFT weight"));
  for (std::size_t i = 0; i < task.request.runs.size(); ++i) {
    const tune::Run& run = task.request.runs[i];
    std::vector<std::string> cells = {run.name};
    for (std::size_t metric = 0; metric < tune::kMetrics; ++metric) {
      cells.push_back(run.measured[metric] ? fmt::format("{:.4g}", *run.measured[metric]) : "-");
      cells.push_back(report::cell_text(100.0 * std::expm1(-result.fits[i].residual[metric]), "{:.1f}"));
    }
    for (const double weight : {result.fits[i].weight, result.fits[i].ttft_weight})
      cells.push_back(fmt::format("{:.2f}", weight));
    table.add(cells);
  }
  print_table(table);
  for (std::size_t i = 0; i < task.request.runs.size(); ++i) {
    const std::string& name = task.request.runs[i].name;
    if (result.fits[i].weight < kDisagrees)
      print_words(fmt::format(
          "{} does not agree with the other runs and has little influence. Was the server warm, and were its flags the same?",
          name));
    else if (result.fits[i].ttft_weight < kDisagrees)
      print_words(fmt::format(
          "TTFT of {} does not agree with the other runs and has little influence. Did all clients send at the same moments?",
          name));
  }
}

std::string runs_csv(const TuneTask& task, const tune::TuneResult& result) {
  std::vector<std::string> header = {"run", "draft_length", "weight", "ttft_weight"};
  for (const char* const name : tune::metric_names())
    for (const char* const suffix : {"", "_estimated", "_tuned"}) header.push_back(fmt::format("{}{}", name, suffix));
  report::Csv csv(header);
  for (std::size_t i = 0; i < task.request.runs.size(); ++i) {
    const tune::Run& run = task.request.runs[i];
    std::vector<std::string> fields = {run.name, fmt::format("{}", run.draft_length), report::csv_real(result.fits[i].weight, 4),
                                       report::csv_real(result.fits[i].ttft_weight, 4)};
    for (std::size_t metric = 0; metric < tune::kMetrics; ++metric) {
      const std::optional<double>& measured = run.measured[metric];
      fields.push_back(measured ? report::csv_real(*measured) : "");
      fields.push_back(report::csv_real(std::exp(result.prior_means[i][metric]), 6));
      fields.push_back(measured ? report::csv_real(*measured * std::exp(-result.fits[i].residual[metric]), 6) : "");
    }
    csv.add(fields);
  }
  return csv.text();
}

// The benchmark command for the user's client. Settings that the run does not fix keep the client's defaults.
std::string client_command(const tune::Run& run, const std::string& engine, const std::string& model) {
  const auto option = [](const char* name, const std::optional<double>& value) {
    return value ? fmt::format(" {} {:.6g}", name, std::round(*value)) : std::string();
  };
  const auto load = [&] {
    return (run.rate ? fmt::format(" --request-rate {:.6g}", *run.rate) : "") + option("--max-concurrency", run.concurrency);
  };
  const std::string requests = option("--num-prompts", run.requests ? run.requests : 100.0);
  if (engine.starts_with("sglang"))
    return fmt::format("python3 -m sglang.bench_serving --backend sglang --dataset-name sharegpt{}{}{} --output-file {}.jsonl",
                       requests, load(), option("--sharegpt-output-len", run.output_tokens), shell_word(run.name));
  if (engine.starts_with("llama_cpp"))
    return fmt::format("llama-benchy{}{}{} --save-result {}.json", option("--concurrency", run.concurrency),
                       option("--pp", run.prompt_tokens), option("--tg", run.output_tokens), shell_word(run.name));
  return fmt::format(
      "vllm bench serve --model {} --dataset-name hf --dataset-path philschmid/mt-bench{}{}{} --save-result "
      "--result-filename {}.json",
      shell_word(fmt::format("<path of {}>", model)), option("--hf-output-len", run.output_tokens), requests, load(),
      shell_word(run.name));
}

void print_suggestions(const TuneTask& task, const tune::TuneResult& result) {
  const tune::SuggestionList suggested =
      tune::suggest(task.request.cells, result, task.question, task.draft_length, *task.suggest, task.request.runs);
  const double settled = 0.01 * task.settled;
  if (suggested.open < settled && !task.request.runs.empty()) {
    print_output("settled: knowing every speed exactly would gain {:.2g} %\n", 100.0 * suggested.open);
    return;
  }
  print_output("open: knowing every speed exactly would gain {:.2g} %\n", 100.0 * suggested.open);
  report::Table table(report::heads("next,<run,draft length,clients,minutes,gain %,open after %,<command"));
  double minutes = 0.0;
  const std::string engine = task.request.server.engine.value_or("vllm");
  for (std::size_t i = 0; i < suggested.suggestions.size(); ++i) {
    const tune::Suggestion& one = suggested.suggestions[i];
    const tune::Run& run = task.request.cells[one.cell];
    const double own = result.predictions[one.cell].seconds / 60.0;
    if (task.minutes && minutes + own > *task.minutes) break;
    minutes += own;
    table.add({fmt::format("{}", i + 1), run.name, fmt::format("{}", run.draft_length),
               fmt::format("{:.0f}", run.concurrency.value_or(0.0)), fmt::format("{:.1f}", own),
               fmt::format("{:.2f}", 100.0 * one.value), fmt::format("{:.2f}", 100.0 * one.open_after),
               client_command(run, engine, task.request.server.target.value_or("MODEL"))});
    // One kind of run is not enough to know a server.
    if (one.open_after < settled && (i > 0 || !task.request.runs.empty())) break;
  }
  if (table.empty())
    print_output("no run fits into --minutes {:g}\n", task.minutes.value_or(0.0));
  else
    print_table(table);
}

}  // namespace

ExitCode tune_command(const std::vector<std::string>& arguments) {
  TuneTask task;
  CommandLine line("specsim tune RUNS... [CONFIG] [options]", kTuneExamples);
  add_tune_options(line, task);
  if (!line.read(arguments)) return ExitCode::fine;
  const double started = wall_clock();
  const FilesRead read;
  read_files(task);
  std::optional<report::OutputFolder> folder;
  const std::vector<FileSum> inputs = read.sums();
  const std::string identity = line.identity({"predict"});
  if (!task.out.empty()) folder.emplace(task.out).claim(claim_at_once(kTuneFiles, identity, task.force, inputs));
  Progress progress("of the simulations");
  StopOnSignal stop;
  task.request.options.stop = stop.flag();
  task.request.options.progress = [&](double share) { progress.show(share, 1.0); };
  const tune::TuneResult result = tune::tune(task.request);
  progress.finish();
  if (stop.flag()->load()) {
    print_error("stopped before the end; nothing was kept\n");
    return ExitCode::interrupted;
  }
  if (!task.request.runs.empty()) {
    for (const std::string& sentence : tune::findings(result)) print_words(sentence);
    print_output("\n");
    print_factors(result);
    print_output("\n");
    print_runs(task, result);
  }
  if (task.suggest) print_suggestions(task, result);
  if (folder) {
    std::string written = "server.yaml";
    folder->write("server.yaml", tune::server_yaml(task.request, result));
    if (!task.request.runs.empty()) folder->write("runs.csv", runs_csv(task, result));
    if (!task.predict.empty()) {
      folder->write("predicted.csv", tune::predictions_csv(task.request.cells, result.expected));
      folder->write("slopes.csv", tune::slopes_csv(task.request.cells, result.predictions, result.acceptances));
    }
    report::Manifest manifest = report::new_manifest(command_line());
    manifest.threads = task.request.options.threads;
    manifest.identity = identity;
    manifest.inputs = inputs;
    manifest.wall_seconds = wall_clock() - started;
    folder->finish(manifest);
    print_output("wrote {}/server.yaml{}; use it with --engine {}/server.yaml\n", task.out,
                 !task.predict.empty() ? ", predicted.csv, slopes.csv" : "", task.out);
  } else if (!task.predict.empty() && !task.suggest) {
    print_output("{}", tune::predictions_csv(task.request.cells, result.expected));
  }
  return ExitCode::fine;
}

}  // namespace specsim::cli
