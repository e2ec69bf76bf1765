#include "sim/doors/cli/model_commands.h"

#include "sim/doors/cli/numbers.h"
#include "sim/foundation/base/check.h"
#include "sim/foundation/base/overloaded.h"
#include "sim/rounds/draft/drafter.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <string_view>

namespace specsim::cli {

namespace po = boost::program_options;

namespace {

std::string text_of(const po::variables_map& values, const char* option) { return values[option].as<std::string>(); }
// "" where it was not given.
std::string path_of(const po::variables_map& values, const char* option) {
  return values.count(option) > 0 ? text_of(values, option) : "";
}

double number(const po::variables_map& values, const char* option, const config::Interval& interval) {
  return read_number(text_of(values, option), std::string("--") + option, interval);
}

std::int64_t integer(const po::variables_map& values, const char* option, const config::Interval& interval) {
  return read_integer(text_of(values, option), std::string("--") + option, interval);
}

std::optional<llm::Precision> precision(const po::variables_map& values) {
  const auto& text = values["precision"].as<std::string>();
  if (text == "file") return std::nullopt;
  if (text == "f32") return llm::Precision::f32;
  if (text == "f16") return llm::Precision::f16;
  if (text == "bf16") return llm::Precision::bf16;
  throw BadInput({"--precision", 0, 0}, fmt::format("{}, allowed: file, f32, f16, bf16", config::quote_for_message(text)));
}

llm::Overlong overlong_of(const po::variables_map& values) {
  const std::string text = text_of(values, "overlong");
  if (text == "error") return llm::Overlong::error;
  if (text == "skip") return llm::Overlong::skip;
  if (text == "cut") return llm::Overlong::cut;
  throw BadInput({"--overlong", 0, 0}, fmt::format("{}, allowed: error, skip, cut", config::quote_for_message(text)));
}

llm::Clock clock_of(const po::variables_map& values) {
  const auto& clock = values["clock"].as<std::string>();
  if (clock != "wall" && clock != "cpu")
    throw BadInput({"--clock", 0, 0}, fmt::format("{}, allowed: wall, cpu", config::quote_for_message(clock)));
  if (clock == "cpu" && values["threads"].as<std::string>() != "1")
    throw BadInput(
        {"--clock", 0, 0},
        "cpu with several threads, allowed: --threads 1 (processor time of several adds up, and counts their waiting)");
  return clock == "cpu" ? llm::Clock::cpu : llm::Clock::wall;
}

template <class Number>
std::string list_text(const std::vector<Number>& numbers) {
  return fmt::format("{:g}", fmt::join(std::vector<double>(numbers.begin(), numbers.end()), ","));
}

}  // namespace

void add_model_options(po::options_description& options) {
  const auto text = [](const std::string& fallback) { return po::value<std::string>()->default_value(fallback); };
  const auto figure = [&](auto fallback) { return text(fmt::format("{:g}", static_cast<double>(fallback))); };
  const calibrate::Settings defaults;
  const auto add = [&](const char* name, const po::value_semantic* value, const char* help) {
    options.add_options()(name, value, help);
  };
  add("target", po::value<std::string>(),
      "directory of the model (config.json, model.safetensors or its index), a GGUF file, or a shape's name");
  add("draft", po::value<std::string>(), "directory, GGUF file or shape's name of its draft");
  add("prompts", po::value<std::string>(), "JSONL: {\"prompt\": TEXT} or {\"tokens\": [...]} a line, \"kind\" if you like");
  add("overlong", text("error"),
      "prompts that leave no room for the output in the context: error, skip (they are left out) or cut (their first tokens)");
  add("drafter", text(defaults.drafter),
      "model: samples from --draft; argmax: its likeliest token; early-exit:N: the target's first N layers; or a tree or text "
      "drafter of specsim list as in a config, \"{kind: tree_static, branching: [3, 2, 1]}\"");
  add("verifier", po::value<std::string>(), "a name of specsim list that judges such drafts; token, or what suits the tree");
  add("device", text("cpu"), "cpu, or cuda: an NVIDIA GPU (calibrate)");
  add("threads", text("0"), "threads that compute; 0: all cores");
  add("precision", text("file"), "format that weights are kept in: file, f32, f16, bf16");
  add("widen", figure(defaults.widen_mib), "MiB that a target pass is to read: neurons that change no logit are added");
  add("temperatures", text(list_text(defaults.temperatures)), "temperatures of both models");
  add("top-k", figure(defaults.cuts.top_k), "likeliest tokens that both models' distributions keep; 0: all");
  add("top-p", figure(defaults.cuts.top_p), "probability that the likeliest tokens which are kept have at least");
  add("min-p", figure(defaults.cuts.min_p), "least probability of a token that is kept, as a share of the likeliest one's");
  add("longest-context", figure(defaults.longest_context), "the most tokens of a sequence, where a model could hold more");
  add("draft-lengths", text(list_text(defaults.draft_lengths)), "tokens drafted a round");
  add("batches", text(list_text(defaults.batches)), "sequences together");
  add("tokens", figure(defaults.tokens), "tokens emitted by each sequence of a run");
  add("repetitions", figure(defaults.repetitions), "how often each timing is taken, all of them in turn");
  add("clock", text("wall"), "wall, or cpu: processor time of one thread, for a machine that has other work");
  add("seed", figure(defaults.seed), "fixes every random number");
  options.add_options()("quick", "a first look: fewer points, prompts and repetitions");
  add("out", po::value<std::string>(), "directory for the results");
  options.add_options()("force", "replace the results of an earlier calibrate or validate in --out, or drop an unfinished one");
}

namespace {

// Reads --drafter. Only drafters that run on real models are allowed; those that need trained heads or early exits exist in
// simulations alone, where made-up distributions stand for these.
void read_block_drafter(const po::variables_map& values, calibrate::Settings& settings) {
  Diagnostics diagnostics;
  const config::Value section = config::parse_text(settings.drafter, "--drafter", diagnostics);
  diagnostics.throw_if_any();
  const config::Value* kind = section.find("kind");
  const auto name = kind != nullptr ? config::read_text(*kind, "--drafter kind", diagnostics) : std::nullopt;
  const draft::DrafterEntry* entry = name ? draft::drafters().find(*name) : nullptr;
  if (entry == nullptr || !entry->on_models) {
    std::vector<std::string> allowed;
    for (const draft::DrafterEntry& one : draft::drafters().entries())
      if (one.on_models) allowed.push_back(one.info.name);
    throw BadInput(
        {"--drafter", 0, 0},
        fmt::format("kind {}, allowed: {}", name ? config::quote_for_message(*name) : "is missing", fmt::join(allowed, ", ")));
  }
  const config::Arguments arguments =
      config::read_arguments(section, entry->info.parameters, {"kind"}, "drafter " + *name, diagnostics);
  diagnostics.throw_if_any();
  const draft::Draft draft = entry->make(arguments, diagnostics);
  diagnostics.throw_if_any();
  for (const char* const option : {"draft-lengths", "batches"})
    if (!values[option].defaulted())
      throw BadInput(
          {std::string("--") + option, 0, 0},
          fmt::format("given with --drafter {}, which says how much is drafted and is run on one sequence", settings.drafter));
  const auto* const blocks = std::get_if<draft::Blocks>(&draft);
  SPECSIM_CHECK(blocks != nullptr, "drafter {} drafts no blocks", *name);
  settings.drafts = *blocks;
  settings.draft_lengths = {draft::longest_path(draft).draft_length};
  settings.batches = {1};
}

// What --drafter says.
void read_drafter(const po::variables_map& values, calibrate::Settings& settings) {
  settings.drafter = values["drafter"].as<std::string>();
  constexpr std::string_view kExit = "early-exit:";
  if (settings.drafter.starts_with("{")) return read_block_drafter(values, settings);
  if (settings.drafter == "model" || settings.drafter == "argmax") {
    settings.drafts = calibrate::DraftModel{settings.drafter == "argmax"};
    return;
  }
  const std::int64_t layers =
      settings.drafter.starts_with(kExit) ? config::as_integer(settings.drafter.substr(kExit.size())).value_or(0) : 0;
  if (layers < 1)
    throw BadInput({"--drafter", 0, 0},
                   fmt::format("{}, allowed: model, argmax, early-exit:N (N layers of the target), {{kind: NAME, ...}}",
                               config::quote_for_message(settings.drafter)));
  settings.drafts = calibrate::EarlyExit{static_cast<std::size_t>(layers)};
  settings.drafter = "early-exit";
}

// The drafter and the verifier. Whether a model of --draft is needed.
bool read_method(const po::variables_map& values, calibrate::Settings& settings) {
  read_drafter(values, settings);
  if (values.count("verifier") > 0) {
    const std::string name = text_of(values, "verifier");
    settings.verifier = verify::verifiers().find(name);
    if (settings.verifier == nullptr)
      throw BadInput({"--verifier", 0, 0},
                     fmt::format("{}, allowed: a verifier of specsim list", config::quote_for_message(name)));
  } else if (const auto* const blocks = std::get_if<draft::Blocks>(&settings.drafts)) {
    settings.verifier = &verify::usual_verifier((*blocks)->shape().siblings);
  }
  const bool needs_draft = std::visit(Overloaded{[](const calibrate::DraftModel& /*model*/) { return true; },
                                                 [](const calibrate::EarlyExit& /*early*/) { return false; },
                                                 [](const draft::Blocks& blocks) { return !blocks->shape().reads_text; }},
                                      settings.drafts);
  if (!needs_draft && values.count("draft") > 0)
    throw BadInput({"--draft", 0, 0}, fmt::format("given with --drafter {}, which has no use for it", settings.drafter));
  return needs_draft;
}

// A first look, but for what was asked for.
void take_quick(const po::variables_map& values, calibrate::Settings& settings) {
  const calibrate::Settings quick = calibrate::quick_settings();
  const auto unless_given = [&](const char* option, auto& what, const auto& value) {
    if (values[option].defaulted()) what = value;
  };
  unless_given("temperatures", settings.temperatures, quick.temperatures);
  if (!settings.drafts_blocks()) {
    unless_given("draft-lengths", settings.draft_lengths, quick.draft_lengths);
    unless_given("batches", settings.batches, quick.batches);
  }
  unless_given("tokens", settings.tokens, quick.tokens);
  unless_given("repetitions", settings.repetitions, quick.repetitions);
}

}  // namespace

calibrate::Settings read_settings(const po::variables_map& values) {
  calibrate::Settings settings;
  settings.quick = values.count("quick") > 0;
  settings.temperatures = read_numbers(text_of(values, "temperatures"), "--temperatures", config::between(0.0, 10.0));
  settings.draft_lengths.clear();
  for (const std::int64_t n :
       read_integers(text_of(values, "draft-lengths"), "--draft-lengths", config::between(1, kMaxDraftLength)))
    settings.draft_lengths.push_back(static_cast<int>(n));
  settings.batches.clear();
  for (const std::int64_t n : read_integers(text_of(values, "batches"), "--batches", config::between(1, 256)))
    settings.batches.push_back(static_cast<std::size_t>(n));
  settings.cuts.top_k = static_cast<int>(integer(values, "top-k", config::between(0, 1e9)));
  settings.cuts.top_p = number(values, "top-p", {0.0, 1.0, true, false});
  settings.cuts.min_p = number(values, "min-p", config::between(0.0, 1.0));
  settings.tokens = static_cast<std::size_t>(integer(values, "tokens", config::between(1, 1e6)));
  settings.repetitions = static_cast<int>(integer(values, "repetitions", config::between(1, 1000)));
  settings.seed = static_cast<std::uint64_t>(integer(values, "seed", config::between(0, 9e15)));
  settings.clock = clock_of(values);
  settings.threads = read_threads(text_of(values, "threads"));
  settings.precision = precision(values);
  settings.widen_mib = number(values, "widen", config::between(0, 1e6));
  settings.longest_context = static_cast<std::size_t>(integer(values, "longest-context", config::between(32, 1e7)));
  const bool needs_draft = read_method(values, settings);
  if (settings.quick) take_quick(values, settings);
  const auto sort = [](auto& list) {
    std::sort(list.begin(), list.end());
    list.erase(std::unique(list.begin(), list.end()), list.end());
  };
  sort(settings.temperatures);
  sort(settings.draft_lengths);
  sort(settings.batches);
  for (const char* const option : {"target", "draft", "out"})
    if (values.count(option) == 0 && (option != std::string_view("draft") || needs_draft))
      throw BadInput({"", 0, 0}, fmt::format("--{} is missing; --help shows examples", option));
  settings.target = path_of(values, "target");
  settings.draft = path_of(values, "draft");
  settings.prompts = path_of(values, "prompts");
  settings.overlong = overlong_of(values);
  if (values.count("held-out") > 0) settings.held_out = text_of(values, "held-out");
  return settings;
}

void require_cpu(const po::variables_map& values) {
  if (const auto& device = values["device"].as<std::string>(); device != "cpu")
    throw BadInput({"--device", 0, 0},
                   fmt::format("{}, allowed: cpu; on a GPU, calibrate --device cuda measures, and predicts runs of --held-out",
                               config::quote_for_message(device)));
}

void PhaseProgress::operator()(const std::string& unit, double done, double all) {
  if (bar_ == nullptr || unit != unit_) {
    bar_ = std::make_shared<Progress>(unit);
    unit_ = unit;
  }
  bar_->show(done, all);
  if (done >= all) bar_ = nullptr;
}

std::string error_text(double error, int decimals) { return std::isnan(error) ? "-" : fmt::format("{:.{}f}", error, decimals); }

}  // namespace specsim::cli
