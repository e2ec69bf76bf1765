#include "sim/lab/calibrate/gpu_setup.h"

#include "sim/foundation/config/arguments.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <utility>

namespace specsim::calibrate {

namespace {

constexpr double kGiB = 0x1.0p30;
constexpr double kKeptFree = 0.04;  // share of a device's memory left to libraries and graphs

// Parses "4096x14336x32"; empty if the text has another form.
std::vector<std::size_t> sizes_of(const std::string& text) {
  std::vector<std::size_t> sizes;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find('x', at), text.size());
    const auto size = config::as_integer(text.substr(at, end - at));
    if (!size || *size < 1 || *size > 1'000'000) return {};
    sizes.push_back(static_cast<std::size_t>(*size));
    at = end + 1;
  }
  return sizes;
}

// A model for the device. `enlarge`: the option's text, "" if not given.
OnDevice describe_on_device(const std::string& name, const char* option, const std::string& enlarge, const char* enlarge_option,
                            std::size_t context) {
  OnDevice loaded;
  loaded.name = name;
  if (!llm::is_model(name)) {
    const cost::ModelShape shape = read_shape(name, option);
    if (!enlarge.empty())
      throw BadInput({enlarge_option, 0, 0}, "given together with a shape, allowed: with a model's directory");
    loaded.config = llm::config_of_shape(shape, context + kMargin);
    return loaded;
  }
  loaded.small = std::make_shared<const llm::Weights>(llm::load_weights(name, llm::Precision::bf16));
  loaded.config = loaded.small->config;
  if (loaded.config.qk_norm || loaded.config.gelu_gate)
    throw BadInput({loaded.name, 0, 0},
                   "norms of queries and keys, or GELU gates, allowed on a GPU: Llama, Mistral, Qwen2; take "
                   "--device cpu");
  if (enlarge.empty()) return loaded;
  const std::vector<std::size_t> size = sizes_of(enlarge);
  const llm::ModelConfig& small = loaded.config;
  const std::size_t unit = small.heads / small.kv_heads * small.head_dim;  // columns of `hidden` that a group of heads needs
  if (size.size() != 3 || size[0] < small.hidden || size[1] < small.ffn || size[2] < small.layers || size[0] % unit != 0)
    throw BadInput({enlarge_option, 0, 0},
                   fmt::format("{}, allowed: HIDDENxFFNxLAYERS, at least {}x{}x{}, hidden a multiple of {}",
                               config::quote_for_message(enlarge), small.hidden, small.ffn, small.layers, unit));
  loaded.config = cuda::enlarged_shape(small, size[0], size[1], size[2]);
  loaded.enlarged = true;
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

double spare_bytes(const cuda::Device& device) {
  return static_cast<double>(device.free_memory()) - kKeptFree * static_cast<double>(device.info().memory);
}

// Adds up the device memory that is needed before any of it is allocated.
void check_device_memory(const cuda::Device& device, const std::vector<std::pair<std::string, std::size_t>>& parts) {
  double sum = 0.0;
  std::string list;
  for (const auto& [name, bytes] : parts) {
    sum += static_cast<double>(bytes);
    list += fmt::format("{}{} {:.2f}", list.empty() ? "" : ", ", name, static_cast<double>(bytes) / kGiB);
  }
  const double free = spare_bytes(device);
  if (sum > free)
    throw BadInput(
        {device.info().name, 0, 0},
        fmt::format("{:.2f} GiB are needed ({}), allowed: at most the {:.2f} GiB that are free", sum / kGiB, list, free / kGiB));
}

}  // namespace

GpuSetup::GpuSetup(CalibrationSettings settings_, GpuSettings gpu_settings)
    : settings(std::move(settings_)), gpu(std::move(gpu_settings)), device(cuda::open_gpu(gpu.number, gpu.dependent_launch)) {}

