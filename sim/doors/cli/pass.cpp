// specsim pass: the latency of one forward pass on a GPU, part by part.
#include "sim/answers/plan/passes.h"
#include "sim/doors/cli/command.h"
#include "sim/doors/cli/options.h"
#include "sim/doors/cli/output_form.h"
#include "sim/doors/cli/spending_options.h"
#include "sim/doors/cli/workload_options.h"
#include "sim/experiments/spec/engine_names.h"
#include "sim/foundation/base/output.h"
#include "sim/foundation/base/plural.h"
#include "sim/foundation/config/value.h"
#include "sim/foundation/report/intervals.h"
#include "sim/foundation/report/table.h"
#include "sim/hardware/gpu/kernel_names.h"
#include "sim/hardware/latency/cost_model.h"
#include "sim/hardware/latency/roofline.h"
#include "sim/hardware/model/element_types.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <tuple>
#include <utility>

namespace specsim::cli {

namespace {

using cost::PresetChoice;
using plan::EstimatedPass;
using plan::PassSetting;

constexpr std::size_t kMaxPasses = 1'000'000;

Location at_option(const std::string& option) { return {"--" + option, 0, 0}; }

void check_name(const std::string& option, const std::string& name, const std::vector<std::string>& names) {
  if (std::find(names.begin(), names.end(), name) != names.end()) return;
  throw BadInput(at_option(option), config::unknown_name(option + " is", name, names));
}

struct PassOptions {
  std::vector<std::string> hardware;
  std::vector<std::string> models;
  plan::PassGrid grid;
  std::vector<std::string> shards = {"1"};
  std::vector<std::string> weight_bits = {"16"};
  std::optional<std::string> dtype;
  std::optional<std::string> head_bits;
  std::string kv_bits = "16";
  std::string kv_window = "0";
  std::string engine = "vllm";
  std::string kernels = "automatic";
  std::string logits = "all";
  bool csv = false;
  bool explain = false;
  SpendingOptions spending;
};

// One GPU and model, with the given split and quantisation.
PassSetting read_setting(const CommandLine& line, const PassOptions& options, const std::string& hardware,
                         const std::string& model, const std::string& shards, const std::string& bits) {
  const cost::Role role = options.grid.role;
  const auto preset = [](const std::string& name, const std::string& option) {
    return PresetChoice{name, at_option(option), {}};
  };
  PresetChoice chosen = preset(model, "model");
  // Options that are not given default to the model's own values.
  for (const auto& [option, key, text] : {std::tuple{"tensor-parallel", "tensor_parallel", shards},
                                          {"weight-bits", "weight_bits", bits},
                                          {"kv-bits", "kv_bits", options.kv_bits},
                                          {"kv-window", "kv_window", options.kv_window},
                                          {"dtype", "dtype", options.dtype.value_or("")},
                                          {"head-bits", "head_bits", options.head_bits.value_or("")}})
    if (line.given(option)) chosen.changes.push_back({key, text, at_option(option)});

  const char* const what = role == cost::Role::target ? "target" : "draft";
  PassSetting setting{hardware, model, {}};
  cost::Deployment& deployment = setting.deployment;
  Diagnostics diagnostics;
  deployment.engine = cost::read_engine(preset(options.engine, "engine"), diagnostics);
  spec::check_engine_names(deployment.engine, diagnostics);
  deployment.kernels = options.kernels;
  PresetChoice gpu = preset(hardware, "hardware");
  gpu.changes = spending_changes(options.spending, hardware, options.hardware);
  deployment.hardware = cost::read_hardware(gpu, diagnostics);
  const cost::ModelShape shape = cost::read_model(chosen, what, diagnostics);
  diagnostics.throw_if_any();
  cost::check_element_types(shape, what, deployment.hardware, diagnostics);
  diagnostics.throw_if_any();
  if (deployment.kernels != "automatic" && deployment.kernels != "none" && deployment.hardware.kernels == nullptr)
    throw BadInput(at_option("kernels"), fmt::format("no kernels of {} were measured, allowed: automatic, none", hardware));
  if (role == cost::Role::target && shape.on_target())
    throw BadInput(at_option("model"), "the target is a head, not a whole model, allowed: a whole model, or --role draft");
  (role == cost::Role::target ? deployment.target : deployment.draft) = shape;
  return setting;
}

// A setting for each combination of the models and GPUs in the options.
std::vector<PassSetting> read_settings(const CommandLine& line, const PassOptions& options) {
  std::vector<PassSetting> settings;
  for (const std::string& hardware : options.hardware)
    for (const std::string& model : options.models)
      for (const std::string& shards : options.shards)
        for (const std::string& bits : options.weight_bits)
          settings.push_back(read_setting(line, options, hardware, model, shards, bits));
  return settings;
}

void print_passes(const std::vector<PassSetting>& settings, const std::vector<EstimatedPass>& passes, double first_tokens) {
  for (std::size_t at = 0; at < settings.size(); ++at) {
    const PassSetting& setting = settings[at];
    report::Table table({{"batch"},
                         {"context"},
                         {"tokens"},
                         {"ms"},
                         {"low"},
                         {"high"},
                         {"ratio"},
                         {"weights"},
                         {"compute"},
                         {"kv"},
                         {"comm"},
                         {"launch"},
                         {"host"},
                         {"sampling"},
                         {"J"},
                         {"", report::Align::left, "memory"}},
                        {.keys = 3});
    for (const EstimatedPass& one : passes) {
      if (one.setting != at) continue;
      std::vector<std::string> cells;
      for (const double x : {one.pass.batch, one.pass.context, one.pass.tokens}) cells.push_back(fmt::format("{:g}", x));
      const cost::PassTime& t = one.time;
      cells.push_back(fmt::format("{:.4f}", 1e3 * t.total()));
      for (const double side : {-report::kIn95, report::kIn95})
        cells.push_back(fmt::format("{:.3f}", 1e3 * t.total() * std::exp(side * one.error)));
      cells.push_back(fmt::format("{:.3f}", one.ratio));
      for (const double x : {t.weights, t.compute, t.kv, t.communication, t.launch, t.host, t.sampling})
        cells.push_back(fmt::format("{:.3f}", 1e3 * x + 0.0));
      cells.push_back(report::cell_text(one.joules, "{:.2f}"));
      cells.emplace_back(one.fits.value_or(true) ? "" : "does not fit");
      table.add(cells);
    }
    const cost::ModelShape& shape = setting.shape();
    print_output("{}{} on {}{}{}\n{}", at == 0 ? "" : "\n", setting.model, setting.hardware,
                 shape.tensor_parallel == 1.0 ? "" : fmt::format(" x {:g}", shape.tensor_parallel),
                 shape.weight_bits == 16.0 ? "" : fmt::format(", {:g}-bit weights", shape.weight_bits),
                 table.text(output_width()));
  }
  print_output(
      "\nlow, high: 95 % interval; ratio: relative to the pass over {} per sequence; compute: time that "
      "arithmetic adds to reading the weights; J: energy of all GPUs' boards\n",
      plural(first_tokens, "token"));
}

// The operations of each pass, with the kernel of each.
void print_operations(const std::vector<PassSetting>& settings, const plan::PassGrid& grid) {
  for (const PassSetting& setting : settings) {
    const std::unique_ptr<cost::CostModel> model = cost::make_roofline(setting.deployment);
    for (const cost::Pass& pass : plan::passes_of(grid)) {
      report::Table table({{"operation", report::Align::left},
                           {"shape", report::Align::left},
                           {"times"},
                           {"us"},
                           {"+- %"},
                           {"kernel", report::Align::left},
                           {"source", report::Align::left}},
                          {.keys = 2});
      for (const cost::ExplainedOperation& one : model->deployed()->explain(grid.role, pass))
        table.add({one.name, one.shape, fmt::format("{:g}", one.count), fmt::format("{:.2f}", 1e6 * one.seconds),
                   one.error ? fmt::format("{:.1f}", 100.0 * *one.error) : "", one.kernel, one.source});
      print_output("\n{} on {}: batch {:g}, context {:g}, {}\n{}", setting.model, setting.hardware, pass.batch, pass.context,
                   plural(pass.tokens, "token"), table.text(output_width()));
    }
  }
  print_output("\ntimes: calls per pass; us: per call; +- %: its standard error. Concurrent work on two streams counts less.\n");
}

// The most rows per sequence through the LM head: all of them, none, or a number.
double read_logits(const std::string& text, const std::string& option) {
  const config::Interval rows = config::between(0, 1e6);
  if (text == "all") return 1e9;
  const std::optional<double> most = text == "none" ? 0.0 : config::as_number(text);
  if (!most || !rows.contains(*most) || *most != std::floor(*most))
    throw BadInput({option, 0, 0},
                   fmt::format("{}, allowed: all, none, or an integer {}", config::quote_for_message(text), rows.to_text()));
  return *most;
}

std::string read_kernels(const std::string& text, const std::string& option) {
  check_name(option.substr(2), text, cost::kernel_choices());
  return text;
}

void add_pass_options(CommandLine& line, PassOptions& options) {
  plan::PassGrid& grid = options.grid;
  const auto counts = [](const config::Interval& allowed) {
    return [allowed](const std::string& list, const std::string& option) {
      const std::vector<std::int64_t> whole = read_integers(list, option, allowed);
      return std::vector<double>(whole.begin(), whole.end());
    };
  };
  line.add(
      {{"hardware", options.hardware, read_texts, "GPUs: names or .yaml files, separated by commas"},
       {"model", options.models, read_texts,
        "models: names, .yaml files, or config.json files or their folders, separated by commas"},
       {"tokens", grid.tokens, counts(config::between(1, 1e6)),
        "new tokens per sequence: 1 for plain decoding, draft length + 1 for verification, more with --logits 1 for a part of a "
        "prompt"},
       {"batch", grid.batches, counts(config::between(1, 1e6)), "sequences"},
       {"context", grid.contexts, counts(config::between(0, 1e7)), "cached tokens per sequence"},
       {"tensor-parallel", options.shards, read_texts, "GPUs that share the model"},
       {"weight-bits", options.weight_bits, read_texts, "bits per weight; default: the model's"},
       {"dtype", options.dtype, "types: fp8, int4, ..., or {weights: int4, activations: bf16, cache: fp8}"},
       {"head-bits", options.head_bits, "bits per weight of LM head and embeddings; default: 16, or weight-bits if more"},
       {"kv-bits", options.kv_bits, "bits per cached key or value; default: the model's"},
       {"kv-window", options.kv_window, "newest cached tokens that attention reads; default: the model's; 0: all"},
       {"engine", options.engine,
        fmt::format("{}, or a .yaml file: host, launches, padding", fmt::join(cost::engine_names(), ", "))},
       {"kernels", options.kernels, read_kernels,
        "measured kernels for the estimate: vllm, sglang, trtllm; automatic: the engine's; none: the GPU's calibration"},
       {"logits", options.logits,
        "rows per sequence through the LM head: all, as in verification; a maximum, 1 for a prompt; or none"},
       {"role",
        grid.role,
        {{"target", cost::Role::target}, {"draft", cost::Role::draft}},
        "target, or draft: no host time, but the engine's minimum"},
       {"products-only", grid.products_only, "only the layers' matrix products"},
       {"csv", options.csv, "as CSV"},
       {"explain", options.explain, "every operation of each pass: its shape, its kernel, the kernel's source, time and error"}});
  line.add({{"power-cap", options.spending.power_cap, config::between(1, 1e5),
             "power limit of each GPU, watts; it lowers the clock"}});
}

}  // namespace

ExitCode pass_command(const std::vector<std::string>& arguments) {
  PassOptions options;
  plan::PassGrid& grid = options.grid;
  grid.tokens = {1, 2, 4, 8, 16, 32, 64, 128};
  grid.batches = {1};
  grid.contexts = {0};
  CommandLine line(
      "specsim pass --hardware GPU --model MODEL [options]",
      "  specsim pass --hardware h100-sxm --model llama-2-7b --tokens 1,8,64\n"
      "  specsim pass --hardware a100-80gb-sxm,rtx-3090 --model llama-3.1-8b --tokens 1,6 --batch 1,16 --context 4096\n"
      "  specsim pass --hardware h100-sxm --model llama-2-70b --tensor-parallel 2,4,8 --products-only --csv\n"
      "  specsim pass --hardware rtx-4090 --model eagle-head-7b --role draft --tokens 1\n"
      "  specsim pass --hardware h200-sxm --model deepseek-v3 --tensor-parallel 8 --dtype fp8_block --tokens 4 --explain\n");
  add_pass_options(line, options);
  line.needs({"hardware", "model"});
  if (!line.read(arguments)) return ExitCode::fine;
  const std::vector<std::string> products = {"products-only"};
  const std::string alone = "excludes attention and LM head";
  line.check({{"context", {}, products, alone},
              {"kv-bits", {}, products, alone},
              {"kv-window", {}, products, alone},
              {"logits", {}, products, alone},
              {"head-bits", {}, products, alone},
              {"explain", {}, {"products-only", "csv"}, "prints every operation as a table"}});
  if (options.csv && for_machines()) throw BadInput({"--csv", 0, 0}, "given with --format, allowed: one of them");
  refuse_two_types(line, options.dtype.value_or(""));
  grid.most_logits = grid.products_only ? 0.0 : read_logits(options.logits, "--logits");
  constexpr double kMostVerified = 256.0;  // no draft, chain or tree, has more tokens
  if (*std::max_element(grid.tokens.begin(), grid.tokens.end()) > kMostVerified && !line.given("logits") && !grid.products_only &&
      grid.role == cost::Role::target)
    print_warning(
        "more than 256 tokens per sequence are estimated as a verification, with logits and sampling of every row; a part of a "
        "prompt "
        "has one row: use --logits 1, or --logits all for this estimate without the warning");
  const std::vector<PassSetting> settings = read_settings(line, options);
  if (static_cast<double>(settings.size()) * static_cast<double>(grid.batches.size()) *
          static_cast<double>(grid.contexts.size()) * static_cast<double>(grid.tokens.size()) >
      static_cast<double>(kMaxPasses))
    throw BadInput({"", 0, 0}, fmt::format("more than {} passes requested at once, allowed: shorter lists", kMaxPasses));
  const plan::EstimatedPasses estimated = plan::estimate_passes(settings, grid);
  for (const std::string& warning : estimated.warnings) print_warning(warning);
  if (options.csv)
    print_output("{}", plan::passes_csv(settings, estimated.passes));
  else
    print_passes(settings, estimated.passes, grid.tokens.front());
  if (options.explain) print_operations(settings, grid);
  return ExitCode::fine;
}

}  // namespace specsim::cli
