// The device's model against the CPU's on the same weights: chains, trees, batches, rollback, enlargement.
#include "sim/foundation/base/error.h"
#include "sim/lab/cuda/rounds.h"
#include "tests/cuda/random_numbers.h"
#include "tests/cuda/twins.h"
#include "tests/llm/fixtures.h"

#include <catch2/catch.hpp>

namespace specsim::model_test {

using namespace specsim::tests;

namespace {

constexpr double kClose = 2e-2;  // bf16 activations and cache against floats, relative to all logits

struct OnTwin {
  explicit OnTwin(const std::shared_ptr<const llm::Weights>& weights, Order order = Order::ascending)
      : device(test_device(order)) {
    const cuda::Limits limits{.rows = 64, .logit_rows = 64, .context = weights->config.context};
    model = std::make_unique<cuda::DeviceModel>(
        *device, std::make_shared<cuda::DeviceWeights>(cuda::real_weights(*device, *weights)), limits);
  }
  std::unique_ptr<cuda::Device> device;
  std::unique_ptr<cuda::DeviceModel> model;
};

// Weights that are exact in bf16, so that only activations differ.
std::shared_ptr<const llm::Weights> bf16_weights(const std::string& name) {
  return std::make_shared<llm::Weights>(llm::load_weights("tests/data/models/" + name, llm::Precision::bf16));
}

}  // namespace

TEST_CASE("cuda: logits are the CPU's, for models with biases, scaled positions and odd shapes") {
  for (const char* const name : {"tiny-llama3", "tiny-qwen", "novels-0.2m-distilled"}) {
    CAPTURE(name);
    const auto weights = bf16_weights(name);
    const auto cpu = model_of(weights);
    const OnTwin gpu(weights);
    const auto cpu_cache = cpu->make_cache(1, 64);
    const auto gpu_cache = gpu.model->make_cache(1, 64);
    const std::vector<Token> tokens = some_tokens(weights->config, 37);  // more than the kernels for few rows take at once
    CHECK(distance(all_logits(*gpu.model, *gpu_cache, tokens), all_logits(*cpu, *cpu_cache, tokens)) < kClose);
    CHECK(gpu_cache->length(0) == 37);
    // A tree on top, and the accepted path.
    const std::vector<int> parents = {-1, 0, 0, 1, 2, 3};
    const std::vector<Token> tree = {3, 1, 4, 1, 5, 9};
    CHECK(distance(all_logits(*gpu.model, *gpu_cache, tree, parents), all_logits(*cpu, *cpu_cache, tree, parents)) < kClose);
    for (llm::Cache* const cache : {cpu_cache.get(), gpu_cache.get()})
      cache->keep_path(0, 37, std::vector<std::uint32_t>{0, 2, 4});
    const std::vector<Token> more = {7, 8};
    const std::vector<float> after = all_logits(*gpu.model, *gpu_cache, more);
    CHECK(distance(after, all_logits(*cpu, *cpu_cache, more)) < kClose);
    // The path must give the same result as if it had always been the text; on a GPU, a matrix instruction adds in an order that
    // depends on the places.
    gpu_cache->rewind(0, 37);
    all_logits(*gpu.model, *gpu_cache, {3, 4, 5});
    const std::vector<float> chain = all_logits(*gpu.model, *gpu_cache, more);
    if (device_is_gpu())
      CHECK(distance(chain, after) < kClose / 4);
    else
      CHECK(chain == after);
  }
}

TEST_CASE("cuda: mutants that only a model can reveal are detected") {
  const auto weights = bf16_weights("tiny-llama3");
  const std::vector<Token> text = some_tokens(weights->config, 37);
  const std::vector<Token> tree = {3, 1, 4, 1, 5, 9};
  const std::vector<int> parents = {-1, 0, 0, 1, 2, 3};
  const auto after_a_path = [&](llm::Model& model) {
    const auto cache = model.make_cache(2, 64);
    all_logits(model, *cache, {7, 7}, {}, 0);
    all_logits(model, *cache, text, {}, 1);
    std::vector<float> logits = all_logits(model, *cache, tree, parents, 1);
    cache->keep_path(1, 37, std::vector<std::uint32_t>{0, 2, 4});
    const std::vector<float> more = all_logits(model, *cache, {7, 8}, {}, 1);
    logits.insert(logits.end(), more.begin(), more.end());
    return logits;
  };
  const std::vector<float> expected = after_a_path(*model_of(weights));
  using cuda::Embed;
  using cuda::KeepPath;
  check_rejects({mutant<Embed>("the next token", [](Embed& k) { ++k.rows.shift; }),
                 mutant<Embed>("tokens by depth", [](Embed& k) { k.rows.slot = k.rows.depth; }),
                 mutant<Embed>("the last column is missing", [](Embed& k) { --k.columns; }),
                 mutant<Embed>("the first sequence's text", [](Embed& k) { k.text_stride = 0; }),
                 mutant<KeepPath>("the last step is missing", [](KeepPath& k) { --k.steps; }),
                 mutant<KeepPath>("one place late", [](KeepPath& k) { ++k.length; }),
                 mutant<KeepPath>("the first layer only", [](KeepPath& k) { k.layers = 1; }),
                 mutant<KeepPath>("the other sequence", [](KeepPath& k) { k.sequence = 0; }),
                 mutant<KeepPath>("half of the heads", [](KeepPath& k) { k.kv_heads /= 2; })},
                [&](cuda::Device& device) {
                  const cuda::Limits limits{.rows = 64, .logit_rows = 64, .context = 64};
                  cuda::DeviceModel model(device, std::make_shared<cuda::DeviceWeights>(cuda::real_weights(device, *weights)),
                                          limits);
                  return distance(after_a_path(model), expected) < kClose;
                });
}

TEST_CASE("cuda: up to 8 rows of a pass, equally many of each sequence, have bitwise the same logits as alone") {
  const auto weights = bf16_weights("novels-0.2m-distilled");
  const std::vector<Token> text = some_tokens(weights->config, 150);
  const std::vector<Token> tokens = {3, 1, 4, 1};
  const auto same = [&](cuda::Device& device) {
    cuda::DeviceModel model(device, std::make_shared<cuda::DeviceWeights>(cuda::real_weights(device, *weights)),
                            {.rows = 64, .logit_rows = 64, .context = 256});
    const auto cache = model.make_cache(2, 256);
    std::vector<float> apart;
    for (const std::size_t s : {0, 1}) {
      const std::size_t length = s == 0 ? 50 : 150;  // one chunk of attention's places, and two
      for (std::size_t at = 0; at < length; at += 50)
        all_logits(model, *cache,
                   {text.begin() + static_cast<std::ptrdiff_t>(at), text.begin() + static_cast<std::ptrdiff_t>(at + 50)}, {}, s);
      const std::vector<float> own = all_logits(model, *cache, tokens, {}, s);
      apart.insert(apart.end(), own.begin(), own.end());
      cache->rewind(s, length);
    }
    const std::vector<llm::Extension> batch = {{0, tokens, tokens.size()}, {1, tokens, tokens.size()}};
    std::vector<float> together(apart.size());
    model.forward(batch, *cache, together);
    return together == apart;
  };
  CHECK(same(*test_device()));
  const auto by_batch = [](auto& kernel) { kernel.row_warps = kernel.batch; };
  check_rejects({mutant<cuda::AttentionKernel<32>>("a batch's places are added up in another order", by_batch)}, same);
}

TEST_CASE(
    "cuda: logits of few places are the same to the last bit in one pass, token by token, in a batch, in any thread order") {
  const auto weights = bf16_weights("tiny-llama3");
  const OnTwin gpu(weights);
  const std::vector<Token> tokens = some_tokens(weights->config, 9);
  const auto whole = gpu.model->make_cache(1, 64);
  const std::vector<float> together = all_logits(*gpu.model, *whole, tokens);
  const auto single = gpu.model->make_cache(2, 64);
  std::vector<float> apart;
  for (const Token token : tokens) {
    const std::vector<float> row = all_logits(*gpu.model, *single, {token}, {}, 1);
    apart.insert(apart.end(), row.begin(), row.end());
  }
  CHECK(apart == together);
  const std::vector<Token> other = {2, 2, 2};
  std::vector<float> both((other.size() + tokens.size()) * weights->config.vocab);
  single->rewind(1, 0);
  const std::vector<llm::Extension> batch = {{0, other, other.size()}, {1, tokens, tokens.size()}};
  gpu.model->forward(batch, *single, both);
  CHECK(std::equal(together.begin(), together.end(),
                   both.begin() + static_cast<std::ptrdiff_t>(other.size() * weights->config.vocab)));
  const OnTwin backwards(weights, Order::descending);
  const auto cache = backwards.model->make_cache(1, 64);
  CHECK(all_logits(*backwards.model, *cache, tokens) == together);
}

TEST_CASE("cuda: an enlarged model computes the same function; an added part that is seen would show") {
  const auto weights = bf16_weights("tiny-llama3");
  const auto device = test_device();
  const OnTwin small(weights);
  const llm::ModelConfig large = cuda::enlarged_shape(weights->config, 160, 200, 5);
  CHECK(large.heads == 8);
  const std::vector<Token> tokens = some_tokens(weights->config, 6);
  const auto logits_of = [&](std::shared_ptr<cuda::DeviceWeights> parameters) {
    cuda::DeviceModel model(*device, std::move(parameters), {.rows = 8, .logit_rows = 8, .context = 32});
    const auto cache = model.make_cache(1, 32);
    return all_logits(model, *cache, tokens);
  };
  const auto cache = small.model->make_cache(1, 32);
  const std::vector<float> expected = all_logits(*small.model, *cache, tokens);
  const auto parameters = std::make_shared<cuda::DeviceWeights>(cuda::enlarged_weights(*device, *weights, large, 1));
  CHECK(parameters->origin == cuda::Origin::enlarged);
  CHECK(parameters->pass_bytes() > 6 * small.model->pass_bytes());
  CHECK(distance(logits_of(parameters), expected) < 1e-3);  // sums are folded elsewhere
  // Most of it is not zero.
  const std::vector<float> numbers = as_floats(parameters->layers.back().down.data.download());
  CHECK(std::count(numbers.begin(), numbers.end(), 0.0F) < 10);
  // A mutant: one added neuron sees the hidden state.
  std::vector<cuda::Bf16> gate_up = parameters->layers[0].gate_up.data.download();
  for (std::size_t row : {std::size_t{96 / 8 * 16}, std::size_t{96 / 8 * 16 + 8}})
    for (std::size_t i = 0; i < 32; ++i) gate_up[row * parameters->layers[0].gate_up.columns + i] = cuda::to_bf16(1.0F);
  parameters->layers[0].gate_up.data.upload(gate_up);
  CHECK(distance(logits_of(parameters), expected) > 1e-2);
}

TEST_CASE("cuda: random weights of a shape are never zero, and memory is counted before it is taken") {
  const auto device = test_device();
  llm::ModelConfig shape = weights_of("tiny-qwen")->config;
  shape.ffn = 64;
  const cuda::DeviceWeights weights = cuda::random_weights(*device, shape, 3);
  CHECK(weights.origin == cuda::Origin::random);
  const std::vector<float> numbers = as_floats(weights.layers[0].qkv.data.download());
  CHECK(std::count(numbers.begin(), numbers.end(), 0.0F) == 0);
  std::size_t bytes = weights.embedding.bytes() + weights.head.bytes();
  for (const cuda::DeviceLayer& layer : weights.layers)
    bytes += layer.qkv.bytes() + layer.output.bytes() + layer.gate_up.bytes() + layer.down.bytes();
  CHECK(cuda::weight_bytes(shape) == bytes);
}

TEST_CASE("cuda: a sequence whose logits are not finite is named, of the target and of the draft") {
  const auto device = test_device();
  const auto weights = weights_of("tiny-qwen");  // whose head is not tied to its embedding
  const auto model = [&](bool broken) {
    auto parameters = std::make_shared<cuda::DeviceWeights>(cuda::real_weights(*device, *weights));
    std::vector<cuda::Bf16> embedding = parameters->embedding.data.download();
    if (broken) embedding[9 * parameters->embedding.columns] = cuda::to_bf16(NAN);
    parameters->embedding.data.upload(embedding);
    return std::make_unique<cuda::DeviceModel>(*device, std::move(parameters),
                                               cuda::Limits{.rows = 64, .logit_rows = 64, .context = 64});
  };
  const auto good = model(false);
  const auto bad = model(true);
  const auto said = [&](cuda::DeviceModel& target, cuda::DeviceModel& draft, double temperature) -> std::string {
    cuda::Rounds rounds(target, &draft, {.draft_length = 2, .batch = 3, .capacity = 64, .sampling = {.temperature = temperature}},
                        rng::make_key(1, 2));
    rounds.start({{1, 2, 3}, {1, 9, 3}, {1, 2}}, std::vector<std::uint64_t>{0, 1, 2});
    try {
      rounds.round();
      rounds.check_distributions();
    } catch (const BadInput& error) {
      return error.what();
    }
    return "";
  };
  using Catch::Matchers::Contains;
  for (const double temperature : {0.0, 1.0}) {
    CHECK(said(*good, *good, temperature).empty());
    CHECK_THAT(said(*bad, *good, temperature), Contains("logits of the target for sequence 1 of the batch are not finite"));
    CHECK_THAT(said(*good, *bad, temperature), Contains("logits of the draft for sequence 1 of the batch are not finite"));
  }
}

}  // namespace specsim::model_test
