#include "sim/answers/load/from_options.h"

#include "sim/foundation/config/choose.h"
#include "sim/hardware/latency/server_memory.h"
#include "sim/serving/arrivals/arrivals.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <string_view>
#include <utility>

namespace specsim::load {

namespace {

// The config while it is read, with the options applied to it.
class Composer {
 public:
  Composer(config::Value config, Diagnostics& diagnostics) : config_(std::move(config)), diagnostics_(diagnostics) {}

  [[nodiscard]] const config::Value& config() const { return config_; }
  [[nodiscard]] const std::vector<std::string>& assumed() const { return assumed_; }
  [[nodiscard]] const config::Value* find(const std::string& path) const { return config::find_path(config_, path); }
  // The registry entry named there; nullptr if there is none, or the name is unknown.
  template <class Entry>
  [[nodiscard]] const Entry* entry_at(const char* path, const config::Registry<Entry>& registry) const {
    const config::Value* const value = find(path);
    return value != nullptr && value->is_scalar() ? registry.find(value->text) : nullptr;
  }
  // True if nothing is there, or a map without this key.
  [[nodiscard]] bool lacks(const std::string& path, const std::string& key) const {
    const config::Value* const value = find(path);
    return value == nullptr || (value->is_map() && value->find(key) == nullptr);
  }
  [[nodiscard]] bool set_by_user(const std::string& path) const {
    return std::find(by_user_.begin(), by_user_.end(), path) != by_user_.end();
  }
  void set_for_user(const spec::Override& change) {
    set(change);
    by_user_.push_back(change.path);
  }
  void set(spec::Override change) {
    const Location where = change.value.where;
    for (const std::string& set : by_user_) {
      const config::Value* const there = find(change.path);
      const bool inside = change.path.starts_with(set + ".");
      if (there == nullptr || (set != change.path && !inside && !set.starts_with(change.path + "."))) continue;
      if (!takes_preset(change.path) || set == change.path || inside || !there->is_map() || there->find("preset") != nullptr ||
          !change.value.is_scalar())
        throw BadInput({"--set", 0, 0}, fmt::format("{} is set together with {}, allowed: one of them", set, where.file));
      // A GPU or model by name whose figures the user changes.
      config::Value changed = *there;
      changed.fields.insert(changed.fields.begin(), {"preset", where, std::move(change.value)});
      change.value = std::move(changed);
      break;
    }
    config::set_path(config_, change.path, std::move(change.value), where, diagnostics_);
  }
  void set(const std::string& path, const spec::Setting& setting, const char* option) {
    set(spec::override_setting(path, setting, {option, 0, 0}));
  }
  // The text as it is, without quotes.
  void set_text(const std::string& path, const std::string& text, const char* option) {
    const Location where{option, 0, 0};
    set({path, config::scalar(text, where), where});
  }
  // Sets the value of an option. If neither option nor config has one, sets `fallback`; nullptr: nothing.
  void take(const std::string& option, const std::optional<std::string>& said, const std::string& path,
            const char* fallback = nullptr) {
    const bool falls_back = !said && fallback != nullptr && (find(path) == nullptr || lacks_preset(path));
    if (!said && !falls_back) return;
    if (auto change = spec::read_override(path, said ? *said : fallback, "--" + option, diagnostics_)) set(*std::move(change));
    if (falls_back) assumed_.push_back(fmt::format("--{} {}", option, fallback));
  }
  // Names a default that was filled in.
  void assume(std::string option) { assumed_.push_back(std::move(option)); }
  // Turns a scalar at the path into a map with this one key.
  void spell_out(const std::string& path, const char* key) {
    if (const config::Value* const value = find(path))
      config::set_path(config_, path, config::spelled_out(*value, key), value->where, diagnostics_);
  }

 private:
  // Whether the user changes figures of a GPU or model without naming one.
  [[nodiscard]] bool lacks_preset(const std::string& path) const {
    return takes_preset(path) && lacks(path, "preset") && !set_by_user(path);
  }
  static bool takes_preset(const std::string& path) {
    return path == "cost.hardware" || path == "cost.target" || path == "cost.draft";
  }

