#include "sim/doors/cli/workload_options.h"

#include "sim/answers/plan/built_in.h"
#include "sim/doors/cli/numbers.h"
#include "sim/experiments/spec/sections.h"
#include "sim/foundation/base/error.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

namespace specsim::cli {

namespace po = boost::program_options;

void add_workload_options(po::options_description& description) {
  const auto text = [] { return po::value<std::string>(); };
  description.add_options()("set", po::value<std::vector<std::string>>()->composing(),
                            "PATH=VALUE replaces a value of the config")("seed", text(), "seed in place of the config's")(
      "hardware", text(), "the GPU: a name (specsim list hardware) or a file")(
      "target", text(), "the target model: a name (specsim list model), a file, or a Hugging Face config.json or its folder")(
      "draft", text(), "the draft model, as --target, or {preset: NAME, dtype: fp8}; none: n-grams, or heads inside the target")(
      "context", text(), "tokens cached by each sequence")("tensor-parallel", text(), "GPUs that share the target")(
      "draft-tensor-parallel", text(), "GPUs that share the draft; as many as share the target, which is what engines demand")(
      "dtype", text(), "types of the target: fp8, int4, ..., or {weights: int4, activations: bf16, cache: fp8}")(
      "weight-bits", text(), "bits of a weight of the target's layers")("kv-bits", text(),
                                                                        "bits of the target's cached keys and values")(
      "engine", text(), "what host and launches add: a name (specsim list engine) or a file");
}

namespace {

// Whether --set replaces what the option of that name stands for; single figures of a preset do not.
bool sets_path(const Options& options, const std::string& name) {
  const std::string path = name == "context" ? "workload.context_length" : "cost." + name;
  const std::vector<std::string> sets = options.texts("set");
  return std::any_of(sets.begin(), sets.end(), [&](const std::string& set) {
    const std::string other = set.substr(0, set.find('='));
    return other == path || other == "sweep." + path || other == path + ".preset" || other == "cost";
  });
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

bool in_braces(const std::string& model) { return model.find('{') != std::string::npos; }

// A number that changes the chosen model.
void add_change(const Options& options, const std::string& option, const std::string& key, cost::PresetChoice& model) {
  const Location place{"--" + option, 0, 0};
  const double number = read_number(options.text(option.c_str()), place.file, config::between(1, 64));
  model.changes.push_back({key, fmt::format("{:g}", number), place});
}

bool takes_draft(const Options& options, const RecordedPair& recorded) {
  return !recorded.draft.empty() && !options.has("draft") && !sets_path(options, "draft");
}

bool takes_target(const Options& options, const RecordedPair& recorded) {
  return !recorded.target.empty() && !options.has("target") && !sets_path(options, "target");
}

// The GPUs that a recorded target is cut over, where no option says another number; 1: it is whole.
std::int64_t recorded_shards(const Options& options, const RecordedPair& recorded) {
  return takes_target(options, recorded) && !options.has("tensor-parallel") ? recorded.tensor_parallel : 1;
}

std::optional<cost::PresetChoice> read_target(const Options& options, bool built_in, const RecordedPair& recorded) {
  std::string last;  // the last option that changes the target
  for (const char* option : {"tensor-parallel", "dtype", "weight-bits", "kv-bits"})
    if (options.has(option)) last = option;
  const auto has = [&](const char* option) { return options.has(option); };
  const std::string types = options.has("dtype") ? options.text("dtype") : "";
  refuse_two_types(has, types);
  const bool of_table = takes_target(options, recorded);
  if (!options.has("target") && !of_table && last.empty()) return std::nullopt;
  if (!options.has("target") && !built_in)
    throw BadInput({"--" + last, 0, 0},
                   "given with a config but without --target, allowed: with it, or --set cost.target=\"{preset: NAME, ...}\"");
  const std::string target = of_table ? recorded.target : options.has("target") ? options.text("target") : plan::kDefaultTarget;
  if (!last.empty() && in_braces(target))
    throw BadInput({"--" + last, 0, 0}, "given with a --target in braces, allowed: inside the braces");
  if (!of_table) refuse_set(options, options.has("target") ? "target" : last, "cost.target");
  cost::PresetChoice model{
      target, of_table ? recorded.target_where : Location{options.has("target") ? "--target" : "--" + last, 0, 0}, {}};
  if (const std::int64_t shards = recorded_shards(options, recorded); shards > 1)
    model.changes.push_back({"tensor_parallel", std::to_string(shards), recorded.target_where});
  for (const auto& [option, key] :
       {std::pair{"tensor-parallel", "tensor_parallel"}, {"weight-bits", "weight_bits"}, {"kv-bits", "kv_bits"}})
    if (options.has(option)) add_change(options, option, key, model);
  if (options.has("dtype")) model.changes.push_back({"dtype", options.text("dtype"), {"--dtype", 0, 0}});
  return model;
}

// The draft is cut as the target is, unless something else is asked for: engines cut both alike.
std::optional<cost::PresetChoice> read_draft(const Options& options, bool built_in, const RecordedPair& recorded) {
  const char* const own = "draft-tensor-parallel";
  const bool of_table = takes_draft(options, recorded);
  const bool given = options.has("draft") || of_table;
  const std::string draft = of_table ? recorded.draft : given ? options.text("draft") : plan::kDefaultDraft;
  const bool whole = draft == "none" || in_braces(draft);
  if (options.has(own) && (whole || (!given && !built_in)))
    throw BadInput({std::string("--") + own, 0, 0},
                   "given without a draft model by name, allowed: with --draft NAME; inside the braces of one in braces");
  const std::string shards = options.has(own) ? own : options.has("tensor-parallel") ? "tensor-parallel" : "";
  const bool cut = !shards.empty() && !whole && (given || (built_in && !sets_path(options, "draft")));
  if (!given && !cut) return std::nullopt;
  if (!of_table) refuse_set(options, given ? "draft" : own, "cost.draft");
  cost::PresetChoice model{draft, of_table ? recorded.draft_where : Location{given ? "--draft" : "--" + shards, 0, 0}, {}};
  if (cut) add_change(options, shards, "tensor_parallel", model);
  if (const std::int64_t all = recorded_shards(options, recorded); !cut && of_table && !whole && all > 1)
    model.changes.push_back({"tensor_parallel", std::to_string(all), recorded.target_where});
  if (recorded.one_pass && !whole) model.changes.push_back({"one_pass", "true", recorded.draft_where});
  // A model in braces takes no changes from outside them.
  if (recorded.one_pass && in_braces(draft) && draft.find("one_pass") == std::string::npos)
    model.name.insert(draft.find_last_of('}'), ", one_pass: true");
  return model;
}

// The preset that the option chooses for `path`, if it is given.
std::optional<cost::PresetChoice> read_choice(const Options& options, const char* option, const std::string& path) {
  if (!options.has(option)) return std::nullopt;
  refuse_set(options, option, path);
  return cost::PresetChoice{options.text(option), {std::string("--") + option, 0, 0}, {}};
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

void refuse_two_types(const std::function<bool(const char*)>& has, const std::string& types) {
  if (types.empty()) return;
  const char* const together = "given with --dtype, allowed: one of them";
  if (has("weight-bits")) throw BadInput({"--weight-bits", 0, 0}, together);
  if (has("kv-bits") && types.find("cache") != std::string::npos)
    throw BadInput({"--kv-bits", 0, 0}, "given with the cache of --dtype, allowed: one of them");
}

RecordedPair recorded_pair(const spec::AcceptanceTable& table) {
  return {table.draft, table.draft_where, table.target, table.target_where, table.tensor_parallel, table.one_pass};
}

std::string taken_of(const Options& options, const RecordedPair& recorded) {
  const auto quoted = [](const std::string& model) { return in_braces(model) ? "'" + model + "'" : model; };
  std::string list;
  if (takes_target(options, recorded)) list += "--target " + quoted(recorded.target);
  if (recorded_shards(options, recorded) > 1) list += fmt::format(" --tensor-parallel {}", recorded.tensor_parallel);
  if (takes_draft(options, recorded)) list += fmt::format("{}--draft {}", list.empty() ? "" : " ", quoted(recorded.draft));
  return list;
}

void warn_of_left_out_draft(const Options& options, const RecordedPair& recorded) {
  if (!options.has("draft") || options.text("draft") != "none" || recorded.draft.empty() || recorded.draft == "none") return;
  print_warning(fmt::format("the table's drafts are those of {}, which --draft none leaves out: no pass of it is priced",
                            in_braces(recorded.draft) ? "a model" : recorded.draft));
}

std::string assumptions(const Options& options, const RecordedPair& recorded) {
  const std::string context = std::to_string(plan::kDefaultContext);
  std::string list;
  for (const auto& [name, value] : {std::pair{"hardware", plan::kDefaultHardware},
                                    {"target", plan::kDefaultTarget},
                                    {"draft", plan::kDefaultDraft},
                                    {"context", context.c_str()}})
    if (!options.has(name) && !sets_path(options, name) && (name != std::string("draft") || recorded.draft.empty()) &&
        (name != std::string("target") || recorded.target.empty()))
      list += fmt::format("{}--{} {}", list.empty() ? "" : " ", name, value);
  return list;
}

std::vector<spec::Override> workload_overrides(const Options& options, bool built_in, const RecordedPair& recorded) {
  std::vector<spec::Override> overrides;
  const auto add_preset = [&](const char* path, const std::optional<cost::PresetChoice>& choice) {
    if (!choice) return;
    Diagnostics diagnostics;
    const std::optional<spec::Override> change = spec::override_preset(path, *choice, diagnostics);
    diagnostics.throw_if_any();
    overrides.push_back(*change);
  };
  const auto add_counts = [&](const char* option, const std::string& key) {
    const std::vector<std::int64_t> counts = read_counts(options, option, key);
    const Location where{std::string("--") + option, 0, 0};
    if (counts.size() == 1) overrides.push_back(spec::override_setting("workload." + key, counts.front(), where));
    if (counts.size() > 1) overrides.push_back(spec::override_setting("sweep.workload." + key, counts, where));
  };
  add_preset("cost.hardware", read_choice(options, "hardware", "cost.hardware"));
  add_preset("cost.engine", read_choice(options, "engine", "cost.engine"));
  add_counts("batch", "batch");
  add_counts("context", "context_length");
  add_preset("cost.target", read_target(options, built_in, recorded));
  add_preset("cost.draft", read_draft(options, built_in, recorded));
  return overrides;
}

}  // namespace specsim::cli
