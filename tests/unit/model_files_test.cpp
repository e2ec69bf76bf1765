// Users' own model files: quantisation from every form and place, different layers, drafters by their architecture. Expected
// values are computed by hand from the layers' widths, or are the parameter counts that the models' authors publish.
#include "sim/foundation/base/whole_file.h"
#include "sim/foundation/config/json.h"
#include "sim/hardware/presets/hugging_face.h"
#include "tests/support/costs.h"

#include <catch2/catch.hpp>

#include <fmt/format.h>

#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace specsim::model_files_test {

using namespace specsim::cost;
using specsim::tests::all_messages;

namespace {

using Files = std::vector<std::pair<std::string, std::string>>;

// A folder of files, deleted at the end of its scope.
class Folder {
 public:
  explicit Folder(const Files& files)
      : path_((std::filesystem::temp_directory_path() / fmt::format("specsim_files_{}_{}", getpid(), ++count())).string()) {
    std::filesystem::create_directories(path_);
    for (const auto& [name, text] : files) write_whole_file(path_ + "/" + name, text);
  }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  static int& count() {
    static int made = 0;
    return made;
  }
  std::string path_;
};

ModelShape read(const std::string& name, std::string* mistakes = nullptr) {
  Diagnostics diagnostics;
  ModelShape shape = read_model(config::scalar(name, {"t", 1, 1}), "model", diagnostics);
  if (mistakes != nullptr) {
    *mistakes = all_messages(diagnostics);
    return shape;
  }
  INFO(all_messages(diagnostics));
  REQUIRE(diagnostics.empty());
  return shape;
}

ModelShape shape_of(const std::string& json, const std::string& side_name = "", const std::string& side = "") {
  Files files = {{"config.json", json}};
  if (!side_name.empty()) files.emplace_back(side_name, side);
  const Folder folder(files);
  return read(folder.path());
}

std::string mistakes_of(const std::string& json) {
  const Folder folder(Files{{"config.json", json}});
  std::string mistakes;
  read(folder.path(), &mistakes);
  return mistakes;
}

// A model whose parts are easy to count: two layers, attention of 4 x 64 x 64, feed-forward of 3 x 64 x 128, 1,000 tokens.
constexpr double kAttention = 2 * 4 * 64 * 64;
constexpr double kFeedForward = 2 * 3 * 64 * 128;
constexpr double kEnds = 1000 * 64;  // LM head, and embeddings again
const std::string kSmall = R"({"model_type": "llama", "hidden_size": 64, "intermediate_size": 128, "num_attention_heads": 4,
  "num_key_value_heads": 4, "num_hidden_layers": 2, "vocab_size": 1000, "tie_word_embeddings": false)";
// The same with 8 experts 32 wide in the second layer and a shared expert.
const std::string kMixture = R"({"model_type": "qwen2_moe", "hidden_size": 64, "intermediate_size": 128, "num_attention_heads": 4,
  "num_key_value_heads": 4, "num_hidden_layers": 2, "vocab_size": 1000, "tie_word_embeddings": false, "num_experts": 8,
  "num_experts_per_tok": 2, "moe_intermediate_size": 32, "shared_expert_intermediate_size": 32, "mlp_only_layers": [0])";
constexpr double kDense = 3 * 64 * 128;
constexpr double kShared = 3 * 64 * 32;
constexpr double kExperts = 8 * kShared;

struct Case {
  const char* what;
  std::string base;
  std::string quantization;
  double bits;  // of all weights together
};

