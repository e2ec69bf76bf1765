#include "sim/doors/cli/workload_options.h"

#include "sim/answers/plan/built_in.h"
#include "sim/experiments/spec/sections.h"
#include "sim/foundation/base/error.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <utility>

namespace specsim::cli {

namespace {

const config::Interval kChange = config::between(1, 64);  // for numbers that change a model

// Whether --set replaces the same setting as the option; changes of single figures of a preset do not.
bool sets_path(const WorkloadOptions& options, const std::string& name) {
  const std::string path = name == "context" ? "workload.context_length" : "cost." + name;
  const std::vector<std::string>& sets = options.configs.sets;
  return std::any_of(sets.begin(), sets.end(), [&](const std::string& set) {
    const std::string other = set.substr(0, set.find('='));
    return other == path || other == "sweep." + path || other == path + ".preset" || other == "cost";
  });
}

// Throws BadInput if --set changes a path below the one that the option sets.
void refuse_set(const WorkloadOptions& options, const std::string& option, const std::string& path) {
  for (const std::string& set : options.configs.sets) {
    const std::string other = set.substr(0, set.find('='));
    const std::string& longer = other.size() > path.size() ? other : path;
    const std::string& shorter = other.size() > path.size() ? path : other;
    if (longer == shorter || longer.compare(0, shorter.size() + 1, shorter + ".") == 0)
      throw BadInput({"--set " + other, 0, 0},
                     fmt::format("given together with --{}, which sets {}, allowed: one of them", option, path));
  }
}

bool in_braces(const std::string& model) { return model.find('{') != std::string::npos; }

// Adds a number that changes the chosen model, if it is given.
void add_change(const std::optional<double>& number, const std::string& option, const std::string& key,
                cost::PresetChoice& model) {
  if (number) model.changes.push_back({key, fmt::format("{:g}", *number), {"--" + option, 0, 0}});
}

bool takes_draft(const WorkloadOptions& options, const RecordedPair& recorded) {
  return !recorded.draft.empty() && !options.draft && !sets_path(options, "draft");
}

bool takes_target(const WorkloadOptions& options, const RecordedPair& recorded) {
  return !recorded.target.empty() && !options.target && !sets_path(options, "target");
}

// The number of GPUs of the recorded target, if no option sets it; 1: not split.
std::int64_t recorded_shards(const WorkloadOptions& options, const RecordedPair& recorded) {
  return takes_target(options, recorded) && !options.tensor_parallel ? recorded.tensor_parallel : 1;
}

std::optional<cost::PresetChoice> read_target(const WorkloadOptions& options, bool built_in, const RecordedPair& recorded) {
  std::string last;  // the last option that changes the target
  for (const auto& [option, given] : {std::pair{"tensor-parallel", options.tensor_parallel.has_value()},
                                      {"dtype", options.dtype.has_value()},
                                      {"weight-bits", options.weight_bits.has_value()},
                                      {"kv-bits", options.kv_bits.has_value()}})
    if (given) last = option;
  const bool of_table = takes_target(options, recorded);
  if (!options.target && !of_table && last.empty()) return std::nullopt;
  if (!options.target && !built_in)
    throw BadInput({"--" + last, 0, 0},
                   "given with a config but without --target, allowed: with it, or --set cost.target=\"{preset: NAME, ...}\"");
  const std::string target = of_table ? recorded.target : options.target.value_or(plan::kDefaultTarget);
  if (!last.empty() && in_braces(target))
    throw BadInput({"--" + last, 0, 0}, "given with a --target in braces, allowed: inside the braces");
  const std::string chosen = options.target ? "target" : last;
  if (!of_table) refuse_set(options, chosen, "cost.target");
  cost::PresetChoice model{target, of_table ? recorded.target_where : Location{"--" + chosen, 0, 0}, {}};
  if (const std::int64_t shards = recorded_shards(options, recorded); shards > 1)
    model.changes.push_back({"tensor_parallel", std::to_string(shards), recorded.target_where});
  add_change(options.tensor_parallel, "tensor-parallel", "tensor_parallel", model);
  add_change(options.weight_bits, "weight-bits", "weight_bits", model);
  add_change(options.kv_bits, "kv-bits", "kv_bits", model);
  if (options.dtype) model.changes.push_back({"dtype", *options.dtype, {"--dtype", 0, 0}});
  return model;
}

// By default the draft is split like the target, since engines split both alike.
std::optional<cost::PresetChoice> read_draft(const WorkloadOptions& options, bool built_in, const RecordedPair& recorded) {
  const char* const own = "draft-tensor-parallel";
  const bool of_table = takes_draft(options, recorded);
  const bool given = options.draft || of_table;
  const std::string draft = of_table ? recorded.draft : options.draft.value_or(plan::kDefaultDraft);
  const bool whole = draft == "none" || in_braces(draft);
  if (options.draft_tensor_parallel && (whole || (!given && !built_in)))
    throw BadInput({std::string("--") + own, 0, 0},
                   "given without a draft model by name, allowed: with --draft NAME; inside the braces of one in braces");
  const bool as_target = options.tensor_parallel && !options.draft_hardware;
  const std::string shards = options.draft_tensor_parallel ? own : as_target ? "tensor-parallel" : "";
  const bool cut = !shards.empty() && !whole && (given || (built_in && !sets_path(options, "draft")));
  if (!given && !cut) return std::nullopt;
  if (!of_table) refuse_set(options, given ? "draft" : own, "cost.draft");
  cost::PresetChoice model{draft, of_table ? recorded.draft_where : Location{given ? "--draft" : "--" + shards, 0, 0}, {}};
  if (cut)
    add_change(options.draft_tensor_parallel ? options.draft_tensor_parallel : options.tensor_parallel, shards, "tensor_parallel",
               model);
  if (const std::int64_t all = recorded_shards(options, recorded);
      !cut && of_table && !whole && all > 1 && !options.draft_hardware)
    model.changes.push_back({"tensor_parallel", std::to_string(all), recorded.target_where});
  if (recorded.one_pass && !whole) model.changes.push_back({"one_pass", "true", recorded.draft_where});
  // A model in braces cannot be changed from outside the braces.
  if (recorded.one_pass && in_braces(draft) && draft.find("one_pass") == std::string::npos)
    model.name.insert(draft.find_last_of('}'), ", one_pass: true");
  return model;
}

}  // namespace

void add_workload_options(CommandLine& line, WorkloadOptions& options) {
  line.add(
      {{"set", options.configs.sets, "PATH=VALUE replaces a value of the config"},
       {"seed", options.configs.seed, "replaces the config's seed"},
       Option("hardware", options.hardware, "the GPU: a name (specsim list hardware) or a file").assumes(plan::kDefaultHardware),
       Option("target", options.target,
              "the target model: a name (specsim list model), a file, or a Hugging Face config.json or its folder")
           .assumes(plan::kDefaultTarget),
       Option("draft", options.draft,
              "the draft model, as --target, or {preset: NAME, dtype: fp8}; none: n-grams, or heads inside the target")
           .assumes(plan::kDefaultDraft),
       {"draft-hardware", options.draft_hardware, "a separate GPU for the draft, as --hardware; default: it shares the target's"},
       {"draft-link-us", options.draft_link_us, config::between(0, 1e9),
        "latency one way, in microseconds, between --draft-hardware and the target's GPU; default: 0, two GPUs of one machine"},
       Option("context", options.contexts, workload_interval("context_length"), "cached tokens per sequence")
           .assumes(std::to_string(plan::kDefaultContext)),
       {"tensor-parallel", options.tensor_parallel, kChange, "GPUs that share the target"},
       {"draft-tensor-parallel", options.draft_tensor_parallel, kChange,
        "GPUs that share the draft; default: as many as share the target, which engines require"},
       {"dtype", options.dtype, "types of the target: fp8, int4, ..., or {weights: int4, activations: bf16, cache: fp8}"},
       {"weight-bits", options.weight_bits, kChange, "bits per weight of the target's layers"},
       {"kv-bits", options.kv_bits, kChange, "bits per cached key and value of the target"},
       {"engine", options.engine, "engine, which sets host and launch times: a name (specsim list engine) or a file"}});
}

config::Interval workload_interval(const std::string& key) {
  const auto& parameters = spec::workload_fields().parameters();
  return std::find_if(parameters.begin(), parameters.end(), [&](const auto& own) { return own.name == key; })->interval;
}

void refuse_two_types(const CommandLine& line, const std::string& types) {
  if (types.empty()) return;
  const char* const together = "given with --dtype, allowed: one of them";
  if (line.given("weight-bits")) throw BadInput({"--weight-bits", 0, 0}, together);
  if (line.given("kv-bits") && types.find("cache") != std::string::npos)
    throw BadInput({"--kv-bits", 0, 0}, "given with the cache of --dtype, allowed: one of them");
}

RecordedPair recorded_pair(const spec::AcceptanceTable& table) {
  return {table.draft, table.draft_where, table.target, table.target_where, table.tensor_parallel, table.one_pass};
}

std::string taken_of(const WorkloadOptions& options, const RecordedPair& recorded) {
  const auto quoted = [](const std::string& model) { return in_braces(model) ? "'" + model + "'" : model; };
  std::string list;
  if (takes_target(options, recorded)) list += "--target " + quoted(recorded.target);
  if (recorded_shards(options, recorded) > 1) list += fmt::format(" --tensor-parallel {}", recorded.tensor_parallel);
  if (takes_draft(options, recorded)) list += fmt::format("{}--draft {}", list.empty() ? "" : " ", quoted(recorded.draft));
  return list;
}

void warn_of_missing_draft(const WorkloadOptions& options, const RecordedPair& recorded) {
  if (options.draft != "none" || recorded.draft.empty() || recorded.draft == "none") return;
  print_warning(fmt::format("the table's drafts are those of {}, which --draft none removes: drafting then costs no time",
                            in_braces(recorded.draft) ? "a model" : recorded.draft));
}

std::vector<std::string> published_tables(const std::string& named_target, const std::string& draft) {
  const auto own = [](const std::string& model) { return cost::own_name(cost::PresetKind::model, model); };
  const std::string target = own(named_target);
  std::vector<std::string> list;
  for (const cost::Preset& one : cost::presets()) {
    if (one.kind != cost::PresetKind::acceptance) continue;
    const RecordedPair recorded =
        recorded_pair(spec::named_acceptance_table(one.name, {"--acceptance", 0, 0}, spec::Contexts::several));
    if (!recorded.target.empty() && own(recorded.target) == target && own(recorded.draft) == own(draft))
      list.emplace_back(one.name);
  }
  return list;
}

std::string published_for(const std::string& target, const std::optional<std::string>& draft) {
  if (!draft) return "";
  const std::vector<std::string> tables = published_tables(target, *draft);
  if (!tables.empty()) return fmt::format("; published for this pair: --acceptance {}", fmt::join(tables, ", --acceptance "));
  // N-grams depend on the text more than on the target, and these tables name none.
  if (*draft == "none") return "; published for n-grams: --acceptance ngram-code-edits, --acceptance ngram-maths";
  return "";
}

std::string assumptions(const WorkloadOptions& options, const RecordedPair& recorded) {
  std::string list;
  const auto add = [&](const char* name, bool given, const std::string& value) {
    if (!given && !sets_path(options, name)) list += fmt::format("{}--{} {}", list.empty() ? "" : " ", name, value);
  };
  add("hardware", options.hardware.has_value(), plan::kDefaultHardware);
  add("target", options.target || !recorded.target.empty(), plan::kDefaultTarget);
  add("draft", options.draft || !recorded.draft.empty(), plan::kDefaultDraft);
  add("context", !options.contexts.empty(), std::to_string(plan::kDefaultContext));
  return list;
}

std::vector<spec::Override> workload_overrides(const WorkloadOptions& options, bool built_in, const RecordedPair& recorded) {
  std::vector<spec::Override> overrides;
  const auto add_preset = [&](const char* path, const std::optional<cost::PresetChoice>& choice) {
    if (!choice) return;
    Diagnostics diagnostics;
    const std::optional<spec::Override> change = spec::override_preset(path, *choice, diagnostics);
    diagnostics.throw_if_any();
    overrides.push_back(*change);
  };
  // Adds the preset that an option chooses for `path`, if it is given.
  const auto add_choice = [&](const std::optional<std::string>& choice, const std::string& option) {
    if (!choice) return;
    refuse_set(options, option, "cost." + option);
    add_preset(("cost." + option).c_str(), cost::PresetChoice{*choice, {"--" + option, 0, 0}, {}});
  };
  const auto add_counts = [&](const std::vector<std::int64_t>& counts, const std::string& option, const std::string& key) {
    if (counts.empty()) return;
    const std::string path = (counts.size() > 1 ? "sweep.workload." : "workload.") + key;
    refuse_set(options, option, path);
    const Location where{"--" + option, 0, 0};
    overrides.push_back(counts.size() > 1 ? spec::override_setting(path, counts, where)
                                          : spec::override_setting(path, counts.front(), where));
  };
  if (options.spending.any()) {
    if (!options.hardware && !built_in)
      throw BadInput(
          {options.spending.power_cap ? "--power-cap" : "--price", 0, 0},
          "given with a config but without --hardware, allowed: with it, or --set cost.hardware=\"{preset: NAME, ...}\"");
    const std::string hardware = options.hardware.value_or(plan::kDefaultHardware);
    if (in_braces(hardware))
      throw BadInput({"--hardware", 0, 0},
                     "in braces, together with an option on its power or cost, allowed: both inside the braces");
    refuse_set(options, "hardware", "cost.hardware");
    add_preset("cost.hardware",
               cost::PresetChoice{hardware, {"--hardware", 0, 0}, spending_changes(options.spending, hardware, {hardware})});
  } else {
    add_choice(options.hardware, "hardware");
  }
  if (options.draft_hardware) {
    refuse_set(options, "draft-hardware", "cost.draft_hardware");
    add_preset("cost.draft_hardware", cost::PresetChoice{*options.draft_hardware, {"--draft-hardware", 0, 0}, {}});
  }
  if (options.draft_link_us) {
    if (!options.draft_hardware && built_in)
      throw BadInput({"--draft-link-us", 0, 0}, "given without --draft-hardware, allowed: with it");
    overrides.push_back(spec::override_setting("cost.draft_link_us", *options.draft_link_us, {"--draft-link-us", 0, 0}));
  }
  add_choice(options.engine, "engine");
  add_counts(options.batches, "batch", "batch");
  add_counts(options.contexts, "context", "context_length");
  add_preset("cost.target", read_target(options, built_in, recorded));
  add_preset("cost.draft", read_draft(options, built_in, recorded));
  return overrides;
}

}  // namespace specsim::cli
