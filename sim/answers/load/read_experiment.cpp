#include "sim/answers/load/experiment.h"
#include "sim/answers/load/slo.h"
#include "sim/answers/load/start_rules.h"
#include "sim/experiments/spec/engine_names.h"
#include "sim/experiments/spec/spec.h"
#include "sim/foundation/base/token.h"
#include "sim/foundation/config/choose.h"
#include "sim/serving/serve/memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace specsim::load {

namespace {

using config::elsewhere, config::required, config::Value;

const config::Fields<ServeExperiment>& top_fields() {
  static const config::Fields<ServeExperiment> fields = {
      {"experiment", elsewhere<std::string>, "name of the experiment", config::Default{"serve"}},
      {"description", elsewhere<std::string>, "purpose of the experiment"},
      {"seed", &ServeExperiment::seed, "seed of all random numbers", config::between(0, 9.2e18)},
      {"serve", elsewhere<Value>, "the server and its clients", required},
      {"cost", elsewhere<Value>, "latency of passes: {model: NAME, ...}, in seconds", required},
      {"pair", elsewhere<Value>, "distributions whose rounds are executed, if speculation states no acceptance"},
      {"context", elsewhere<Value>, "how they change along the text"},
      {"decode", elsewhere<Value>, "drafter and verifier of those rounds"}};
  return fields;
}

const config::Fields<ServeExperiment>& serve_fields() {
  static const config::Fields<ServeExperiment> fields = {
      {"scheduler", elsewhere<Value>, "how steps are filled with tokens: {kind: NAME, ...}", config::Default{"vllm_v1"}},
      {"plain_scheduler", elsewhere<Value>, "its settings that differ in the server without speculation, such as {async: true}",
       config::Default{"{}"}},
      {"kv", elsewhere<Value>, "the paged cache", config::Default{"{}"}},
      {"arrivals", elsewhere<Value>, "when requests are sent: {process: NAME, ...}", required},
      {"lengths", elsewhere<Value>,
       "{prompt: ..., output: ...}, or a workload: sharegpt, azure2023_conv, azure2023_code; used if the arrivals have no "
       "lengths"},
      {"speculation", elsewhere<Value>, "drafting; if omitted, plain decoding"},
      {"replicas", elsewhere<Value>, "engines, a number or {count, routing}", config::Default{"1"}},
      {"slo", elsewhere<Value>, "limits that requests must keep", config::Default{"{}"}},
      {"warm_up", elsewhere<std::string>,
       "first requests that figures exclude: a number, or mser: as many as MSER-5 drops, at most half of them",
       config::Default{"0"}},
      {"metrics", &ServeExperiment::streamed,
       "exact: all requests are kept; streamed: none is kept after its end, and percentiles have a relative error of 0.5 %",
       config::one_of<bool>({{"exact", false}, {"streamed", true}})},
      {"frontend_ms", elsewhere<double>,
       "time from sending a request to its arrival in the engine's queue: HTTP, tokenisation of the prompt",
       config::between(0, 1e6), config::Default{"0"}},
      {"horizon_s", elsewhere<double>, "maximum simulated seconds; if requests are left then, the run counts as unstable",
       config::between(1e-3, 4e6)}};
  return fields;
}

const config::Fields<Speculation>& speculation_fields() {
  static const config::Fields<Speculation> fields = {
      {"policy", elsewhere<Value>, "how many tokens to draft: {kind: NAME, ...}", required},
      {"acceptance", elsewhere<Value>,
       "{position_rates: [...]}, {conditional_rates: [...]}, {alpha: a} or {trace: FILE}; classes of requests may differ; if "
       "omitted, rounds of pair and decode, executed"},
      {"method", elsewhere<std::string>,
       "the draft: eagle heads and draft_model keep a cache in the same blocks (a model also adds one row per sequence to the "
       "budget), ngram neither computes nor keeps anything; if omitted, as the draft of cost, or eagle if cost has none",
       config::one_of({"eagle", "draft_model", "ngram"})}};
  return fields;
}

std::vector<std::string> preset_names() {
  std::vector<std::string> names;
  for (const SloPreset& one : slo_presets()) names.push_back(one.name);
  return names;
}

const config::Fields<serve::Slo>& slo_fields() {
  static const config::Fields<serve::Slo> fields = {
      {"preset", elsewhere<std::string>, "limits by name; the other keys replace single limits", config::one_of(preset_names())},
      {"ttft_ms", &serve::Slo::ttft_ms, "time to first token", config::between(0, 1e9)},
      {"tpot_ms", &serve::Slo::tpot_ms, "time per output token", config::between(0, 1e9)},
      {"e2el_ms", &serve::Slo::e2el_ms, "end to end", config::between(0, 1e9)},
      {"percentile", &serve::Slo::percentile, "percentage of requests that must keep each limit; 99 without a preset",
       config::between(0, 100), config::optional}};
  return fields;
}

const config::Fields<DrawnLengths>& length_fields() {
  static const config::Fields<DrawnLengths> fields = {
      {"prompt", elsewhere<Value>, "tokens of a prompt", required},
      {"output", elsewhere<Value>, "tokens of an output", required},
      {"max_tokens", &DrawnLengths::max_tokens,
       "maximum number of output tokens that requests ask for; the server does not know when a shorter output ends",
       config::between(1, arrivals::kMostTokens), config::optional}};
  return fields;
}

struct ReplicaSection {
  std::uint32_t count = 1;
  std::uint32_t prefill = 0;
  double link_bandwidth = 50e9;  // bytes per second
  double link_ms = 0.0;
  bool first_token_of_decode = false;
  std::optional<double> kv_bytes_per_token;
};

const config::Fields<ReplicaSection>& replica_fields() {
  static const config::Fields<ReplicaSection> fields = {
      {"count", &ReplicaSection::count, "engines", config::between(1, 4096)},
      {"routing", elsewhere<Value>, "which engine serves a request", config::Default{"round_robin"}},
      {"prefill", &ReplicaSection::prefill, "additional engines that only compute prompts, without speculation",
       config::between(0, 4096)},
      {"link_gb_per_s", &ReplicaSection::link_bandwidth,
       "rate of the link that carries prompts' caches to the decoding engines, one after the other", config::between(1e-3, 1e6),
       config::times(1e9)},
      {"link_ms", &ReplicaSection::link_ms, "its latency", config::between(0, 1e6)},
      {"first_token", &ReplicaSection::first_token_of_decode,
       "engine whose first token the client gets: the one that computed the prompt, or, as with vLLM's usual proxy, the one that "
       "decodes, which computes the prompt's last token again",
       config::one_of<bool>({{"prefill", false}, {"decode", true}})},
      {"kv_bytes_per_token", &ReplicaSection::kv_bytes_per_token, "size of a prompt's cache, if the cost model does not have it",
       config::between(1, 1e9)}};
  return fields;
}

// {SELECTOR: NAME, ...} from a registry, or the name alone.
template <class Entry>
config::Choice<Entry> choose(const config::Registry<Entry>& registry, const config::Value& value, const char* selector,
                             const std::string& what, Diagnostics& diagnostics) {
  return config::choose(registry, config::spelled_out(value, selector), selector, what, diagnostics);
}

// The scheduler's config with the settings of `differing`.
config::Value with_settings(const config::Value& scheduler, const config::Value& differing) {
  config::Value changed = config::spelled_out(scheduler, "kind");
  for (const config::Field& field : differing.fields) {
    std::erase_if(changed.fields, [&](const config::Field& own) { return own.key == field.key; });
    changed.fields.push_back(field);
  }
  return changed;
}

// Reads the scheduler again with the default that its server has if n-grams draft.
void turn_off_with_ngrams(const config::Choice<serve::SchedulerEntry>& scheduler, const config::Value& value,
                          ServeExperiment& experiment, Diagnostics& diagnostics) {
  const std::string name = scheduler.entry->off_with_ngrams;
  if (name.empty() || scheduler.arguments.given(name)) return;
  const config::Value off = config::map({{name, config::scalar("false", value.where)}}, value.where);
  experiment.scheduler = scheduler.entry->read(
      choose(serve::schedulers(), with_settings(value, off), "kind", "serve.scheduler", diagnostics).arguments, diagnostics);
}

serve::ServerMemory memory_of(const serve::Scheduler* scheduler) {
  if (scheduler == nullptr) return {};
  return {scheduler->profiled(), scheduler->memory_share(), scheduler->saves_states()};
}

// The cost model's config with the scheduler's engine, if it takes an engine and names none.
config::Value with_engine(const config::Value& cost, const serve::SchedulerEntry* scheduler) {
  if (scheduler == nullptr || scheduler->engine[0] == '\0' || !cost.is_map() || cost.find("engine") != nullptr) return cost;
  const config::Value* const model = cost.find("model");
  const cost::CostEntry* const entry = model != nullptr && model->is_scalar() ? cost::cost_models().find(model->text) : nullptr;
  if (entry == nullptr || std::none_of(entry->info.parameters.begin(), entry->info.parameters.end(),
                                       [](const config::Parameter& one) { return one.name == "engine"; }))
    return cost;
  config::Value own = cost;
  own.fields.push_back({"engine", cost.where, config::scalar(scheduler->engine, cost.where)});
  return own;
}

std::shared_ptr<const cost::CostModel> read_cost(const config::Value& value, Diagnostics& diagnostics) {
  const config::Choice<cost::CostEntry> choice = choose(cost::cost_models(), value, "model", "cost", diagnostics);
  if (choice.entry == nullptr) return nullptr;
  std::shared_ptr<const cost::CostModel> cost = choice.entry->make(choice.arguments, diagnostics);
  spec::check_engine_names(cost.get(), diagnostics);
  if (cost && !cost->in_seconds())
    diagnostics.add(value.where, fmt::format("cost model {} counts in passes, allowed: one in seconds", choice.entry->info.name));
  return cost;
}

// The single cell of the config's own distributions and method.
std::shared_ptr<const spec::Cell> read_cell(const config::Value& config, const std::string& file, const Location& where,
                                            Diagnostics& diagnostics) {
  config::Value own = config;
  std::erase_if(own.fields, [](const config::Field& field) { return field.key == "serve" || field.key == "cost"; });
  if (const config::Value* const kind = config::find_path(own, "decode.policy.kind"); kind != nullptr && kind->is_scalar())
    if (const draft::PolicyEntry* const policy = draft::policies().find(kind->text); policy != nullptr && policy->by_times) {
      diagnostics.add(kind->where,
                      fmt::format("policy {} in decode depends on round times, which the server determines, allowed: "
                                  "serve.speculation.policy: {{kind: goodput}} or {{kind: adaptive, policy: {}}}",
                                  kind->text, kind->text));
      return nullptr;
    }
  if (own.find("experiment") == nullptr) own.fields.push_back({"experiment", own.where, config::scalar("serve", own.where)});
  const std::size_t before = diagnostics.list().size();
  const spec::Experiment experiment = spec::read_experiment(std::move(own), file, {}, diagnostics);
  if (diagnostics.list().size() != before) return nullptr;
  auto cell = std::make_shared<const spec::Cell>(experiment.cells.front());
  if (experiment.cells.size() != 1) {
    diagnostics.add(
        where, fmt::format("decode and pair make {} cells, allowed: one, whose rounds are executed", experiment.cells.size()));
    return nullptr;
  }
  if (cell->judges_blocks() && draft::prepares_meanwhile(*cell->block()->drafter)) {
    diagnostics.add(where, fmt::format("decode's drafter {} prepares rounds on a GPU of its own, which servers here do not have; "
                                       "allowed: another drafter",
                                       cell->block()->drafter.name()));
    return nullptr;
  }
  if (cell->policy() != nullptr && (*cell->policy())->shares_rows()) {
    diagnostics.add(where,
                    fmt::format("decode's policy {} divides the rows of a batch, and a server's batches are not those of decode; "
                                "allowed: a policy that chooses for each sequence",
                                cell->policy()->name()));
    return nullptr;
  }
  if (cell->policy() != nullptr && (*cell->policy())->uses_forecasts()) {
    diagnostics.add(where, fmt::format("decode's policy {} knows what will be accepted, allowed: one that a server can run",
                                       cell->policy()->name()));
    return nullptr;
  }
  return cell;
}

// Checks that decode's method can draft the lengths of the server's policy.
void check_lengths(const serve::ServerPolicy& policy, const spec::Cell& cell, const Location& where, Diagnostics& diagnostics) {
  const std::vector<int> lengths = policy.lengths();
  const bool cut = serve::executed_supports(cell, 1) && cell.draft_length() > 1;
  if (lengths.empty() && policy.longest() > 0) {
    diagnostics.add(
        where,
        fmt::format("the policy tries up to {} tokens, allowed: {}, the only draft length that this method supports in a server",
                    policy.longest(), cell.draft_length()));
    return;
  }
  for (const int length : lengths)
    if (!serve::executed_supports(cell, length)) {
      diagnostics.add(
          where,
          cut ? fmt::format("the policy drafts up to {} tokens, allowed: at most decode's draft_length, {}", policy.longest(),
                            cell.draft_length())
              : fmt::format("the policy drafts {} tokens, allowed: 0 or {}, the longest path of this method, which cannot be cut",
                            length, cell.draft_length()));
      return;
    }
}

// Checks that every length that the policy may choose can be drafted with the stated acceptance.
void check_lengths(const serve::ServerPolicy& policy, const serve::Acceptance& acceptance, const Location& where,
                   Diagnostics& diagnostics) {
  for (const int length : policy.lengths())
    if (!acceptance.offers(length)) {
      int most = 0;
      while (acceptance.offers(most + 1)) ++most;
      diagnostics.add(where, fmt::format("the policy drafts up to {} tokens, allowed: at most the drafts in the trace, {}",
                                         policy.longest(), most));
      return;
    }
}

using KnowsDrafts = std::function<bool(draft::Confidence)>;

// The message for a policy that needs information on drafts which stated acceptance or executed rounds do not provide.
std::string unknown_confidence(draft::Confidence confidence, const KnowsDrafts& knows, bool stated) {
  const char* const name = confidence == draft::Confidence::head ? "head" : "estimate";
  if (!stated)
    return fmt::format(
        "confidence is {}, and drafts of fresh distributions or of recorded acceptance have none, allowed: "
        "history, or contexts from a pool",
        name);
  const bool overlaps = knows(draft::Confidence::head);
  return fmt::format(
      "confidence is {}, and {} of drafts, allowed: {}history, or pair and decode next to serve instead of "
      "acceptance, whose rounds are executed",
      name, overlaps ? "the trace records only overlaps" : "acceptance states only the acceptance", overlaps ? "head, " : "");
}

Speculation read_speculation(const config::Value& value, const config::Value& config, const std::string& file,
                             const cost::CostModel* cost, Diagnostics& diagnostics) {
  Speculation speculation;
  const std::size_t before = diagnostics.list().size();
  const config::Arguments arguments = config::read_arguments(value, speculation_fields(), {}, "serve.speculation", diagnostics);
  if (diagnostics.list().size() != before) return speculation;
  const config::Choice<serve::ServerPolicyEntry> choice =
      choose(serve::server_policies(), arguments.value("policy"), "kind", "serve.speculation.policy", diagnostics);
  const auto read_policy = [&](std::function<bool(int)> offers,
                               std::function<bool(draft::Confidence)> knows) -> std::unique_ptr<serve::ServerPolicy> {
    if (choice.entry != nullptr) {
      speculation.policy = choice.entry->read(choice.arguments, diagnostics);
      speculation.policy_name = choice.entry->info.name;
    }
    if (!speculation.policy) return nullptr;
    auto policy = untimed_policy(speculation.policy, std::move(offers), knows);
    if (policy->confidence() && knows && !knows(*policy->confidence()))
      diagnostics.add(choice.arguments.where("confidence"),
                      unknown_confidence(*policy->confidence(), knows, arguments.has("acceptance")));
    return policy;
  };
  const Location where = arguments.where("policy");
  if (arguments.has("acceptance")) {
    std::optional<serve::StatedAcceptance> stated = serve::read_acceptance(arguments.value("acceptance"), diagnostics);
    std::unique_ptr<serve::Acceptance> acceptance;
    if (stated) {
      acceptance = make_acceptance(*stated, rng::Key{});
      speculation.acceptance = std::make_shared<const serve::StatedAcceptance>(*std::move(stated));
    }
    const std::unique_ptr<serve::ServerPolicy> policy =
        read_policy([&](int draft_length) { return !acceptance || acceptance->offers(draft_length); },
                    acceptance ? [&](draft::Confidence own) { return acceptance->knows(own); } : KnowsDrafts());
    if (policy) speculation.longest = policy->longest();
    if (acceptance && policy) check_lengths(*policy, *acceptance, where, diagnostics);
    if (acceptance && policy && policy->classes() > 0 && policy->classes() != acceptance->classes().size())
      diagnostics.add(choice.arguments.where("classes"),
                      fmt::format("the policy has a draft length for {} classes, and acceptance has {}, allowed: one length for "
                                  "each of acceptance.classes",
                                  policy->classes(), acceptance->classes().size()));
  } else if (config.find("pair") == nullptr || config.find("decode") == nullptr) {
    const std::unique_ptr<serve::ServerPolicy> policy = read_policy({}, {});
    if (policy && policy->longest() == 0)  // without drafts nothing can be accepted
      speculation.acceptance = std::make_shared<const serve::StatedAcceptance>(serve::ClassRates{{{1.0, {0.0}, true}}});
    else if (policy)
      diagnostics.add(value.where,
                      "speculation states no acceptance, allowed: serve.speculation.acceptance, as {position_rates: [0.7, 0.5]}, "
                      "or --alpha, --position-rates and similar; or pair and decode next to serve, whose rounds are executed");
  } else if (const std::shared_ptr<const spec::Cell> cell = read_cell(config, file, value.where, diagnostics)) {
    speculation.acceptance = cell;
    if (const auto policy = read_policy([&](int draft_length) { return serve::executed_supports(*cell, draft_length); },
                                        [&](draft::Confidence own) { return serve::executed_has_confidence(*cell, own); })) {
      speculation.longest = policy->longest();
      if (policy->shares_rows() && !serve::executed_cuts(*cell)) {
        diagnostics.add(where, fmt::format("policy {} verifies a part of the drafted tokens, and decode has a tree or its own "
                                           "policy; allowed: a chain without a policy, drawn or guessed",
                                           choice.entry->info.name));
        return speculation;
      }
      check_lengths(*policy, *cell, where, diagnostics);
      if (policy->classes() > 0)
        diagnostics.add(choice.arguments.where("classes"),
                        "classes is set and rounds are executed, allowed: acceptance with classes, which states their rates");
    }
  }
  if (diagnostics.list().size() == before) speculation.method = read_method(arguments, speculation, cost, diagnostics);
  return speculation;
}

// The link from prompt engines to decoding engines.
void read_link(const config::Arguments& replicas, const ReplicaSection& own, const serve::SchedulerEntry* scheduler,
               ServeExperiment& experiment, Diagnostics& diagnostics) {
  if (scheduler != nullptr && *scheduler->not_apart != '\0')
    diagnostics.add(replicas.where("prefill"), fmt::format("prefill is set with scheduler {}, allowed: another one, since {}",
                                                           scheduler->info.name, scheduler->not_apart));
  double bytes = own.kv_bytes_per_token.value_or(0.0);
  if (bytes == 0.0 && experiment.cost) {
    const auto none = experiment.cost->memory_budget({1.0, 0.0}, 0, cost::Kept::target);
    const auto many = experiment.cost->memory_budget({1.0, 1e6}, 0, cost::Kept::target);
    if (none && many) bytes = (many->needed_bytes() - none->needed_bytes()) * 1e-6;
  }
  if (bytes == 0.0)
    diagnostics.add(
        replicas.where("prefill"),
        "the cost model does not have the size of a token's cache, allowed: kv_bytes_per_token, or the cost model roofline");
  experiment.link_ps_per_token = arrivals::kPicosecondsPerSecond * bytes / own.link_bandwidth;
  experiment.link_latency = std::llround(1e-3 * arrivals::kPicosecondsPerSecond * own.link_ms);
  experiment.first_token_of_decode = own.first_token_of_decode;
}

void read_replicas(const config::Value& value, const serve::SchedulerEntry* scheduler, ServeExperiment& experiment,
                   Diagnostics& diagnostics) {
  const config::Value named = config::spelled_out(value, "count");
  const std::size_t before = diagnostics.list().size();
  const config::Arguments arguments = config::read_arguments(named, replica_fields(), {}, "serve.replicas", diagnostics);
  if (diagnostics.list().size() != before) return;
  const ReplicaSection own = replica_fields().read(arguments);
  experiment.replicas = own.count;
  experiment.prefill_engines = own.prefill;
  const cost::Deployment* const deployment = experiment.cost ? experiment.cost->deployment() : nullptr;
  if (deployment != nullptr && deployment->target && deployment->target->expert_parallel > 1.0) {
    const double sharing = deployment->target->expert_parallel;
    if (sharing != experiment.replicas || experiment.prefill_engines > 0)
      diagnostics.add(
          arguments.where(experiment.prefill_engines > 0 ? "prefill" : "count"),
          fmt::format(
              "count is {}, prefill {}, and expert_parallel of the target {:g}, allowed: count {:g} (--replicas) and prefill "
              "0, since engines that share experts step together",
              experiment.replicas, experiment.prefill_engines, sharing, sharing));
  }
  if (experiment.prefill_engines > 0) read_link(arguments, own, scheduler, experiment, diagnostics);
  const config::Choice<serve::RoutingEntry> routing =
      choose(serve::routings(), arguments.value("routing"), "kind", "serve.replicas.routing", diagnostics);
  if (routing.entry != nullptr) experiment.routing = routing.entry->make(routing.arguments, diagnostics);
}

// vLLM does not start if a step cannot hold a block at whose end it saves a state.
void check_blocks(ServeExperiment& experiment, const cost::StepLimits& step, const Location& where, Diagnostics& diagnostics) {
  const cost::Deployment* const deployment = experiment.cost ? experiment.cost->deployment() : nullptr;
  experiment.saves_states = deployment != nullptr && deployment->target && deployment->target->recurrent_bytes() > 0.0;
  const std::uint32_t block = std::max(experiment.pool.block_tokens, experiment.plain_pool.block_tokens);
  if (experiment.saves_states && block > step.rows)
    diagnostics.add(where, fmt::format("a block has {} tokens, so that a state of {} fits into it, allowed: at most "
                                       "max_num_batched_tokens, {:g}: set a larger one",
                                       block, deployment->target->name, step.rows));
}

// The second tier of the prefix cache: who loads from it.
void check_host(const ServeExperiment& experiment, const serve::Scheduler& scheduler, const Location& where,
                Diagnostics& diagnostics) {
  if (!scheduler.loads_from_host())
    diagnostics.add(where,
                    "host is set and the scheduler loads nothing from it, allowed: vllm_v1 with prefix_caching, or sglang with "
                    "radix_cache");
  if (experiment.saves_states)
    diagnostics.add(where, "host is set and layers of the target keep a state, allowed: a target whose layers all have a cache");
  if (experiment.cost && in_step(experiment))
    diagnostics.add(where, "host is set and engines share experts, allowed: engines that step by themselves");
  if (!experiment.plain_pool.host->keeps_draft && experiment.speculation && experiment.speculation->longest > 0 &&
      experiment.speculation->method == serve::DraftMethod::eagle)
    diagnostics.add(where,
                    "draft is lost and a head drafts, which cannot compute its cache again without the target's features, "
                    "allowed: draft: kept, or a draft model");
}

// A streamed run is an open loop whose requests do not depend on each other.
void check_streamed(const ServeExperiment& experiment, const Location& where, Diagnostics& diagnostics) {
  const auto wrong = [&](const char* found, const char* allowed) {
    diagnostics.add(where, fmt::format("metrics is streamed with {}, allowed: {}", found, allowed));
  };
  if (!experiment.arrivals->due_times(rng::Key{})) wrong("these arrivals", "poisson, gamma or deterministic, not rescaled");
  if (experiment.prefill_engines > 0) wrong("separate prefill engines", "replicas that do both");
  if (in_step(experiment)) wrong("engines that share experts", "replicas that step by themselves");
  if (experiment.horizon != arrivals::kNever) wrong("horizon_s", "a number of requests");
  if (experiment.warm_up.by_mser) wrong("warm_up mser", "a number of requests");
  if (experiment.scheduler()->prefix_caching()) wrong("a prefix cache", "none: these requests share no prefixes");
  if (experiment.speculation && experiment.speculation->executed() != nullptr)
    wrong("executed rounds", "acceptance that states rates");
}

serve::Slo read_slo(const config::Value& value, Diagnostics& diagnostics) {
  serve::Slo slo;
  const config::Value named = config::spelled_out(value, "preset");
  const std::size_t before = diagnostics.list().size();
  const config::Arguments arguments = config::read_arguments(named, slo_fields(), {}, "serve.slo", diagnostics);
  if (diagnostics.list().size() != before) return slo;
  if (const SloPreset* const preset = arguments.has("preset") ? find_slo_preset(arguments.text("preset")) : nullptr)
    slo = preset->slo;
  slo_fields().read(arguments, slo);
  if (arguments.has("percentile") && !slo.any())
    diagnostics.add(arguments.where("percentile"),
                    "percentile is set without a limit, allowed: with ttft_ms, tpot_ms or e2el_ms, or a preset");
  return slo;
}

}  // namespace