std::vector<Case> quantisations() {
  const double ends = 2 * kEnds * 16;
  return {
      {"modelopt fp8", kSmall, R"({"quant_method": "modelopt", "quant_algo": "FP8", "ignore": ["lm_head"]})",
       8 * (kAttention + kFeedForward) + ends},
      // Mutant: a norm under self_attn is taken for its projections.
      {"norms are no projections", kSmall,
       R"({"quant_method": "fp8", "modules_to_not_convert": ["model.layers.0.self_attn.q_norm", "model.layers.1.self_attn.k_norm"]})",
       8 * (kAttention + kFeedForward) + ends},
      // Mutant: one layer's exclusion is applied to all.
      {"one layer of two", kSmall, R"({"quant_method": "fp8", "modules_to_not_convert": ["model.layers.0.self_attn"]})",
       16 * kAttention / 2 + 8 * (kAttention / 2 + kFeedForward) + ends},
      {"wildcards", kSmall,
       R"({"quant_method": "modelopt", "quant_algo": "NVFP4", "exclude_modules": ["lm_head", "model.layers.1*"]})",
       16 * (kAttention + kFeedForward) / 2 + 4.5 * (kAttention + kFeedForward) / 2 + ends},
      // Mutant: only the first of several groups counts.
      {"two groups", kSmall,
       R"({"quant_method": "compressed-tensors", "format": "mixed", "ignore": ["lm_head"], "config_groups": {
       "group_0": {"targets": ["re:.*self_attn.*"], "weights": {"num_bits": 8, "type": "float"}, "input_activations": {"num_bits": 8,
       "type": "float"}},
       "group_1": {"targets": ["re:.*mlp\\.(gate|up|down)_proj"], "weights": {"num_bits": 4, "type": "float", "group_size": 16},
       "input_activations": null}}})",
       8 * kAttention + 4.5 * kFeedForward + ends},
      // Mutant: four bits of a float are always nvfp4 (4.5 bits).
      {"mxfp4 in groups of 32", kSmall,
       R"({"quant_method": "compressed-tensors", "format": "mxfp4-pack-quantized", "ignore": ["lm_head"], "config_groups": {"group_0": {
       "targets": ["Linear"], "weights": {"num_bits": 4, "type": "float", "group_size": 32}, "input_activations": null}}})",
       4.25 * (kAttention + kFeedForward) + ends},
      {"GPTQModel's dynamic", kSmall,
       R"({"quant_method": "gptq", "bits": 4, "group_size": 128, "dynamic": {"-:.*o_proj": {}, "+:.*down_proj": {"bits": 8}}})",
       16 * kAttention / 4 + 4.125 * (kAttention * 3 / 4 + kFeedForward * 2 / 3) + 8 * kFeedForward / 3 + ends},
      {"AutoRound's extra_config", kSmall,
       R"({"quant_method": "auto-round", "bits": 4, "group_size": 128, "extra_config": {"model.layers.0.mlp.up_proj": {"bits": 16},
       "model.layers.1.mlp.up_proj": {"bits": 8}}})",
       4.125 * (kAttention + kFeedForward * 2 / 3) + (16 + 8) * kFeedForward / 6 + ends},
      {"AWQ leaves out by any part of a name", kSmall,
       R"({"quant_method": "awq", "bits": 4, "group_size": 128, "modules_to_not_convert": ["o_pr"]})",
       16 * kAttention / 4 + 4.125 * (kAttention * 3 / 4 + kFeedForward) + ends},
      // MLX: 16-bit scale and offset for each 64 weights, including embeddings and LM head.
      {"MLX", kSmall, R"({"group_size": 64, "bits": 4, "model.layers.0.self_attn.q_proj": {"group_size": 64, "bits": 8}})",
       8.5 * kAttention / 8 + 4.5 * (kAttention * 7 / 8 + kFeedForward + 2 * kEnds)},
      {"exl2", kSmall, R"({"quant_method": "exl2", "bits": 4.25, "head_bits": 6})",
       4.25 * (kAttention + kFeedForward) + (6 + 16) * kEnds},
      {"Quark", kSmall,
       R"({"quant_method": "quark", "exclude": ["lm_head", "*self_attn*"], "global_quant_config": {"weight": {"dtype": "fp8_e4m3"},
       "input_tensors": {"dtype": "fp8_e4m3"}}, "layer_quant_config": {}})",
       16 * kAttention + 8 * kFeedForward + ends},
      {"a mixture by named modules", kMixture,
       R"({"quant_algo": "MIXED_PRECISION", "quant_method": "modelopt", "quantized_layers": {
       "model.layers.0.self_attn": {"quant_algo": "FP8"}, "model.layers.1.self_attn": {"quant_algo": "FP8"},
       "model.layers.1.mlp.experts": {"quant_algo": "NVFP4", "group_size": 16}}})",
       8 * kAttention + 16 * (kDense + kShared) + 4.5 * kExperts + ends},
      {"experts alone", kMixture, R"({"quant_method": "mxfp4", "modules_to_not_convert": ["self_attn", "mlp.router"]})",
       16 * (kAttention + kDense + kShared) + 4.25 * kExperts + ends},
      // Mutant: the router's gate is taken for gate_proj.
      {"a gate is no gate_proj", kMixture, R"({"quant_method": "fp8", "modules_to_not_convert": ["gate", "shared_expert"]})",
       8 * (kAttention + kDense + kExperts) + 16 * kShared + ends}};
}

}  // namespace

TEST_CASE("model files: types by part from every form of quantisation", "[cost][models][model_files]") {
  for (const Case& one : quantisations()) {
    INFO(one.what);
    const ModelShape shape = shape_of(one.base + ", \"quantization_config\": " + one.quantization + "}");
    CHECK(8.0 * shape.weight_bytes() == Approx(one.bits).epsilon(1e-6));
  }
}

