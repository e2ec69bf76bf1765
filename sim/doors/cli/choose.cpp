// specsim choose: which GPUs to rent, and how to set them up.
#include "sim/answers/choose/choose.h"
#include "sim/answers/plan/gain.h"
#include "sim/doors/cli/command.h"
#include "sim/doors/cli/options.h"
#include "sim/doors/cli/output_form.h"
#include "sim/doors/cli/plan_report.h"
#include "sim/doors/cli/result_files.h"
#include "sim/doors/cli/spending_options.h"
#include "sim/doors/cli/stop.h"
#include "sim/foundation/base/files_read.h"
#include "sim/foundation/base/output.h"
#include "sim/foundation/base/shell_word.h"
#include "sim/foundation/base/token.h"
#include "sim/foundation/report/intervals.h"
#include "sim/foundation/report/output_folder.h"
#include "sim/foundation/report/table.h"
#include "sim/hardware/presets/presets.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>

namespace specsim::cli {

namespace {

using choose::Choice;
using choose::Chosen;
using choose::Objective;

constexpr const char* kChooseExamples =
    "  specsim choose --target llama-3.1-8b --hardware h100-sxm,a100-80gb-sxm,rtx-4090 --users 32 --slo tpot=30\n"
    "  specsim choose --target qwen3-32b --hardware all --dtype bf16,fp8 --draft all --rate 4 --slo ttft=500,tpot=40 --gpus 8\n"
    "  specsim choose --target llama-3.1-70b --hardware h100-sxm,h200-sxm --users 20 --rank-by joules --out build/choose\n"
    "  specsim choose --target llama-3.1-8b --hardware h100-sxm --users 8 --draft none,eagle3-llama-3.1-8b --alpha "
    "eagle3-llama-3.1-8b=0.75\n";

struct ChooseOptions {
  choose::Question question;
  choose::DraftQuestion drafts;
  SpendingOptions spending;
  std::vector<std::string> alpha;
  std::string out;
  bool force = false;
  bool verbose = false;
  unsigned threads = 0;
};

void add_choose_options(CommandLine& line, ChooseOptions& options) {
  choose::Question& question = options.question;
  load::ServeRequest& load = question.load;
  const config::Interval counts = config::between(1, 1024);
  line.add(
      {{"target", question.target, "the target model: a name (specsim list model) or a file"},
       {"hardware", question.hardware, read_texts,
        "GPUs to try: names or .yaml files, commas between; all: every GPU whose file has a cost per hour"},
       {"tensor-parallel", question.tensor_parallel, counts, "numbers of GPUs that share the target, to try"},
       {"replicas", question.replicas, counts, "numbers of engines to try (data parallel)"},
       {"prefill", question.prefill, config::between(0, 1024),
        "numbers of additional engines that only compute prompts, to try; 0: every engine does both"},
       {"expert-parallel", question.expert_parallel, counts, "numbers of engines that share the experts, to try; 1: none do"},
       {"gpus", question.most_gpus, counts, "maximum number of GPUs, all engines together"},
       {"dtype", question.types, read_texts,
        "types of the target's weights to try: bf16, fp8, int4, ...; default: that of its file"},
       {"kv-bits", question.cache_bits, read_texts, "bits of a cached key or value to try; default: that of its file"},
       {"draft", options.drafts.named, read_texts,
        "drafts to try: names, ngram, none; all: none, n-grams, and every head and small model of the target with an acceptance"},
       {"draft-length", question.lengths, config::between(1, kMaxDraftLength),
        "draft lengths to try; default: the fastest of each draft"},
       {"longest", options.drafts.longest, config::between(1, kMaxDraftLength), "longest draft length that is tried"},
       {"alpha", options.alpha, read_texts,
        "acceptance: DRAFT=ALPHA, commas between; ALPHA alone: of drafts without a published table"},
       {"text", options.drafts.text, "prefer published acceptance on this kind of text: chat, code, extraction, maths"},
       {"engine", question.engine, "the server: a name (specsim list engine) or a file"},
       {"rate", load.rate, "requests per second, a Poisson process"},
       {"rate-by-hour", question.rates_by_hour, config::above(0, 1e9),
        "requests per second in each hour of a day, commas between: sizes a fleet, with the fewest engines of each setting that "
        "keep "
        "--slo in the busiest hour"},
       {"users", load.concurrency, "clients that each wait for their answer"},
       {"trace", load.trace, "recorded requests: CSV or JSON lines"},
       {"requests", load.requests, "requests sent to each simulated server"},
       {"prompt", load.prompt, "tokens of a prompt: a number or {lognormal: {mean: 512, cv: 1}}"},
       {"output", load.output, "tokens of an output, as --prompt"},
       {"slo", load.slo, read_texts, "limits in milliseconds: ttft=500,tpot=50,e2el=10000,percentile=99"},
       {"rank-by",
        question.objective,
        {{"cost", Objective::cost}, {"tokens", Objective::tokens}, {"joules", Objective::joules}},
        "dollars per million output tokens, tokens/s per GPU, or joules per token"},
       {"simulate", question.shown, config::between(1, 200), "number of settings to rank; the server of each is simulated"}});
  add_spending_options(line, options.spending);
  line.add({{"verbose", options.verbose, "print the start command of every ranked setting, and what was left out"},
            {"out", options.out, directory_name, "directory for choices.csv"},
            {"force", options.force, kForceHelp},
            {"threads", options.threads, read_threads, kThreadsHelp}});
}

std::vector<std::string> priced_gpus() {
  std::vector<std::string> names;
  for (const cost::Preset& preset : cost::presets())
    if (preset.kind == cost::PresetKind::hardware && std::string_view(preset.text).find("\nprice:") != std::string_view::npos)
      names.emplace_back(preset.name);
  return names;
}

// Leaves the first of equal values: a setting that is named twice is one setting.
template <class T>
void once_each(std::vector<T>& list) {
  std::vector<T> kept;
  for (const T& one : list)
    if (std::find(kept.begin(), kept.end(), one) == kept.end()) kept.push_back(one);
  list = std::move(kept);
}

void complete(const CommandLine& line, ChooseOptions& options) {
  choose::Question& question = options.question;
  line.check({{"force", {"out"}, {}, ""}});
  const int loads = static_cast<int>(line.given("rate")) + static_cast<int>(line.given("users")) +
                    static_cast<int>(line.given("trace")) + static_cast<int>(line.given("rate-by-hour"));
  if (loads != 1)
    throw BadInput({"", 0, 0}, fmt::format("specsim choose {}, allowed: one of --rate, --rate-by-hour, --users, --trace",
                                           loads == 0 ? "needs a load" : "was given several loads"));
  if (question.load.concurrency) static_cast<void>(read_integer(*question.load.concurrency, "--users", config::between(1, 1e7)));
  if (!question.rates_by_hour.empty()) {
    line.check({{"rate-by-hour",
                 {"slo"},
                 {"replicas", "prefill", "expert-parallel", "gpus", "requests"},
                 "the size of a fleet replaces"}});
    question.load.rate = fmt::format("{:.17g}", *std::max_element(question.rates_by_hour.begin(), question.rates_by_hour.end()));
  }
  if (question.hardware == std::vector<std::string>{"all"}) question.hardware = priced_gpus();
  for (auto* const list : {&question.hardware, &question.types, &question.cache_bits}) once_each(*list);
  for (auto* const list : {&question.tensor_parallel, &question.replicas, &question.prefill, &question.expert_parallel})
    once_each(*list);
  for (const std::string& one : options.alpha) {
    const std::size_t equals = one.find('=');
    const std::string name = equals == std::string::npos ? "" : one.substr(0, equals);
    options.drafts.alpha[name] = read_share(equals == std::string::npos ? one : one.substr(equals + 1), "--alpha");
  }
  options.drafts.target = question.target;
  const SpendingOptions& spending = options.spending;
  const std::vector<std::string> all = question.hardware;
  for (const std::string& gpu : all) static_cast<void>(price_given(spending, gpu, all));
  question.changes = [&spending, all](const std::string& gpu) { return spending_changes(spending, gpu, all); };
  question.price = [&spending, all](const std::string& gpu) { return price_given(spending, gpu, all); };
  question.power_cap = spending.power_cap;
}

std::string figure(double value) {
  return std::isnan(value) ? "-" : fmt::format("{:.{}f}", value, value >= 100.0 ? 0 : value >= 10.0 ? 1 : 2);
}

std::string setting_of(const Choice& choice) {
  const choose::Engine& engine = *choice.engine;
  std::vector<std::string> parts;
  if (choice.replicas > 1 && engine.tensor_parallel > 1)
    parts.push_back(fmt::format("{} x TP {}", choice.replicas, engine.tensor_parallel));
  else if (choice.replicas > 1)
    parts.push_back(fmt::format("{} replicas{}", choice.replicas, engine.expert_parallel > 1 ? ", shared experts" : ""));
  else if (engine.tensor_parallel > 1)
    parts.push_back(fmt::format("TP {}", engine.tensor_parallel));
  if (choice.prefill > 0) parts.push_back(fmt::format("{} more for prompts", choice.prefill));
  const std::string text = fmt::format("{} {}", choice.gpus(), engine.hardware);
  return parts.empty() ? text : fmt::format("{} ({})", text, fmt::join(parts, ", "));
}

void print_ranking(const Chosen& chosen, Objective objective) {
  report::Table table({{"rank"},
                       {"GPUs", report::Align::left},
                       {"weights", report::Align::left},
                       {"draft", report::Align::left},
                       {"K"},
                       {"tokens/s"},
                       {"per GPU"},
                       {"TTFT p99"},
                       {"TPOT p99"},
                       {"$/M"},
                       {"J/token"},
                       {"low"},
                       {"high"},
                       {"P(worse)"},
                       {"P(keeps up)"},
                       {"", report::Align::left, "mark"}},
                      {.keys = 2});
  for (std::size_t i = 0; i < chosen.ranked.size(); ++i) {
    const Choice& one = chosen.ranked[i];
    const choose::Engine& engine = *one.engine;
    const double value = objective == Objective::cost     ? one.dollars_per_million()
                         : objective == Objective::joules ? one.joules_per_token()
                                                          : one.tokens_per_second() / one.gpus();
    const double half = report::kIn95 * one.error(objective);
    std::string weights = engine.type.empty() ? "as its file" : engine.type;
    if (!engine.cache_bits.empty()) weights += ", KV " + engine.cache_bits;
    table.add({std::to_string(i + 1), setting_of(one), weights, engine.draft->label,
               one.estimate.draft_length > 0 ? std::to_string(one.estimate.draft_length) : "-", figure(one.tokens_per_second()),
               figure(one.tokens_per_second() / one.gpus()), figure(one.summary->ttft_ms.p99), figure(one.summary->tpot_ms.p99),
               figure(one.dollars_per_million()), figure(one.joules_per_token()), figure(value * std::exp(-half)),
               figure(value * std::exp(half)), std::isnan(one.worse) ? "-" : fmt::format("{:.2f}", one.worse),
               std::isnan(one.keeps_up) ? "-" : fmt::format("{:.2f}", one.keeps_up),
               one.tied && one.pareto ? "tie, pareto"
               : one.tied             ? "tie"
               : one.pareto           ? "pareto"
                                      : ""});
  }
  print_output("ranked by {}\n", objective == Objective::cost     ? "dollars per million output tokens"
                                 : objective == Objective::joules ? "joules per output token"
                                                                  : "output tokens per second and GPU");
  print_table(table);
  const bool closed = !chosen.ranked.empty() && chosen.ranked.front().estimate.closed;
  const char* const what = objective == Objective::cost ? "$/M" : objective == Objective::joules ? "J/token" : "tokens/s per GPU";
  print_words(fmt::format(
      "low, high: 95 % interval of {}{}; P(worse): probability that the first is better; tie: it is below {:.0f} %; pareto: no "
      "ranked setting is better in {} without a longer time per output token; times in ms, of simulated servers",
      what,
      closed || objective == Objective::joules ? "" : ", which the load decides as long as the server keeps up (P(keeps up))",
      100.0 * plan::kSure, what));
}

// The costs of a day. If engines are slower or faster than estimated, it takes more or fewer of them.
void print_days(const Chosen& chosen, const std::vector<double>& rates) {
  const auto bound = [](const char* side, const char* name) { return report::Head{side, report::Align::right, name}; };
  report::Table table({{"rank"},
                       {"replicas"},
                       bound("low", "replicas_low"),
                       bound("high", "replicas_high"),
                       {"$/day"},
                       bound("low", "$/day_low"),
                       bound("high", "$/day_high"),
                       {"replicas by hour"},
                       {"$/day by hour"},
                       bound("low", "$/day by hour_low"),
                       bound("high", "$/day by hour_high")});
  for (std::size_t i = 0; i < chosen.ranked.size(); ++i) {
    const Choice& one = chosen.ranked[i];
    const double spread = std::exp(report::kIn95 * one.speed_error());
    // The load needs more than one engine fewer than was found, and at most so many.
    const auto least = std::max<std::int64_t>(1, std::llround(std::ceil(static_cast<double>(one.replicas - 1) / spread)));
    const auto most = static_cast<std::int64_t>(std::llround(std::ceil(static_cast<double>(one.replicas) * spread)));
    const double an_hour = one.dollars_by_hour / choose::engine_hours(rates, one.replicas);
    const auto day = [&](std::int64_t engines) {
      return figure(static_cast<double>(engines) * static_cast<double>(rates.size()) * an_hour);
    };
    const auto by_hour = [&](std::int64_t engines) { return figure(choose::engine_hours(rates, engines) * an_hour); };
    table.add({std::to_string(i + 1), std::to_string(one.replicas), std::to_string(least), std::to_string(most),
               day(one.replicas), day(least), day(most), fmt::format("{} to {}", one.fewest_replicas, one.replicas),
               by_hour(one.replicas), by_hour(least), by_hour(most)});
  }
  print_output("a day: the replicas of the busiest hour around the clock, and as many as each hour needs\n");
  print_table(table);
}

void print_start(const std::string& label, const Choice& choice) {
  const auto own = choose::start_command(choice);
  const double servers = choose::servers_of(choice);
  if (!own)
    print_output("{}: engine {} has no server command\n", label, choice.engine->cost->deployment()->engine.name);
  else if (own->command.empty())
    print_output("{}: {} cannot run this setting: {}\n", label, own->engine, own->notes.front());
  else if (choice.prefill > 0)
    print_output(
        "{}: {:g} servers, of which {} only compute prompts, with a router in front, each by the following with the engine's "
        "options for sending the cache: {}\n",
        label, servers, choice.prefill, own->command);
  else if (servers > 1.0)
    print_output("{}: {:g} servers, with a router in front, each by: {}\n", label, servers, own->command);
  else
    print_output("{}: {}\n", label, own->command);
  if (own) print_needs(*own);
}

// The table, its text, and how far it goes.
std::string acceptance_of(const choose::DraftChoice& draft, const std::string& wanted) {
  if (draft.error.empty()) return draft.source;
  return fmt::format("{}, {}{}, draft length up to {}{}", draft.source,
                     draft.text.empty() ? "text not stated" : "text " + draft.text,
                     draft.other_text ? fmt::format(" (no table on {})", wanted) : "", draft.curve.longest(),
                     draft.unverified ? ", unverified" : "");
}

// The commands for programs, which read tables.
void print_start_table(const Chosen& chosen) {
  report::Table table({{"rank"}, {"servers"}, {"servers_for_prompts"}, {"start", report::Align::left}});
  for (std::size_t i = 0; i < chosen.ranked.size(); ++i) {
    const auto own = choose::start_command(chosen.ranked[i]);
    table.add({std::to_string(i + 1), fmt::format("{:g}", choose::servers_of(chosen.ranked[i])),
               std::to_string(chosen.ranked[i].prefill), own && !own->command.empty() ? own->command : "-"});
  }
  print_output("how to start each\n");
  print_table(table);
}

void print_chosen(const ChooseOptions& options, const Chosen& chosen, const choose::DraftChoices& drafts) {
  const choose::Question& question = options.question;
  if (const load::ServeRequest& load = question.load; !load.trace && !load.config) {
    std::vector<std::string> assumed;
    if (!load.prompt) assumed.push_back(fmt::format("--prompt '{}'", load::kDefaultPrompt));
    if (!load.output) assumed.push_back(fmt::format("--output '{}'", load::kDefaultOutput));
    if (!assumed.empty()) print_words(fmt::format("assumed (defaults): {}", fmt::join(assumed, ", ")));
  }
  print_output(
      "{} combinations: {} cannot run, {}{} do not fit into memory, {} overloaded, {} miss the SLO by the estimate; {} "
      "simulated\n",
      chosen.combinations, chosen.cannot_run, chosen.above_gpus > 0 ? fmt::format("{} above --gpus, ", chosen.above_gpus) : "",
      chosen.do_not_fit, chosen.overloaded, chosen.miss_slo, chosen.simulated);
  if (chosen.ranked.empty()) {
    const std::size_t misfits = chosen.do_not_fit + chosen.cannot_run;
    print_words(fmt::format("{}; allow more GPUs (--gpus, --replicas), narrower types (--dtype){}",
                            misfits == chosen.combinations ? "no combination fits into memory"
                            : chosen.miss_slo == 0         ? "no combination keeps up with this load"
                                                           : "no combination keeps the SLO under this load",
                            chosen.miss_slo > 0 ? ", or a longer time" : ""));
  } else {
    print_ranking(chosen, question.objective);
    if (!question.rates_by_hour.empty()) print_days(chosen, question.rates_by_hour);
    if (for_machines()) print_start_table(chosen);
    const Choice& best = chosen.ranked.front();
    print_start("start", best);
    if (options.verbose)
      for (std::size_t i = 1; i < chosen.ranked.size(); ++i) print_start(fmt::format("start {}", i + 1), chosen.ranked[i]);
  }
  for (std::size_t i = 0; i < chosen.ranked.size(); ++i)
    if (const Choice& one = chosen.ranked[i]; !std::isnan(one.keeps_up) && (options.verbose || i == 0))
      print_output("capacity of {}: {} requests/s; it keeps up with probability {:.2f}\n", i + 1, figure(one.capacity),
                   one.keeps_up);
  const auto ranked = [&](const choose::DraftChoice& draft) {
    return std::any_of(chosen.ranked.begin(), chosen.ranked.end(),
                       [&](const Choice& one) { return one.engine->draft == &draft; });
  };
  for (const choose::DraftChoice& one : question.drafts)
    if (one.drafts && (options.verbose || ranked(one)))
      print_output("acceptance of {}: {}\n", one.label, acceptance_of(one, options.drafts.text));
  std::set<std::string> texts;
  bool unverified = false;
  for (const choose::DraftChoice& one : question.drafts) {
    if (one.error.empty() || !ranked(one)) continue;
    texts.insert(one.text);
    unverified = unverified || one.unverified;
  }
  if (texts.size() > 1 || unverified)
    print_words(
        fmt::format("acceptance{}{}{}: intervals and ties include how much acceptance differs between published texts; --alpha "
                    "DRAFT=0.7 sets your own",
                    texts.size() > 1 ? " comes from different texts" : "", texts.size() > 1 && unverified ? " and" : "",
                    unverified ? " is unverified for a draft" : ""));
  if (std::any_of(question.drafts.begin(), question.drafts.end(),
                  [&](const auto& one) { return one.drafts && one.model == "none" && ranked(one); }))
    print_words(
        "n-gram: an upper bound. Every round drafts here and proposals take no time, but the table counts only rounds that found "
        "a match");
  if (!drafts.left_out.empty())
    print_words(fmt::format("left out, without a published acceptance for {} on {}: {} (--alpha DRAFT=0.7 adds one)",
                            question.target, options.drafts.text, fmt::join(drafts.left_out, ", ")));
  if (options.verbose)
    for (const std::string& reason : chosen.reasons) print_words("cannot run: " + reason);
}

}  // namespace

ExitCode choose_command(const std::vector<std::string>& arguments) {
  ChooseOptions options;
  choose::Question& question = options.question;
  question.types = {""};
  question.cache_bits = {""};
  question.tensor_parallel = {1, 2, 4, 8};
  question.replicas = {1};
  question.prefill = {0};
  question.expert_parallel = {1};
  options.drafts.named = {"all"};
  CommandLine line("specsim choose --target MODEL --hardware GPUS [options]", kChooseExamples);
  add_choose_options(line, options);
  line.needs({"target", "hardware"});
  if (!line.read(arguments)) return ExitCode::fine;
  const double started = wall_clock();
  const FilesRead read;
  complete(line, options);
  const choose::DraftChoices drafts = choose::draft_choices(options.drafts);
  question.drafts = drafts.drafts;
  std::optional<report::OutputFolder> folder;
  if (!options.out.empty()) folder.emplace(options.out);
  Chosen chosen;
  {
    const StopOnSignal stop;
    Progress progress("engines");
    choose::SearchOptions search;
    search.threads = options.threads;
    search.stop = stop.flag();
    search.progress = [&](double done, double all) { progress.show(done, all); };
    chosen = choose::choose(question, search);
    progress.finish();
    if (stop.flag()->load()) {
      print_error("stopped before the end; nothing was kept\n");
      return ExitCode::interrupted;
    }
  }
  if (folder) folder->claim(claim_at_once({"choices.csv"}, line.identity({"trace"}), options.force, read.sums()));
  print_chosen(options, chosen, drafts);
  if (folder) {
    folder->write("choices.csv", choose::choices_csv(chosen));
    report::Manifest manifest = report::new_manifest(command_line());
    manifest.threads = options.threads;
    manifest.identity = line.identity({"trace"});
    manifest.inputs = read.sums();
    manifest.wall_seconds = wall_clock() - started;
    folder->finish(manifest);
    print_output("wrote {0}/{1}, manifest.yaml; specsim plot {2} draws them\n", folder->path(),
                 fmt::join(folder->written(), ", "), shell_word(folder->path()));
  }
  return chosen.ranked.empty() ? ExitCode::untested : ExitCode::fine;
}

}  // namespace specsim::cli
