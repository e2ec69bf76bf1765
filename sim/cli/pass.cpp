// specsim pass: what one forward pass takes on a GPU, part by part.
#include "sim/base/output.h"
#include "sim/cli/command.h"
#include "sim/cli/numbers.h"
#include "sim/cli/options.h"
#include "sim/cost/cost_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <iterator>
#include <optional>
#include <set>
#include <utility>

namespace specsim::cli {

namespace po = boost::program_options;

namespace {

using config::Value;

constexpr std::size_t kMaxPasses = 1'000'000;

struct Setting {
  std::string hardware;
  std::string model;
  std::string tensor_parallel;
  std::string weight_bits;
};

struct Line {
  const Setting* setting = nullptr;
  cost::Pass pass;
  cost::PassTime time;
  std::optional<bool> fits;  // model and cache alone into memory; of a draft nothing is known, for its target lies there too
};

std::unique_ptr<cost::CostModel> make_model(const Setting& setting, const po::variables_map& values, cost::Role role) {
  const auto at = [](const std::string& option) { return Location{"--" + option, 0, 0}; };
  const auto given = [&](const std::string& option) { return config::scalar(values[option].as<std::string>(), at(option)); };
  const auto shape = [&](const std::string& name) {
    std::vector<std::pair<std::string, Value>> fields = {
        {"preset", config::scalar(name, at("model"))},
        {"tensor_parallel", config::scalar(setting.tensor_parallel, at("tensor-parallel"))},
        {"weight_bits", config::scalar(setting.weight_bits, at("weight-bits"))},
        {"kv_bits", given("kv-bits")},
        {"kv_window", given("kv-window")}};
    if (values.count("head-bits") > 0) fields.emplace_back("head_bits", given("head-bits"));
    return config::map(std::move(fields), at("model"));
  };
  // A draft's pass asks nothing of its target, but a head cannot stand as one.
  const bool head = setting.model.find("eagle") != std::string::npos;
  const std::string target = role == cost::Role::draft && head ? "llama-3.1-405b" : setting.model;
  const Value section = config::map({{"hardware", config::scalar(setting.hardware, at("hardware"))},
                                     {"target", shape(target)},
                                     {"draft", shape(setting.model)},
                                     {"engine", given("engine")}},
                                    {"specsim pass", 0, 0});
  const cost::CostEntry& roofline = *cost::cost_models().find("roofline");
  Diagnostics diagnostics;
  const config::Arguments arguments = config::read_arguments(section, roofline.info.parameters, {}, "specsim pass", diagnostics);
  diagnostics.throw_if_any();
  std::unique_ptr<cost::CostModel> model = roofline.make(arguments, diagnostics);
  Diagnostics once;  // the model stands for target and draft
  std::set<std::string> seen;
  for (const Diagnostic& mistake : diagnostics.list())
    if (seen.insert(to_string(mistake.where) + mistake.message).second) once.add(mistake.where, mistake.message);
  once.throw_if_any();
  return model;
}

std::string csv_text(const std::vector<Line>& lines) {
  std::string text =
      "hardware,model,tensor_parallel,weight_bits,batch,context,tokens,total_ms,weights_ms,compute_ms,kv_ms,communication_ms,"
      "launch_ms,host_ms,sampling_ms,fits\n";
  for (const Line& line : lines) {
    const Setting& s = *line.setting;
    const cost::PassTime& t = line.time;
    fmt::format_to(std::back_inserter(text),
                   "{},{},{},{},{},{},{},{:.10g},{:.10g},{:.10g},{:.10g},{:.10g},{:.10g},{:.10g},{:.10g},{}\n", s.hardware,
                   s.model, s.tensor_parallel, s.weight_bits, line.pass.batch, line.pass.context, line.pass.tokens,
                   1e3 * t.total(), 1e3 * t.weights, 1e3 * t.compute, 1e3 * t.kv, 1e3 * t.communication, 1e3 * t.launch,
                   1e3 * t.host, 1e3 * t.sampling,
                   !line.fits   ? ""
                   : *line.fits ? "1"
                                : "0");
  }
  return text;
}

std::string table_text(const std::vector<Line>& lines, const std::string& first_tokens) {
  std::string text;
  const auto out = std::back_inserter(text);
  const Setting* shown = nullptr;
  double base = 0.0;
  const Line* block = nullptr;
  for (const Line& line : lines) {
    if (line.setting != shown) {
      shown = line.setting;
      fmt::format_to(out, "{}{} on {}{}{}\n", text.empty() ? "" : "\n", shown->model, shown->hardware,
                     shown->tensor_parallel == "1" ? "" : fmt::format(" x {}", shown->tensor_parallel),
                     shown->weight_bits == "16" ? "" : fmt::format(", {}-bit weights", shown->weight_bits));
      fmt::format_to(out, "{:>6}{:>9}{:>8}{:>11}{:>9}{:>9}{:>9}{:>9}{:>9}{:>9}{:>9}{:>9}\n", "batch", "context", "tokens", "ms",
                     "ratio", "weights", "compute", "kv", "comm", "launch", "host", "sampling");
      block = nullptr;
    }
    if (block == nullptr || block->pass.batch != line.pass.batch || block->pass.context != line.pass.context) {
      block = &line;
      base = line.time.total();
    }
    const cost::PassTime& t = line.time;
    fmt::format_to(out, "{:>6g}{:>9g}{:>8g}{:>11.4f}{:>9.3f}{:>9.3f}{:>9.3f}{:>9.3f}{:>9.3f}{:>9.3f}{:>9.3f}{:>9.3f}{}\n",
                   line.pass.batch, line.pass.context, line.pass.tokens, 1e3 * t.total(), t.total() / base, 1e3 * t.weights,
                   1e3 * t.compute, 1e3 * t.kv, 1e3 * t.communication, 1e3 * t.launch, 1e3 * t.host, 1e3 * t.sampling,
                   line.fits.value_or(true) ? "" : "  does not fit");
  }
  fmt::format_to(out, "\nratio: to the pass over {} tokens a sequence; compute: what arithmetic adds to reading the weights\n",
                 first_tokens);
  return text;
}

}  // namespace

ExitCode pass_command(const std::vector<std::string>& arguments) {
  po::options_description options;
  const auto text = [](const char* fallback) { return po::value<std::string>()->default_value(fallback); };
  options.add_options()("hardware", po::value<std::string>(), "GPUs: names or .yaml files, commas between")(
      "model", po::value<std::string>(), "models, the same way")(
      "tokens", text("1,2,4,8,16,32,64,128"), "new tokens of each sequence: 1 plain, draft length + 1 verified")(
      "batch", text("1"), "sequences")("context", text("0"), "tokens cached by each")(
      "tensor-parallel", text("1"), "GPUs that share the model")("weight-bits", text("16"), "of a weight")(
      "head-bits", po::value<std::string>(), "of a weight of LM head and embeddings; 16, or weight-bits if more")(
      "kv-bits", text("16"), "of a cached key or value")("kv-window", text("0"),
                                                         "newest cached tokens that attention reads; 0: all")(
      "engine", text("vllm"), "bare, vllm or eager: host, launches, padding")(
      "logits", text("all"), "rows of each sequence through the LM head: all, none, or at most so many")(
      "role", text("target"), "target, or draft: no host time, but the engine's floor")(
      "products-only", "the layers' matrix products alone")("csv", "as CSV");
  po::variables_map values;
  if (!parse(arguments, options, "", "specsim pass --hardware GPU --model MODEL [options]",
             "  specsim pass --hardware h100-sxm --model llama-2-7b --tokens 1,8,64\n"
             "  specsim pass --hardware a100-80gb-sxm,rtx-3090 --model llama-3.1-8b --tokens 1,6 --batch 1,16 --context 4096\n"
             "  specsim pass --hardware h100-sxm --model llama-2-70b --tensor-parallel 2,4,8 --products-only --csv\n"
             "  specsim pass --hardware rtx-4090 --model eagle-head-7b --role draft --tokens 1\n",
             values))
    return ExitCode::fine;
  for (const char* option : {"hardware", "model"})
    if (values.count(option) == 0)
      throw BadInput({"", 0, 0}, fmt::format("specsim pass needs --{}; specsim pass --help shows examples", option));
  const auto& role_name = values["role"].as<std::string>();
  if (role_name != "target" && role_name != "draft")
    throw BadInput({"--role", 0, 0}, fmt::format("\"{}\", allowed: target, draft", role_name));
  const cost::Role role = role_name == "draft" ? cost::Role::draft : cost::Role::target;
  const bool products_only = values.count("products-only") > 0;
  const auto& logits = values["logits"].as<std::string>();
  const config::Interval rows = config::between(0, 1e6);
  const std::optional<double> most_logits = products_only || logits == "none" ? 0.0
                                            : logits == "all"                 ? 1e9
                                                                              : config::as_number(logits);
  if (!most_logits || (logits != "all" && (!rows.contains(*most_logits) || *most_logits != std::floor(*most_logits))))
    throw BadInput({"--logits", 0, 0},
                   fmt::format("{}, allowed: all, none, or an integer {}", config::quote_for_message(logits), rows.to_text()));
  const auto texts = [&](const std::string& option) { return read_texts(values[option].as<std::string>(), "--" + option); };
  const auto counts = [&](const std::string& option, double least, double most) {
    const auto whole = read_integers(values[option].as<std::string>(), "--" + option, config::between(least, most));
    return std::vector<double>(whole.begin(), whole.end());
  };
  const std::vector<double> tokens = counts("tokens", 1, 1e6);
  const std::vector<double> batches = counts("batch", 1, 1e6);
  const std::vector<double> contexts = counts("context", 0, 1e7);

  std::vector<Setting> settings;
  for (const std::string& hardware : texts("hardware"))
    for (const std::string& model : texts("model"))
      for (const std::string& shards : texts("tensor-parallel"))
        for (const std::string& bits : texts("weight-bits")) settings.push_back({hardware, model, shards, bits});
  if (static_cast<double>(settings.size()) * static_cast<double>(batches.size()) * static_cast<double>(contexts.size()) *
          static_cast<double>(tokens.size()) >
      static_cast<double>(kMaxPasses))
    throw BadInput({"", 0, 0}, fmt::format("more than {} passes asked for at once, allowed: shorter lists", kMaxPasses));

  std::vector<Line> lines;
  std::set<std::string> warned;
  for (const Setting& setting : settings) {
    const std::unique_ptr<cost::CostModel> model = make_model(setting, values, role);
    for (const std::string& warning : model->warnings())
      if (warned.insert(warning).second) print_error("warning: {}\n", warning);
    for (const double batch : batches) {
      for (const double context : contexts) {
        for (const double count : tokens) {
          const cost::Pass pass{batch, count, context, std::min(count, *most_logits)};
          cost::PassTime time = model->pass(role, pass);
          if (products_only) {
            const cost::PassTime whole = time;
            time = {};
            time.weights = whole.weights;
            time.compute = whole.compute;
          }
          std::optional<bool> fits;
          if (role == cost::Role::target)
            if (const auto memory = model->memory_budget({batch, context + count - 1.0}, 1, cost::Kept::target))
              fits = memory->fits();
          lines.push_back({&setting, pass, time, fits});
        }
      }
    }
  }
  print_output("{}", values.count("csv") > 0 ? csv_text(lines) : table_text(lines, fmt::format("{:g}", tokens.front())));
  return ExitCode::fine;
}

}  // namespace specsim::cli