// Property: the place of the keys does not matter.
TEST_CASE("model files: quantisation in a file next to config.json is the same", "[cost][models][model_files]") {
  for (const Case& one : quantisations())
    for (const char* file : {"hf_quant_config.json", "quantize_config.json", "quant_config.json"}) {
      INFO(one.what << " in " << file);
      const ModelShape inside = shape_of(one.base + ", \"quantization_config\": " + one.quantization + "}");
      const ModelShape beside = shape_of(one.base + "}", file, one.quantization);
      CHECK(beside.weight_bytes() == inside.weight_bytes());
      CHECK(beside.product_type == inside.product_type);
      CHECK(beside.kv_bits == inside.kv_bits);
    }
  // modelopt's own form of the side file, and its cache.
  const ModelShape wrapped = shape_of(kSmall + "}", "hf_quant_config.json",
                                      R"({"producer": {"name": "modelopt"}, "quantization": {"quant_algo": "FP8",
                                      "kv_cache_quant_algo": "FP8", "exclude_modules": ["lm_head"]}})");
  CHECK(8.0 * wrapped.weight_bytes() == 8 * (kAttention + kFeedForward) + 32 * kEnds);
  CHECK(wrapped.kv_bits == 8);
  CHECK(8.0 * shape_of(kSmall + R"(, "quantization": {"group_size": 64, "bits": 4}})").weight_bytes() ==
        4.5 * (kAttention + kFeedForward + 2 * kEnds));
}