void GpuSetup::load() {
  contexts = gpu.contexts;
  target = describe_on_device(settings.target, "--target", gpu.enlarge, "--enlarge", contexts.back());
  draft = describe_on_device(settings.draft, "--draft", gpu.enlarge_draft, "--enlarge-draft", contexts.back());
  const std::unique_ptr<llm::Tokenizer> tokenizer =
      shared_tokenizer(target.name, target.config.vocab, draft.name, draft.config.vocab);
  if (trained() == (draft.small == nullptr))
    throw BadInput({draft.name, 0, 0}, "a shape together with a model, allowed: two shapes or two models");
  if (trained()) {
    if (gpu.contexts_given) throw BadInput({"--contexts", 0, 0}, "given together with models' directories, allowed: with shapes");
    // Positions beyond the trained context have no rotary angle, so runs end early enough for the longest timed pass.
    const std::size_t context = std::min(target.config.context, draft.config.context);
    const auto longest = static_cast<std::size_t>(settings.draft_lengths.back());
    if (context < 4 * longest + 16)
      throw BadInput({target.name, 0, 0}, fmt::format("a context of {} tokens, allowed for draft length {}: at least {}", context,
                                                      longest, 4 * longest + 16));
    capacity = context - longest - 2;
    contexts = {1, capacity / 3, capacity - 1};
  } else {
    capacity = contexts.back();
  }
  if (gpu.for_baselines && (!trained() || target.enlarged || draft.enlarged))
    throw BadInput({"--peers", 0, 0},
                   "given together with random or enlarged weights, allowed: with unchanged models' directories");
  if (!trained()) return;
  const auto read = [&](const std::string& path, const char* option) {
    return load_prompts(path, option, settings, tokenizer.get(), target.config,
                        target.config.context - capacity + static_cast<std::size_t>(settings.draft_lengths.back()) + 1);
  };
  held_out = read(settings.held_out, "--held-out");
  for (std::size_t i = 0; i < held_out.size(); ++i)
    if (held_out[i].tokens.size() < 2)
      throw BadInput({settings.held_out, 0, 0}, fmt::format("prompt {} is one token, allowed on a GPU: at least two", i + 1));
  if (gpu.for_baselines) return;
  fitted = read(settings.prompts, "--prompts");
  check_held_out(settings.held_out, fitted, held_out);
}

double GpuSetup::place() {
  const std::size_t longest = contexts.back() + kMargin;
  const std::size_t rows =
      trained() || settings.quick
          ? std::max<std::size_t>(kMostRows / 4,
                                  settings.batches.back() * (static_cast<std::size_t>(settings.draft_lengths.back()) + 1))
          : kMostRows;
  limits = {.rows = rows, .logit_rows = rows, .context = longest};
  check_device_memory(*device, {{"target's weights", cuda::weight_bytes(target.config)},
                                {"target's work", cuda::work_bytes(target.config, limits)},
                                {"draft's weights", cuda::weight_bytes(draft.config)},
                                {"draft's work", cuda::work_bytes(draft.config, limits)},
                                {"one sequence's cache", cuda::cache_bytes(target.config, 1, longest)}});
  const double begin = llm::now(llm::Clock::wall);
  put(*device, target, limits, settings.seed);
  put(*device, draft, limits, settings.seed + 1);
  device->finish();
  return llm::now(llm::Clock::wall) - begin;
}

bool GpuSetup::fits(std::size_t bytes) const { return static_cast<double>(bytes) < spare_bytes(*device); }

std::vector<int> GpuSetup::lengths() const {
  std::vector<int> all = {0};
  all.insert(all.end(), settings.draft_lengths.begin(), settings.draft_lengths.end());
  return all;
}

std::string GpuSetup::device_description() const {
  return fmt::format("{{device: {}}}", config::quote_for_message(device->info().name));
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

std::string GpuSetup::device_text() const {
  const cuda::DeviceInfo& info = device->info();
  return fmt::format(
      "name: {}\ndriver: {}\ncompute_capability: {}.{}\nmultiprocessors: {}\nmemory_bytes: {}\nl2_bytes: {}\nlibrary: {}\n"
      "early_start: {}\n",
      config::quote_for_message(info.name), config::quote_for_message(info.driver), info.compute_capability / 10,
      info.compute_capability % 10, info.multiprocessors, info.memory, info.l2, config::quote_for_message(info.library),
      info.dependent_launch);
}

}  // namespace specsim::calibrate
