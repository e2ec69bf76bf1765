// specsim serve: a server under load, with speculation and without.
#include "sim/base/files_read.h"
#include "sim/base/output.h"
#include "sim/cli/command.h"
#include "sim/cli/numbers.h"
#include "sim/cli/options.h"
#include "sim/cli/stop.h"
#include "sim/report/csv.h"
#include "sim/report/output_folder.h"
#include "sim/report/table.h"
#include "sim/rng/address.h"
#include "sim/serve/curve.h"
#include "sim/serve/experiment.h"
#include "sim/serve/outputs.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <cstdio>
#include <optional>
#include <utility>

namespace specsim::cli {

namespace po = boost::program_options;

namespace {

using serve::Served;
using serve::ServeExperiment;
using serve::Summary;

const std::vector<std::string> kFiles = {"summary.csv", "requests.csv", "steps.csv", "curve.csv"};

config::Value scalar_of(const std::string& text, const std::string& option) { return config::scalar(text, {option, 0, 0}); }

// Puts what the options say into the config.
class ConfigEditor {
 public:
  ConfigEditor(config::Value& config, const po::variables_map& values, Diagnostics& diagnostics)
      : config_(config), values_(values), diagnostics_(diagnostics) {}

  [[nodiscard]] bool has(const char* option) const { return values_.count(option) > 0; }
  [[nodiscard]] const std::string& text(const char* option) const { return values_[option].as<std::string>(); }
  void set(const std::string& path, config::Value value) {
    const Location where = value.where;
    config::set_path(config_, path, std::move(value), where, diagnostics_);
  }
  // A path's value from an option; flow-style YAML is taken too.
  void take(const char* option, const std::string& path) {
    if (has(option)) set(path, config::parse_text(text(option), std::string("--") + option, diagnostics_));
  }
  void take(const char* option, const std::string& path, const char* fallback) {
    if (has(option))
      take(option, path);
    else if (config::find_path(config_, path) == nullptr)
      set(path, config::parse_text(fallback, std::string("--") + option, diagnostics_));
  }