const std::vector<spec::SectionInfo>& serve_sections() {
  static const std::vector<spec::SectionInfo> sections = {
      {"(top level of specsim serve)", "a server's config", top_fields()},
      {"serve", "the server and its clients", serve_fields()},
      {"serve.kv", "the paged cache; if omitted, memory is unlimited", serve::kv_parameters()},
      {"serve.kv.host", "the second tier of the prefix cache, for vllm_v1 and sglang", serve::host_parameters()},
      {"serve.lengths", "lengths of requests, if the arrivals have none", length_fields()},
      {"serve.speculation", "drafting", speculation_fields()},
      {"serve.replicas", "engines that share one queue of clients", replica_fields()},
      {"serve.slo", "limits that requests must keep", slo_fields()}};
  return sections;
}

ServeExperiment read_serve_experiment(const config::Value& config, const std::string& file, Diagnostics& diagnostics) {
  ServeExperiment experiment;
  experiment.file = file;
  experiment.config = spec::text_of(config);
  const std::size_t before = diagnostics.list().size();
  const config::Arguments top = config::read_arguments(config, top_fields(), {}, "config", diagnostics);
  if (diagnostics.list().size() != before) return experiment;
  top_fields().read(top, experiment);
  const config::Arguments serve = config::read_arguments(top.value("serve"), serve_fields(), {}, "serve", diagnostics);
  if (diagnostics.list().size() != before) return experiment;

  const config::Choice<serve::SchedulerEntry> chosen =
      choose(serve::schedulers(), serve.value("scheduler"), "kind", "serve.scheduler", diagnostics);
  if (chosen.entry != nullptr) {
    experiment.scheduler = experiment.plain_scheduler = chosen.entry->read(chosen.arguments, diagnostics);
    experiment.product = chosen.entry->product;
  }
  if (const config::Value& differing = serve.value("plain_scheduler"); !differing.is_map()) {
    diagnostics.add(differing.where, "plain_scheduler is no map, allowed: settings of the scheduler, such as {async: true}");
  } else if (!differing.fields.empty()) {
    const config::Choice<serve::SchedulerEntry> plain = choose(
        serve::schedulers(), with_settings(serve.value("scheduler"), differing), "kind", "serve.plain_scheduler", diagnostics);
    if (plain.entry != nullptr) experiment.plain_scheduler = plain.entry->read(plain.arguments, diagnostics);
    if (!serve.has("speculation")) experiment.scheduler = experiment.plain_scheduler;
  }
  const std::unique_ptr<serve::Scheduler> scheduler = experiment.scheduler ? experiment.scheduler() : nullptr;
  const std::unique_ptr<serve::Scheduler> plain_scheduler = experiment.plain_scheduler ? experiment.plain_scheduler() : nullptr;
  const serve::ServerMemory memory = memory_of(scheduler.get());
  experiment.cost = read_cost(with_engine(top.value("cost"), chosen.entry), diagnostics);
  const std::size_t before_kv = diagnostics.list().size();
  const config::Arguments kv = config::read_arguments(serve.value("kv"), serve::kv_parameters(), {}, "serve.kv", diagnostics);
  if (diagnostics.list().size() == before_kv) {
    experiment.plain_pool = read_pool(kv, experiment.cost.get(), memory_of(plain_scheduler.get()), std::nullopt, diagnostics);
    experiment.pool = experiment.plain_pool;
  }
  const bool kv_is_right = diagnostics.list().size() == before_kv;
  const config::Choice<arrivals::ArrivalsEntry> arrivals =
      choose(arrivals::arrival_processes(), serve.value("arrivals"), "process", "serve.arrivals", diagnostics);
  if (arrivals.entry != nullptr) {
    experiment.arrivals = arrivals.entry->make(arrivals.arguments, diagnostics);
    experiment.counts_requests =
        !experiment.arrivals || !experiment.arrivals->with_requests(1) || arrivals.arguments.given("requests");
  }
  experiment.lengths_where = serve.where("arrivals");
  // Arrivals with their own lengths ignore these, so that one config serves a trace and a rate.
  if (experiment.arrivals && (serve.has("lengths") || !arrivals.entry->brings_lengths)) {
    const std::size_t before_lengths = diagnostics.list().size();
    const config::Value lengths =
        serve.has("lengths") ? arrivals::named_lengths(serve.value("lengths"), diagnostics) : config::map({}, serve.where());
    if (diagnostics.list().size() != before_lengths) return experiment;
    const config::Arguments arguments = config::read_arguments(lengths, length_fields(), {}, "serve.lengths", diagnostics);
    if (diagnostics.list().size() == before_lengths) {
      DrawnLengths drawn = length_fields().read(arguments);
      drawn.prompts = arrivals::read_lengths(arguments.value("prompt"), "prompt", diagnostics);
      drawn.outputs = arrivals::read_lengths(arguments.value("output"), "output", diagnostics);
      if (!arrivals.entry->brings_lengths) {
        experiment.lengths = std::move(drawn);
        experiment.lengths_where = serve.where("lengths");
      }
    }
  }
  if (serve.has("speculation"))
    experiment.speculation = read_speculation(serve.value("speculation"), config, file, experiment.cost.get(), diagnostics);
  if (experiment.speculation && experiment.speculation->method == serve::DraftMethod::ngram && chosen.entry != nullptr)
    turn_off_with_ngrams(chosen, serve.value("scheduler"), experiment, diagnostics);
  if (serve.has("speculation") && kv_is_right)
    experiment.pool =
        read_pool(kv, experiment.cost.get(), memory, experiment.speculation ? experiment.speculation->longest : 0, diagnostics);
  if (memory.saves_states) check_blocks(experiment, *memory.profiled, kv.where("block"), diagnostics);
  if (scheduler && experiment.plain_pool.host) check_host(experiment, *scheduler, kv.where("host"), diagnostics);
  if (scheduler) check_start(experiment, *scheduler, serve.where("scheduler"), diagnostics);
  read_replicas(serve.value("replicas"), chosen.entry, experiment, diagnostics);
  const std::optional<double> cut = config::as_number(serve.text("warm_up"));
  experiment.warm_up.by_mser = serve.text("warm_up") == "mser";
  if (!experiment.warm_up.by_mser && (!cut || *cut < 0.0 || *cut > 1e9 || *cut != std::floor(*cut)))
    diagnostics.add(serve.where("warm_up"), fmt::format("warm_up is {}, allowed: a number of requests, or mser",
                                                        config::quote_for_message(serve.text("warm_up"))));
  else if (cut)
    experiment.warm_up.requests = static_cast<std::size_t>(*cut);
  experiment.slo = read_slo(serve.value("slo"), diagnostics);
  experiment.frontend = std::llround(1e-3 * arrivals::kPicosecondsPerSecond * serve.number("frontend_ms"));
  if (serve.has("horizon_s")) experiment.horizon = std::llround(arrivals::kPicosecondsPerSecond * serve.number("horizon_s"));
  serve_fields().read(serve, experiment);
  if (experiment.streamed && diagnostics.list().size() == before) check_streamed(experiment, serve.where("metrics"), diagnostics);
  return experiment;
}

}  // namespace specsim::load
