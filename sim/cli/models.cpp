#include "sim/cli/models.h"

#include "sim/base/memory.h"
#include "sim/base/whole_file.h"
#include "sim/cli/command.h"
#include "sim/cli/numbers.h"
#include "sim/report/manifest.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <string_view>

namespace specsim::cli {

namespace po = boost::program_options;

namespace {

constexpr std::size_t kRandomContext = 256;  // of a shape without weights
constexpr std::size_t kQuickPrompts = 16;

std::string text_of(const po::variables_map& values, const char* option) { return values[option].as<std::string>(); }

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

// A directory with a model in it, or the name of a shape.
llm::Weights weights_of(const std::string& name, const char* option, const po::variables_map& values, const ModelOptions& options,
                        bool& random) {
  if (std::filesystem::is_directory(name)) {
    llm::Weights weights = llm::load_weights(name, precision(values));
    weights.config.context =
        std::min(weights.config.context, static_cast<std::size_t>(integer(values, "longest-context", config::between(32, 1e7))));
    return weights;
  }
  random = true;
  return random_weights(llm::config_of_shape(read_shape(name, option), kRandomContext),
                        precision(values).value_or(llm::Precision::bf16), options.seed);
}

std::string shape_text(const llm::Model& model) {
  const llm::ModelConfig& c = model.config();
  return fmt::format("{{layers: {}, hidden: {}, ffn: {}, vocab: {}, weight_bytes: {}}}", c.layers, c.hidden, c.ffn, c.vocab,
                     model.pass_bytes());
}

}  // namespace

void add_model_options(po::options_description& options) {
  const auto text = [](const char* fallback) { return po::value<std::string>()->default_value(fallback); };
  const auto add = [&](const char* name, const po::value_semantic* value, const char* help) {
    options.add_options()(name, value, help);
  };
  add("target", po::value<std::string>(),
      "directory of the model (config.json, model.safetensors or its index), or a shape's name");
  add("draft", po::value<std::string>(), "the same of its draft");
  add("prompts", po::value<std::string>(), "JSONL: {\"prompt\": TEXT} or {\"tokens\": [...]} a line, \"kind\" if you like");
  add("drafter", text("model"),
      "model: samples from --draft; argmax: its likeliest token; early-exit:N: the target's first N layers; or a tree or text "
      "drafter of specsim list as in a config, "
      "\"{kind: tree_static, branching: [3, 2, 1]}\"");
  add("verifier", po::value<std::string>(), "a name of specsim list that judges such drafts; token, or what suits the tree");
  add("device", text("cpu"), "cpu, or cuda: an NVIDIA GPU (calibrate)");
  add("threads", text("0"), "0: all cores");
  add("precision", text("file"), "that weights are kept in: file, f32, f16, bf16");
  add("widen", text("0"), "MiB that a target pass is to read: neurons that change no logit are added");
  add("temperatures", text("0,0.6,1"), "of both models");
  add("top-k", text("0"), "of both models' distributions: the likeliest tokens alone; 0: all");
  add("top-p", text("1"), "the fewest likeliest tokens that have this share");
  add("min-p", text("0"), "tokens with at least this share of the likeliest one's probability");
  add("longest-context", text("2048"), "tokens of a sequence at most, where a model could hold more");
  add("draft-lengths", text("1,2,3,4,5,6,7,8"), "tokens drafted a round");
  add("batches", text("1,4"), "sequences together");
  add("tokens", text("48"), "emitted by each sequence of a run");
  add("repetitions", text("9"), "of every timing, in turn");
  add("clock", text("wall"), "wall, or cpu: processor time of one thread, for a machine that has other work");
  add("seed", text("0"), "of every random number");
  options.add_options()("quick", "a first look: fewer points, prompts and repetitions");
  add("out", po::value<std::string>(), "directory for the results");
}

namespace {

// What the registry has that works on models as they are: heads, and exits with distributions of their own, are made
// distributions there.
void read_block_drafter(const po::variables_map& values, ModelOptions& options) {
  Diagnostics diagnostics;
  const config::Value section = config::parse_text(options.drafter, "--drafter", diagnostics);
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
          fmt::format("given with --drafter {}, which says how much is drafted and is run on one sequence", options.drafter));
  options.block = draft.block;
  options.draft_lengths = {draft.chain.draft_length};
  options.batches = {1};
}

std::string usual_verifier(tokens::Siblings siblings) {
  switch (siblings) {
    case tokens::Siblings::independent:
      return "multi_draft_recursive";
    case tokens::Siblings::without_replacement:
      return "without_replacement";
    case tokens::Siblings::point_mass:
      break;
  }
  return "tree_point_mass";
}

}  // namespace

