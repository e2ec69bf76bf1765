#include "sim/cli/serve_options.h"

#include "sim/cli/numbers.h"
#include "sim/cli/options.h"
#include "sim/serve/arrivals.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace specsim::cli {

namespace po = boost::program_options;

namespace {

config::Value scalar_of(const std::string& text, const std::string& option) { return config::scalar(text, {option, 0, 0}); }

// Puts what the options say into the config.
class ConfigEditor {
 public:
  ConfigEditor(config::Value& config, const po::variables_map& values, Diagnostics& diagnostics)
      : config_(config), values_(values), diagnostics_(diagnostics) {}

  [[nodiscard]] bool has(const char* option) const { return values_.count(option) > 0; }
  [[nodiscard]] bool says(const char* path) const { return config::find_path(config_, path) != nullptr; }
  [[nodiscard]] bool is(const char* path, const char* text) const {
    const config::Value* const value = config::find_path(config_, path);
    return value != nullptr && value->is_scalar() && value->text == text;
  }
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
    else if (config::find_path(config_, path) == nullptr || lacks_preset(path))
      set(path, config::parse_text(fallback, std::string("--") + option, diagnostics_));
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
  const po::variables_map& values_;
  Diagnostics& diagnostics_;
};

// off, fixed:3, table:1-4=5,5-64=3, goodput, adaptive:ema_tiers; or {kind: ...}.
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
    const char* const key = kind == "goodput" ? "longest" : kind == "adaptive" ? "policy" : "draft_length";
    policy.fields.push_back({key, {option, 0, 0}, scalar_of(rest, option)});
  }
  return policy;
}

// The server that flags alone describe, where there is no config; what --set says stands.
void fill_defaults(ConfigEditor& editor) {
  if (editor.lacks("serve.scheduler", "kind")) editor.set("serve.scheduler.kind", scalar_of("vllm_v1", "--hardware"));
  if (editor.lacks("cost", "model")) editor.set("cost.model", scalar_of("roofline", "--hardware"));
  if (!editor.is("cost.model", "roofline")) {  // of other numbers than a GPU's and models', and without a memory to fill
    editor.take("hardware", "cost.hardware");
    editor.take("target", "cost.target");
    editor.take("draft", "cost.draft");
    return;
  }
  editor.take("hardware", "cost.hardware", "h100-sxm");
  editor.take("target", "cost.target", "llama-3.1-8b");
  editor.take("draft", "cost.draft", "none");
  if (!editor.says("serve.kv.utilization") && !editor.says("serve.kv.blocks") && !editor.says("serve.kv.tokens"))
    editor.set("serve.kv.utilization", scalar_of("0.9", "--hardware"));
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

// The config's own arrival process has this parameter, so that an option changes it and nothing else.
bool has_load_of(const config::Value& config, const char* parameter) {
  const config::Value* const process = config::find_path(config, "serve.arrivals.process");
  const serve::ArrivalsEntry* const entry =
      process != nullptr && process->is_scalar() ? serve::arrival_processes().find(process->text) : nullptr;
  return entry != nullptr && std::any_of(entry->info.parameters.begin(), entry->info.parameters.end(),
                                         [&](const config::Parameter& one) { return one.name == parameter; });
}

}  // namespace

config::Value serve_config(const po::variables_map& values, Diagnostics& diagnostics, std::string& file) {
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
  const int loads = (editor.has("rate") ? 1 : 0) + (editor.has("concurrency") ? 1 : 0) + (editor.has("trace") ? 1 : 0);
  if (loads > 1) throw BadInput({"--rate", 0, 0}, "given with another load, allowed: one of --rate, --concurrency, --trace");
  // Asked before --set, whose own process is refused beside a load.
  const bool keeps_process = given && loads > 0 && has_load_of(config, editor.has("rate")          ? "rate"
                                                                      : editor.has("concurrency") ? "concurrency"
                                                                                                  : "file");
  if (given && loads > 0 && !keeps_process) editor.set("serve.arrivals", config::map({}, {"--rate", 0, 0}));
  if (values.count("set") > 0)
    for (const spec::Override& one : read_overrides(values["set"].as<std::vector<std::string>>(), "", diagnostics))
      editor.set_for_user(one);
  editor.take("seed", "seed");
  if (!given) fill_defaults(editor);
  if (given) {
    editor.take("hardware", "cost.hardware");
    editor.take("target", "cost.target");
    editor.take("draft", "cost.draft");
  }
  if (loads == 0 && !given && !editor.has("sweep") && !editor.says("serve.arrivals.process"))
    throw BadInput({"", 0, 0},
                   "specsim serve needs a config, or a load: --rate, --concurrency, --trace, --sweep or --set "
                   "serve.arrivals={process: NAME, ...}; specsim serve --help shows examples");
  const config::Value* const process = config::find_path(config, "serve.arrivals.process");
  const bool brings_lengths =
      editor.has("trace") || (process != nullptr && (process->text == "trace" || process->text == "sessions"));
  if (keeps_process && !editor.set_by_user("serve.arrivals.process")) {
    editor.take("rate", "serve.arrivals.rate");
    editor.take("concurrency", "serve.arrivals.concurrency");
    editor.take("trace", "serve.arrivals.file");
  } else if (loads > 0 || !given) {
    take_arrivals(editor, loads);
  }
  editor.take("requests", "serve.arrivals.requests");
  editor.take("warm-up", "serve.warm_up");
  if (!given && !brings_lengths) {
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
  if (editor.has("slo")) {
    std::set<std::string> seen;
    for (const std::string& part : read_texts(editor.text("slo"), "--slo")) {
      const std::size_t equals = part.find('=');
      if (!seen.insert(part.substr(0, equals)).second)
        throw BadInput({"--slo", 0, 0}, fmt::format("{} is given twice, allowed: each limit once",
                                                    config::quote_for_message(part.substr(0, equals))));
      if (equals == std::string::npos && part.find(':') != std::string::npos) {
        editor.set("serve.slo.preset", scalar_of(part, "--slo"));
        continue;
      }
      if (equals == std::string::npos)
        throw BadInput({"--slo", 0, 0},
                       fmt::format("{}, allowed: ttft=MS,tpot=MS,e2el=MS, or a preset, as mlperf:llama2-70b-server",
                                   config::quote_for_message(part)));
      if (part.starts_with("percentile")) {
        editor.set("serve.slo.percentile", scalar_of(part.substr(equals + 1), "--slo"));
        continue;
      }
      editor.set("serve.slo." + part.substr(0, equals) + "_ms", scalar_of(part.substr(equals + 1), "--slo"));
    }
  }
  return config;
}

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

}  // namespace specsim::cli