namespace {

struct Published {
  const char* name;
  const char* json;
  double parameters;  // from its card or paper, in units of 1e9
  double kv_bytes;    // per token, by hand: layers that attend x (keys + values) x 2
};

const std::vector<Published>& hybrids() {
  static const std::vector<Published> list = {
      {"Jamba v0.1: 52B, 4 of 32 layers attend",
       R"({"model_type": "jamba", "attn_layer_offset": 4, "attn_layer_period": 8, "expert_layer_offset": 1, "expert_layer_period": 2,
       "hidden_size": 4096, "intermediate_size": 14336, "mamba_d_conv": 4, "mamba_d_state": 16, "mamba_dt_rank": 256,
       "mamba_expand": 2, "num_attention_heads": 32, "num_experts": 16, "num_experts_per_tok": 2, "num_hidden_layers": 32,
       "num_key_value_heads": 8, "tie_word_embeddings": false, "vocab_size": 65536})",
       51.6, 4 * 2 * 8 * 128 * 2},
      {"Nemotron 3 Nano: 31.6B, 6 of 52 layers attend",
       R"({"model_type": "nemotron_h", "hybrid_override_pattern": "MEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEMEM*EMEMEMEME",
       "conv_kernel": 4, "expand": 2, "head_dim": 128, "hidden_size": 2688, "intermediate_size": 1856, "mamba_head_dim": 64,
       "mamba_num_heads": 64, "mlp_hidden_act": "relu2", "moe_intermediate_size": 1856, "moe_shared_expert_intermediate_size": 3712,
       "n_groups": 8, "n_routed_experts": 128, "n_shared_experts": 1, "num_attention_heads": 32, "num_experts_per_tok": 6,
       "num_hidden_layers": 52, "num_key_value_heads": 2, "ssm_state_size": 128, "tie_word_embeddings": false,
       "time_step_limit": [0.0, Infinity], "vocab_size": 131072})",
       31.6, 6 * 2 * 2 * 128 * 2},
      {"LFM2 1.2B: 1.17B, 6 of 16 blocks attend",
       R"({"model_type": "lfm2", "block_auto_adjust_ff_dim": true, "block_ff_dim": 12288, "block_ffn_dim_multiplier": 1.0,
       "block_multiple_of": 256, "conv_L_cache": 3, "conv_dim": 2048, "hidden_size": 2048, "full_attn_idxs": [2, 5, 8, 10, 12, 14],
       "num_attention_heads": 32, "num_hidden_layers": 16, "num_key_value_heads": 8, "vocab_size": 65536})",
       1.17, 6 * 2 * 8 * 64 * 2},
      {"Kimi Linear 48B-A3B: 7 of 27 layers attend over a latent vector of 576",
       R"({"model_type": "kimi_linear", "first_k_dense_replace": 1, "hidden_size": 2304, "intermediate_size": 9216, "kv_lora_rank": 512,
       "linear_attn_config": {"full_attn_layers": [4, 8, 12, 16, 20, 24, 27], "head_dim": 128, "kda_layers": [1, 2, 3, 5, 6, 7, 9, 10,
       11, 13, 14, 15, 17, 18, 19, 21, 22, 23, 25, 26], "num_heads": 32, "short_conv_kernel_size": 4}, "moe_intermediate_size": 1024,
       "moe_layer_freq": 1, "num_attention_heads": 32, "num_experts": 256, "num_experts_per_token": 8, "num_hidden_layers": 27,
       "num_key_value_heads": 32, "num_shared_experts": 1, "q_lora_rank": null, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64,
       "tie_word_embeddings": false, "v_head_dim": 128, "vocab_size": 163840})",
       49.1, 7 * 576 * 2},
      {"ERNIE 4.5 21B-A3B: layer 0 is dense",
       R"({"model_type": "ernie4_5_moe", "hidden_size": 2560, "intermediate_size": 12288, "moe_intermediate_size": 1536,
       "num_hidden_layers": 28, "num_attention_heads": 20, "num_key_value_heads": 4, "head_dim": 128, "moe_num_experts": 64,
       "moe_num_shared_experts": 2, "moe_k": 6, "moe_layer_start_index": 1, "moe_layer_end_index": 27, "moe_layer_interval": 1,
       "vocab_size": 103424, "tie_word_embeddings": true})",
       21.8, 28 * 2 * 4 * 128 * 2},
      {"Falcon-H1: attention and Mamba 2 side by side in 24 layers, parameters by hand",
       R"({"model_type": "falcon_h1", "head_dim": 128, "hidden_size": 2048, "intermediate_size": 4096, "mamba_chunk_size": 256,
       "mamba_d_conv": 4, "mamba_d_head": 64, "mamba_d_ssm": 3072, "mamba_d_state": 256, "mamba_expand": 2, "mamba_n_groups": 1,
       "mamba_n_heads": 48, "num_attention_heads": 8, "num_hidden_layers": 24, "num_key_value_heads": 2,
       "tie_word_embeddings": false, "vocab_size": 65537})",
       1.479, 24 * 2 * 2 * 128 * 2},
      {"MiMo-V2-Flash: 309B, 39 of 48 layers have a window and 8 key heads",
       R"({"model_type": "mimo_v2_flash", "num_hidden_layers": 48, "hidden_size": 4096, "num_attention_heads": 64,
       "num_key_value_heads": 4, "head_dim": 192, "v_head_dim": 128, "intermediate_size": 16384, "vocab_size": 152576,
       "sliding_window": 128, "swa_num_attention_heads": 64, "swa_num_key_value_heads": 8, "swa_head_dim": 192, "swa_v_head_dim": 128,
       "hybrid_layer_pattern": [0, 1, 1, 1, 1, 0, 1, 1, 1, 1, 1, 0, 1, 1, 1, 1, 1, 0, 1, 1, 1, 1, 1, 0, 1, 1, 1, 1, 1, 0, 1, 1, 1, 1,
       1, 0, 1, 1, 1, 1, 1, 0, 1, 1, 1, 1, 1, 0], "moe_layer_freq": [0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
       1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1], "moe_intermediate_size": 2048,
       "n_routed_experts": 256, "n_shared_experts": null, "num_experts_per_tok": 8, "tie_word_embeddings": false})",
       309, (9 * 4 + 39 * 8) * (192 + 128) * 2},
      {"Qwen 1.8B of 2023 halves intermediate_size",
       R"({"model_type": "qwen", "hidden_size": 2048, "intermediate_size": 11008, "kv_channels": 128, "num_attention_heads": 16,
       "num_hidden_layers": 24, "tie_word_embeddings": false, "vocab_size": 151936})",
       1.84, 24 * 2 * 16 * 128 * 2},
      {"Apertus 8B has no gate",
       R"({"model_type": "apertus", "hidden_act": "xielu", "hidden_size": 4096, "intermediate_size": 21504, "num_attention_heads": 32,
       "num_hidden_layers": 32, "num_key_value_heads": 8, "tie_word_embeddings": false, "vocab_size": 131072})",
       8.05, 32 * 2 * 8 * 128 * 2},
      {"Hunyuan: lists with one number for each layer, 4 layers as wide as A13B's by hand",
       R"({"model_type": "hunyuan_v1_moe", "attention_head_dim": 128, "hidden_size": 4096, "intermediate_size": 3072,
       "moe_intermediate_size": [3072, 3072, 3072, 3072], "moe_topk": [8, 8, 8, 8], "num_attention_heads": 32, "num_experts": 64,
       "num_hidden_layers": 4, "num_key_value_heads": 8, "num_shared_expert": [1, 1, 1, 1], "tie_word_embeddings": true,
       "vocab_size": 128167})",
       10.507, 4 * 2 * 8 * 128 * 2},
      {"K-EXAONE 236B: is_moe_layer lists the layers with experts",
       R"({"model_type": "exaone_moe", "hidden_size": 6144, "num_hidden_layers": 48, "num_attention_heads": 64,
       "num_key_value_heads": 8, "head_dim": 128, "intermediate_size": 18432, "moe_intermediate_size": 2048, "num_experts":
       128, "num_experts_per_tok": 8, "num_shared_experts": 1, "is_moe_layer": [false, true, true, true, true, true, true,
       true, true, true, true, true, true, true, true, true, true, true, true, true, true, true, true, true, true, true, true,
       true, true, true, true, true, true, true, true, true, true, true, true, true, true, true, true, true, true, true, true,
       true], "sliding_window": 128, "sliding_window_pattern": "LLLG", "vocab_size": 153600, "tie_word_embeddings": false})",
       236, 48 * 2 * 8 * 128 * 2},
      {"Trinity Mini 26B: an output gate, layers with the window by interval",
       R"({"model_type": "afmoe", "global_attn_every_n_layers": 4, "head_dim": 128, "hidden_size": 2048, "intermediate_size":
       6144, "moe_intermediate_size": 1024, "num_attention_heads": 32, "num_dense_layers": 2, "num_experts": 128,
       "num_experts_per_tok": 8, "num_hidden_layers": 32, "num_key_value_heads": 4, "num_shared_experts": 1, "sliding_window":
       2048, "tie_word_embeddings": false, "vocab_size": 200192})",
       26.1, 32 * 2 * 4 * 128 * 2},
      {"Command A 111B: layer_switch is the interval of layers without the window",
       R"({"model_type": "cohere2", "hidden_size": 12288, "intermediate_size": 36864, "num_hidden_layers": 64,
       "num_attention_heads": 96, "num_key_value_heads": 8, "head_dim": 128, "vocab_size": 256000, "sliding_window": 4096,
       "layer_switch": 4, "order_of_interleaved_layers": "local_attn_first"})",
       111, 64 * 2 * 8 * 128 * 2},
      {"Grok 2, 270B: a dense part next to the experts",
       R"({"model_type": "git", "hidden_act": "gelu", "hidden_size": 8192, "intermediate_size": 32768, "moe_intermediate_size":
       16384, "num_hidden_layers": 64, "num_attention_heads": 64, "num_key_value_heads": 8, "head_dim": 128,
       "num_local_experts": 8, "num_experts_per_tok": 2, "residual_moe": true, "vocab_size": 131072, "tie_word_embeddings":
       false})",
       270, 64 * 2 * 8 * 128 * 2},
      {"Arctic 480B: a dense part as wide as the model next to the experts",
       R"({"model_type": "arctic", "hidden_size": 7168, "intermediate_size": 4864, "num_hidden_layers": 35,
       "num_attention_heads": 56, "num_key_value_heads": 8, "num_local_experts": 128, "num_experts_per_tok": 2,
       "moe_layer_frequency": 1, "use_residual": true, "vocab_size": 32000, "tie_word_embeddings": false})",
       480, 35 * 2 * 8 * 128 * 2},
      {"BitNet 2B: a gate before a squared ReLU",
       R"({"model_type": "bitnet", "hidden_act": "relu2", "hidden_size": 2560, "intermediate_size": 6912, "num_hidden_layers":
       30, "num_attention_heads": 20, "num_key_value_heads": 5, "vocab_size": 128256, "tie_word_embeddings": true})",
       2.41, 30 * 2 * 5 * 128 * 2}};
  return list;
}

}  // namespace