  config::Value config_;
  std::vector<std::string> by_user_;  // paths that the user changed
  std::vector<std::string> assumed_;  // defaults filled in, as options
  Diagnostics& diagnostics_;
};

// off, fixed:3, table:1-4=5,5-64=3, table:[[1, 4, 5], [5, 64, 3]], goodput, adaptive:ema_tiers; or {kind: ...}.
config::Value policy_of(const std::string& text, Diagnostics& diagnostics) {
  const Location where{"--policy", 0, 0};
  if (text.starts_with("{")) return config::parse_text(text, where.file, diagnostics);
  const std::size_t colon = text.find(':');
  const std::string kind = text.substr(0, colon);
  config::Value policy = config::map({{"kind", config::scalar(kind, where)}}, where);
  const serve::ServerPolicyEntry* const entry = serve::server_policies().find(kind);
  if (entry == nullptr) return policy;  // an unknown kind is reported when the config is read
  if (colon == std::string::npos) {
    const std::string_view word = entry->worded;
    const auto& parameters = entry->info.parameters;
    const auto own = std::find_if(parameters.begin(), parameters.end(), [&](const auto& one) { return one.name == word; });
    if (own != parameters.end() && !own->fallback) {
      std::string placeholder(word);
      std::transform(word.begin(), word.end(), placeholder.begin(),
                     [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c; });
      throw BadInput(where, fmt::format("{} alone, allowed: {}:{}, {}", kind, kind, placeholder, own->summary));
    }
    return policy;
  }
  const std::string rest = text.substr(colon + 1);
  if (std::string_view(entry->worded).empty())
    throw BadInput(where, fmt::format("{} takes no word after it, allowed: {}", kind, kind));
  policy.fields.push_back(
      {entry->worded, where,
       entry->read_word != nullptr ? entry->read_word(rest, where, diagnostics) : config::scalar(rest, where)});
  return policy;
}

void take_models(const ServeRequest& request, Composer& composer) {
  composer.take("hardware", request.hardware, "cost.hardware");
  composer.take("target", request.target, "cost.target");
  composer.take("draft", request.draft, "cost.draft");
}

// Defaults of the server's own command for missing options, by GPU.
void take_scheduler_defaults(const ServeRequest& request, Composer& composer) {
  double share = cost::kUsualShare;
  Diagnostics elsewhere;  // errors are reported when the config is read
  const serve::SchedulerEntry* const entry = composer.entry_at("serve.scheduler.kind", serve::schedulers());
  const config::Value* const named = composer.find("cost.hardware");
  const cost::Hardware hardware = named != nullptr ? cost::read_hardware(*named, elsewhere) : cost::Hardware{};
  if (entry != nullptr && named != nullptr && elsewhere.empty()) {
    if (entry->defaults != nullptr)
      for (const auto& [key, value] : entry->defaults(hardware))
        if (composer.lacks("serve.scheduler", key)) composer.set("serve.scheduler." + key, value, "--hardware");
    const config::Choice<serve::SchedulerEntry> chosen =
        config::choose(serve::schedulers(), *composer.find("serve.scheduler"), "kind", "serve.scheduler", elsewhere);
    const serve::SchedulerMaker maker = chosen.entry != nullptr ? chosen.entry->read(chosen.arguments, elsewhere) : nullptr;
    const double gpus = request.tensor_parallel ? config::as_number(*request.tensor_parallel).value_or(1.0) : 1.0;
    if (maker) share = maker()->usual_share(hardware, static_cast<int>(std::clamp(gpus, 1.0, 1024.0)));
  }
  const std::array<const char*, 3> sizes = {"serve.kv.utilization", "serve.kv.blocks", "serve.kv.tokens"};
  if (std::none_of(sizes.begin(), sizes.end(), [&](const char* path) { return composer.find(path) != nullptr; }))
    composer.set("serve.kv.utilization", share, "--hardware");
}

// The scheduler of the server that the engine's latencies describe; nullptr if there is none.
const serve::SchedulerEntry* scheduler_of(const std::string& engine) {
  for (const serve::SchedulerEntry& entry : serve::schedulers().entries())
    if (const std::string_view own = entry.engine; !own.empty() && (engine == own || engine.starts_with(std::string(own) + "_")))
      return &entry;
  return nullptr;
}

// An engine that is not the scheduler's changes the latencies alone.
void warn_of_scheduler(const ServeRequest& request, ServeExperiment& experiment) {
  if (!request.config || !request.engine) return;
  const serve::SchedulerEntry* const own = scheduler_of(*request.engine);
  if (own == nullptr || experiment.product.empty() || own->product == experiment.product) return;
  experiment.warnings.push_back(fmt::format(
      "--engine {} changes latencies only: the config's scheduler is {}'s, with its queue and its prefix cache; for {}'s, set "
      "scheduler: {{kind: {}}}",
      *request.engine, experiment.product, own->product, own->info.name));
}

// The server of options alone, without a config. Settings that the user changes by path are kept.
void fill_defaults(const ServeRequest& request, Composer& composer) {
  if (composer.lacks("serve.scheduler", "kind")) {
    const serve::SchedulerEntry* const own = scheduler_of(request.engine.value_or(""));
    composer.set("serve.scheduler.kind", own != nullptr ? own->info.name : "vllm_v1", "--hardware");
  }
  if (composer.lacks("cost", "model")) composer.set("cost.model", "roofline", "--hardware");
  const cost::CostEntry* const cost = composer.entry_at("cost.model", cost::cost_models());
  if (cost == nullptr || !cost->info.has_parameter("hardware")) {  // its latencies are not those of a GPU: no memory to fill
    take_models(request, composer);
    return;
  }
  composer.take("hardware", request.hardware, "cost.hardware", "h100-sxm");
  composer.take("target", request.target, "cost.target", "llama-3.1-8b");
  composer.take("draft", request.draft, "cost.draft", "none");
  take_scheduler_defaults(request, composer);
}

// Both models use the same GPUs, unless the draft has its own.
void take_tensor_parallel(const ServeRequest& request, Composer& composer) {
  if (!request.tensor_parallel) return;
  for (const std::string model : {"cost.target", "cost.draft"}) {
    const config::Value* const said = composer.find(model);
    if (said == nullptr || (said->is_scalar() && said->text == "none")) continue;  // no draft
    if (model == "cost.draft" && (request.draft_hardware || composer.find("cost.draft_hardware") != nullptr)) continue;
    composer.spell_out(model, "preset");
    composer.take("tensor-parallel", request.tensor_parallel, model + ".tensor_parallel");
  }
}

// The target's data types, and the engine whose host and kernels determine step times.
void take_prices(const ServeRequest& request, Composer& composer) {
  if (request.dtype && composer.find("cost.target") != nullptr) {
    composer.spell_out("cost.target", "preset");
    composer.take("dtype", request.dtype, "cost.target.dtype");
  }
  composer.take("engine", request.engine, "cost.engine");
  composer.take("draft-hardware", request.draft_hardware, "cost.draft_hardware");
  composer.take("draft-link-us", request.draft_link_us, "cost.draft_link_us");
  if (request.power_cap || request.dollars_per_hour) composer.spell_out("cost.hardware", "preset");
  composer.take("power-cap", request.power_cap, "cost.hardware.power.cap_w");
  if (!request.dollars_per_hour) return;
  composer.take("price", request.dollars_per_hour, "cost.hardware.price.dollars_per_hour");
  composer.set_text("cost.hardware.price.source", "an option", "--price");
}

// An option that sets how many requests come.
struct LoadOption {
  std::string name;
  const std::optional<std::string>* said;
  std::string parameter;  // the parameter that it sets, if an arrival process has it
  std::string process;    // the process that it selects otherwise
};

std::array<LoadOption, 3> load_options(const ServeRequest& request) {
  return {{{"rate", &request.rate, "rate", "poisson"},
           {"concurrency", &request.concurrency, "concurrency", "closed"},
           {"trace", &request.trace, "file", "trace"}}};
}

// The arrivals that the options describe. `given`: the option among them; nullptr: none.
void take_arrivals(const ServeRequest& request, const LoadOption* given, Composer& composer) {
  if (composer.find("serve.arrivals.process") != nullptr) {
    if (given == nullptr) return;
    throw BadInput({"--set", 0, 0},
                   fmt::format("serve.arrivals.process is set together with --{}, allowed: one of them", given->name));
  }
  const auto [rate, concurrency, trace] = load_options(request);
  const LoadOption& load = request.trace ? trace : request.concurrency || request.sweep == Load::concurrency ? concurrency : rate;
  composer.set("serve.arrivals.process", load.process, ("--" + load.name).c_str());
  const bool swept = request.sweep.has_value();  // a sweep sets the load
  if (swept && !*load.said) composer.set("serve.arrivals." + load.parameter, 1.0, "--sweep");
  composer.take(load.name, *load.said, "serve.arrivals." + load.parameter, swept ? nullptr : "1");
}

void take_lengths(const ServeRequest& request, Composer& composer) {
  const arrivals::ArrivalsEntry* const arrivals = composer.entry_at("serve.arrivals.process", arrivals::arrival_processes());
  const config::Value* const named = composer.find("serve.lengths");  // a workload
  const bool said = request.config || request.trace || (arrivals != nullptr && arrivals->brings_lengths) ||
                    (named != nullptr && named->is_scalar());
  composer.take("prompt", request.prompt, "serve.lengths.prompt", said ? nullptr : kDefaultPrompt);
  composer.take("output", request.output, "serve.lengths.output", said ? nullptr : kDefaultOutput);
}

void take_speculation(const ServeRequest& request, Composer& composer, Diagnostics& diagnostics) {
  const std::string path = "serve.speculation";
  if (request.policy) composer.set({path + ".policy", policy_of(*request.policy, diagnostics), {}});
  const auto take_acceptance = [&](const char* key, const spec::Setting& setting, const char* option) {
    const Location where{option, 0, 0};
    composer.set({path + ".acceptance", config::map({{key, spec::to_config(setting, where)}}, where), where});
  };
  if (request.position_rates) take_acceptance("position_rates", *request.position_rates, "--position-rates");
  if (request.alpha) take_acceptance("alpha", *request.alpha, "--alpha");
  if (!request.rates_by_context.empty()) {
    const Location where{"--acceptance", 0, 0};
    config::Value list;
    list.kind = config::Kind::list;
    list.where = where;
    for (const spec::ContextRates& one : request.rates_by_context)
      list.items.push_back(config::map(
          {{"context", spec::to_config(one.context, where)}, {"conditional_rates", spec::to_config(one.rates, where)}}, where));
    composer.set({path + ".acceptance", config::map({{"by_context", std::move(list)}}, where), where});
  }
  // Somebody who states an acceptance wants speculation: as long as it is stated for, 3 at most, which servers' examples take.
  constexpr std::size_t kUsualLength = 3;
  const bool by_context = !request.rates_by_context.empty();
  if (!request.policy && (request.position_rates || request.alpha || by_context) && composer.lacks(path, "policy")) {
    const std::size_t stated = request.position_rates ? request.position_rates->size()
                               : by_context           ? request.rates_by_context.front().rates.size()
                                                      : kUsualLength;
    const std::string policy = fmt::format("fixed:{}", std::clamp<std::size_t>(stated, 1, kUsualLength));
    composer.set({path + ".policy", policy_of(policy, diagnostics), {}});
    composer.assume("--policy " + policy);
  }
  composer.take("method", request.method, path + ".method");
}

// Sets {count, routing, ...}; the config may have the count alone.
void take_replicas(const ServeRequest& request, Composer& composer) {
  if (request.replicas || request.routing) composer.spell_out("serve.replicas", "count");
  composer.take("replicas", request.replicas, "serve.replicas.count");
  composer.take("routing", request.routing, "serve.replicas.routing");
}

void take_slo(const ServeRequest& request, Composer& composer) {
  const Location where{"--slo", 0, 0};
  std::set<std::string> seen;
  for (const std::string& part : request.slo) {
    const std::size_t equals = part.find('=');
    const std::string name = part.substr(0, equals);
    if (!seen.insert(name).second)
      throw BadInput(where, fmt::format("{} is given twice, allowed: each limit once", config::quote_for_message(name)));
    if (equals == std::string::npos) {
      if (part.find(':') == std::string::npos)
        throw BadInput(where, fmt::format("{}, allowed: ttft=MS,tpot=MS,e2el=MS, or a preset, as mlperf:llama2-70b-server",
                                          config::quote_for_message(part)));
      composer.set_text("serve.slo.preset", part, "--slo");
    } else {
      if (name != "ttft" && name != "tpot" && name != "e2el" && name != "percentile")
        throw BadInput(where, fmt::format("unknown limit {}, allowed: ttft, tpot, e2el, percentile, or a preset's name",
                                          config::quote_for_message(name)));
      composer.set_text("serve.slo." + (name == "percentile" ? name : name + "_ms"), part.substr(equals + 1), "--slo");
    }
  }
}

}  // namespace

ServeExperiment read_request(const ServeRequest& request, Diagnostics& diagnostics) {
  const std::string file = request.config.value_or("the options");
  Composer composer(request.config ? config::parse_file(file, diagnostics) : config::map({}, {file, 0, 0}), diagnostics);
  if (request.config) diagnostics.throw_if_any();
  if (request.alpha && request.position_rates)
    throw BadInput({"--alpha", 0, 0}, "given together with --position-rates, allowed: one of them");
  const LoadOption* load = nullptr;
  const auto loads = load_options(request);
  for (const LoadOption& one : loads)
    if (*one.said && std::exchange(load, &one) != nullptr)
      throw BadInput({"--rate", 0, 0}, "given with another load, allowed: one of --rate, --concurrency, --trace");
  // Read before the user's changes, since a process set by them is rejected together with a load.
  const arrivals::ArrivalsEntry* const process = composer.entry_at("serve.arrivals.process", arrivals::arrival_processes());
  const bool keeps_process = load != nullptr && process != nullptr && process->info.has_parameter(load->parameter);
  if (request.config && load != nullptr && !keeps_process)
    composer.set({"serve.arrivals", config::map({}, {"--rate", 0, 0}), {}});
  for (const spec::Override& change : request.changes) composer.set_for_user(change);
  composer.take("seed", request.seed, "seed");
  if (request.config)
    take_models(request, composer);
  else
    fill_defaults(request, composer);
  take_tensor_parallel(request, composer);
  take_prices(request, composer);
  if (load == nullptr && !request.config && !request.sweep && composer.find("serve.arrivals.process") == nullptr)
    throw BadInput({"", 0, 0},
                   "specsim serve needs a config, or a load: --rate, --concurrency, --trace, --sweep or --set "
                   "serve.arrivals={process: NAME, ...}; specsim serve --help shows examples");
  if (keeps_process && !composer.set_by_user("serve.arrivals.process"))
    composer.take(load->name, *load->said, "serve.arrivals." + load->parameter);
  else if (load != nullptr || !request.config)
    take_arrivals(request, load, composer);
  composer.take("requests", request.requests, "serve.arrivals.requests");
  composer.take("warm-up", request.warm_up, "serve.warm_up");
  take_lengths(request, composer);
  take_speculation(request, composer, diagnostics);
  take_replicas(request, composer);
  take_slo(request, composer);
  diagnostics.throw_if_any();
  ServeExperiment experiment = read_serve_experiment(composer.config(), file, diagnostics);
  diagnostics.throw_if_any();
  experiment.assumed = composer.assumed();
  warn_of_scheduler(request, experiment);
  return experiment;
}

}  // namespace specsim::load