ModelOptions read_model_options(const po::variables_map& values) {
  ModelOptions options;
  options.quick = values.count("quick") > 0;
  options.temperatures = read_numbers(text_of(values, "temperatures"), "--temperatures", config::between(0.0, 10.0));
  for (const std::int64_t n :
       read_integers(text_of(values, "draft-lengths"), "--draft-lengths", config::between(1, kMaxDraftLength)))
    options.draft_lengths.push_back(static_cast<int>(n));
  for (const std::int64_t n : read_integers(text_of(values, "batches"), "--batches", config::between(1, 256)))
    options.batches.push_back(static_cast<std::size_t>(n));
  options.cuts.top_k = static_cast<int>(integer(values, "top-k", config::between(0, 1e9)));
  options.cuts.top_p = number(values, "top-p", {0.0, 1.0, true, false});
  options.cuts.min_p = number(values, "min-p", config::between(0.0, 1.0));
  options.tokens = static_cast<std::size_t>(integer(values, "tokens", config::between(1, 1e6)));
  options.repetitions = static_cast<int>(integer(values, "repetitions", config::between(1, 1000)));
  options.seed = static_cast<std::uint64_t>(integer(values, "seed", config::between(0, 9e15)));
  const auto& clock = values["clock"].as<std::string>();
  if (clock != "wall" && clock != "cpu")
    throw BadInput({"--clock", 0, 0}, fmt::format("{}, allowed: wall, cpu", config::quote_for_message(clock)));
  options.clock = clock == "cpu" ? llm::Clock::cpu : llm::Clock::wall;
  if (options.clock == llm::Clock::cpu && values["threads"].as<std::string>() != "1")
    throw BadInput(
        {"--clock", 0, 0},
        "cpu with several threads, allowed: --threads 1 (processor time of several adds up, and counts their waiting)");
  options.drafter = values["drafter"].as<std::string>();
  if (options.drafter.starts_with("{")) read_block_drafter(values, options);
  options.verifier = values.count("verifier") > 0 ? values["verifier"].as<std::string>()
                     : options.block == nullptr   ? "token"
                                                  : usual_verifier(options.block->shape().siblings);
  constexpr std::string_view kExit = "early-exit:";
  if (options.drafter.starts_with(kExit)) {
    options.exit_layers = static_cast<std::size_t>(config::as_integer(options.drafter.substr(kExit.size())).value_or(0));
    options.drafter = "early-exit";
  }
  const bool own_draft = options.drafter == "model" || options.drafter == "argmax";
  const bool needs_draft = own_draft || (options.block != nullptr && !options.block->shape().reads_text);
  if (!own_draft && options.exit_layers == 0 && options.block == nullptr)
    throw BadInput({"--drafter", 0, 0},
                   fmt::format("{}, allowed: model, argmax, early-exit:N (N layers of the target), {{kind: NAME, ...}}",
                               config::quote_for_message(values["drafter"].as<std::string>())));
  if (!needs_draft && values.count("draft") > 0)
    throw BadInput({"--draft", 0, 0}, fmt::format("given with --drafter {}, which has no use for it", options.drafter));
  if (options.quick) {
    const auto unless_given = [&](const char* option, auto& what, auto value) {
      if (values[option].defaulted()) what = value;
    };
    unless_given("temperatures", options.temperatures, std::vector<double>{0.0, 1.0});
    if (options.block == nullptr) {
      unless_given("draft-lengths", options.draft_lengths, std::vector<int>{2, 4});
      unless_given("batches", options.batches, std::vector<std::size_t>{1});
    }
    unless_given("tokens", options.tokens, std::size_t{24});
    unless_given("repetitions", options.repetitions, 3);
  }
  const auto sort = [](auto& list) {
    std::sort(list.begin(), list.end());
    list.erase(std::unique(list.begin(), list.end()), list.end());
  };
  sort(options.temperatures);
  sort(options.draft_lengths);
  sort(options.batches);
  for (const char* const option : {"target", "draft", "out"})
    if (values.count(option) == 0 && (option != std::string_view("draft") || needs_draft))
      throw BadInput({"", 0, 0}, fmt::format("--{} is missing; --help shows examples", option));
  options.out = values["out"].as<std::string>();
  return options;
}

