#include "sim/lab/calibrate/models.h"

#include "sim/foundation/base/memory.h"
#include "sim/foundation/base/output.h"
#include "sim/foundation/base/overloaded.h"
#include "sim/foundation/base/plural.h"
#include "sim/foundation/config/choose.h"
#include "sim/hardware/latency/cost_model.h"
#include "sim/lab/llm/tokenizer.h"
#include "sim/rounds/verify/positions_in_turn.h"
#include "sim/rounds/verify/tree_demands.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <utility>

namespace specsim::calibrate {

namespace {

constexpr std::size_t kRandomContext = 256;  // the context of a shape without weights
constexpr std::size_t kQuickPrompts = 16;
constexpr double kBytesPerGiB = 0x1.0p30;

// A model before its weights are read or made.
struct Described {
  std::string name;
  bool random = false;  // a shape
  llm::ModelConfig config;
  llm::Precision precision = llm::Precision::bf16;  // precision of most of its matrices
  std::size_t layers = 0;                           // number of its layers that are run

  [[nodiscard]] double weight_bytes() const { return static_cast<double>(llm::weight_bytes(config, precision)); }
  [[nodiscard]] double cache_bytes(std::size_t sequences) const {
    return static_cast<double>(llm::cpu_cache_bytes(config, layers, sequences, config.context));
  }
};

Described describe(const std::string& name, const char* option, const CalibrationSettings& settings) {
  Described described;
  described.name = name;
  if (llm::is_model(name)) {
    const llm::WeightsFacts facts = llm::inspect_weights(name);
    described.config = facts.config;
    described.config.context = std::min(described.config.context, settings.longest_context);
    described.precision = settings.precision.value_or(facts.precision);
  } else {
    described.random = true;
    described.config = llm::config_of_shape(read_shape(name, option), kRandomContext);
    described.precision = settings.precision.value_or(llm::Precision::bf16);
  }
  described.layers = described.config.layers;
  return described;
}

// The draft. None for a drafter that reads the text alone; for an early exit it is the target's own layers.
std::optional<Described> describe_draft(const CalibrationSettings& settings, const Described& target) {
  const auto own = [&] { return std::optional(describe(settings.draft, "--draft", settings)); };
  return std::visit(Overloaded{[&](const DraftModel& /*model*/) { return own(); },
                               [&](const EarlyExit& early) {
                                 if (early.layers >= target.config.layers)
                                   throw BadInput({"--drafter", 0, 0},
                                                  fmt::format("{} layers, allowed: fewer than the target's {}", early.layers,
                                                              target.config.layers));
                                 std::optional<Described> exit = target;
                                 exit->layers = early.layers;
                                 return exit;
                               },
                               [&](const draft::Blocks& blocks) { return blocks->shape().reads_text ? std::nullopt : own(); }},
                    settings.drafts);
}

std::shared_ptr<const llm::Weights> weights_of(const Described& described, const CalibrationSettings& settings) {
  if (described.random)
    return std::make_shared<const llm::Weights>(llm::random_weights(described.config, described.precision, settings.seed));
  llm::Weights weights = llm::load_weights(described.name, settings.precision);
  weights.config.context = described.config.context;
  return std::make_shared<const llm::Weights>(std::move(weights));
}

std::unique_ptr<llm::Model> draft_model(const std::shared_ptr<const llm::Weights>& weights, const CalibrationSettings& settings,
                                        const std::shared_ptr<llm::ThreadTeam>& team) {
  if (weights == nullptr) return nullptr;
  const auto* const early = std::get_if<EarlyExit>(&settings.drafts);
  return llm::make_cpu_model(weights, early != nullptr ? early->layers : weights->config.layers, team);
}

// Number of sequences that are kept at once: each point of a cost table keeps its own while it is timed.
std::size_t sequences_of(const std::vector<llm::TablePoint>& points, const CalibrationSettings& settings, bool validates) {
  std::size_t sequences = 0;
  for (const llm::TablePoint& point : points) sequences += point.batch;
  if (validates) {  // temperature 0 has a table of its own, and runs are timed in addition to the tables
    if (settings.temperatures.front() == 0.0 && settings.temperatures.back() > 0.0) sequences *= 2;
    sequences += settings.batches.back();
  }
  return sequences;
}

// Throws BadInput if the weights, or the weights and caches together, do not fit into the memory that is left.
void check_memory(const Described& target, const std::optional<Described>& draft, const CalibrationSettings& settings,
                  std::size_t sequences) {
  const bool own_draft = draft && !settings.exits_early();
  double target_bytes = target.weight_bytes();
  // A widened target is in memory together with the one that acceptance is measured with.
  if (settings.widen_mib > 0.0) target_bytes += std::max(target_bytes, settings.widen_mib * 0x1.0p20);
  const double draft_bytes = own_draft ? draft->weight_bytes() : 0.0;
  const double weights = target_bytes + draft_bytes;
  const auto there = static_cast<double>(available_memory());
  if (weights > there)
    throw BadInput(
        {weights - draft_bytes > there ? "--target" : "--draft", 0, 0},
        fmt::format(
            "{:.1f} GiB of weights ({} {:.1f}{}), allowed: the {:.1f} GiB that this machine has left", weights / kBytesPerGiB,
            config::quote_for_message(target.name), target_bytes / kBytesPerGiB,
            own_draft ? fmt::format(", {} {:.1f}", config::quote_for_message(draft->name), draft_bytes / kBytesPerGiB) : "",
            there / kBytesPerGiB));
  const double caches = target.cache_bytes(sequences) + (draft ? draft->cache_bytes(sequences) : 0.0);
  if (weights + caches > there)
    throw BadInput(
        {"--longest-context", 0, 0},
        fmt::format("{:.1f} GiB of keys and values for {} sequences of {} tokens and {:.1f} GiB of weights, allowed: the "
                    "{:.1f} GiB that this machine has left; a shorter context or smaller --batches take less",
                    caches / kBytesPerGiB, sequences, target.config.context, weights / kBytesPerGiB, there / kBytesPerGiB));
}

void check_rule(const ChosenVerifier& rule, const CalibrationSettings& settings, std::size_t vocab) {
  const verify::Demands& demands = rule.entry().demands;
  const auto refuse = [&](const char* option, const std::string& allowed) {
    throw BadInput({option, 0, 0}, fmt::format("with --verifier {}, allowed: {}", settings.verifier->info.name, allowed));
  };
  if (demands.one_hot_target && settings.temperatures != std::vector<double>{0.0}) refuse("--temperatures", "0");
  const DraftModel* const model = std::get_if<DraftModel>(&settings.drafts);
  if (demands.argmax_draft && (model == nullptr || !model->argmax)) refuse("--drafter", "argmax");
  if (vocab > static_cast<std::size_t>(demands.vocab))
    refuse("--target", fmt::format("a vocabulary of at most {} tokens, this has {}", demands.vocab, vocab));
}

std::string shape_text(const llm::Model& model) {
  const llm::ModelConfig& c = model.config();
  return fmt::format("{{layers: {}, hidden: {}, ffn: {}, vocab: {}, weight_bytes: {}}}", c.layers, c.hidden, c.ffn, c.vocab,
                     model.pass_bytes());
}

// The target with added neurons that change no logit, so that a pass reads settings.widen_mib.
std::shared_ptr<const llm::Weights> widened(const llm::Weights& target, const CalibrationSettings& settings) {
  const double wanted = settings.widen_mib * 0x1.0p20;
  const auto now = static_cast<double>(target.pass_bytes(target.config.layers));
  const auto per_neuron =
      static_cast<double>(target.config.layers * 3 * target.config.hidden * bytes_of(target.layers[0].down.precision()));
  const std::size_t added = wanted > now ? static_cast<std::size_t>(std::ceil((wanted - now) / per_neuron)) : 0;
  return std::make_shared<const llm::Weights>(llm::widened(target, llm::padded(target.config.ffn + added), settings.seed));
}

void build_models(const Described& target, const std::optional<Described>& draft, const CalibrationSettings& settings,
                  LoadedModels& loaded) {
  auto target_weights = weights_of(target, settings);
  const bool exits = settings.exits_early();
  const std::shared_ptr<const llm::Weights> draft_weights = exits   ? target_weights
                                                            : draft ? weights_of(*draft, settings)
                                                                    : nullptr;
  loaded.pair.team = std::make_shared<llm::ThreadTeam>(settings.threads);
  loaded.pair.draft = draft_model(draft_weights, settings, loaded.pair.team);
  if (settings.widen_mib > 0.0) {
    loaded.same_function.target = llm::make_cpu_model(target_weights, target_weights->config.layers, loaded.pair.team);
    target_weights = widened(*target_weights, settings);
    if (exits) {  // its layers are the target's own, and take the same time
      loaded.same_function.draft = std::move(loaded.pair.draft);
      loaded.pair.draft = draft_model(target_weights, settings, loaded.pair.team);
    }
  }
  loaded.pair.target = llm::make_cpu_model(target_weights, target_weights->config.layers, loaded.pair.team);
}

bool judges(const verify::VerifierEntry& entry, tokens::Siblings siblings) {
  const std::vector<tokens::Siblings>& trees = entry.demands.trees;
  return std::find(trees.begin(), trees.end(), siblings) != trees.end();
}

config::Arguments default_arguments(const verify::VerifierEntry& entry) {
  return config::default_arguments(entry.info, "verifier " + entry.info.name, {"--verifier " + entry.info.name, 0, 0});
}

}  // namespace

ChosenVerifier::ChosenVerifier(const verify::VerifierEntry& entry) : entry_(&entry) {
  if (!entry.make && !entry.demands.trees.empty() && !judges(entry, tokens::Siblings::independent))
    throw BadInput({"--verifier", 0, 0}, fmt::format("{} judges only trees, allowed: one that judges chains", entry.info.name));
  const config::Arguments arguments = default_arguments(entry);
  rule_ = entry.make ? std::make_unique<verify::PositionsInTurn>(entry.make(arguments)) : entry.make_block(arguments);
}

ChosenVerifier::ChosenVerifier(const verify::VerifierEntry& entry, const draft::BlockDrafter& drafter) : entry_(&entry) {
  if (!entry.make_block || !judges(entry, drafter.shape().siblings))
    throw BadInput({"--verifier", 0, 0},
                   fmt::format("{} does not judge such trees, allowed: one that suits the drafter's siblings", entry.info.name));
  if (drafter.tree() != nullptr)
    if (const std::string why = verify::why_not_tree(entry.demands, *drafter.tree()); !why.empty())
      throw BadInput({"--verifier", 0, 0}, fmt::format("{} {}", entry.info.name, why));
  rule_ = entry.make_block(default_arguments(entry));
}

llm::Method LoadedModels::method(const CalibrationSettings& settings) const {
  llm::Method method{llm::Method::Chain::sampled, &rule->get(), settings.cuts, rule->entry().lossless};
  std::visit(
      Overloaded{[&](const DraftModel& model) {
                   if (model.argmax) method.drafts = llm::Method::Chain::argmax;
                 },
                 [](const EarlyExit& /*early*/) {}, [&](const draft::Blocks& blocks) { method.drafts = std::cref(*blocks); }},
      settings.drafts);
  return method;
}

std::vector<llm::TablePoint> LoadedModels::table_points(const CalibrationSettings& settings) const {
  std::vector<llm::TablePoint> points;
  for (const std::size_t batch : settings.batches)
    for (const std::size_t context : contexts) points.push_back({batch, context});
  return points;
}

LoadedModels load_models(const CalibrationSettings& settings, bool validates) {
  LoadedModels loaded;
  const Described target = describe(settings.target, "--target", settings);
  const std::optional<Described> draft = describe_draft(settings, target);
  loaded.random = target.random || (draft && draft->random);
  if (const auto* const blocks = std::get_if<draft::Blocks>(&settings.drafts))
    loaded.rule.emplace(*settings.verifier, **blocks);
  else
    loaded.rule.emplace(*settings.verifier);
  check_rule(*loaded.rule, settings, target.config.vocab);
  loaded.tokenizer =
      shared_tokenizer(settings.target, target.config.vocab, settings.draft, draft ? draft->config.vocab : target.config.vocab);
  const std::size_t room = settings.room();
  const std::size_t context = draft ? std::min(target.config.context, draft->config.context) : target.config.context;
  if (context < 2 * room + 16)
    throw BadInput({settings.target, 0, 0},
                   fmt::format("a context of {} tokens, allowed with {} after the text in a round: at least {}", context, room,
                               2 * room + 16));
  loaded.longest_context = context - 1;
  loaded.contexts = {1, context / 3, context - room - 1};
  check_memory(target, draft, settings, sequences_of(loaded.table_points(settings), settings, validates));
  build_models(target, draft, settings, loaded);
  loaded.description = fmt::format("{{target: {}, draft: {}, drafter: {}, verifier: {}, target_shape: {}, draft_shape: {}}}",
                                   config::quote_for_message(settings.target), config::quote_for_message(settings.draft),
                                   settings.drafter, settings.verifier->info.name, shape_text(*loaded.pair.target),
                                   loaded.pair.draft ? shape_text(*loaded.pair.draft) : "{}");
  return loaded;
}

std::vector<llm::Prompt> LoadedModels::prompts(const std::string& path, const char* option,
                                               const CalibrationSettings& settings) const {
  return load_prompts(path, option, settings, tokenizer.get(), pair.target->config(),
                      settings.room() + pair.target->config().context - longest_context);
}

cost::ModelShape read_shape(const std::string& name, const char* option) {
  Diagnostics diagnostics;
  cost::ModelShape shape = cost::read_model(cost::PresetChoice{name, {option, 0, 0}, {}}, option, diagnostics);
  if (!diagnostics.empty())
    throw BadInput({option, 0, 0},
                   fmt::format("{} is neither a directory nor a known shape, allowed: a directory with config.json and "
                               "model.safetensors or its index, a file that ends in .gguf, or a name of "
                               "configs/models (random weights, only for timing)",
                               config::quote_for_message(name)));
  return shape;
}

std::unique_ptr<llm::Tokenizer> shared_tokenizer(const std::string& target, std::size_t target_vocab, const std::string& draft,
                                                 std::size_t draft_vocab) {
  if (target_vocab != draft_vocab)
    throw BadInput(
        {std::filesystem::is_directory(draft) ? draft + "/config.json" : draft, 0, 0},
        fmt::format("vocab_size is {} and the target's is {}, allowed: one vocabulary for both", draft_vocab, target_vocab));
  std::unique_ptr<llm::Tokenizer> tokenizer = llm::is_model(target) ? llm::read_tokenizer(target) : nullptr;
  const auto of_draft = llm::is_model(draft) ? llm::read_tokenizer(draft) : nullptr;
  if (tokenizer != nullptr && of_draft != nullptr && !same_pieces(*tokenizer, *of_draft))
    throw BadInput({of_draft->path(), 0, 0}, "its tokens differ from the target's, allowed: one vocabulary for both");
  if (tokenizer != nullptr && tokenizer->vocab() > target_vocab)
    throw BadInput({tokenizer->path(), 0, 0},
                   fmt::format("{} pieces, allowed by the model's config: {}", tokenizer->vocab(), target_vocab));
  return tokenizer;
}

std::vector<llm::Prompt> load_prompts(const std::string& path, const char* option, const CalibrationSettings& settings,
                                      const llm::Tokenizer* tokenizer, const llm::ModelConfig& config, std::size_t room) {
  if (path.empty()) throw BadInput({"", 0, 0}, fmt::format("{} is missing; --help shows examples", option));
  llm::PromptFile file = llm::read_prompts(path, tokenizer, config, room, settings.overlong);
  std::vector<llm::Prompt>& prompts = file.prompts;
  if (file.overlong > 0)
    print_error("{}: {} of more than {} tokens {}, {} remain\n", path, plural(file.overlong, "prompt"), config.context - room,
                settings.overlong == llm::Overlong::skip ? "left out" : "cut to that", prompts.size());
  const std::size_t batch = settings.batches.back();
  if (settings.quick) prompts.resize(std::min(prompts.size(), std::max(kQuickPrompts, batch)));
  if (prompts.size() < batch)
    throw BadInput({path, 0, 0}, fmt::format("{} prompts, allowed for a batch of {}: at least as many", prompts.size(), batch));
  return std::move(prompts);
}

void check_held_out(const std::string& path, const std::vector<llm::Prompt>& fitted, const std::vector<llm::Prompt>& held_out) {
  for (std::size_t i = 0; i < held_out.size(); ++i)
    if (std::any_of(fitted.begin(), fitted.end(), [&](const llm::Prompt& one) { return one.tokens == held_out[i].tokens; }))
      throw BadInput({path, 0, 0}, fmt::format("prompt {} is also in --prompts, allowed: prompts that are not", i + 1));
}

}  // namespace specsim::calibrate
