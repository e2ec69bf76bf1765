#include "sim/cli/serve_server.h"

#include "sim/cli/numbers.h"
#include "sim/cli/options.h"
#include "sim/config/choose.h"
#include "sim/cost/hardware.h"
#include "sim/serve/arrivals.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace specsim::cli {

namespace po = boost::program_options;

namespace {

config::Value scalar_of(const std::string& text, const std::string& option) { return config::scalar(text, {option, 0, 0}); }

// The config as it is read, with what the options say put into it.
class ConfigEditor {
 public:
  ConfigEditor(config::Value& config, const po::variables_map& values, Diagnostics& diagnostics)
      : config_(config), values_(values), diagnostics_(diagnostics) {}

  [[nodiscard]] bool has(const char* option) const { return values_.count(option) > 0; }
  [[nodiscard]] bool says(const char* path) const { return config::find_path(config_, path) != nullptr; }
  // The entry that is named there; nullptr where nothing is, or nothing known.
  template <class Entry>
  [[nodiscard]] const Entry* entry_at(const char* path, const config::Registry<Entry>& registry) const {
    const config::Value* const value = config::find_path(config_, path);
    return value != nullptr && value->is_scalar() ? registry.find(value->text) : nullptr;
  }
  [[nodiscard]] const config::Value* find(const char* path) const { return config::find_path(config_, path); }
  // Nothing stands there, or a map without this key.
  [[nodiscard]] bool lacks(const char* path, const char* key) const {
    const config::Value* const value = config::find_path(config_, path);
    return value == nullptr || (value->is_map() && value->find(key) == nullptr);
  }
  [[nodiscard]] const std::string& text(const char* option) const { return values_[option].as<std::string>(); }
  // What --set says stands: an option that would replace it is refused.
  void set_for_user(const spec::Override& one) {
    set(one.path, one.value);
    by_user_.push_back(one.path);
  }
  [[nodiscard]] bool set_by_user(const std::string& path) const {
    return std::find(by_user_.begin(), by_user_.end(), path) != by_user_.end();
  }
  void set(const std::string& path, config::Value value) {
    const Location where = value.where;
    for (const std::string& set : by_user_) {
      const config::Value* const there = config::find_path(config_, path);
      const bool inside = path.starts_with(set + ".");
      if (there == nullptr || (set != path && !inside && !set.starts_with(path + "."))) continue;
      if (is_preset(path) && set != path && !inside && there->is_map() && there->find("preset") == nullptr &&
          value.is_scalar()) {  // a GPU or model by name, with figures changed
        config::Value changed = *there;
        changed.fields.insert(changed.fields.begin(), {"preset", where, std::move(value)});
        config::set_path(config_, path, std::move(changed), where, diagnostics_);
        return;
      }
      throw BadInput({"--set", 0, 0}, fmt::format("{} is set beside {}, allowed: one of them", set, where.file));
    }
    config::set_path(config_, path, std::move(value), where, diagnostics_);
  }
  // A path's value from an option; flow-style YAML is taken too.
  void take(const char* option, const std::string& path) {
    if (has(option)) set(path, config::parse_text(text(option), std::string("--") + option, diagnostics_));
  }
  void take(const char* option, const std::string& path, const char* fallback) {
    if (has(option))
      take(option, path);
    else if (config::find_path(config_, path) == nullptr || lacks_preset(path)) {
      set(path, config::parse_text(fallback, std::string("--") + option, diagnostics_));
      assumed_.push_back(fmt::format("--{} {}", option, fallback));
    }
  }
  [[nodiscard]] const std::vector<std::string>& assumed() const { return assumed_; }
  void take_models() {
    for (const char* option : {"hardware", "target", "draft"}) take(option, std::string("cost.") + option);
  }
  // The same GPUs hold both models.
  void take_tensor_parallel() {
    if (!has("tensor-parallel")) return;
    for (const std::string model : {"cost.target", "cost.draft"}) {
      const config::Value* const said = find(model.c_str());
      if (said == nullptr || (said->is_scalar() && said->text == "none")) continue;  // no draft
      spell_out(model.c_str(), "preset");
      take("tensor-parallel", model + ".tensor_parallel");
    }
  }
  // A scalar at "SECTION.KEY" becomes a map with this one key.
  void spell_out(const char* path, const char* key) {
    const config::Value* const value = config::find_path(config_, path);
    if (value != nullptr) config::set_path(config_, path, config::spelled_out(*value, key), value->where, diagnostics_);
  }
  // The arrival process that stands there has this parameter, so that an option changes it and nothing else.
  [[nodiscard]] bool arrivals_have(const char* parameter) const {
    const config::Value* const process = config::find_path(config_, "serve.arrivals.process");
    const serve::ArrivalsEntry* const entry =
        process != nullptr && process->is_scalar() ? serve::arrival_processes().find(process->text) : nullptr;
    return entry != nullptr && std::any_of(entry->info.parameters.begin(), entry->info.parameters.end(),
                                           [&](const config::Parameter& one) { return one.name == parameter; });
  }