namespace {

// The draft's weights; none for a drafter that reads the text alone, the target's own for an early exit.
std::shared_ptr<const llm::Weights> draft_weights(const po::variables_map& values, const ModelOptions& options,
                                                  const std::shared_ptr<const llm::Weights>& target, bool& random) {
  if (options.block != nullptr && options.block->shape().reads_text) return nullptr;
  if (options.drafter == "early-exit") {
    if (options.exit_layers >= target->config.layers)
      throw BadInput({"--drafter", 0, 0},
                     fmt::format("{} layers, allowed: fewer than the target's {}", options.exit_layers, target->config.layers));
    return target;
  }
  return std::make_shared<const llm::Weights>(weights_of(values["draft"].as<std::string>(), "--draft", values, options, random));
}

std::unique_ptr<llm::Model> draft_model(const std::shared_ptr<const llm::Weights>& weights, const ModelOptions& options,
                                        const std::shared_ptr<llm::ThreadTeam>& team) {
  if (weights == nullptr) return nullptr;
  return make_cpu_model(weights, options.exit_layers > 0 ? options.exit_layers : weights->config.layers, team);
}

// Each point of a cost table keeps its sequences while it is timed.
void check_memory(const LoadedModels& models, const ModelOptions& options, bool validates) {
  std::size_t sequences = 0;
  for (const llm::TablePoint& point : models.table_points(options)) sequences += point.batch;
  if (validates) {  // temperature 0 has a table of its own, and runs are timed beside the tables
    if (options.temperatures.front() == 0.0 && options.temperatures.back() > 0.0) sequences *= 2;
    sequences += options.batches.back();
  }
  const auto cache = [&](const llm::Model* model, std::size_t exit_layers) {
    if (model == nullptr) return 0.0;
    const llm::ModelConfig& c = model->config();
    return static_cast<double>(llm::cpu_cache_bytes(c, exit_layers > 0 ? exit_layers : c.layers, sequences, c.context));
  };
  const double needed = cache(models.pair.target.get(), 0) + cache(models.pair.draft.get(), options.exit_layers);
  const auto there = static_cast<double>(available_memory());
  if (needed > there)
    throw BadInput(
        {"--longest-context", 0, 0},
        fmt::format("{:.1f} GiB of keys and values for {} sequences of {} tokens, allowed: the {:.1f} GiB that this machine can "
                    "still give; a shorter one, or smaller --batches, take less",
                    0x1.0p-30 * needed, sequences, models.longest_context + 1, 0x1.0p-30 * there));
}

void check_rule(const Rule& rule, const ModelOptions& options, std::size_t vocab) {
  const verify::Demands& demands = rule.entry().demands;
  const auto refuse = [&](const char* option, const std::string& allowed) {
    throw BadInput({option, 0, 0}, fmt::format("with --verifier {}, allowed: {}", options.verifier, allowed));
  };
  if (demands.one_hot_target && options.temperatures != std::vector<double>{0.0}) refuse("--temperatures", "0");
  if (demands.argmax_draft && options.drafter != "argmax") refuse("--drafter", "argmax");
  if (vocab > static_cast<std::size_t>(demands.vocab))
    refuse("--target", fmt::format("a vocabulary of at most {} tokens, this has {}", demands.vocab, vocab));
}

}  // namespace

Rule::Rule(const std::string& name, const draft::BlockDrafter* block) : entry_(verify::verifiers().find(name)) {
  if (entry_ == nullptr)
    throw BadInput({"--verifier", 0, 0}, fmt::format("{}, allowed: a verifier of specsim list", config::quote_for_message(name)));
  const std::vector<tokens::Siblings>& trees = entry_->demands.trees;
  const auto judges = [&](tokens::Siblings siblings) { return std::find(trees.begin(), trees.end(), siblings) != trees.end(); };
  if (block != nullptr && (!entry_->make_block || !judges(block->shape().siblings)))
    throw BadInput({"--verifier", 0, 0},
                   fmt::format("{} does not judge such trees, allowed: one that suits the drafter's siblings", name));
  if (block == nullptr && !entry_->make && !trees.empty() && !judges(tokens::Siblings::independent))
    throw BadInput({"--verifier", 0, 0}, fmt::format("{} judges trees alone, allowed: one that judges chains", name));
  Diagnostics diagnostics;
  config::Value empty;
  empty.kind = config::Kind::map;
  empty.where = {"--verifier " + name, 0, 0};
  const config::Arguments arguments = config::read_arguments(empty, entry_->info.parameters, {}, "verifier " + name, diagnostics);
  diagnostics.throw_if_any();
  if (entry_->make && block == nullptr)
    position_ = entry_->make(arguments);
  else
    block_ = entry_->make_block(arguments);
}

llm::Method LoadedModels::method(const ModelOptions& options) const {
  using Draft = llm::Method::Draft;
  return {options.block != nullptr      ? Draft::block
          : options.drafter == "argmax" ? Draft::argmax
                                        : Draft::sampled,
          rule->get(), options.block.get(), options.cuts, rule->entry().lossless};
}