 private:
  config::Value& config_;
  const po::variables_map& values_;
  Diagnostics& diagnostics_;
};

// off, fixed:3, table:1-4=5,5-64=3, goodput; or {kind: ...}.
config::Value policy_of(const std::string& text, Diagnostics& diagnostics) {
  const std::string option = "--policy";
  if (text.starts_with("{")) return config::parse_text(text, option, diagnostics);
  const std::size_t colon = text.find(':');
  const std::string kind = text.substr(0, colon);
  config::Value policy = config::map({{"kind", scalar_of(kind, option)}}, {option, 0, 0});
  if (colon == std::string::npos) return policy;
  const std::string rest = text.substr(colon + 1);
  if (kind == "table") {
    config::Value table;
    table.kind = config::Kind::list;
    table.where = {option, 0, 0};
    for (const std::string& range : read_texts(rest, option)) {
      long long from = 0;
      long long to = 0;
      long long length = 0;
      char more = 0;
      if (std::sscanf(range.c_str(), "%lld-%lld=%lld%c", &from, &to, &length, &more) != 3)
        throw BadInput({option, 0, 0}, fmt::format("{} in the table, allowed: FROM-TO=DRAFT_LENGTH, as table:1-4=5,5-64=3",
                                                   config::quote_for_message(range)));
      config::Value row;
      row.kind = config::Kind::list;
      row.where = {option, 0, 0};
      for (const long long x : {from, to, length}) row.items.push_back(scalar_of(std::to_string(x), option));
      table.items.push_back(std::move(row));
    }
    policy.fields.push_back({"table", {option, 0, 0}, std::move(table)});
  } else {
    policy.fields.push_back({kind == "goodput" ? "longest" : "draft_length", {option, 0, 0}, scalar_of(rest, option)});
  }
  return policy;
}

// The server that flags alone describe, where there is no config.
void fill_defaults(ConfigEditor& editor) {
  editor.take("hardware", "cost.hardware", "h100-sxm");
  editor.take("target", "cost.target", "llama-3.1-8b");
  editor.take("draft", "cost.draft", "none");
  editor.set("cost.model", scalar_of("roofline", "--hardware"));
  editor.set("serve.kv.utilization", scalar_of("0.9", "--hardware"));
  editor.set("serve.scheduler.kind", scalar_of("vllm_v1", "--hardware"));
}

config::Value build_config(const po::variables_map& values, Diagnostics& diagnostics, std::string& file) {
  const bool given = values.count("config") > 0;
  config::Value config = config::map({}, {"the options", 0, 0});
  file = "the options";
  if (given) {
    const auto& files = values["config"].as<std::vector<std::string>>();
    if (files.size() > 1) throw BadInput({files[1], 0, 0}, "a second config, allowed: one");
    file = files.front();
    config = config::parse_file(file, diagnostics);
    diagnostics.throw_if_any();
  }
  ConfigEditor editor(config, values, diagnostics);
  if (values.count("set") > 0)
    for (const spec::Override& one : read_overrides(values["set"].as<std::vector<std::string>>(), "", diagnostics))
      editor.set(one.path, one.value);
  editor.take("seed", "seed");
  if (!given) fill_defaults(editor);
  if (given) {
    editor.take("hardware", "cost.hardware");
    editor.take("target", "cost.target");
    editor.take("draft", "cost.draft");
  }
  const int loads = (editor.has("rate") ? 1 : 0) + (editor.has("concurrency") ? 1 : 0) + (editor.has("trace") ? 1 : 0);
  if (loads > 1) throw BadInput({"--rate", 0, 0}, "given with another load, allowed: one of --rate, --concurrency, --trace");
  if (loads == 0 && !given && !editor.has("sweep"))
    throw BadInput({"", 0, 0},
                   "specsim serve needs a config, or a load: --rate, --concurrency, --trace or --sweep; specsim serve --help "
                   "shows examples");
  if (loads > 0 || !given) {
    if (given && loads > 0) editor.set("serve.arrivals", config::map({}, {"--rate", 0, 0}));
    const bool closed = editor.has("concurrency") || (editor.has("sweep") && editor.text("sweep").starts_with("concurrency"));
    if (editor.has("trace")) {
      editor.set("serve.arrivals.process", scalar_of("trace", "--trace"));
      editor.take("trace", "serve.arrivals.file");
    } else if (closed) {
      editor.set("serve.arrivals.process", scalar_of("closed", "--concurrency"));
      editor.take("concurrency", "serve.arrivals.concurrency", "1");
    } else {
      editor.set("serve.arrivals.process", scalar_of("poisson", "--rate"));
      editor.take("rate", "serve.arrivals.rate", "1");
    }
  }
  editor.take("requests", "serve.arrivals.requests");
  if (!given && !editor.has("trace")) {
    editor.take("prompt", "serve.lengths.prompt", "{lognormal: {mean: 512, cv: 1}}");
    editor.take("output", "serve.lengths.output", "{lognormal: {mean: 256, cv: 1}}");
  } else {
    editor.take("prompt", "serve.lengths.prompt");
    editor.take("output", "serve.lengths.output");
  }
  if (editor.has("policy")) editor.set("serve.speculation.policy", policy_of(editor.text("policy"), diagnostics));
  if (editor.has("position-rates")) {
    config::Value rates;
    rates.kind = config::Kind::list;
    rates.where = {"--position-rates", 0, 0};
    for (const double rate : read_shares(editor.text("position-rates"), "--position-rates"))
      rates.items.push_back(scalar_of(fmt::format("{}", rate), "--position-rates"));
    editor.set("serve.speculation.acceptance", config::map({{"position_rates", std::move(rates)}}, {"--position-rates", 0, 0}));
  }
  if (editor.has("alpha"))
    editor.set("serve.speculation.acceptance",
               config::map({{"alpha", scalar_of(fmt::format("{}", read_share(editor.text("alpha"), "--alpha")), "--alpha")}},
                           {"--alpha", 0, 0}));
  editor.take("method", "serve.speculation.method");
  if (config::Value* replicas = config.find("serve") != nullptr ? config.find("serve")->find("replicas") : nullptr;
      replicas != nullptr && replicas->is_scalar() && (editor.has("replicas") || editor.has("routing")))
    *replicas = config::map({{"count", *replicas}}, replicas->where);
  editor.take("replicas", "serve.replicas.count");
  editor.take("routing", "serve.replicas.routing");
  if (editor.has("slo"))
    for (const std::string& part : read_texts(editor.text("slo"), "--slo")) {
      const std::size_t equals = part.find('=');
      if (equals == std::string::npos)
        throw BadInput({"--slo", 0, 0}, fmt::format("{}, allowed: ttft=MS,tpot=MS,e2el=MS", config::quote_for_message(part)));
      editor.set("serve.slo." + part.substr(0, equals) + "_ms", scalar_of(part.substr(equals + 1), "--slo"));
    }
  return config;
}

struct Sweep {
  serve::Load load = serve::Load::rate;
  std::vector<double> values;
};

// rate=1:40:8, concurrency=1,2,4,8
Sweep read_sweep(const std::string& text) {
  const std::size_t equals = text.find('=');
  const std::string name = text.substr(0, equals);
  if (equals == std::string::npos || (name != "rate" && name != "concurrency"))
    throw BadInput({"--sweep", 0, 0}, fmt::format("{}, allowed: rate=FROM:TO:COUNT, rate=1,2,4 or concurrency=1,2,4",
                                                  config::quote_for_message(text)));
  Sweep sweep;
  sweep.load = name == "rate" ? serve::Load::rate : serve::Load::concurrency;
  const std::string list = text.substr(equals + 1);
  const config::Interval allowed = sweep.load == serve::Load::rate ? config::between(1e-9, 1e9) : config::between(1, 1e7);
  if (const std::size_t colon = list.find(':'); colon != std::string::npos) {
    const std::size_t second = list.find(':', colon + 1);
    if (second == std::string::npos)
      throw BadInput({"--sweep", 0, 0}, fmt::format("{}, allowed: FROM:TO:COUNT or a list", config::quote_for_message(list)));
    const double from = read_number(list.substr(0, colon), "--sweep", allowed);
    const double to = read_number(list.substr(colon + 1, second - colon - 1), "--sweep", allowed);
    const std::int64_t count = read_integer(list.substr(second + 1), "--sweep", config::between(2, 10000));
    for (std::int64_t i = 0; i < count; ++i) {
      const double value = from + (to - from) * static_cast<double>(i) / static_cast<double>(count - 1);
      sweep.values.push_back(sweep.load == serve::Load::rate ? value : std::round(value));
    }
    return sweep;
  }
  if (sweep.load == serve::Load::rate) {
    sweep.values = read_numbers(list, "--sweep", allowed);
  } else {
    for (const std::int64_t value : read_integers(list, "--sweep", allowed)) sweep.values.push_back(static_cast<double>(value));
  }
  return sweep;
}

std::string figure_text(double x) { return report::cell_text(x, x >= 1000.0 ? "{:.0f}" : x >= 100.0 ? "{:.1f}" : "{:.2f}"); }

void print_summaries(const std::vector<std::pair<std::string, Summary>>& summaries) {
  std::vector<report::Head> heads = {{"", report::Align::left}};
  for (const auto& [name, summary] : summaries) heads.push_back({name});
  report::Table table(heads, {.indent = 2});
  const auto row = [&](const std::string& name, auto of) {
    std::vector<std::string> cells = {name};
    for (const auto& [unused, summary] : summaries) cells.push_back(of(summary));
    table.add(cells);
  };
  const auto number = [&](const std::string& name, double (*of)(const Summary&)) {
    row(name, [&](const Summary& s) { return figure_text(of(s)); });
  };
  const auto spread = [&](const char* name, serve::Statistics Summary::*of) {
    row(fmt::format("{} ms: mean, p50, p99", name), [&](const Summary& s) {
      const serve::Statistics& one = s.*of;
      return fmt::format("{}, {}, {}", figure_text(one.mean), figure_text(one.p50), figure_text(one.p99));
    });
  };
  row("requests completed", [](const Summary& s) { return fmt::format("{} of {}", s.completed, s.requests); });
  number("requests/s", [](const Summary& s) { return s.request_throughput; });
  number("output tokens/s", [](const Summary& s) { return s.output_throughput; });
  spread("TTFT", &Summary::ttft_ms);
  spread("TPOT", &Summary::tpot_ms);
  spread("ITL, a chunk", &Summary::itl_ms);
  spread("ITL, a token", &Summary::itl_token_ms);
  spread("end to end", &Summary::e2el_ms);
  number("mean batch", [](const Summary& s) { return s.mean_batch; });
  number("mean concurrency", [](const Summary& s) { return s.mean_concurrency; });
  number("tokens/round", [](const Summary& s) { return s.tokens_per_round; });
  number("accepted/drafted", [](const Summary& s) { return s.acceptance_rate; });
  row("overloaded", [](const Summary& s) { return std::string(s.overloaded ? "yes: the queue grew to the end" : "no"); });
  number("preemptions", [](const Summary& s) { return s.preemptions; });
  number("cache, tokens (0: no limit)", [](const Summary& s) { return s.pool_tokens; });
  bool limits = false;
  for (const auto& [unused, summary] : summaries) limits = limits || !std::isnan(summary.request_goodput);
  if (limits) {
    number("goodput, requests/s within the SLO", [](const Summary& s) { return s.request_goodput; });
    row("SLO kept", [](const Summary& s) { return std::string(s.meets_slo ? "yes" : "no"); });
  }
  print_output("{}", table.text(output_width()));
  std::vector<report::Head> causes = {{"mean ms of a request's life", report::Align::left}};
  for (const auto& [name, summary] : summaries) causes.push_back({name});
  report::Table waterfall(causes, {.indent = 2});
  for (std::size_t cause = 0; cause < serve::kCauses; ++cause) {
    std::vector<std::string> cells = {serve::cause_names()[cause]};
    for (const auto& [name, summary] : summaries) cells.push_back(figure_text(summary.life_ms[cause]));
    waterfall.add(cells);
  }
  print_output("\n{}", waterfall.text(output_width()));
}

std::string summary_csv(const std::vector<std::pair<std::string, Summary>>& summaries) {
  std::string text;
  for (const auto& [name, summary] : summaries) {
    const auto columns = serve::summary_columns(summary);
    if (text.empty()) {
      text = "server";
      for (const auto& [column, value] : columns) text += "," + column;
      text += "\n";
    }
    text += name;
    for (const auto& [column, value] : columns) text += "," + report::csv_real(value);
    text += "\n";
  }
  return text;
}

void print_curve(const std::vector<serve::CurvePoint>& curve, serve::Load load) {
  report::Table table({{load_name(load)},
                       {"speculation", report::Align::left},
                       {"TTFT ms"},
                       {"p99"},
                       {"TPOT ms"},
                       {"p99"},
                       {"tokens/s"},
                       {"batch"},
                       {"tokens/round"},
                       {"SLO", report::Align::left}},
                      {.indent = 2, .keys = 2});
  for (const serve::CurvePoint& point : curve) {
    const auto mean = [&](double (*of)(const Summary&)) { return figure_text(serve::figure(point, of).mean); };
    const auto interval = [&](double (*of)(const Summary&)) {
      const serve::CurveFigure one = serve::figure(point, of);
      return figure_text(one.mean) + (std::isnan(one.half_width) ? "" : fmt::format(" ± {}", figure_text(one.half_width)));
    };
    bool stable = true;
    bool kept = true;
    for (const Summary& summary : point.replications) {
      stable = stable && summary.stable && !summary.overloaded;
      kept = kept && summary.meets_slo;
    }
    table.add({fmt::format("{:g}", point.load), point.speculative ? "yes" : "no",
               interval([](const Summary& s) { return s.ttft_ms.mean; }), mean([](const Summary& s) { return s.ttft_ms.p99; }),
               interval([](const Summary& s) { return s.tpot_ms.mean; }), mean([](const Summary& s) { return s.tpot_ms.p99; }),
               interval([](const Summary& s) { return s.output_throughput; }),
               mean([](const Summary& s) { return s.mean_batch; }), mean([](const Summary& s) { return s.tokens_per_round; }),
               !stable ? "overloaded"
               : kept  ? "kept"
                       : "-"});
  }
  print_output("{}", table.text(output_width()));
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
  const config::Value config = build_config(values, diagnostics, file);
  diagnostics.throw_if_any();
  const ServeExperiment experiment = serve::read_serve_experiment(config, file, diagnostics);
  diagnostics.throw_if_any();
  const unsigned threads = read_threads(values["threads"].as<std::string>());
  const auto replications =
      static_cast<int>(read_integer(values["replications"].as<std::string>(), "--replications", config::between(1, 10000)));
  const bool both = values.count("alone") == 0;
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
  Progress progress(values.count("sweep") > 0 ? "runs" : "requests");
  serve::ServeOptions options;
  options.stop = stop.flag();
  std::string written;
  bool interrupted = false;
  if (values.count("sweep") > 0) {
    const Sweep sweep = read_sweep(values["sweep"].as<std::string>());
    const double runs = static_cast<double>(sweep.values.size()) * replications * (experiment.speculation && both ? 2.0 : 1.0);
    options.progress = [&](std::size_t done) { progress.show(static_cast<double>(done), runs); };
    const auto curve = serve::load_curve(experiment, sweep.load, sweep.values, replications, both, threads, "--sweep", options);
    progress.finish();
    interrupted = stop.flag()->load();
    if (!interrupted) {
      print_curve(curve, sweep.load);
      for (const std::string& line : serve::verdict(curve, sweep.load, experiment.slo)) print_output("{}\n", line);
      if (folder) {
        folder->write("curve.csv", serve::curve_csv(curve, sweep.load));
        written = "curve.csv";
      }
    }
  } else {
    const serve::Workload workload = serve::make_workload(experiment);
    options.progress = [&](std::size_t done) {
      progress.show(static_cast<double>(done), static_cast<double>(workload.requests.size()));
    };
    std::optional<serve::StepLog> log;
    if (values.count("steps") > 0) options.observer = &log.emplace(folder->file("steps.csv"));
    const Served own = serve::serve(experiment, workload, options);
    options.observer = nullptr;
    interrupted = own.result.interrupted;
    std::vector<std::pair<std::string, Summary>> summaries = {{experiment.speculation ? "speculative" : "plain", own.summary}};
    if (experiment.speculation && both && !interrupted) {
      const Served plain = serve::serve(serve::without_speculation(experiment), workload, options);
      interrupted = plain.result.interrupted;
      summaries.emplace_back("plain", plain.summary);
    }
    progress.finish();
    if (!interrupted) {
      print_summaries(summaries);
      if (!own.summary.stable)
        print_output("UNSTABLE: {} of {} requests had not ended when the horizon was reached\n",
                     workload.requests.size() - own.summary.completed, workload.requests.size());
      if (folder) {
        folder->write("summary.csv", summary_csv(summaries));
        folder->write("requests.csv", serve::requests_csv(own.result));
        if (log) {
          log->commit();
          folder->wrote("steps.csv");
        }
        written = log ? "summary.csv, requests.csv, steps.csv" : "summary.csv, requests.csv";
      }
    }
  }
  if (interrupted) {
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