TEST_CASE("model files: layers that differ have the published parameters and caches", "[cost][models][model_files]") {
  for (const Published& one : hybrids()) {
    INFO(one.name);
    const ModelShape shape = shape_of(one.json);
    CHECK(1e-9 * shape.total_parameters() == Approx(one.parameters).epsilon(0.012));
    CHECK(shape.kv_bytes_per_token() == one.kv_bytes);
  }
}

// Property: an unknown key about layers is refused, whatever the model; so is a list with a value for each layer.
TEST_CASE("model files: unknown keys about layers are refused at their place", "[cost][models][model_files]") {
  std::vector<std::string> bases;
  for (const Published& one : hybrids()) bases.emplace_back(one.json);
  bases.push_back(kSmall + "}");
  for (const std::string& base : bases) {
    const std::string open = base.substr(0, base.rfind('}'));
    for (const char* key : {"\"odd_layers\": [0, 1]", "\"strange_pattern\": \"AB\"", "\"memory_period\": 4",
                            "\"skip_interval\": 2", "\"other_block_type\": \"x\""}) {
      INFO(key << " in " << base);
      CHECK(mistakes_of(open + ",\n " + key + "}").find("a key about layers that is not understood") != std::string::npos);
    }
    CHECK(mistakes_of(open + ", \"odd_layers\": [], \"strange_pattern\": null, \"layer_norm_eps\": 1e-5}").empty());
  }
  const std::string listed = hybrids()[0].json;  // 32 layers
  std::string values = "0";
  for (int i = 1; i < 32; ++i) values += ", 1";
  CHECK(mistakes_of(listed.substr(0, listed.rfind('}')) + ", \"whatever\": [" + values + "]}").find("whatever is") !=
        std::string::npos);
  // The message has the place and the allowed values.
  const std::string at = mistakes_of(
      "{\"model_type\": \"llama\", \"hidden_size\": 64, \"intermediate_size\": 64,\n"
      " \"num_attention_heads\": 4, \"num_hidden_layers\": 2, \"vocab_size\": 9,\n"
      "  \"odd_period\": 3}");
  CHECK(at.find("config.json:3:3: odd_period is 3") != std::string::npos);
  CHECK(mistakes_of(kSmall + R"(, "layer_types": ["full_attention", "novel_attention"]})")
            .find("\"novel_attention\", which is not known") != std::string::npos);
  // A mixture without its number of experts.
  CHECK(mistakes_of(kSmall + R"(, "num_experts_per_tok": 2, "moe_intermediate_size": 32, "n_experts_renamed": 8})")
            .find("is given without a number of experts") != std::string::npos);
}

