// Models with different layers, by hand: latent attention, windows by layer, mixtures with dense layers and shared experts.
#include "tests/support/costs.h"

#include <catch2/catch.hpp>

#include <fmt/format.h>

#include <cmath>
#include <vector>

namespace specsim::cost_layers_test {

using namespace specsim::cost;
using specsim::tests::make_cost;
using specsim::tests::near;
using specsim::tests::shape_of;

namespace {

// 1 TB/s and arithmetic that takes no time: time is bytes.
const std::string kPlainGpu =
    "{memory_gb: 2000, bandwidth_gb_per_s: 1000, bf16_tflops: 20000, fp8_tflops: 20000, multiprocessors: 1, link_gb_per_s: 100, "
    "link_latency_us: 0.01, calibration: {memory_efficiency: 1, feed_tb_per_s: 1000, overlap_power: 100, kernel_us: 0, split_us: "
    "1e6, "
    "attention_efficiency: 1, attention_us: 0, elementwise_us: 0}}";

std::unique_ptr<CostModel> priced(const std::string& target, const std::string& gpu = kPlainGpu) {
  return make_cost("roofline", fmt::format("{{hardware: {}, target: {}, draft: none, engine: bare}}", gpu, target));
}

double kept_bytes(const CostModel& model, double context) {
  return model.memory_budget({1, context - 1}, 1, Kept::target)->lines[1].bytes;
}

}  // namespace

TEST_CASE("parameters of current models as published", "[cost][models]") {
  struct Row {
    const char* name;
    double total_billion, active_billion, within;  // active: 0 for dense models; relative
    const char* published;
  };
  const std::vector<Row> rows = {
      {"qwen3-0.6b", 0.596, 0, 0.002, "Qwen3 report: 0.6B, of it 0.44B outside the embeddings"},
      {"qwen3-1.7b", 1.72, 0, 0.002, "1.7B, 1.4B"},
      {"qwen3-4b", 4.02, 0, 0.002, "4.0B, 3.6B"},
      {"qwen3-8b", 8.19, 0, 0.002, "8.2B, 6.95B"},
      {"qwen3-14b", 14.77, 0, 0.002, "14.8B, 13.2B"},
      {"qwen3-32b", 32.76, 0, 0.002, "32.8B, 31.2B"},
      {"qwen3-30b-a3b", 30.5, 3.3, 0.09, "30.5B, 3.3B activated; embeddings are counted in neither or both"},
      {"qwen3-235b-a22b", 235, 22, 0.03, "235B, 22B activated"},
      {"qwen3-coder-480b-a35b", 480, 35, 0.02, "480B, 35B activated"},
      {"qwen3-next-80b-a3b", 79.674, 3.564, 0.015,
       "Qwen3-Coder-Next's checkpoint: 79,674,391,296, of them 3,874,929,408 active with embeddings; routers, .05 of them, are "
       "left out"},
      {"qwen3.5-397b-a17b", 397, 17, 0.05, "397B, 17B activated; 16.2B here, and an LM head of 1.0B"},
      {"gpt-oss-20b", 20.91, 3.61, 0.003, "gpt-oss model card, table 1: 20.91B, 3.61B active"},
      {"gpt-oss-120b", 116.83, 5.13, 0.003, "the same: 116.83B, 5.13B active"},
      {"llama-4-scout", 109, 17, 0.06, "109B with its eyes, 17B active"},
      {"llama-4-maverick", 400, 17, 0.06, "400B, 17B active"},
      {"deepseek-v3", 671, 37, 0.015, "671B, 37B activated"},
      {"deepseek-v2-lite", 15.7, 2.4, 0.04, "15.7B, 2.4B activated"},
      {"deepseek-v3.2", 671.7, 37.9, 0.015, "671B, 37B activated, and 61 indexers of 14M, a query's, a key's and weights"},
      {"kimi-k2", 1040, 32.6, 0.035, "Kimi K2 report: 1.04T, 32.6B activated; with 1.17B of embeddings the shape has 32.7B"},
      {"kimi-k2.5", 1040, 32.6, 0.035, "the same"},
      {"glm-4.5", 355, 32, 0.03, "355B, 32B activated"},
      {"glm-4.5-air", 106, 12, 0.07, "106B, 12B activated; 12.8B here"},
      {"glm-4.7-flash", 30, 3, 0.2, "30B-A3B"},
      {"glm-5", 744, 40, 0.02, "744B, 40B activated"},
      {"glm-5.2", 744, 40, 0.02, "744B-A40B"},
      {"minimax-m2", 229, 10, 0.04, "229B, 10B activated"},
      {"gemma-3-1b", 1.0, 0, 0.001, "report, table 1: 302M of embeddings, 698M outside them"},
      {"gemma-3-4b", 3.884, 0, 0.003, "675M + 3,209M"},
      {"gemma-3-12b", 11.771, 0, 0.003, "1,012M + 10,759M"},
      {"gemma-3-27b", 27.016, 0, 0.003, "1,416M + 25,600M"},
      {"gemma-4-31b", 30.7, 0, 0.002, "model card: 30.7B"},
      {"gemma-4-26b-a4b", 25.2, 3.8, 0.006, "model card: 25.2B, 3.8B active"},
      {"phi-4", 14.66, 0, 0.003, "14.7B"},
      {"phi-4-mini", 3.836, 0, 0.003, "3.84B"},
      {"mistral-small-24b", 23.57, 0, 0.003, "23.6B"}};
  for (const Row& row : rows) {
    INFO(row.name << ": " << row.published);
    const ModelShape shape = shape_of(row.name);
    CHECK(std::abs(1e-9 * shape.total_parameters() / row.total_billion - 1.0) < row.within);
    if (row.active_billion > 0.0) CHECK(std::abs(1e-9 * shape.active_parameters() / row.active_billion - 1.0) < row.within);
  }
  // Checkpoints of gpt-oss: 12.8 and 60.8 GiB (model card, table 1), experts in mxfp4, the rest in bf16.
  CHECK(near(shape_of("gpt-oss-20b").weight_bytes() / 1073741824.0, 12.8, 0.005));
  CHECK(near(shape_of("gpt-oss-120b").weight_bytes() / 1073741824.0, 60.8, 0.005));
  // EAGLE-3's head for Llama-3.1-8B: .42B, 850 MB in 16 bits, without embeddings, which are the target's.
  CHECK(near(1e-9 * shape_of("eagle3-llama-3.1-8b").own_parameters(), 0.425, 0.005));
  // DeepSeek-V3's report: 14B for the multi-token prediction module, with its copies of embeddings and LM head.
  CHECK(near(1e-9 * shape_of("deepseek-v3-mtp").total_parameters(), 14.0, 0.06));
  // GLM-5.2's module: 9.95B in its 791 tensors, including the indexer's, without copies of embeddings and LM head (antirez/ds4
  // issue 458).
  CHECK(near(1e-9 * shape_of("glm-5-mtp").own_parameters(), 9.95, 0.001));
  // Kimi K2.5's experts have four bits and a 16-bit scale per 32 weights; all other weights have 16 bits.
  const ModelShape kimi = shape_of("kimi-k2.5");
  CHECK(kimi.weight_bytes() == 2.0 * (kimi.total_parameters() - kimi.expert_parameters()) + 4.5 / 8 * kimi.expert_parameters());
}

TEST_CASE("latent attention: its cache, its products, its time", "[cost][models]") {
  const ModelShape shape = shape_of("deepseek-v3");
  // 512 latent elements and 64 rotated ones in each of 61 layers, 2 bytes each: 70,272 bytes, DeepSeek's 70 kB.
  CHECK(shape.kv_bytes_per_token() == 61.0 * (512 + 64) * 2);
  const std::string small =
      "{layers: 2, hidden: 100, heads: 4, kv_heads: 4, head_dim: 24, ffn: 300, vocab: 1000, latent: 32, rope_dim: 8, value_dim: "
      "16";
  const double latent = 100.0 * (32 + 8) + 100.0 * 4 * 24 + 4 * (24 - 8) * 32.0 + 4 * 32 * 16.0 + 4 * 16 * 100.0;
  CHECK(shape_of(small + "}").layer_parameters() == 2 * (latent + 3 * 100.0 * 300));
  const double squeezed = 100.0 * (20 + 32 + 8) + 20.0 * 4 * 24 + 4 * (24 - 8) * 32.0 + 4 * 32 * 16.0 + 4 * 16 * 100.0;
  CHECK(shape_of(small + ", query_rank: 20}").layer_parameters() == 2 * (squeezed + 3 * 100.0 * 300));
  const auto model = priced(small + "}");
  CHECK(near(model->pass(Role::target, {3, 1, 1000, 1}).kv, 2.0 * 40 * 2 * 3 * 1001 / 1e12));
  CHECK(near(kept_bytes(*model, 1000), 2.0 * 40 * 2 * 1000));
  // The weights of a pass of one token are all parameters, each read once.
  const double weights = 2.0 * (shape_of(small + "}").layer_parameters() + 1000.0 * 100);
  CHECK(near(model->pass(Role::target, {1, 1, 0, 1}).weights, weights / 1e12, 0.05));
  // The latent vector is not divided among GPUs: each reads it completely.
  CHECK(near(priced(small + ", tensor_parallel: 4}")->pass(Role::target, {3, 1, 1000, 1}).kv, 2.0 * 40 * 2 * 3 * 1001 / 1e12));
  CHECK(near(kept_bytes(*priced(small + ", tensor_parallel: 4}"), 1000), 2.0 * 40 * 2 * 1000));
  // Operations, if arithmetic is slow: each head's query meets 40 elements of a key and adds up 32 of a value, at the share of
  // the peak that FlashMLA reaches.
  std::string slow = kPlainGpu;
  slow.replace(slow.find("20000"), 5, "1.000");
  const double pairs = 3.0 * (5 * 1000 + 15);
  CHECK(near(priced(small + "}", slow)->pass(Role::target, {3, 5, 1000, 5}).kv, 2.0 * 2 * 4 * (40 + 32) * pairs / (0.67 * 1e12)));
}

TEST_CASE("sparse attention: an indexer reads all its keys, attention only the picked ones", "[cost][models]") {
  const std::string base =
      "{layers: 4, hidden: 256, heads: 4, kv_heads: 4, head_dim: 24, ffn: 300, vocab: 1000, latent: 32, rope_dim: 8, query_rank: "
      "20, value_dim: 16";
  const std::string picks = ", index_topk: 100, index_heads: 2, index_dim: 128";
  const auto kv = [&](const Pass& pass, const std::string& more, const std::string& gpu = kPlainGpu) {
    return priced(base + more + "}", gpu)->pass(Role::target, pass).kv;
  };
  const double entry = 4.0 * (32 + 8) * 2;  // bytes of all layers
  const double key = 128 + 4;               // a layer's, with its scale
  // The engine's time to select from the scores: one row at a time on one multiprocessor, here the only one.
  const auto selection = [](double rows, double pairs, double layers) { return 0.45e-9 * rows * pairs * layers; };
  const auto indexed = [&](double sequences, double rows, double keys, double pairs, double layers) {
    return layers * (sequences * keys * key + rows * pairs * 8) / 1e12 + selection(rows, pairs, layers);
  };
  // One token reads 100 of 1,000 keys; the indexer's part grows with the context.
  CHECK(near(kv({1, 1, 1000, 1}, picks), entry * 100 / 1e12 + indexed(1, 1, 1001, 1001, 4)));
  CHECK(near(kv({1, 1, 3000, 1}, picks), entry * 100 / 1e12 + indexed(1, 1, 3001, 3001, 4)));
  CHECK(near(kv({1, 1, 1000, 1}, ""), entry * 1001 / 1e12));
  // Each verified token picks its own keys; keys are read once per sequence.
  CHECK(near(kv({3, 5, 1000, 5}, picks), entry * 3 * 500 / 1e12 + indexed(3, 15, 1005, 1003, 4)));
  // At most the existing entries.
  CHECK(near(kv({1, 5, 200, 5}, picks), entry * 205 / 1e12 + indexed(1, 5, 205, 203, 4)));
  CHECK(near(kv({1, 1, 50, 1}, picks), entry * 51 / 1e12 + indexed(1, 1, 51, 51, 4)));
  // Layers that reuse the picks of an earlier one have no indexer.
  CHECK(near(kv({1, 1, 1000, 1}, picks + ", index_layers: 1"), entry * 100 / 1e12 + indexed(1, 1, 1001, 1001, 1)));
  // Neither part is divided among GPUs.
  CHECK(near(kv({1, 1, 1000, 1}, picks + ", tensor_parallel: 4"), entry * 100 / 1e12 + indexed(1, 1, 1001, 1001, 4)));
  // If arithmetic is slow: 2 heads of 128 per pair in 8 bits at half of the peak.
  std::string slow = kPlainGpu;
  slow.replace(slow.find("fp8_tflops: 20000"), 17, "fp8_tflops: 0.010");
  CHECK(near(kv({3, 5, 1000, 5}, picks, slow),
             entry * 3 * 500 / 1e12 + 4 * 2.0 * 2 * 128 * 15 * 1003 / 0.5e10 + selection(15, 1003, 4)));
  const ModelShape shape = shape_of(base + picks + "}");
  const double indexer = 20.0 * 2 * 128 + 256.0 * (128 + 2);
  CHECK(shape.layer_parameters() == shape_of(base + "}").layer_parameters() + 4 * indexer);
  CHECK(shape_of(base + picks + ", index_layers: 1}").layer_parameters() == shape_of(base + "}").layer_parameters() + indexer);
  CHECK(shape.kv_bytes_per_token() == entry + 4 * key);
  CHECK(near(kept_bytes(*priced(base + picks + "}"), 1000), 1000 * (entry + 4 * key)));
  CHECK(near(kept_bytes(*priced(base + picks + ", kv_bits: 8}"), 1000), 1000 * (entry / 2 + 4 * key)));
  // By name: 61 keys of 132 bytes on top of DeepSeek-V3's 70 kB; in GLM-5.2 a layer in four has them.
  CHECK(shape_of("deepseek-v3.2").kv_bytes_per_token() == shape_of("deepseek-v3").kv_bytes_per_token() + 61.0 * 132);
  CHECK(shape_of("glm-5.2").kv_bytes_per_token() == 78.0 * 576 * 2 + 21.0 * 132);
  CHECK(shape_of("glm-5").total_parameters() - shape_of("glm-5.2").total_parameters() ==
        57.0 * (2048.0 * 32 * 128 + 6144.0 * (128 + 32)));
}

TEST_CASE("compressed attention: a window, and entries of several tokens", "[cost][models]") {
  // Three layers: the window alone; entries of 4 tokens, 10 of them picked; entries of 128.
  const std::string base =
      "{layers: 3, hidden: 256, heads: 4, kv_heads: 1, head_dim: 64, ffn: 300, vocab: 1000, one_vector: true, query_rank: 20, "
      "output_groups: 2, output_rank: 30, kv_window: 100";
  const std::string entries =
      ", picked_layers: 1, picked_tokens: 4, index_topk: 10, index_heads: 2, index_dim: 128, heavy_layers: "
      "1, heavy_tokens: 128";
  const double entry = 64.0 * 2;  // bytes of a layer's: one vector
  const double key = 128 + 4;
  const auto kv = [&](const Pass& pass, const std::string& more) {
    return priced(base + more + "}")->pass(Role::target, pass).kv;
  };
  const auto indexed = [&](double sequences, double rows, double tokens, double pairs) {
    return (sequences * tokens / 4 * key + rows * pairs / 4 * 8) / 1e12 + 0.45e-9 * rows * pairs / 4;
  };
  CHECK(near(kv({1, 1, 1280, 1}, entries), entry * (3 * 101 + 10 + 1280 / 128) / 1e12 + indexed(1, 1, 1281, 1281)));
  // Each verified token picks its own entries; the rest is read once per sequence. Mutant: entries are picked once.
  CHECK(near(kv({3, 5, 1280, 5}, entries), 3 * entry * (3 * 105 + 50 + 10) / 1e12 + indexed(3, 15, 1285, 1283)));
  // Before the window is full, and with more picks than entries.
  CHECK(near(kv({1, 1, 20, 1}, entries), entry * (3 * 21 + 5 + 20.0 / 128) / 1e12 + indexed(1, 1, 21, 21)));
  CHECK(near(kv({1, 1, 1280, 1}, ""), entry * 3 * 101 / 1e12));
  const ModelShape shape = shape_of(base + entries + "}");
  const double layer = 256.0 * (20 + 64) + 20.0 * 4 * 64 + 2 * 128.0 * 30 + 60.0 * 256 + 3 * 256.0 * 300;
  const double indexer = 20.0 * 2 * 128 + 256.0 * (4 * 128 + 2);
  const double compressors = 256.0 * 64 * (4 + 2);
  CHECK(shape.layer_parameters() == 3 * layer + indexer + compressors);
  CHECK(shape.kv_bytes_per_token() == Approx(entry * (1 + 0.25 + 1.0 / 128) + key / 4));
  CHECK(near(kept_bytes(*priced(base + entries + "}"), 1280), entry * (3 * 100 + 320 + 10) + 320 * key));
  // Hyper-connections: 25 us per layer, and the streams read and written around both parts.
  const auto launch = [&](const std::string& more) { return priced(base + more + "}")->pass(Role::target, {1, 8, 0, 8}).launch; };
  const double vectors = 2 * (4 + 1 + 4 + 1 + 4);
  CHECK(launch(", residual_streams: 4") - launch("") == Approx(3 * (25e-6 + 8 * vectors * 256 * 2 / 1e12)));
  // Public counts: 284B and 1.6T parameters, of which 13B and 49B are active per token.
  CHECK(shape_of("deepseek-v4-flash").total_parameters() == Approx(284e9).epsilon(0.01));
  CHECK(shape_of("deepseek-v4-flash").active_parameters() == Approx(13e9).epsilon(0.06));
  CHECK(shape_of("deepseek-v4-pro").total_parameters() == Approx(1.6e12).epsilon(0.02));
  CHECK(shape_of("deepseek-v4-pro").active_parameters() == Approx(49e9).epsilon(0.03));
}

TEST_CASE("windows by layer: cache read and held", "[cost][models]") {
  const std::string base = "{layers: 6, hidden: 256, heads: 4, kv_heads: 2, head_dim: 64, ffn: 512, vocab: 1000";
  const double layer = 2.0 * 2 * 64 * 2;  // bytes per token
  const auto kv = [&](const std::string& more, double context) {
    return priced(base + more + "}")->pass(Role::target, {1, 1, context, 1}).kv;
  };
  // Gemma 3: five of six layers see the newest 100.
  const std::string gemma = ", kv_window: 100, window_layers: 5";
  CHECK(near(kv(gemma, 1000), layer * (5 * 101 + 1001) / 1e12));
  CHECK(near(kv(gemma, 60), layer * 6 * 61 / 1e12));
  CHECK(near(kept_bytes(*priced(base + gemma + "}"), 1000), layer * (5 * 100 + 1000)));
  CHECK(shape_of(base + gemma + "}").kv_bytes_per_token() == 6 * layer);
  // All layers, as before.
  CHECK(near(kv(", kv_window: 100", 1000), layer * 6 * 101 / 1e12));
  // Llama 4: with chunked attention a token sees half a chunk on average; all of the chunk may lie in memory.
  const std::string llama = ", kv_window: 100, window_layers: 4, chunked: true";
  CHECK(near(kv(llama, 1000), layer * (4 * 51 + 2 * 1001) / 1e12));
  CHECK(near(kv(llama, 100), layer * 6 * 101 / 1e12));
  CHECK(near(kept_bytes(*priced(base + llama + "}"), 1000), layer * (4 * 100 + 2 * 1000)));
  // Linear attention keeps nothing that grows.
  CHECK(near(kv(", linear_layers: 4", 1000), layer * 2 * 1001 / 1e12));
  // Gemma 4: the layers with full attention have their own heads, and one projection for keys and values.
  const std::string global =
      ", kv_window: 100, window_layers: 5, global_head_dim: 128, global_kv_heads: 1, global_one_value: true";
  CHECK(near(kv(global, 1000), (layer * 5 * 101 + 2.0 * 128 * 2 * 1001) / 1e12));
  const double local = 256.0 * (4 + 2 * 2) * 64 + 4 * 64 * 256.0;
  const double wide = 256.0 * (4 + 1) * 128 + 4 * 128 * 256.0;
  CHECK(shape_of(base + global + "}").layer_parameters() == 5 * local + wide + 6 * 3 * 256.0 * 512);
  // By name: gpt-oss reads 128 tokens in half of its layers, Llama 4 sees all in 12 of 48; Mistral's window is that of old
  // versions.
  CHECK(near(priced("gpt-oss-20b")->pass(Role::target, {1, 1, 8000, 1}).kv, 2.0 * 8 * 64 * 2 * (12 * 129 + 12 * 8001) / 1e12));
  CHECK(near(priced("llama-4-scout")->pass(Role::target, {1, 1, 80000, 1}).kv,
             2.0 * 8 * 128 * 2 * (36 * 4097 + 12 * 80001.0) / 1e12));
}

TEST_CASE("linear attention: its own products, and a state that is read once and written for each token", "[cost][models]") {
  const std::string base = "{layers: 4, hidden: 256, heads: 4, kv_heads: 2, head_dim: 64, ffn: 512, vocab: 1000";
  const std::string delta =
      ", linear_layers: 3, linear_value_heads: 8, linear_key_heads: 4, linear_head_dim: 32, linear_convolved: 4";
  const double state = 3.0 * (8 * 32 * 32 * 4 + (2 * 4 + 8) * 32 * 3 * 2);
  const double keys = 2.0 * 2 * 64 * 2;  // bytes per token in the one layer that caches them
  const ModelShape shape = shape_of(base + delta + "}");
  CHECK(shape.recurrent_bytes() == state);
  CHECK(shape.kv_bytes_per_token() == keys);
  const double mlp = 3.0 * 256 * 512;
  const double full = 256.0 * (4 + 2 * 2) * 64 + 4 * 64 * 256.0;
  const double linear = 256.0 * (2 * 4 * 32 + 2 * 8 * 32 + 2 * 8) + 8 * 32 * 256.0;
  CHECK(shape.layer_parameters() == full + 3 * linear + 4 * mlp);
  CHECK(shape_of(base + delta + ", gated_attention: true}").layer_parameters() == 256.0 * 4 * 64 + full + 3 * linear + 4 * mlp);

  const auto kv = [&](const Pass& pass, const std::string& more = "") {
    return priced(base + delta + more + "}")->pass(Role::target, pass).kv;
  };
  CHECK(near(kv({1, 1, 1000, 1}), (keys * 1001 + 2 * state) / 1e12));
  CHECK(near(kv({3, 5, 1000, 5}), 3 * (keys * 1005 + 6 * state) / 1e12));  // a verification keeps the state after each token
  CHECK(near(kv({3, 5, 0, 1}), 3 * (keys * 5 + 2 * state) / 1e12));        // a prompt keeps the state after its last token
  CHECK(near(kv({1, 1, 1000, 1}, ", state_bits: 16"), (keys * 1001 + 2 * 3.0 * (8 * 32 * 32 * 2 + 16 * 32 * 3 * 2)) / 1e12));
  CHECK(near(kv({1, 1, 1000, 1}, ", tensor_parallel: 2"), (keys * 1001 + 2 * state) / 2e12));

  const auto lines = [&](int look_ahead) {
    return priced(base + delta + "}")->memory_budget({3, 1000}, look_ahead, Kept::target)->lines;
  };
  CHECK(lines(0).size() == 3);
  CHECK(lines(0)[2].what == "target states");
  CHECK(lines(0)[2].bytes == 3 * state);
  CHECK(lines(4)[3].what == "look-ahead slots");
  CHECK(lines(4)[3].bytes == 3 * (4 * state + 3 * keys));
  CHECK(shape_of("qwen3.6-27b").recurrent_bytes() == 48.0 * (48 * 128 * 128 * 4 + (2 * 16 + 48) * 128 * 3 * 2));
}

TEST_CASE("mixtures with dense layers and parts that all tokens pass", "[cost][models]") {
  const std::string base =
      "{layers: 5, hidden: 256, heads: 4, kv_heads: 2, head_dim: 64, ffn: 1024, vocab: 1000, experts: 8, experts_per_token: 2, "
      "expert_ffn: 128, shared_ffn: 256, dense_layers: 2}";
  const ModelShape shape = shape_of(base);
  const double attention = 256.0 * 8 * 64 + 256.0 * 256;
  const double expert = 3 * 256.0 * 128;
  CHECK(shape.layer_parameters() == 5 * attention + 2 * 3 * 256.0 * 1024 + 3 * (3 * 256.0 * 256 + 8 * expert));
  CHECK(shape.expert_parameters() == 3 * 8 * expert);
  CHECK(shape.active_parameters() == 5 * attention + 2 * 3 * 256.0 * 1024 + 3 * (3 * 256.0 * 256 + 2 * expert) + 1000.0 * 256);
  // One token reads the active weights, each once, and the activations of a row.
  const double weights = priced(base)->pass(Role::target, {1, 1, 0, 1}).weights;
  CHECK(weights * 1e12 > 2.0 * shape.active_parameters());
  CHECK(weights * 1e12 < 2.0 * shape.active_parameters() * 1.04);
}

TEST_CASE("types of weights, activations and cache", "[cost][models]") {
  const std::string base = "{layers: 2, hidden: 256, heads: 4, kv_heads: 2, head_dim: 64, ffn: 512, vocab: 1000";
  const auto shape = [&](const std::string& dtype) { return shape_of(base + ", dtype: " + dtype + "}"); };
  CHECK(shape("bf16").weight_bits == 16);
  CHECK(shape("fp8").product_type == "fp8");
  CHECK(shape("int8").product_type == "sq");
  CHECK(shape("{weights: int8, activations: bf16}").product_type == "int8_wo");
  CHECK(shape("int4").product_type == "int4_wo");
  CHECK(shape("int4").weight_bits == 4.125);
  CHECK(shape("int4").kv_bits == 16);
  CHECK(shape("nvfp4").weight_bits == 4.5);
  CHECK(shape("{weights: int4, activations: bf16, cache: fp8}").kv_bits == 8);
  CHECK(shape("{cache: fp8}").weight_bits == 16);
  // Given bits override the type's, for formats without a name.
  const ModelShape bits = shape_of(base + ", dtype: int4, weight_bits: 5, kv_bits: 8}");
  CHECK(bits.weight_bits == 5);
  CHECK(bits.product_type.empty());
  CHECK(bits.kv_bits == 8);
  const ModelShape experts = shape_of(base + ", experts: 8, experts_per_token: 2, expert_ffn: 128, dtype: {experts: mxfp4}}");
  CHECK(experts.weight_bytes() ==
        2.0 * (experts.total_parameters() - experts.expert_parameters()) + 4.25 / 8 * experts.expert_parameters());
  // The same time for bf16 by name as for 16 bits; fp8 reads half and is not slower at many rows.
  const auto time = [&](const std::string& more, double rows) {
    return priced(base + more + "}")->pass(Role::target, {1, rows, 0, 1}).total();
  };
  CHECK(time(", dtype: bf16", 7) == time("", 7));
  CHECK(time(", dtype: fp8", 1) < time("", 1));
  CHECK(time(", dtype: fp8", 512) < time("", 512));
  // Weights alone: 4 bits cost a fourth more at four rows, 8 bits a sixteenth, before arithmetic sets in.
  const auto products = [&](const std::string& more, double rows) {
    const PassTime pass =
        priced("{layers: 1, hidden: 8192, heads: 64, kv_heads: 64, head_dim: 128, ffn: 28672, vocab: 2" + more + "}")
            ->pass(Role::target, {1, rows, 0, 0});
    return pass.weights + pass.compute;
  };
  CHECK(near(products(", dtype: int4", 4) / products(", dtype: int4", 1), 1.12, 0.005));
  CHECK(near(
      products(", dtype: {weights: int8, activations: bf16}", 4) / products(", dtype: {weights: int8, activations: bf16}", 1),
      1.06, 0.005));
  CHECK(near(products(", dtype: fp8", 4) / products(", dtype: fp8", 1), 1.0, 0.005));
}

TEST_CASE("impossible layers are refused", "[cost][models]") {
  const auto mistake = [](const std::string& more) {
    std::string text;
    make_cost(
        "roofline",
        fmt::format("{{hardware: {}, target: {{layers: 4, hidden: 256, heads: 4, kv_heads: 2, head_dim: 64, ffn: 512, vocab: "
                    "1000, {}}}, draft: none}}",
                    kPlainGpu, more),
        &text);
    return text;
  };
  CHECK(mistake("dense_layers: 2").find("dense_layers is 2, allowed: 0 in a model without experts") != std::string::npos);
  CHECK(mistake("linear_layers: 5").find("linear_layers is 5, allowed: at most the 4 layers") != std::string::npos);
  CHECK(mistake("kv_window: 10, window_layers: 5").find("window_layers is 5") != std::string::npos);
  CHECK(mistake("window_layers: 2").find("window_layers is given without kv_window") != std::string::npos);
  CHECK(mistake("latent: 32").find("latent is 32, rope_dim 0, query_rank 0, value_dim 0, allowed") != std::string::npos);
  CHECK(mistake("latent: 32, value_dim: 8, rope_dim: 64").find("rope_dim is 64") != std::string::npos);
  CHECK(mistake("dtype: fp9").find("weights is \"fp9\", did you mean \"fp8\"? allowed: bf16, fp16, fp8") != std::string::npos);
  CHECK(mistake("dtype: {weights: nvfp4, activations: fp8}")
            .find("activations are fp8 with weights of nvfp4, allowed with them: nvfp4, bf16") != std::string::npos);
  CHECK(mistake("dtype: int8").find("the target's weights of int8 are multiplied with activations of int8, but") !=
        std::string::npos);
  CHECK(mistake("dtype: {weights: int8, activations: bf16}").empty());
  CHECK(mistake("dtype: [int8]").find("dtype") != std::string::npos);
}

}  // namespace specsim::cost_layers_test
