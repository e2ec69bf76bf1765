#include "sim/cli/workload_options.h"

#include "sim/base/error.h"
#include "sim/cli/numbers.h"
#include "sim/plan/built_in.h"
#include "sim/spec/sections.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>
#include <utility>

namespace specsim::cli {

namespace po = boost::program_options;

void add_workload_options(po::options_description& description) {
  const auto text = [] { return po::value<std::string>(); };
  description.add_options()("set", po::value<std::vector<std::string>>()->composing(),
                            "PATH=VALUE replaces a value of the config")("seed", text(), "in place of the config's")(
      "hardware", text(), "the GPU: a name (specsim list hardware) or a file")(
      "target", text(), "the target model: a name (specsim list model), a file, or a Hugging Face config.json or its folder")(
      "draft", text(), "the draft model; none: n-grams, or heads inside the target")(
      "context", text(), "tokens cached by each sequence")("tensor-parallel", text(), "GPUs that share the target")(
      "draft-tensor-parallel", text(), "GPUs that share the draft; as many as share the target, which is what engines demand")(
      "dtype", text(), "types of the target: fp8, int4, ..., or {weights: int4, activations: bf16, cache: fp8}")(
      "weight-bits", text(), "of a weight of the target's layers")("kv-bits", text(), "of the target's cached keys and values")(
      "engine", text(), "what host and launches add: a name (specsim list engine) or a file");
}

namespace {

// Whether --set replaces what the option of that name stands for.
bool sets_path(const Options& options, const std::string& name) {
  const std::string path = name == "context" ? "workload.context_length" : "cost." + name;
  const std::vector<std::string> sets = options.texts("set");
  return std::any_of(sets.begin(), sets.end(),
                     [&](const std::string& set) { return set.starts_with(path) || set.starts_with("sweep." + path); });
}

// Throws BadInput where --set touches what the option sets at `path`.
void refuse_set(const Options& options, const std::string& option, const std::string& path) {
  for (const std::string& set : options.texts("set")) {
    const std::string other = set.substr(0, set.find('='));
    const std::string& longer = other.size() > path.size() ? other : path;
    const std::string& shorter = other.size() > path.size() ? path : other;
    if (longer == shorter || longer.compare(0, shorter.size() + 1, shorter + ".") == 0)
      throw BadInput({"--set " + other, 0, 0},
                     fmt::format("given together with --{}, which sets {}, allowed: one of them", option, path));
  }
}

// A name, the path of a file, or a map in braces.
config::Value name_or_map(const std::string& text, const std::string& option) {
  if (text.find('{') == std::string::npos) return config::scalar(text, {option, 0, 0});
  Diagnostics diagnostics;
  config::Value value = config::parse_text(text, option, diagnostics);
  diagnostics.throw_if_any();
  return value;
}

bool in_braces(const std::string& model) { return model.find('{') != std::string::npos; }

// A number that changes the named model, if the option is given.
void add_change(const Options& options, const std::string& option, const std::string& key, spec::ModelValues& model) {
  const std::string place = "--" + option;
  const double number = read_number(options.text(option.c_str()), place, config::between(1, 64));
  model.changes.emplace_back(key, config::scalar(fmt::format("{:g}", number), {place, 0, 0}));
}

std::optional<spec::ModelValues> read_target(const Options& options, bool built_in) {
  std::string last;  // of the options that change the target
  for (const char* option : {"tensor-parallel", "dtype", "weight-bits", "kv-bits"})
    if (options.has(option)) last = option;
  if (!options.has("target") && last.empty()) return std::nullopt;
  if (!options.has("target") && !built_in)
    throw BadInput({"--" + last, 0, 0},
                   "given with a config but without --target, allowed: with it, or --set cost.target=\"{preset: NAME, ...}\"");
  const std::string target = options.has("target") ? options.text("target") : plan::kDefaultTarget;
  if (!last.empty() && in_braces(target))
    throw BadInput({"--" + last, 0, 0}, "given with a --target in braces, allowed: inside the braces");
  refuse_set(options, options.has("target") ? "target" : last, "cost.target");
  spec::ModelValues model{name_or_map(target, options.has("target") ? "--target" : "--" + last), {}};
  for (const auto& [option, key] :
       {std::pair{"tensor-parallel", "tensor_parallel"}, {"weight-bits", "weight_bits"}, {"kv-bits", "kv_bits"}})
    if (options.has(option)) add_change(options, option, key, model);
  if (options.has("dtype")) model.changes.emplace_back("dtype", name_or_map(options.text("dtype"), "--dtype"));
  return model;
}

// The draft is cut as the target is, unless something else is asked for: engines cut both alike.
std::optional<spec::ModelValues> read_draft(const Options& options, bool built_in) {
  const char* const own = "draft-tensor-parallel";
  const bool given = options.has("draft");
  const std::string draft = given ? options.text("draft") : plan::kDefaultDraft;
  const bool whole = draft == "none" || in_braces(draft);
  if (options.has(own) && (whole || (!given && !built_in)))
    throw BadInput({std::string("--") + own, 0, 0},
                   "given without a draft model by name, allowed: with --draft NAME; inside the braces of one in braces");
  const std::string shards = options.has(own) ? own : options.has("tensor-parallel") ? "tensor-parallel" : "";
  const std::vector<std::string> sets = options.texts("set");
  const bool replaced =
      std::any_of(sets.begin(), sets.end(), [](const std::string& set) { return set.starts_with("cost.draft"); });
  const bool cut = !shards.empty() && !whole && (given || (built_in && !replaced));
  if (!given && !cut) return std::nullopt;
  refuse_set(options, given ? "draft" : own, "cost.draft");
  spec::ModelValues model{name_or_map(draft, given ? "--draft" : "--" + shards), {}};
  if (cut) add_change(options, shards, "tensor_parallel", model);
  return model;
}

// The counts that --batch or --context lists; each is checked as the number at `key` of the workload is.
std::vector<std::int64_t> read_counts(const Options& options, const std::string& option, const std::string& key) {
  if (!options.has(option.c_str())) return {};
  const auto& parameters = spec::workload_parameters();
  const auto parameter = std::find_if(parameters.begin(), parameters.end(), [&](const auto& own) { return own.name == key; });
  std::vector<std::int64_t> counts = read_integers(options.text(option.c_str()), "--" + option, parameter->interval);
  refuse_set(options, option, (counts.size() > 1 ? "sweep.workload." : "workload.") + key);
  return counts;
}

}  // namespace

std::string assumptions(const Options& options) {
  const std::string context = std::to_string(plan::kDefaultContext);
  std::string list;
  for (const auto& [name, value] : {std::pair{"hardware", plan::kDefaultHardware},
                                    {"target", plan::kDefaultTarget},
                                    {"draft", plan::kDefaultDraft},
                                    {"context", context.c_str()}})
    if (!options.has(name) && !sets_path(options, name)) list += fmt::format("{}--{} {}", list.empty() ? "" : " ", name, value);
  return list;
}

WorkloadChoice read_workload(const Options& options, bool built_in) {
  WorkloadChoice choice;
  if (options.has("hardware")) {
    refuse_set(options, "hardware", "cost.hardware");
    choice.hardware = name_or_map(options.text("hardware"), "--hardware");
  }
  if (options.has("engine")) {
    refuse_set(options, "engine", "cost.engine");
    choice.engine = config::scalar(options.text("engine"), {"--engine", 0, 0});
  }
  choice.batches = read_counts(options, "batch", "batch");
  choice.context_lengths = read_counts(options, "context", "context_length");
  choice.target = read_target(options, built_in);
  choice.draft = read_draft(options, built_in);
  return choice;
}

void WorkloadChoice::change(spec::ExperimentValues& values) const {
  if (hardware) values.cost.hardware = *hardware;
  if (target) values.cost.target = *target;
  if (draft) values.cost.draft = *draft;
  if (engine) values.cost.engine = engine;
  if (batches.size() == 1) values.batch = batches.front();
  if (batches.size() > 1) values.batches = batches;
  if (context_lengths.size() == 1) values.context_length = context_lengths.front();
  if (context_lengths.size() > 1) values.context_lengths = context_lengths;
}

std::vector<spec::Override> WorkloadChoice::overrides() const {
  std::vector<spec::Override> list;
  const auto add = [&](const std::string& path, config::Value value) {
    const Location where = value.where;
    list.push_back({path, std::move(value), where});
  };
  if (hardware) add("cost.hardware", *hardware);
  if (engine) add("cost.engine", *engine);
  for (const auto& [option, path, counts] :
       {std::tuple{"--batch", "workload.batch", &batches}, {"--context", "workload.context_length", &context_lengths}}) {
    const Location where{option, 0, 0};
    if (counts->size() == 1) add(path, config::scalar(std::to_string(counts->front()), where));
    if (counts->size() > 1) add(std::string("sweep.") + path, spec::to_config(*counts, where));
  }
  if (target) add("cost.target", spec::to_config(*target));
  if (draft) add("cost.draft", spec::to_config(*draft));
  return list;
}

}  // namespace specsim::cli
