// The forward pass compared with float64 NumPy (scripts/golden/llm_golden.py), with a model trained elsewhere, and with itself:
// one pass over n tokens, n passes, trees, batches, rollback.
#include "sim/foundation/base/whole_file.h"
#include "sim/foundation/config/value.h"
#include "tests/llm/fixtures.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <iostream>

namespace specsim::forward_test {

using specsim::tests::all_logits;
using specsim::tests::model_of;
using specsim::tests::some_tokens;
using specsim::tests::weights_of;

namespace {

config::Value read_json(const std::string& path) {
  Diagnostics diagnostics;
  config::Value value = config::parse_file(path, diagnostics);
  diagnostics.throw_if_any();
  return value;
}

std::vector<double> numbers(const config::Value& list) {
  std::vector<double> values;
  for (const config::Value& item : list.items) values.push_back(config::as_number(item).value());
  return values;
}

std::vector<Token> tokens_of(const config::Value& list) {
  std::vector<Token> tokens;
  for (const double x : numbers(list)) tokens.push_back(static_cast<Token>(x));
  return tokens;
}

// Largest difference of a golden row's logits, relative to the row's largest.
double worst_difference(const config::Value& item, const std::vector<float>& logits, std::size_t vocab) {
  const auto step = static_cast<std::size_t>(*config::as_integer(*item.find("step")));
  double worst = 0.0;
  for (const config::Value& row : item.find("rows")->items) {
    const auto r = static_cast<std::size_t>(*config::as_integer(*row.find("row")));
    const std::vector<double> expected = numbers(*row.find("logits"));
    double largest = 0.0;
    double difference = 0.0;
    for (std::size_t i = 0; i < expected.size(); ++i) {
      largest = std::max(largest, std::abs(expected[i]));
      difference = std::max(difference, std::abs(static_cast<double>(logits[r * vocab + i * step]) - expected[i]));
    }
    worst = std::max(worst, difference / largest);
  }
  return worst;
}

constexpr double kTolerance = 1e-4;

}  // namespace

TEST_CASE("logits are those of the float64 implementation", "[llm]") {
  for (const config::Value& item : read_json("tests/data/llm_golden.json").items) {
    const auto weights = weights_of(item.find("model")->text);
    const auto model = model_of(weights);
    const auto cache = model->make_cache(1, weights->config.context);
    const std::vector<float> logits = all_logits(*model, *cache, tokens_of(*item.find("tokens")));
    CAPTURE(item.find("model")->text);
    CHECK(worst_difference(item, logits, weights->config.vocab) < kTolerance);
  }
}

TEST_CASE("every constant of the forward pass moves the logits beyond the tolerance", "[llm]") {
  const config::Value golden = read_json("tests/data/llm_golden.json");
  const auto differs = [&](const std::string& name, const std::function<void(llm::Weights&)>& mistake) {
    const auto item =
        std::find_if(golden.items.begin(), golden.items.end(), [&](const auto& i) { return i.find("model")->text == name; });
    auto weights = std::make_shared<llm::Weights>(llm::load_weights("tests/data/models/" + name));
    mistake(*weights);
    const auto model = model_of(weights);
    const auto cache = model->make_cache(1, weights->config.context);
    return worst_difference(*item, all_logits(*model, *cache, tokens_of(*item->find("tokens"))), weights->config.vocab);
  };
  CHECK(differs("tiny-qwen", [](auto& w) { w.config.rope_scaling = {}; }) > 10 * kTolerance);
  CHECK(differs("tiny-qwen", [](auto& w) { w.config.rope_theta = 1e4; }) > 10 * kTolerance);
  CHECK(differs("tiny-qwen", [](auto& w) { w.layers[1].qkv_bias.clear(); }) > 10 * kTolerance);
  CHECK(differs("tiny-qwen", [](auto& w) { w.config.norm_epsilon = 1e-2; }) > 10 * kTolerance);
  CHECK(differs("tiny-qwen", [](auto& w) { w.config.tied_embeddings = true; }) > 10 * kTolerance);
  CHECK(differs("tiny-llama3", [](auto& w) { w.config.rope_scaling.method = llm::RopeScaling::Method::linear; }) >
        10 * kTolerance);
  CHECK(differs("tiny-llama3", [](auto& w) { w.config.rope_scaling.trained_context = 64; }) > 10 * kTolerance);
  CHECK(differs("tiny-llama3", [](auto& w) { w.config.rope_scaling.high_frequency_factor = 2; }) > 10 * kTolerance);
}

TEST_CASE("a model trained elsewhere gives its published greedy text", "[llm]") {
  const char* const folder = std::getenv("SPECSIM_STORIES260K");
  if (folder == nullptr || !std::filesystem::exists(folder)) {
    std::cout << "skipped: SPECSIM_STORIES260K names no folder with the stories260K model and its golden.json\n";
    return;
  }
  const config::Value golden = read_json(std::string(folder) + "/golden.json");
  const auto weights = std::make_shared<llm::Weights>(llm::load_weights(folder));
  const auto model = model_of(weights);
  const auto cache = model->make_cache(1, weights->config.context);
  const std::vector<Token> expected = tokens_of(*golden.find("greedy_ids_from_bos"));
  std::vector<Token> text = {expected[0]};
  double log_probability = 0.0;
  for (std::size_t i = 0; i + 1 < expected.size(); ++i) {
    const std::vector<float> row = all_logits(*model, *cache, {text.back()});
    for (const auto& [index, key] :
         {std::pair<std::size_t, const char*>(0, "logits_row_0_first8"), {79, "logits_row_79_first8"}}) {
      if (i != index) continue;
      const std::vector<double> first = numbers(*golden.find(key));
      for (std::size_t j = 0; j < first.size(); ++j) CHECK(static_cast<double>(row[j]) == Approx(first[j]).epsilon(kTolerance));
    }
    const auto best = std::max_element(row.begin(), row.end());
    double sum = 0.0;
    for (const float x : row) sum += std::exp(static_cast<double>(x - *best));
    log_probability -= std::log(sum);
    text.push_back(static_cast<Token>(best - row.begin()));
  }
  CHECK(text == expected);
  CHECK(log_probability == Approx(config::as_number(*golden.find("log_prob_of_greedy_sum")).value()).epsilon(kTolerance));
}

TEST_CASE("a cache takes keys and values of the layers that are run, a head in multiples of 16", "[llm]") {
  llm::ModelConfig config;
  config.layers = 9;
  config.kv_heads = 3;
  config.head_dim = 40;
  CHECK(llm::cpu_cache_bytes(config, 2, 5, 7) == std::size_t{2 * 2 * 5 * 3 * 7 * 48 * 4});
}

TEST_CASE("one pass over n tokens is n passes to the last bit", "[llm]") {
  for (const char* const name : {"tiny-qwen", "tiny-llama3", "novels-0.7m-distilled"}) {
    const auto weights = weights_of(name);
    const auto model = model_of(weights);
    const std::vector<Token> tokens = some_tokens(weights->config, 40);
    const auto single = model->make_cache(1, 64);
    std::vector<float> one_by_one;
    for (const Token token : tokens) {
      const std::vector<float> row = all_logits(*model, *single, {token});
      one_by_one.insert(one_by_one.end(), row.begin(), row.end());
    }
    CAPTURE(name);
    for (const std::size_t n : {2U, 3U, 4U, 5U, 7U, 8U, 9U, 40U}) {
      const auto cache = model->make_cache(1, 64);
      std::vector<float> together;
      for (std::size_t at = 0; at < tokens.size(); at += n) {
        const std::vector<float> rows =
            all_logits(*model, *cache,
                       {tokens.begin() + static_cast<std::ptrdiff_t>(at),
                        tokens.begin() + static_cast<std::ptrdiff_t>(std::min(at + n, tokens.size()))});
        together.insert(together.end(), rows.begin(), rows.end());
      }
      CAPTURE(n);
      CHECK(together == one_by_one);
    }
  }
}

TEST_CASE("a tree's tokens attend only to their ancestors", "[llm]") {
  const auto weights = weights_of("tiny-llama3");
  const auto model = model_of(weights);
  const std::size_t vocab = weights->config.vocab;
  const std::vector<Token> prompt = some_tokens(weights->config, 9);
  const std::vector<Token> tree = {3, 7, 11, 4, 5, 6, 8};
  const std::vector<int> parents = {-1, -1, 0, 0, 2, 1, 5};
  const auto cache = model->make_cache(1, 64);
  all_logits(*model, *cache, prompt);
  const std::vector<float> rows = all_logits(*model, *cache, tree, parents);
  for (std::size_t i = 0; i < tree.size(); ++i) {
    std::vector<Token> path;
    for (int at = static_cast<int>(i); at >= 0; at = parents[static_cast<std::size_t>(at)])
      path.insert(path.begin(), tree[static_cast<std::size_t>(at)]);
    const auto alone = model->make_cache(1, 64);
    all_logits(*model, *alone, prompt);
    const std::vector<float> chain = all_logits(*model, *alone, path);
    CAPTURE(i);
    CHECK(std::equal(chain.end() - static_cast<std::ptrdiff_t>(vocab), chain.end(),
                     rows.begin() + static_cast<std::ptrdiff_t>(i * vocab)));
  }

  // Level by level, each pass adds the children of all nodes so far.
  const auto levels = model->make_cache(1, 64);
  all_logits(*model, *levels, prompt);
  std::vector<float> by_level;
  for (std::size_t first = 0, last = 2; first < tree.size(); first = last, last = last < 6 ? 6 : 7) {
    const std::vector<Token> level(tree.begin() + static_cast<std::ptrdiff_t>(first),
                                   tree.begin() + static_cast<std::ptrdiff_t>(last));
    const std::vector<float> own =
        all_logits(*model, *levels, level, {parents.begin(), parents.begin() + static_cast<std::ptrdiff_t>(last)});
    by_level.insert(by_level.end(), own.begin(), own.end());
  }
  CHECK(by_level == rows);

  // Keeping a path leaves the same cache as a chain.
  cache->keep_path(0, prompt.size(), std::vector<std::uint32_t>{0, 2, 4});
  REQUIRE(cache->length(0) == prompt.size() + 3);
  const auto alone = model->make_cache(1, 64);
  all_logits(*model, *alone, prompt);
  all_logits(*model, *alone, {3, 11, 5});
  CHECK(all_logits(*model, *cache, {9}) == all_logits(*model, *alone, {9}));
}

TEST_CASE("a rejected pass leaves no trace", "[llm]") {
  const auto weights = weights_of("novels-0.7m-distilled");
  const auto model = model_of(weights);
  const std::vector<Token> prompt = some_tokens(weights->config, 20);
  const auto cache = model->make_cache(1, 64);
  const auto untouched = model->make_cache(1, 64);
  all_logits(*model, *cache, prompt);
  all_logits(*model, *untouched, prompt);
  for (const std::size_t kept : {0U, 1U, 4U}) {
    all_logits(*model, *cache, {1, 2, 3, 4, 5});
    cache->rewind(0, 20 + kept);
    cache->rewind(0, 20);
  }
  CHECK(all_logits(*model, *cache, {9, 10}) == all_logits(*model, *untouched, {9, 10}));
}

TEST_CASE("sequences of a batch do not see each other, and threads change nothing", "[llm]") {
  const auto weights = weights_of("novels-0.7m-distilled");
  const auto model = model_of(weights);
  const std::size_t vocab = weights->config.vocab;
  const std::vector<std::vector<Token>> prompts = {{5, 6, 7}, {100, 200, 300, 400, 500}, {9}};
  const auto together = model->make_cache(3, 64);
  std::vector<llm::Extension> batch;
  for (std::size_t s = 0; s < prompts.size(); ++s) batch.push_back({s, prompts[s], s == 1 ? 2U : 1U, {}});
  std::vector<float> rows(4 * vocab);
  model->forward(batch, *together, rows);
  std::vector<float> expected;
  const auto three_threads = make_cpu_model(weights, weights->config.layers, std::make_shared<llm::ThreadTeam>(3));
  for (std::size_t s = 0; s < prompts.size(); ++s) {
    const auto alone = three_threads->make_cache(1, 64);
    const std::vector<float> all = all_logits(*three_threads, *alone, prompts[s]);
    expected.insert(expected.end(), all.end() - static_cast<std::ptrdiff_t>((s == 1 ? 2 : 1) * vocab), all.end());
  }
  CHECK(rows == expected);
}

TEST_CASE("a widened model computes the same function to the last bit", "[llm]") {
  const auto weights = weights_of("novels-0.7m-distilled");
  const auto wide = std::make_shared<llm::Weights>(widened(*weights, 1000, 3));
  CHECK(wide->pass_bytes(3) > weights->pass_bytes(3) * 5 / 4);
  const auto model = model_of(weights);
  const auto wide_model = model_of(wide);
  const std::vector<Token> tokens = some_tokens(weights->config, 30);
  const auto cache = model->make_cache(1, 64);
  const auto wide_cache = wide_model->make_cache(1, 64);
  CHECK(all_logits(*model, *cache, tokens) == all_logits(*wide_model, *wide_cache, tokens));
}

TEST_CASE("every half and bfloat goes to float and back", "[llm]") {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto half = static_cast<std::uint16_t>(bits);
    for (const llm::Precision precision : {llm::Precision::f16, llm::Precision::bf16}) {
      float value = 0.0F;
      llm::to_floats(reinterpret_cast<const std::byte*>(&half), precision, {&value, 1});
      if (std::isnan(value)) continue;
      std::uint16_t back = 0;
      llm::from_floats({&value, 1}, precision, reinterpret_cast<std::byte*>(&back));
      if (back != half) FAIL(bits << " became " << back);
    }
  }
  // Sums that round to 11 bits: ties go to the even number.
  for (const auto& [x, expected] : {std::pair(1.0F + 0x1.0p-11F, 1.0F),
                                    {1.0F + 0x1.8p-10F, 1.0F + 0x1.0p-9F},
                                    {65519.0F, 65504.0F},
                                    {0x1.0p-25F, 0.0F},
                                    {0x1.8p-25F, 0x1.0p-24F}}) {
    std::uint16_t half = 0;
    float back = 0.0F;
    llm::from_floats({&x, 1}, llm::Precision::f16, reinterpret_cast<std::byte*>(&half));
    llm::to_floats(reinterpret_cast<const std::byte*>(&half), llm::Precision::f16, {&back, 1});
    CHECK(back == expected);
  }
}

}  // namespace specsim::forward_test