TEST_CASE("model files: params.json of Meta and Mistral", "[cost][models][model_files]") {
  const auto params = [](const char* json) {
    const Folder folder(Files{{"params.json", json}});
    return read(folder.path());
  };
  // Mistral 7B v0.1: 7.24B, 8 key and value heads with a window of 4,096.
  const ModelShape mistral =
      params(R"({"dim": 4096, "n_layers": 32, "head_dim": 128, "hidden_dim": 14336, "n_heads": 32, "n_kv_heads": 8,
    "norm_eps": 1e-05, "sliding_window": 4096, "vocab_size": 32000})");
  CHECK(1e-9 * mistral.total_parameters() == Approx(7.24).epsilon(0.001));
  CHECK(mistral.kv_bytes_per_token() == 32 * 2 * 8 * 128 * 2);
  CHECK(mistral.kv_window == 4096);
  CHECK(mistral.assumed.empty());
  // Llama 3 8B: 8.03B; the feed-forward width of 14,336 follows from multiple_of and ffn_dim_multiplier.
  const ModelShape llama = params(R"({"dim": 4096, "n_layers": 32, "n_heads": 32, "n_kv_heads": 8, "vocab_size": 128256,
    "multiple_of": 1024, "ffn_dim_multiplier": 1.3, "norm_eps": 1e-05, "rope_theta": 500000.0})");
  CHECK(llama.ffn == 14336);
  CHECK(1e-9 * llama.total_parameters() == Approx(8.03).epsilon(0.001));
  const ModelShape two =
      params(R"({"dim": 4096, "multiple_of": 256, "n_heads": 32, "n_layers": 32, "norm_eps": 1e-06, "vocab_size": -1})");
  CHECK(two.ffn == 11008);
  CHECK(two.vocab == 32000);
  CHECK(two.assumed.size() == 1);
  const ModelShape mixtral =
      params(R"({"dim": 4096, "n_layers": 32, "head_dim": 128, "hidden_dim": 14336, "n_heads": 32, "n_kv_heads": 8,
    "vocab_size": 32000, "moe": {"num_experts_per_tok": 2, "num_experts": 8}})");
  CHECK(1e-9 * mixtral.total_parameters() == Approx(46.7).epsilon(0.001));
  // Mistral Large 3: 673B in 8 bits; three dense layers are named in the map of its experts.
  const ModelShape large =
      params(R"({"dim": 7168, "n_layers": 61, "head_dim": 128, "hidden_dim": 16384, "n_heads": 128, "n_kv_heads": 128,
    "vocab_size": 131072, "tied_embeddings": false, "q_lora_rank": 1536, "qk_rope_head_dim": 64, "qk_nope_head_dim": 128,
    "kv_lora_rank": 512, "v_head_dim": 128, "moe": {"route_every_n": 1, "first_k_dense_replace": 3, "num_experts": 128,
    "num_experts_per_tok": 4, "expert_hidden_dim": 4096, "num_shared_experts": 1},
    "quantization": {"qformat_weight": "fp8_e4m3", "qscheme_act": "TENSOR"}})");
  CHECK(1e-9 * large.total_parameters() == Approx(673).epsilon(0.002));
  CHECK(large.dense_layers == 3);
  CHECK(large.weight_bytes() == Approx(large.total_parameters() + 2.0 * 131072 * 7168).epsilon(0.001));
}