std::vector<llm::TablePoint> LoadedModels::table_points(const ModelOptions& options) const {
  std::vector<llm::TablePoint> points;
  for (const std::size_t batch : options.batches)
    for (const std::size_t context : contexts) points.push_back({batch, context});
  return points;
}

LoadedModels load_models(const po::variables_map& values, const ModelOptions& options) {
  if (const auto& device = values["device"].as<std::string>(); device != "cpu")
    throw BadInput({"--device", 0, 0},
                   fmt::format("{}, allowed: cpu; on a GPU, calibrate --device cuda measures, and predicts runs of --held-out",
                               config::quote_for_message(device)));
  LoadedModels loaded;
  const auto& target_name = values["target"].as<std::string>();
  const std::string draft_name = values.count("draft") > 0 ? values["draft"].as<std::string>() : "";
  auto target = std::make_shared<const llm::Weights>(weights_of(target_name, "--target", values, options, loaded.random));
  const std::shared_ptr<const llm::Weights> draft = draft_weights(values, options, target, loaded.random);
  loaded.rule.emplace(options.verifier, options.block.get());
  check_rule(*loaded.rule, options, target->config.vocab);
  loaded.tokenizer = shared_tokenizer(target_name, target->config.vocab, draft_name,
                                      draft != nullptr ? draft->config.vocab : target->config.vocab);
  loaded.pair.team = std::make_shared<llm::ThreadTeam>(read_threads(text_of(values, "threads")));
  loaded.pair.draft = draft_model(draft, options, loaded.pair.team);
  if (const double wanted = number(values, "widen", config::between(0, 1e6)) * 0x1.0p20; wanted > 0.0) {
    loaded.same_function.target = make_cpu_model(target, target->config.layers, loaded.pair.team);
    const auto now = static_cast<double>(target->pass_bytes(target->config.layers));
    const auto per_neuron =
        static_cast<double>(target->config.layers * 3 * target->config.hidden * bytes_of(target->layers[0].down.precision()));
    const std::size_t added = wanted > now ? static_cast<std::size_t>(std::ceil((wanted - now) / per_neuron)) : 0;
    const bool exits = draft == target;
    target = std::make_shared<const llm::Weights>(widened(*target, llm::padded(target->config.ffn + added), options.seed));
    if (exits) {  // its layers are the target's own, and cost what those cost
      loaded.same_function.draft = std::move(loaded.pair.draft);
      loaded.pair.draft = draft_model(target, options, loaded.pair.team);
    }
  }
  loaded.pair.target = make_cpu_model(target, target->config.layers, loaded.pair.team);
  const std::size_t room = options.room();
  const std::size_t context = draft != nullptr ? std::min(target->config.context, draft->config.context) : target->config.context;
  loaded.longest_context = context - 1;
  if (context < 2 * room + 16)
    throw BadInput({target_name, 0, 0},
                   fmt::format("a context of {} tokens, allowed with {} behind the text in a round: at least {}", context, room,
                               2 * room + 16));
  loaded.contexts = {1, context / 3, context - room - 1};
  check_memory(loaded, options, values.count("held-out") > 0);
  loaded.description =
      fmt::format("{{target: {}, draft: {}, drafter: {}, verifier: {}, target_shape: {}, draft_shape: {}}}",
                  config::quote_for_message(target_name), config::quote_for_message(draft_name), options.drafter,
                  options.verifier, shape_text(*loaded.pair.target), loaded.pair.draft ? shape_text(*loaded.pair.draft) : "{}");
  return loaded;
}

std::vector<llm::Prompt> LoadedModels::prompts(const po::variables_map& values, const char* option,
                                               const ModelOptions& options) const {
  return load_prompts(values, option, options, tokenizer.get(), pair.target->config(),
                      options.room() + pair.target->config().context - longest_context);
}

cost::ModelShape read_shape(const std::string& name, const char* option) {
  Diagnostics diagnostics;
  const cost::ModelShape shape = cost::read_model(config::scalar(name, {option, 0, 0}), option, diagnostics);
  if (!diagnostics.empty())
    throw BadInput({option, 0, 0},
                   fmt::format("{} is no directory and no known shape, allowed: a directory with config.json and "
                               "model.safetensors or its index, or a name of configs/models (random weights, for timing alone)",
                               config::quote_for_message(name)));
  return shape;
}

