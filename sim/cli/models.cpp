#include "sim/cli/models.h"

#include "sim/base/whole_file.h"
#include "sim/cli/command.h"
#include "sim/cost/model_shape.h"
#include "sim/experiment/manifest.h"
#include "sim/verify/verifier.h"
#include "specsim_version.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <sstream>

namespace specsim::cli {

namespace po = boost::program_options;

namespace {

constexpr std::size_t kRandomContext = 256;  // of a shape without weights
constexpr std::size_t kQuickPrompts = 16;

// Numbers with commas between them.
std::vector<double> numbers(const po::variables_map& values, const char* option, const config::Interval& interval, bool whole) {
  std::vector<double> list;
  std::istringstream parts(values[option].as<std::string>());
  for (std::string part; std::getline(parts, part, ',');) {
    config::Value value;
    value.kind = config::Kind::scalar;
    value.text = part;
    const std::optional<double> x = config::as_number(value);
    if (!x || !interval.contains(*x) || (whole && *x != std::floor(*x)))
      throw BadInput({std::string("--") + option, 0, 0},
                     fmt::format("{}, allowed: {} {} with commas between", config::quote_for_message(part),
                                 whole ? "integers" : "numbers", interval.to_text()));
    list.push_back(*x);
  }
  if (list.empty()) throw BadInput({std::string("--") + option, 0, 0}, "it is empty, allowed: at least one number");
  return list;
}

double number(const po::variables_map& values, const char* option, const config::Interval& interval) {
  const std::vector<double> list = numbers(values, option, interval, true);
  if (list.size() != 1) throw BadInput({std::string("--") + option, 0, 0}, fmt::format("{} numbers, allowed: one", list.size()));
  return list[0];
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
  if (std::filesystem::is_directory(name)) return llm::load_weights(name, precision(values));
  config::Value spec;
  spec.kind = config::Kind::scalar;
  spec.where = {option, 0, 0};
  spec.text = name;
  Diagnostics diagnostics;
  const cost::ModelShape shape = cost::read_model(spec, option, diagnostics);
  if (!diagnostics.empty())
    throw BadInput({option, 0, 0},
                   fmt::format("{} is no directory and no known shape, allowed: a directory with config.json and "
                               "model.safetensors, or a name of configs/models (random weights, for timing alone)",
                               config::quote_for_message(name)));
  random = true;
  return random_weights(llm::config_of_shape(shape, kRandomContext), precision(values).value_or(llm::Precision::bf16),
                        options.seed);
}

std::string shape_text(const llm::Model& model) {
  const llm::ModelConfig& c = model.config();
  return fmt::format("{{layers: {}, hidden: {}, ffn: {}, vocab: {}, weight_bytes: {}}}", c.layers, c.hidden, c.ffn, c.vocab,
                     model.pass_bytes());
}

}  // namespace

void add_model_options(po::options_description& options) {
  const auto text = [](const char* fallback) { return po::value<std::string>()->default_value(fallback); };
  options.add_options()("target", po::value<std::string>(),
                        "directory of the model (config.json, model.safetensors), or a shape's name")(
      "draft", po::value<std::string>(), "the same of its draft")(
      "prompts", po::value<std::string>(), "JSONL: {\"prompt\": TEXT} or {\"tokens\": [...]} a line, \"kind\" if you like")(
      "device", text("cpu"), "cpu, or cuda: an NVIDIA GPU (calibrate)")("threads", text("0"), "0: all cores")(
      "precision", text("file"), "that weights are kept in: file, f32, f16, bf16")(
      "widen", text("0"), "MiB that a target pass is to read: neurons that change no logit are added")(
      "temperatures", text("0,0.6,1"), "of both models")("draft-lengths", text("1,2,3,4,5,6,7,8"), "tokens drafted a round")(
      "batches", text("1,4"), "sequences together")("tokens", text("48"), "emitted by each sequence of a run")(
      "repetitions", text("9"), "of every timing, in turn")(
      "clock", text("wall"), "wall, or cpu: processor time of one thread, for a machine that has other work")(
      "seed", text("0"), "")("quick", "a first look: fewer points, prompts and repetitions")("out", po::value<std::string>(),
                                                                                             "directory for the results");
}

ModelOptions read_model_options(const po::variables_map& values) {
  ModelOptions options;
  options.quick = values.count("quick") > 0;
  options.temperatures = numbers(values, "temperatures", config::between(0.0, 10.0), false);
  for (const double n : numbers(values, "draft-lengths", config::between(1, kMaxDraftLength), true))
    options.draft_lengths.push_back(static_cast<int>(n));
  for (const double n : numbers(values, "batches", config::between(1, 256), true))
    options.batches.push_back(static_cast<std::size_t>(n));
  options.tokens = static_cast<std::size_t>(number(values, "tokens", config::between(1, 1e6)));
  options.repetitions = static_cast<int>(number(values, "repetitions", config::between(1, 1000)));
  options.seed = static_cast<std::uint64_t>(number(values, "seed", config::between(0, 9e15)));
  const auto& clock = values["clock"].as<std::string>();
  if (clock != "wall" && clock != "cpu")
    throw BadInput({"--clock", 0, 0}, fmt::format("{}, allowed: wall, cpu", config::quote_for_message(clock)));
  options.clock = clock == "cpu" ? llm::Clock::cpu : llm::Clock::wall;
  if (options.clock == llm::Clock::cpu && values["threads"].as<std::string>() != "1")
    throw BadInput(
        {"--clock", 0, 0},
        "cpu with several threads, allowed: --threads 1 (processor time of several adds up, and counts their waiting)");
  if (options.quick) {
    const auto unless_given = [&](const char* option, auto& what, auto value) {
      if (values[option].defaulted()) what = value;
    };
    unless_given("temperatures", options.temperatures, std::vector<double>{0.0, 1.0});
    unless_given("draft-lengths", options.draft_lengths, std::vector<int>{2, 4});
    unless_given("batches", options.batches, std::vector<std::size_t>{1});
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
    if (values.count(option) == 0) throw BadInput({"", 0, 0}, fmt::format("--{} is missing; --help shows examples", option));
  options.out = values["out"].as<std::string>();
  return options;
}

LoadedModels load_models(const po::variables_map& values, const ModelOptions& options) {
  if (const auto& device = values["device"].as<std::string>(); device != "cpu")
    throw BadInput({"--device", 0, 0},
                   fmt::format("{}, allowed: cpu; calibrate takes cuda too", config::quote_for_message(device)));
  LoadedModels loaded;
  const auto& target_name = values["target"].as<std::string>();
  const auto& draft_name = values["draft"].as<std::string>();
  auto target = std::make_shared<const llm::Weights>(weights_of(target_name, "--target", values, options, loaded.random));
  const auto draft = std::make_shared<const llm::Weights>(weights_of(draft_name, "--draft", values, options, loaded.random));
  if (target->config.vocab != draft->config.vocab)
    throw BadInput({draft_name + "/config.json", 0, 0},
                   fmt::format("vocab_size is {} and the target's is {}, allowed: one vocabulary for both", draft->config.vocab,
                               target->config.vocab));
  const auto tokenizer_of = [](const std::string& directory) {
    const std::string path = directory + "/tokenizer.model";
    return std::filesystem::exists(path) ? std::make_unique<llm::Tokenizer>(path) : nullptr;
  };
  loaded.tokenizer = tokenizer_of(target_name);
  if (const auto of_draft = tokenizer_of(draft_name);
      loaded.tokenizer != nullptr && of_draft != nullptr && !loaded.tokenizer->same_pieces(*of_draft))
    throw BadInput({draft_name + "/tokenizer.model", 0, 0}, "its pieces are not the target's, allowed: one vocabulary for both");
  if (loaded.tokenizer != nullptr && loaded.tokenizer->vocab() > target->config.vocab)
    throw BadInput({target_name + "/tokenizer.model", 0, 0},
                   fmt::format("{} pieces, allowed by config.json: {}", loaded.tokenizer->vocab(), target->config.vocab));

  loaded.pair.team =
      std::make_shared<llm::ThreadTeam>(static_cast<unsigned>(number(values, "threads", config::between(0, 1024))));
  loaded.pair.draft = make_cpu_model(draft, draft->config.layers, loaded.pair.team);
  if (const double wanted = number(values, "widen", config::between(0, 1e6)) * 0x1.0p20; wanted > 0.0) {
    loaded.same_function.target = make_cpu_model(target, target->config.layers, loaded.pair.team);
    const double now = static_cast<double>(target->pass_bytes(target->config.layers));
    const double per_neuron =
        static_cast<double>(target->config.layers * 3 * target->config.hidden * bytes_of(target->layers[0].down.precision()));
    const std::size_t added = wanted > now ? static_cast<std::size_t>(std::ceil((wanted - now) / per_neuron)) : 0;
    target = std::make_shared<const llm::Weights>(widened(*target, llm::padded(target->config.ffn + added), options.seed));
  }
  loaded.pair.target = make_cpu_model(target, target->config.layers, loaded.pair.team);
  const auto longest = static_cast<std::size_t>(options.draft_lengths.back());
  const std::size_t context = std::min(target->config.context, draft->config.context);
  if (context < 2 * longest + 16)
    throw BadInput({target_name, 0, 0}, fmt::format("a context of {} tokens, allowed for draft length {}: at least {}", context,
                                                    longest, 2 * longest + 16));
  loaded.contexts = {1, context / 3, context - longest - 1};
  loaded.description =
      fmt::format("{{target: {}, draft: {}, target_shape: {}, draft_shape: {}}}", config::quote_for_message(target_name),
                  config::quote_for_message(draft_name), shape_text(*loaded.pair.target), shape_text(*loaded.pair.draft));
  return loaded;
}

std::vector<llm::Prompt> load_prompts(const std::string& path, const LoadedModels& models, const ModelOptions& options) {
  const std::size_t longest = static_cast<std::size_t>(options.draft_lengths.back());
  std::vector<llm::Prompt> prompts = llm::read_prompts(path, models.tokenizer.get(), models.pair.target->config(), longest + 1);
  if (options.quick && prompts.size() > kQuickPrompts) prompts.resize(kQuickPrompts);
  if (prompts.size() < options.batches.back())
    throw BadInput({path, 0, 0}, fmt::format("{} prompts, allowed for a batch of {}: at least as many", prompts.size(),
                                             options.batches.back()));
  return prompts;
}

std::unique_ptr<verify::PositionRule> token_rule() {
  const verify::VerifierEntry& entry = *verify::verifiers().find("token");
  Diagnostics diagnostics;
  return entry.make(config::read_arguments({}, entry.info.parameters, {}, "verifier token", diagnostics));
}

void write_model_manifest(const std::string& directory, const std::string& description, unsigned threads, std::size_t cells,
                          double seconds) {
  experiment::Manifest manifest;
  manifest.command = command_line();
  manifest.version = build_info::version;
  manifest.commit = build_info::commit;
  manifest.threads = threads;
  manifest.cells = cells;
  manifest.wall_seconds = seconds;
  manifest.shard = {1, 1};
  manifest.files = {"models"};
  manifest.configs = {description};
  write_whole_file(directory + "/manifest.yaml", experiment::manifest_text(manifest));
}

}  // namespace specsim::cli