namespace {

const std::string kBlock = R"("hidden_size": 4096, "intermediate_size": 12288, "head_dim": 128, "num_attention_heads": 32,
  "num_key_value_heads": 8, "num_hidden_layers": 5, "vocab_size": 151936, "model_type": "qwen3", "num_target_layers": 36)";

}  // namespace

TEST_CASE("model files: drafters by their architecture", "[cost][models][model_files]") {
  const ModelShape spark =
      shape_of(R"({"architectures": ["DSparkDraftModel"], "block_size": 7, "dflash_config": {"markov_rank": 256,
    "markov_head_type": "vanilla", "target_layer_ids": [1, 9, 17, 25, 33]}, )" +
               kBlock + "}");
  const ModelShape preset = tests::shape_of("dspark-qwen3-8b");
  CHECK(spark.own_parameters() == preset.own_parameters());
  CHECK(spark.one_pass);
  CHECK(spark.markov_rank == 256);
  CHECK(spark.longest_draft == 7);
  CHECK(spark.drafter == "dspark");
  // DFlash's block includes the token before the drafts. Mutant: 16.
  const ModelShape flash = shape_of(
      R"({"architectures": ["DFlashDraftModel"], "block_size": 16, "dflash_config": {"target_layer_ids": [1, 9, 17, 25, 33]}, )" +
      kBlock + "}");
  CHECK(flash.own_parameters() == tests::shape_of("dflash-qwen3-8b").own_parameters());
  CHECK(flash.longest_draft == 15);
  // speculators: a separate LM head, 32,000 x 4,096.
  const ModelShape speculators =
      shape_of(R"({"architectures": ["DFlashDraftModel"], "speculators_model_type": "dflash", "block_size": 8,
    "draft_vocab_size": 32000, "aux_hidden_state_layer_ids": [2, 10, 18, 26, 34], "transformer_layer_config": {)" +
               kBlock + R"(}, "speculators_config": {"verifier": {"name_or_path": "Qwen/Qwen3-8B"}}})");
  CHECK(speculators.own_parameters() == flash.own_parameters() + 32000.0 * 4096);
  CHECK(speculators.longest_draft == 7);
  CHECK(speculators.verifier == "Qwen/Qwen3-8B");
  // Domino: a GRU of 1,024 and a projection of 256 to the vocabulary, at every position.
  const ModelShape domino =
      shape_of(R"({"architectures": ["DominoDraftModel"], "block_size": 16, "dflash_config": {"emb_dim": 256,
    "gru_hidden_dim": 1024, "target_layer_ids": [1, 9, 17, 25, 33]}, )" +
               kBlock + "}");
  CHECK(domino.own_parameters() == flash.own_parameters() + 3.0 * 1024 * (4096 + 1024) + (4096.0 + 1024) * 256 + 256.0 * 151936);
  CHECK(domino.one_pass);
  // P-EAGLE: only the first of its layers reads the token in addition to the features.
  const ModelShape parallel = shape_of(R"({"architectures": ["PEagleDraftModel"], "draft_vocab_size": 32000, )" + kBlock + "}");
  CHECK(parallel.drafter == "p_eagle");
  CHECK(parallel.one_pass);
  CHECK(parallel.attention_inputs == Approx(1.2));
  // vLLM's key for a head with a separate vocabulary: 2,880 wide, 399.8M parameters by hand.
  const ModelShape truncated = shape_of(R"({"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 2880,
    "num_hidden_layers": 1, "num_attention_heads": 64, "num_key_value_heads": 8, "head_dim": 64, "intermediate_size": 17280,
    "vocab_size": 201088, "truncated_vocab_size": 64000})");
  CHECK(truncated.drafter == "eagle3");
  CHECK(truncated.own_parameters() ==
        2.0 * 2880 * (64 + 16) * 64 + 64.0 * 64 * 2880 + 3.0 * 2880 * 17280 + 3.0 * 2880 * 2880 + 64000.0 * 2880);
  // DFlash2: DFlash with tables of rank 256 that score candidates.
  const ModelShape second = shape_of(R"({"architectures": ["DFlash2DraftModel"], "dflash_config": {"block_size": 8,
    "conv_kernel_size": 2, "selector_rank": 256, "selector_top_k": 16, "target_layer_ids": [1, 9, 17, 25, 33]}, )" +
                                     kBlock + "}");
  CHECK(second.drafter == "dflash2");
  CHECK(second.one_pass);
  CHECK(second.longest_draft == 7);
  CHECK(second.unread.empty());  // keys that only drafters have are read
  CHECK(second.own_parameters() == flash.own_parameters() + 2.0 * 256 * 151936);
  // An unknown architecture is refused, and not taken for a model that runs once per token.
  CHECK(mistakes_of(R"({"architectures": ["NovelDraftModel"], )" + kBlock + "}")
            .find("\"NovelDraftModel\" is a drafter that is not known") != std::string::npos);
  CHECK(mistakes_of(R"({"speculators_model_type": "novel", "transformer_layer_config": {)" + kBlock + "}}")
            .find("is a drafter that is not known") != std::string::npos);
  // A target whose name contains a draft's word by chance.
  CHECK(shape_of(R"({"architectures": ["Eagle2_5_VLForConditionalGeneration"], )" + kBlock + "}").drafter.empty());
}

