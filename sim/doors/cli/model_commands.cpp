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

void add_model_options(CommandLine& line, ModelOptions& options) {
  calibrate::CalibrationSettings& settings = options.settings;
  settings.threads = 0;
  line.add(
      {{"target", settings.target,
        "directory of the model (config.json, model.safetensors or its index), a GGUF file, or a shape's name"},
       {"draft", settings.draft, "directory, GGUF file or shape's name of its draft"},
       {"prompts", settings.prompts, "JSONL: {\"prompt\": TEXT} or {\"tokens\": [...]} per line, optionally \"kind\""},
       {"overlong",
        settings.overlong,
        {{"error", llm::Overlong::error}, {"skip", llm::Overlong::skip}, {"cut", llm::Overlong::cut}},
        "prompts that leave no room for the output in the context: error, skip (omit them) or cut (drop their first tokens)"},
       {"drafter", settings.drafter,
        "model: samples from --draft; argmax: its likeliest token; early-exit:N: the target's first N layers; or a tree or text "
        "drafter of specsim list as in a config, \"{kind: tree_static, branching: [3, 2, 1]}\""},
       {"verifier", options.verifier,
        "a verifier for such drafts (specsim list verifier); default: token, or a verifier for the tree"},
       {"device", options.device, "cpu, or cuda: an NVIDIA GPU (calibrate)"},
       {"threads", settings.threads, read_threads, "compute threads; 0: all cores"},
       {"precision",
        settings.precision,
        {{"file", std::nullopt}, {"f32", llm::Precision::f32}, {"f16", llm::Precision::f16}, {"bf16", llm::Precision::bf16}},
        "format that weights are kept in: file, f32, f16, bf16"},
       {"widen", settings.widen_mib, config::between(0, 1e6),
        "MiB that a target pass must read: neurons that change no logit are added"},
       {"temperatures", settings.temperatures, config::between(0, 10), "temperatures of both models"},
       {"top-k", settings.cuts.top_k, config::between(0, 1e9), "likeliest tokens that both models' distributions keep; 0: all"},
       {"top-p", settings.cuts.top_p, config::Interval{0.0, 1.0, true, false},
        "minimum total probability of the likeliest tokens that are kept"},
       {"min-p", settings.cuts.min_p, config::between(0, 1),
        "minimum probability of a token that is kept, relative to the likeliest token's"},
       {"longest-context", settings.longest_context, config::between(32, 1e7),
        "maximum number of tokens of a sequence, if a model could hold more"},
       {"draft-lengths", settings.draft_lengths, config::between(1, kMaxDraftLength), "tokens drafted per round"},
       {"batches", settings.batches, config::between(1, 256), "sequences together"},
       {"tokens", settings.tokens, config::between(1, 1e6), "tokens emitted by each sequence of a run"},
       {"repetitions", settings.repetitions, config::between(1, 1000), "repetitions of each timing, all of them in turn"},
       {"clock",
        settings.clock,
        {{"wall", llm::Clock::wall}, {"cpu", llm::Clock::cpu}},
        "wall, or cpu: processor time of one thread, for a machine that has other work"},
       {"seed", settings.seed, config::between(0, 9e15), "seed of every random number"},
       {"quick", settings.quick, "a first look: fewer points, prompts and repetitions"},
       {"out", options.out, "directory for the results"},
       {"force", options.force,
        "replace the results of an earlier calibrate or validate in --out, or delete an unfinished one"}});
}

namespace {

// Reads --drafter. Only drafters that run on real models are allowed. Drafters that need trained heads or early exits exist only
// in simulations, with synthetic distributions.
void read_block_drafter(const CommandLine& line, calibrate::CalibrationSettings& settings) {
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
    if (line.given(option))
      throw BadInput(
          {std::string("--") + option, 0, 0},
          fmt::format("given with --drafter {}, which sets how much is drafted and runs on one sequence", settings.drafter));
  const auto* const blocks = std::get_if<draft::Blocks>(&draft);
  SPECSIM_CHECK(blocks != nullptr, "drafter {} drafts no blocks", *name);
  settings.drafts = *blocks;
  settings.draft_lengths = {draft::longest_path(draft).draft_length};
  settings.batches = {1};
}

// Reads the value of --drafter.
void read_drafter(const CommandLine& line, calibrate::CalibrationSettings& settings) {
  constexpr std::string_view kExit = "early-exit:";
  if (settings.drafter.starts_with("{")) return read_block_drafter(line, settings);
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

// Reads the drafter and the verifier. Returns whether a model of --draft is needed.
bool read_method(const CommandLine& line, ModelOptions& options) {
  calibrate::CalibrationSettings& settings = options.settings;
  read_drafter(line, settings);
  if (line.given("verifier")) {
    settings.verifier = verify::verifiers().find(options.verifier);
    if (settings.verifier == nullptr)
      throw BadInput({"--verifier", 0, 0},
                     fmt::format("{}, allowed: a verifier of specsim list", config::quote_for_message(options.verifier)));
  } else if (const auto* const blocks = std::get_if<draft::Blocks>(&settings.drafts)) {
    settings.verifier = &verify::usual_verifier((*blocks)->shape().siblings);
  }
  const bool needs_draft = std::visit(Overloaded{[](const calibrate::DraftModel& /*model*/) { return true; },
                                                 [](const calibrate::EarlyExit& /*early*/) { return false; },
                                                 [](const draft::Blocks& blocks) { return !blocks->shape().reads_text; }},
                                      settings.drafts);
  if (!needs_draft && line.given("draft"))
    throw BadInput({"--draft", 0, 0}, fmt::format("given with --drafter {}, which has no use for it", settings.drafter));
  return needs_draft;
}

// Reduces the settings for a first look, except those that the user gave.
void take_quick(const CommandLine& line, calibrate::CalibrationSettings& settings) {
  const calibrate::CalibrationSettings quick = calibrate::quick_settings();
  const auto unless_given = [&](const char* option, auto& what, const auto& value) {
    if (!line.given(option)) what = value;
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

void complete_settings(const CommandLine& line, ModelOptions& options) {
  calibrate::CalibrationSettings& settings = options.settings;
  if (settings.clock == llm::Clock::cpu && settings.threads != 1)
    throw BadInput(
        {"--clock", 0, 0},
        "cpu with several threads, allowed: --threads 1 (processor time of several adds up, and counts their waiting)");
  const bool needs_draft = read_method(line, options);
  if (settings.quick) take_quick(line, settings);
  const auto sort = [](auto& list) {
    std::sort(list.begin(), list.end());
    list.erase(std::unique(list.begin(), list.end()), list.end());
  };
  sort(settings.temperatures);
  sort(settings.draft_lengths);
  sort(settings.batches);
  for (const char* const option : {"target", "draft", "out"})
    if (!line.given(option) && (option != std::string_view("draft") || needs_draft))
      throw BadInput({"", 0, 0}, fmt::format("--{} is missing; --help shows examples", option));
}

void require_cpu(const ModelOptions& options) {
  if (options.device != "cpu")
    throw BadInput({"--device", 0, 0},
                   fmt::format("{}, allowed: cpu; on a GPU, calibrate --device cuda measures, and predicts runs of --held-out",
                               config::quote_for_message(options.device)));
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