std::unique_ptr<llm::Tokenizer> shared_tokenizer(const std::string& target, std::size_t target_vocab, const std::string& draft,
                                                 std::size_t draft_vocab) {
  if (target_vocab != draft_vocab)
    throw BadInput(
        {std::filesystem::is_directory(draft) ? draft + "/config.json" : draft, 0, 0},
        fmt::format("vocab_size is {} and the target's is {}, allowed: one vocabulary for both", draft_vocab, target_vocab));
  const auto tokenizer_of = [](const std::string& directory) {
    const std::string path = directory + "/tokenizer.model";
    return !directory.empty() && std::filesystem::exists(path) ? std::make_unique<llm::Tokenizer>(path) : nullptr;
  };
  std::unique_ptr<llm::Tokenizer> tokenizer = tokenizer_of(target);
  if (const auto of_draft = tokenizer_of(draft);
      tokenizer != nullptr && of_draft != nullptr && !tokenizer->same_pieces(*of_draft))
    throw BadInput({draft + "/tokenizer.model", 0, 0}, "its pieces are not the target's, allowed: one vocabulary for both");
  if (tokenizer != nullptr && tokenizer->vocab() > target_vocab)
    throw BadInput({target + "/tokenizer.model", 0, 0},
                   fmt::format("{} pieces, allowed by config.json: {}", tokenizer->vocab(), target_vocab));
  return tokenizer;
}

std::vector<llm::Prompt> load_prompts(const po::variables_map& values, const char* option, const ModelOptions& options,
                                      const llm::Tokenizer* tokenizer, const llm::ModelConfig& config, std::size_t room) {
  if (values.count(option) == 0) throw BadInput({"", 0, 0}, fmt::format("--{} is missing; --help shows examples", option));
  const auto& path = values[option].as<std::string>();
  std::vector<llm::Prompt> prompts = llm::read_prompts(path, tokenizer, config, room);
  const std::size_t batch = options.batches.back();
  if (options.quick) prompts.resize(std::min(prompts.size(), std::max(kQuickPrompts, batch)));
  if (prompts.size() < batch)
    throw BadInput({path, 0, 0}, fmt::format("{} prompts, allowed for a batch of {}: at least as many", prompts.size(), batch));
  return prompts;
}

void check_held_out(const po::variables_map& values, const std::vector<llm::Prompt>& fitted,
                    const std::vector<llm::Prompt>& held_out) {
  for (std::size_t i = 0; i < held_out.size(); ++i)
    if (std::any_of(fitted.begin(), fitted.end(), [&](const llm::Prompt& one) { return one.tokens == held_out[i].tokens; }))
      throw BadInput({values["held-out"].as<std::string>(), 0, 0},
                     fmt::format("prompt {} is one of --prompts, allowed: others", i + 1));
}

void remove_calibration(const std::string& directory) {
  static const std::vector<std::string> starts = {
      "cost_table.csv", "passes.csv",     "acceptance.csv", "accepted_distribution.csv",
      "speed.csv",      "rounds_t",       "trace_t",        "distributions_t",
      "bandwidth.csv",  "terms.csv",      "streams.csv",    "rounds.csv",
      "device.yaml",    "validation.csv", "summary.txt",    "generation.csv",
      "logits.f32",     "prompt.txt"};
  for (const auto& entry : std::filesystem::directory_iterator(directory))
    if (std::any_of(starts.begin(), starts.end(),
                    [&](const std::string& start) { return entry.path().filename().string().starts_with(start); }))
      std::filesystem::remove(entry.path());
}

std::unique_ptr<cost::CostModel> table_cost(const std::string& path) {
  const cost::CostEntry& entry = *cost::cost_models().find("table");
  Diagnostics diagnostics;
  const config::Value section =
      config::parse_text(fmt::format("{{file: {}}}", config::quote_for_message(path)), "cost table", diagnostics);
  diagnostics.throw_if_any();
  const config::Arguments arguments = config::read_arguments(section, entry.info.parameters, {}, "cost model table", diagnostics);
  diagnostics.throw_if_any();
  std::unique_ptr<cost::CostModel> model = entry.make(arguments, diagnostics);
  diagnostics.throw_if_any();
  return model;
}

std::string error_text(double error, int decimals) { return std::isnan(error) ? "-" : fmt::format("{:.{}f}", error, decimals); }

void write_model_manifest(const std::string& directory, const std::string& description, unsigned threads, std::size_t cells,
                          double seconds) {
  report::Manifest manifest = report::new_manifest(command_line());
  manifest.threads = threads;
  manifest.cells = cells;
  manifest.wall_seconds = seconds;
  manifest.files = {"models"};
  manifest.configs = {description};
  write_whole_file(directory + "/manifest.yaml", report::manifest_text(manifest));
}

}  // namespace specsim::cli