TEST_CASE("model files: the module in a target's own config", "[cost][models][model_files]") {
  const Folder folder(Files{{"config.json", R"({"model_type": "deepseek_v3", "first_k_dense_replace": 3, "hidden_size": 7168,
    "intermediate_size": 18432, "kv_lora_rank": 512, "moe_intermediate_size": 2048, "moe_layer_freq": 1, "n_routed_experts": 256,
    "n_shared_experts": 1, "num_attention_heads": 128, "num_experts_per_tok": 8, "num_hidden_layers": 61, "num_key_value_heads": 128,
    "num_nextn_predict_layers": 1, "q_lora_rank": 1536, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128,
    "vocab_size": 129280, "tie_word_embeddings": false, "quantization_config": {"quant_method": "fp8", "weight_block_size": [128, 128]}})"}});
  const ModelShape module = read(folder.path() + ":mtp");
  const ModelShape preset = tests::shape_of("deepseek-v3-mtp");
  CHECK(module.own_parameters() == preset.own_parameters());
  CHECK(module.weight_bytes() == preset.weight_bytes());
  CHECK(module.in_target_checkpoint);
  CHECK(read("deepseek-v3:mtp").name == "deepseek-v3-mtp");
  const auto price = [](const std::string& draft) {
    return tests::make_cost("roofline", fmt::format("{{hardware: h200-sxm, target: deepseek-v3, draft: {}}}", draft))
        ->pass(Role::draft, {1, 1, 100, 1})
        .total();
  };
  CHECK(price("mtp") == price("deepseek-v3-mtp"));
  std::string mistakes;
  const Folder without(Files{{"config.json", kSmall + "}"}});
  read(without.path() + ":mtp", &mistakes);
  CHECK(mistakes.find("has no MTP module") != std::string::npos);
}

TEST_CASE("model files: a head that was made for another target", "[cost][models][model_files]") {
  const ModelShape head =
      shape_of(R"({"architectures": ["DFlashDraftModel"], "block_size": 16, "dflash_config": {"target_layer_ids":
    [1, 9, 17, 25, 33]}, )" +
               kBlock + "}");
  CHECK(made_for_another(tests::shape_of("qwen3-8b"), head).empty());
  CHECK(made_for_another(tests::shape_of("llama-3.1-70b"), head).find("4096 wide, the target's are 8192") != std::string::npos);
  // The same width as its own target's, but another family. Mutant: only the width counts.
  CHECK(made_for_another(tests::shape_of("llama-3.1-8b"), head).find("a vocabulary of 151936, the target's has 128256") !=
        std::string::npos);
  CHECK(made_for_another(tests::shape_of("{preset: qwen3-8b, layers: 32}"), head).find("a target of 36 layers") !=
        std::string::npos);
}

TEST_CASE("JSON: Infinity and NaN as Python writes them", "[config][json]") {
  Diagnostics diagnostics;
  const config::Value value = config::parse_json(
      "{\"a\": [0.0, Infinity, -Infinity],\n \"b\": NaN, \"c\": \"Infinity, NaN\", \"d\": 5}", "f", diagnostics);
  REQUIRE(diagnostics.empty());
  CHECK(value.find("a")->items[1].text == "Infinity");
  CHECK(value.find("a")->items[2].text == "-Infinity");
  CHECK_FALSE(value.find("b")->quoted);
  CHECK(value.find("c")->text == "Infinity, NaN");  // mutant: words within texts are changed
  CHECK(value.find("d")->where.line == 2);
  CHECK(value.find("d")->where.column == 39);
}

}  // namespace specsim::model_files_test
