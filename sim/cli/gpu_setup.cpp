#include "sim/cli/gpu_setup.h"

#include "sim/base/output.h"
#include "sim/cli/command.h"
#include "sim/cli/numbers.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <utility>

namespace specsim::cli {

namespace po = boost::program_options;

namespace {

constexpr double kGiB = 0x1.0p30;
constexpr double kKeptFree = 0.04;  // of a device's memory, for libraries and graphs

// "4096x14336x32"
std::vector<std::size_t> sizes(std::string text, const std::string& option) {
  std::replace(text.begin(), text.end(), 'x', ',');
  const std::vector<std::int64_t> list = read_integers(text, option, config::between(1, 1e6));
  return {list.begin(), list.end()};
}

OnDevice describe(const po::variables_map& values, const std::string& option, const std::string& enlarge, std::size_t context) {
  OnDevice loaded;
  loaded.name = values[option].as<std::string>();
  const auto& text = values[enlarge].as<std::string>();
  if (std::filesystem::is_directory(loaded.name)) {
    loaded.small = std::make_shared<const llm::Weights>(llm::load_weights(loaded.name, llm::Precision::bf16));
    loaded.config = loaded.small->config;
    if (text.empty()) return loaded;
    const std::vector<std::size_t> size = sizes(text, "--" + enlarge);
    const llm::ModelConfig& small = loaded.config;
    if (size.size() != 3 || size[0] < small.hidden || size[1] < small.ffn || size[2] < small.layers ||
        size[0] % (small.heads / small.kv_heads * small.head_dim) != 0)
      throw BadInput({"--" + enlarge, 0, 0},
                     fmt::format("{}, allowed: HIDDENxFFNxLAYERS, at least {}x{}x{}, hidden a multiple of {}",
                                 config::quote_for_message(text), small.hidden, small.ffn, small.layers,
                                 small.heads / small.kv_heads * small.head_dim));
    loaded.config = cuda::enlarged_shape(small, size[0], size[1], size[2]);
    loaded.enlarged = true;
    return loaded;
  }
  const cost::ModelShape shape = read_shape(loaded.name, ("--" + option).c_str());
  if (!text.empty()) throw BadInput({"--" + enlarge, 0, 0}, "given with a shape, allowed: with a model's directory");
  loaded.config = llm::config_of_shape(shape, context + kMargin);
  return loaded;
}

void put(cuda::Device& device, OnDevice& loaded, const cuda::Limits& limits, std::uint64_t seed) {
  if (loaded.small == nullptr)
    loaded.weights = std::make_shared<cuda::DeviceWeights>(cuda::random_weights(device, loaded.config, seed));
  else if (loaded.enlarged)
    loaded.weights = std::make_shared<cuda::DeviceWeights>(cuda::enlarged_weights(device, *loaded.small, loaded.config, seed));
  else
    loaded.weights = std::make_shared<cuda::DeviceWeights>(cuda::real_weights(device, *loaded.small));
  loaded.model = std::make_unique<cuda::DeviceModel>(device, loaded.weights, limits);
  loaded.model->tune();
}

double spare(const cuda::Device& device) {
  return static_cast<double>(device.free_memory()) - kKeptFree * static_cast<double>(device.info().memory);
}

// What the devices must hold is added up before any of it is taken.
void check_memory(const cuda::Device& device, const std::vector<std::pair<std::string, std::size_t>>& parts) {
  double sum = 0.0;
  std::string list;
  for (const auto& [name, bytes] : parts) {
    sum += static_cast<double>(bytes);
    fmt::format_to(std::back_inserter(list), "{}{} {:.2f}", list.empty() ? "" : ", ", name, static_cast<double>(bytes) / kGiB);
  }
  const double free = spare(device);
  if (sum > free)
    throw BadInput({device.info().name, 0, 0}, fmt::format("{:.2f} GiB are needed ({}), allowed: the {:.2f} GiB that are free",
                                                           sum / kGiB, list, free / kGiB));
}

}  // namespace

std::string spread_text(const llm::Spread& s) {
  return fmt::format("{:.6g},{:.6g},{:.6g},{}", 1e3 * s.median, 1e3 * s.low, 1e3 * s.high, s.samples);
}

GpuSetup::GpuSetup(const po::variables_map& values)
    : options(read_model_options(values)),
      threads(read_threads(values["threads"].as<std::string>())),
      device(std::make_unique<cuda::LaunchCounter>(
          cuda::open_gpu(static_cast<int>(read_integer(values["gpu"].as<std::string>(), "--gpu", config::between(0, 1024))),
                         values.count("no-early-start") == 0))) {}

void GpuSetup::load(const po::variables_map& values) {
  for (const std::int64_t context : read_integers(values["contexts"].as<std::string>(), "--contexts", config::between(1, 1e6)))
    contexts.push_back(static_cast<std::size_t>(context));
  std::sort(contexts.begin(), contexts.end());
  target = describe(values, "target", "enlarge", contexts.back());
  draft = describe(values, "draft", "enlarge-draft", contexts.back());
  const std::unique_ptr<llm::Tokenizer> tokenizer =
      shared_tokenizer(target.name, target.config.vocab, draft.name, draft.config.vocab);
  if (trained() == (draft.small == nullptr))
    throw BadInput({draft.name, 0, 0}, "a shape beside a model, allowed: two shapes or two models");
  if (trained()) {
    if (!values["contexts"].defaulted())
      throw BadInput({"--contexts", 0, 0}, "given with models' directories, allowed: with shapes");
    // Positions beyond the trained context have no angle: runs end early enough for the longest timed pass.
    const std::size_t context = std::min(target.config.context, draft.config.context);
    const auto longest = static_cast<std::size_t>(options.draft_lengths.back());
    if (context < 4 * longest + 16)
      throw BadInput({target.name, 0, 0}, fmt::format("a context of {} tokens, allowed for draft length {}: at least {}", context,
                                                      longest, 4 * longest + 16));
    capacity = context - longest - 2;
    contexts = {1, capacity / 3, capacity - 1};
  } else {
    capacity = contexts.back();
  }
  for_baselines = values.count("peers") > 0;
  if (for_baselines && (!trained() || target.enlarged || draft.enlarged))
    throw BadInput({"--peers", 0, 0}, "given with random or enlarged weights, allowed: with models' directories as they are");
  if (trained()) {
    const auto prompts = [&](const char* option) {
      return load_prompts(values, option, options, tokenizer.get(), target.config,
                          target.config.context - capacity + static_cast<std::size_t>(options.draft_lengths.back()) + 1);
    };
    held_out = prompts("held-out");
    for (std::size_t i = 0; i < held_out.size(); ++i)
      if (held_out[i].tokens.size() < 2)
        throw BadInput({values["held-out"].as<std::string>(), 0, 0},
                       fmt::format("prompt {} is one token, allowed on a GPU: at least two", i + 1));
    if (!for_baselines) {
      fitted = prompts("prompts");
      check_held_out(values, fitted, held_out);
    }
  }
}

void GpuSetup::place() {
  const std::size_t longest = contexts.back() + kMargin;
  const std::size_t rows =
      trained() || options.quick
          ? std::max<std::size_t>(kMostRows / 4,
                                  options.batches.back() * (static_cast<std::size_t>(options.draft_lengths.back()) + 1))
          : kMostRows;
  limits = {.rows = rows, .logit_rows = rows, .context = longest};
  check_memory(*device, {{"target's weights", cuda::weight_bytes(target.config)},
                         {"target's work", cuda::work_bytes(target.config, limits)},
                         {"draft's weights", cuda::weight_bytes(draft.config)},
                         {"draft's work", cuda::work_bytes(draft.config, limits)},
                         {"one sequence's cache", cuda::cache_bytes(target.config, 1, longest)}});
  const double begin = wall_clock();
  put(*device, target, limits, options.seed);
  put(*device, draft, limits, options.seed + 1);
  device->finish();
  print_output("target {} ({} weights, {:.2f} GB a pass), draft {} ({}, {:.2f} GB), there after {:.1f} s\n", target.name,
               to_text(target.weights->origin), 1e-9 * static_cast<double>(target.weights->pass_bytes()), draft.name,
               to_text(draft.weights->origin), 1e-9 * static_cast<double>(draft.weights->pass_bytes()), wall_clock() - begin);
  flush_output();
}

bool GpuSetup::fits(std::size_t bytes) const { return static_cast<double>(bytes) < spare(*device); }

std::vector<int> GpuSetup::lengths() const {
  std::vector<int> all = {0};
  all.insert(all.end(), options.draft_lengths.begin(), options.draft_lengths.end());
  return all;
}

std::string GpuSetup::description() const {
  const auto shape = [](const OnDevice& m) {
    return fmt::format(
        "{{name: {}, weights: {}, layers: {}, hidden: {}, ffn: {}, heads: {}, kv_heads: {}, vocab: {}, weight_bytes: {}}}",
        config::quote_for_message(m.name), to_text(m.weights->origin), m.config.layers, m.config.hidden, m.config.ffn,
        m.config.heads, m.config.kv_heads, m.config.vocab, m.weights->pass_bytes());
  };
  return fmt::format("{{device: {}, target: {}, draft: {}}}", config::quote_for_message(device->info().name), shape(target),
                     shape(draft));
}

void GpuSetup::describe_device() const {
  const cuda::DeviceInfo& info = device->info();
  write_whole_file(
      options.out + "/device.yaml",
      fmt::format("name: {}\ndriver: {}\ncompute_capability: {}.{}\nmultiprocessors: {}\nmemory_bytes: {}\nl2_bytes: "
                  "{}\nlibrary: {}\nearly_start: {}\n",
                  config::quote_for_message(info.name), config::quote_for_message(info.driver), info.compute_capability / 10,
                  info.compute_capability % 10, info.multiprocessors, info.memory, info.l2,
                  config::quote_for_message(info.library), info.dependent_launch));
  print_output("{}, {}, {:.1f} GiB, products of many rows: {}\n", info.name, info.driver, static_cast<double>(info.memory) / kGiB,
               info.library.empty() ? "own kernels (no cuBLASLt was found)" : info.library);
  flush_output();
}

}  // namespace specsim::cli