 private:
  // Figures of a GPU or model are changed that nobody has named.
  [[nodiscard]] bool lacks_preset(const std::string& path) const {
    return is_preset(path) && lacks(path.c_str(), "preset") && !set_by_user(path);
  }
  static bool is_preset(const std::string& path) {
    return path == "cost.hardware" || path == "cost.target" || path == "cost.draft";
  }

  config::Value& config_;
  std::vector<std::string> by_user_;  // paths that --set gave
  std::vector<std::string> assumed_;  // what nobody said
  const po::variables_map& values_;
  Diagnostics& diagnostics_;
};

// off, fixed:3, table:1-4=5,5-64=3, table:[[1, 4, 5], [5, 64, 3]], goodput, adaptive:ema_tiers; or {kind: ...}.
config::Value policy_of(const std::string& text, Diagnostics& diagnostics) {
  const std::string option = "--policy";
  if (text.starts_with("{")) return config::parse_text(text, option, diagnostics);
  const std::size_t colon = text.find(':');
  const std::string kind = text.substr(0, colon);
  config::Value policy = config::map({{"kind", scalar_of(kind, option)}}, {option, 0, 0});
  if (colon == std::string::npos) return policy;
  const std::string rest = text.substr(colon + 1);
  const serve::ServerPolicyEntry* const entry = serve::server_policies().find(kind);
  if (entry == nullptr) return policy;  // which is told where the config is read
  const Location where{option, 0, 0};
  if (std::string_view(entry->worded).empty())
    throw BadInput(where, fmt::format("{} takes no word behind it, allowed: {}", kind, kind));
  policy.fields.push_back(
      {entry->worded, where, entry->read_word != nullptr ? entry->read_word(rest, where, diagnostics) : scalar_of(rest, option)});
  return policy;
}

// What the server's own command takes where its line says nothing, by the GPU.
void take_scheduler_defaults(ConfigEditor& editor) {
  constexpr double kUsualShare = 0.9;
  double share = kUsualShare;
  const config::Value* const kind = editor.find("serve.scheduler.kind");
  const serve::SchedulerEntry* const entry = kind == nullptr ? nullptr : serve::schedulers().find(kind->text);
  Diagnostics elsewhere;  // mistakes are told where the config is read
  const config::Value* const named = editor.find("cost.hardware");
  const cost::Hardware hardware = named != nullptr ? cost::read_hardware(*named, elsewhere) : cost::Hardware{};
  if (entry != nullptr && named != nullptr && elsewhere.list().empty()) {
    if (entry->defaults != nullptr)
      for (const auto& [key, value] : entry->defaults(hardware))
        if (editor.lacks("serve.scheduler", key.c_str())) editor.set("serve.scheduler." + key, scalar_of(value, "--hardware"));
    const double gpus = editor.has("tensor-parallel") ? config::as_number(editor.text("tensor-parallel")).value_or(1.0) : 1.0;
    if (entry->utilization != nullptr)
      share = entry->utilization(hardware, *editor.find("serve.scheduler"), static_cast<int>(std::clamp(gpus, 1.0, 1024.0)));
  }
  if (!editor.says("serve.kv.utilization") && !editor.says("serve.kv.blocks") && !editor.says("serve.kv.tokens"))
    editor.set("serve.kv.utilization", scalar_of(fmt::format("{:g}", share), "--hardware"));
}

// The server that flags alone describe, where there is no config; what --set says stands.
void fill_defaults(ConfigEditor& editor) {
  if (editor.lacks("serve.scheduler", "kind")) editor.set("serve.scheduler.kind", scalar_of("vllm_v1", "--hardware"));
  if (editor.lacks("cost", "model")) editor.set("cost.model", scalar_of("roofline", "--hardware"));
  const cost::CostEntry* const cost = editor.entry_at("cost.model", cost::cost_models());
  if (cost == nullptr || !cost->info.has_parameter("hardware")) {  // priced by other numbers than a GPU's: no memory to fill
    editor.take_models();
    return;
  }
  editor.take("hardware", "cost.hardware", "h100-sxm");
  editor.take("target", "cost.target", "llama-3.1-8b");
  editor.take("draft", "cost.draft", "none");
  take_scheduler_defaults(editor);
}

// The arrivals as the options say them; `loads`: how many of --rate, --concurrency and --trace are given.
void take_arrivals(ConfigEditor& editor, int loads) {
  const bool closed = editor.has("concurrency") || (editor.has("sweep") && editor.text("sweep").starts_with("concurrency"));
  if (loads > 0 && editor.says("serve.arrivals.process"))
    throw BadInput({"--set", 0, 0}, fmt::format("serve.arrivals.process is set beside --{}, allowed: one of them",
                                                editor.has("rate")          ? "rate"
                                                : editor.has("concurrency") ? "concurrency"
                                                                            : "trace"));
  if (editor.says("serve.arrivals.process")) return;
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

// The config that the command line names, or an empty one; `file`: its name in messages.
config::Value read_given(const po::variables_map& values, std::string& file, Diagnostics& diagnostics) {
  if (values.count("config") == 0) return config::map({}, {file, 0, 0});
  const auto& files = values["config"].as<std::vector<std::string>>();
  if (files.size() > 1) throw BadInput({files[1], 0, 0}, "a second config, allowed: one");
  file = files.front();
  config::Value config = config::parse_file(file, diagnostics);
  diagnostics.throw_if_any();
  return config;
}

void take_speculation(ConfigEditor& editor, Diagnostics& diagnostics) {
  const std::string path = "serve.speculation";
  if (editor.has("policy")) editor.set(path + ".policy", policy_of(editor.text("policy"), diagnostics));
  if (editor.has("position-rates")) {
    const Location where{"--position-rates", 0, 0};
    editor.set(
        path + ".acceptance",
        config::map({{"position_rates", spec::to_config(read_shares(editor.text("position-rates"), where.file), where)}}, where));
  }
  if (editor.has("alpha")) {
    const Location where{"--alpha", 0, 0};
    editor.set(path + ".acceptance",
               config::map({{"alpha", spec::to_config(read_share(editor.text("alpha"), where.file), where)}}, where));
  }
  editor.take("method", path + ".method");
}

// The limits of --slo, one by one: ttft=500, percentile=99, or a preset's name, which has a colon.
void take_slo(ConfigEditor& editor) {
  if (!editor.has("slo")) return;
  std::set<std::string> seen;
  for (const std::string& part : read_texts(editor.text("slo"), "--slo")) {
    const std::size_t equals = part.find('=');
    const std::string name = part.substr(0, equals);
    if (!seen.insert(name).second)
      throw BadInput({"--slo", 0, 0},
                     fmt::format("{} is given twice, allowed: each limit once", config::quote_for_message(name)));
    if (equals == std::string::npos) {
      if (part.find(':') == std::string::npos)
        throw BadInput({"--slo", 0, 0},
                       fmt::format("{}, allowed: ttft=MS,tpot=MS,e2el=MS, or a preset, as mlperf:llama2-70b-server",
                                   config::quote_for_message(part)));
      editor.set("serve.slo.preset", scalar_of(part, "--slo"));
    } else {
      if (name != "ttft" && name != "tpot" && name != "e2el" && name != "percentile")
        throw BadInput({"--slo", 0, 0}, fmt::format("unknown limit {}, allowed: ttft, tpot, e2el, percentile, or a preset's name",
                                                    config::quote_for_message(name)));
      const std::string key = name == "percentile" ? name : name + "_ms";
      editor.set("serve.slo." + key, scalar_of(part.substr(equals + 1), "--slo"));
    }
  }
}

void take_lengths(ConfigEditor& editor, bool given) {
  const serve::ArrivalsEntry* const arrivals = editor.entry_at("serve.arrivals.process", serve::arrival_processes());
  if (given || editor.has("trace") || (arrivals != nullptr && arrivals->brings_lengths)) {
    editor.take("prompt", "serve.lengths.prompt");
    editor.take("output", "serve.lengths.output");
  } else {
    editor.take("prompt", "serve.lengths.prompt", "{lognormal: {mean: 512, cv: 1}}");
    editor.take("output", "serve.lengths.output", "{lognormal: {mean: 256, cv: 1}}");
  }
}

// {count, routing, ...}, where the config may have the count alone.
void take_replicas(ConfigEditor& editor) {
  if (editor.has("replicas") || editor.has("routing")) editor.spell_out("serve.replicas", "count");
  editor.take("replicas", "serve.replicas.count");
  editor.take("routing", "serve.replicas.routing");
}

}  // namespace

serve::ServeExperiment read_server(const po::variables_map& values) {
  Diagnostics diagnostics;
  const bool given = values.count("config") > 0;
  std::string file = "the options";
  config::Value config = read_given(values, file, diagnostics);
  ConfigEditor editor(config, values, diagnostics);
  const int loads = (editor.has("rate") ? 1 : 0) + (editor.has("concurrency") ? 1 : 0) + (editor.has("trace") ? 1 : 0);
  if (editor.has("alpha") && editor.has("position-rates"))
    throw BadInput({"--alpha", 0, 0}, "given beside --position-rates, allowed: one of them");
  if (loads > 1) throw BadInput({"--rate", 0, 0}, "given with another load, allowed: one of --rate, --concurrency, --trace");
  // Asked before --set, whose own process is refused beside a load.
  const bool keeps_process = given && loads > 0 &&
                             editor.arrivals_have(editor.has("rate")          ? "rate"
                                                  : editor.has("concurrency") ? "concurrency"
                                                                              : "file");
  if (given && loads > 0 && !keeps_process) editor.set("serve.arrivals", config::map({}, {"--rate", 0, 0}));
  if (values.count("set") > 0)
    for (const spec::Override& one : read_overrides(values["set"].as<std::vector<std::string>>(), "", diagnostics))
      editor.set_for_user(one);
  editor.take("seed", "seed");
  if (given)
    editor.take_models();
  else
    fill_defaults(editor);
  editor.take_tensor_parallel();
  if (loads == 0 && !given && !editor.has("sweep") && !editor.says("serve.arrivals.process"))
    throw BadInput({"", 0, 0},
                   "specsim serve needs a config, or a load: --rate, --concurrency, --trace, --sweep or --set "
                   "serve.arrivals={process: NAME, ...}; specsim serve --help shows examples");
  if (keeps_process && !editor.set_by_user("serve.arrivals.process")) {
    editor.take("rate", "serve.arrivals.rate");
    editor.take("concurrency", "serve.arrivals.concurrency");
    editor.take("trace", "serve.arrivals.file");
  } else if (loads > 0 || !given) {
    take_arrivals(editor, loads);
  }
  editor.take("requests", "serve.arrivals.requests");
  editor.take("warm-up", "serve.warm_up");
  take_lengths(editor, given);
  take_speculation(editor, diagnostics);
  take_replicas(editor);
  take_slo(editor);
  diagnostics.throw_if_any();
  serve::ServeExperiment experiment = serve::read_serve_experiment(config, file, diagnostics);
  diagnostics.throw_if_any();
  experiment.assumed = editor.assumed();
  return experiment;
}

}  // namespace specsim::cli
