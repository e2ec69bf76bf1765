// A Hugging Face config.json as a model: the meaning of each architecture's keys, compared with the shapes of configs/models.
#include "sim/hardware/presets/hugging_face.h"
#include "sim/foundation/base/whole_file.h"
#include "tests/support/costs.h"

#include <catch2/catch.hpp>

#include <fmt/format.h>

#include <unistd.h>

#include <filesystem>
#include <string>
#include <vector>

namespace specsim::hugging_face_test {

using namespace specsim::cost;
using specsim::tests::all_messages;
using specsim::tests::make_cost;

namespace {

// A folder with a config.json, deleted at the end of its scope.
class ModelFolder {
 public:
  explicit ModelFolder(const std::string& json)
      : path_((std::filesystem::temp_directory_path() / fmt::format("specsim_hf_{}_{}", getpid(), ++count())).string()) {
    std::filesystem::create_directories(path_);
    write_whole_file(file(), json);
  }
  ~ModelFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  ModelFolder(const ModelFolder&) = delete;
  ModelFolder& operator=(const ModelFolder&) = delete;
  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] std::string file() const { return path_ + "/config.json"; }

 private:
  static int& count() {
    static int made = 0;
    return made;
  }
  std::string path_;
};

ModelShape shape_of_json(const std::string& json) {
  const ModelFolder folder(json);
  Diagnostics diagnostics;
  ModelShape shape = read_model(config::scalar(folder.file(), {"t", 1, 1}), "model", diagnostics);
  INFO(all_messages(diagnostics));
  REQUIRE(diagnostics.empty());
  return shape;
}

// The file's errors, without its folder.
std::string mistakes_of(const std::string& json) {
  const ModelFolder folder(json);
  Diagnostics diagnostics;
  read_model(config::scalar(folder.path(), {"t", 1, 1}), "model", diagnostics);
  std::string text = all_messages(diagnostics);
  for (std::size_t at = text.find(folder.path()); at != std::string::npos; at = text.find(folder.path()))
    text.replace(at, folder.path().size() + 1, "");
  return text;
}

void check_same(const ModelShape& a, const ModelShape& b) {
  for (const auto& [own, other] : {std::pair{a.layers, b.layers},
                                   {a.hidden, b.hidden},
                                   {a.heads, b.heads},
                                   {a.kv_heads, b.kv_heads},
                                   {a.head_dim, b.head_dim},
                                   {a.vocab, b.vocab},
                                   {a.experts, b.experts},
                                   {a.experts_per_token, b.experts_per_token},
                                   {a.expert_ffn, b.expert_ffn},
                                   {a.shared_ffn, b.shared_ffn},
                                   {a.dense_layers, b.dense_layers},
                                   {a.residual_streams, b.residual_streams},
                                   {a.fused_inputs, b.fused_inputs},
                                   {a.attention_inputs, b.attention_inputs},
                                   {a.weight_bits, b.weight_bits},
                                   {a.expert_bits, b.expert_bits},
                                   {a.kv_bits, b.kv_bits}})
    CHECK(own == other);
  for (const auto& [own, other] : {std::pair{a.query_rank, b.query_rank},
                                   {a.value_dim, b.value_dim},
                                   {a.kv_window, b.kv_window},
                                   {a.window_layers, b.window_layers},
                                   {a.global_head_dim, b.global_head_dim},
                                   {a.global_kv_heads, b.global_kv_heads}})
    CHECK(own == other);
  REQUIRE(a.latent.has_value() == b.latent.has_value());
  if (a.latent) {
    CHECK(a.latent->width == b.latent->width);
    CHECK(a.latent->rope_dim == b.latent->rope_dim);
  }
  REQUIRE(a.compressed.has_value() == b.compressed.has_value());
  if (a.compressed) {
    CHECK(a.compressed->picked_layers == b.compressed->picked_layers);
    CHECK(a.compressed->picked_tokens == b.compressed->picked_tokens);
    CHECK(a.compressed->heavy_layers == b.compressed->heavy_layers);
    CHECK(a.compressed->heavy_tokens == b.compressed->heavy_tokens);
  }
  REQUIRE(a.squeezed_output.has_value() == b.squeezed_output.has_value());
  if (a.squeezed_output) {
    CHECK(a.squeezed_output->groups == b.squeezed_output->groups);
    CHECK(a.squeezed_output->rank == b.squeezed_output->rank);
  }
  REQUIRE(a.indexer.has_value() == b.indexer.has_value());
  if (a.indexer) {
    CHECK(a.indexer->topk == b.indexer->topk);
    CHECK(a.indexer->heads == b.indexer->heads);
    CHECK(a.indexer->head_dim == b.indexer->head_dim);
    CHECK(a.indexer->layers == b.indexer->layers);
  }
  CHECK(a.gated == b.gated);
  CHECK(a.tied_embeddings == b.tied_embeddings);
  CHECK(a.chunked == b.chunked);
  CHECK(a.one_vector == b.one_vector);
  CHECK(a.global_one_value == b.global_one_value);
  CHECK(a.shares_lm_head == b.shares_lm_head);
  CHECK(a.shares_embeddings == b.shares_embeddings);
  CHECK(a.product_type == b.product_type);
  CHECK(a.expert_type == b.expert_type);
  CHECK(a.own_parameters() == b.own_parameters());
}

const std::string kLlama =
    R"({"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 4096, "intermediate_size": 14336,
 "num_attention_heads": 32, "num_hidden_layers": 32, "num_key_value_heads": 8, "vocab_size": 128256, "hidden_act": "silu",
 "rope_scaling": {"factor": 8.0, "rope_type": "llama3"}, "tie_word_embeddings": false, "torch_dtype": "bfloat16")";

std::string quantised(const std::string& config) { return kLlama + ", \"quantization_config\": " + config + "}"; }

}  // namespace

TEST_CASE("a config.json is the shape that configs/models has", "[cost][models][hugging_face]") {
  struct Row {
    const char* name;
    std::string json;
  };
  const std::vector<Row> rows = {
      {"llama-3.1-8b", kLlama + "}"},
      {"mixtral-8x7b", R"({"model_type": "mixtral", "hidden_size": 4096, "intermediate_size": 14336, "num_attention_heads": 32,
        "num_hidden_layers": 32, "num_key_value_heads": 8, "num_local_experts": 8, "num_experts_per_tok": 2, "vocab_size": 32000,
        "sliding_window": null, "max_position_embeddings": 32768})"},
      {"qwen2.5-7b", R"({"model_type": "qwen2", "hidden_size": 3584, "intermediate_size": 18944, "num_attention_heads": 28,
        "num_hidden_layers": 28, "num_key_value_heads": 4, "vocab_size": 152064, "sliding_window": 131072, "max_window_layers": 28,
        "use_sliding_window": false, "max_position_embeddings": 131072, "tie_word_embeddings": false})"},
      {"qwen3-235b-a22b", R"({"model_type": "qwen3_moe", "decoder_sparse_step": 1, "head_dim": 128, "hidden_size": 4096,
        "intermediate_size": 12288, "mlp_only_layers": [], "moe_intermediate_size": 1536, "num_attention_heads": 64,
        "num_experts": 128, "num_experts_per_tok": 8, "num_hidden_layers": 94, "num_key_value_heads": 4, "sliding_window": null,
        "tie_word_embeddings": false, "vocab_size": 151936})"},
      {"gpt-oss-20b", R"({"model_type": "gpt_oss", "head_dim": 64, "hidden_size": 2880, "intermediate_size": 2880,
        "max_position_embeddings": 131072, "num_attention_heads": 64, "num_experts_per_tok": 4, "experts_per_token": 4,
        "num_hidden_layers": 24, "num_key_value_heads": 8, "num_local_experts": 32, "sliding_window": 128,
        "tie_word_embeddings": false, "vocab_size": 201088, "quantization_config": {"quant_method": "mxfp4",
        "modules_to_not_convert": ["model.layers.*.self_attn", "lm_head"]}})"},
      {"llama-4-maverick", R"({"model_type": "llama4", "architectures": ["Llama4ForConditionalGeneration"], "vision_config": {
        "hidden_size": 1408}, "tie_word_embeddings": false, "text_config": {"model_type": "llama4_text", "attention_chunk_size": 8192,
        "head_dim": 128, "hidden_size": 5120, "interleave_moe_layer_step": 2, "intermediate_size": 8192,
        "intermediate_size_mlp": 16384, "max_position_embeddings": 1048576, "no_rope_layers": [], "num_attention_heads": 40,
        "num_experts_per_tok": 1, "num_hidden_layers": 48, "num_key_value_heads": 8, "num_local_experts": 128,
        "vocab_size": 202048}})"},
      {"llama-4-scout", R"({"model_type": "llama4", "text_config": {"model_type": "llama4_text", "attention_chunk_size": 8192,
        "head_dim": 128, "hidden_size": 5120, "interleave_moe_layer_step": 1, "intermediate_size": 8192,
        "intermediate_size_mlp": 16384, "max_position_embeddings": 10485760, "no_rope_layer_interval": 4,
        "num_attention_heads": 40, "num_experts_per_tok": 1, "num_hidden_layers": 48, "num_key_value_heads": 8,
        "num_local_experts": 16, "vocab_size": 202048}})"},
      {"deepseek-v3",
       R"({"model_type": "deepseek_v3", "first_k_dense_replace": 3, "hidden_size": 7168, "intermediate_size": 18432,
        "kv_lora_rank": 512, "moe_intermediate_size": 2048, "moe_layer_freq": 1, "n_routed_experts": 256, "n_shared_experts": 1,
        "num_attention_heads": 128, "num_experts_per_tok": 8, "num_hidden_layers": 61, "num_key_value_heads": 128,
        "num_nextn_predict_layers": 1, "q_lora_rank": 1536, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128,
        "vocab_size": 129280, "tie_word_embeddings": false, "quantization_config": {"quant_method": "fp8", "fmt": "e4m3",
        "activation_scheme": "dynamic", "weight_block_size": [128, 128]}})"},
      {"deepseek-v3.2",
       R"({"model_type": "deepseek_v32", "first_k_dense_replace": 3, "hidden_size": 7168, "index_head_dim": 128,
        "index_n_heads": 64, "index_topk": 2048, "intermediate_size": 18432, "kv_lora_rank": 512, "moe_intermediate_size": 2048,
        "moe_layer_freq": 1, "n_routed_experts": 256, "n_shared_experts": 1, "num_attention_heads": 128,
        "num_experts_per_tok": 8, "num_hidden_layers": 61, "num_key_value_heads": 128, "num_nextn_predict_layers": 1,
        "q_lora_rank": 1536, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128, "vocab_size": 129280,
        "tie_word_embeddings": false, "quantization_config": {"quant_method": "fp8", "scale_fmt": "ue8m0",
        "activation_scheme": "dynamic", "weight_block_size": [128, 128]}})"},
      {"deepseek-v4-flash",
       R"({"model_type": "deepseek_v4", "expert_dtype": "fp4", "hc_mult": 4, "head_dim": 512, "hidden_size": 4096,
        "index_head_dim": 128, "index_n_heads": 64, "index_topk": 512, "moe_intermediate_size": 2048, "n_routed_experts": 256,
        "n_shared_experts": 1, "num_attention_heads": 64, "num_experts_per_tok": 6, "num_hidden_layers": 43,
        "num_key_value_heads": 1, "o_groups": 8, "o_lora_rank": 1024, "q_lora_rank": 1024, "qk_rope_head_dim": 64,
        "sliding_window": 128, "tie_word_embeddings": false, "vocab_size": 129280, "quantization_config": {"quant_method": "fp8",
        "scale_fmt": "ue8m0", "weight_block_size": [128, 128]}, "compress_ratios": [0, 0, 4, 128, 4, 128, 4, 128, 4, 128, 4, 128,
        4, 128, 4, 128, 4, 128, 4, 128, 4, 128, 4, 128, 4, 128, 4, 128, 4, 128, 4, 128, 4, 128, 4, 128, 4, 128, 4, 128, 4, 128, 4,
        0]})"},
      {"glm-5", R"({"model_type": "glm_moe_dsa", "first_k_dense_replace": 3, "head_dim": 64, "hidden_size": 6144,
        "index_head_dim": 128, "index_n_heads": 32, "index_topk": 2048, "intermediate_size": 12288, "kv_lora_rank": 512,
        "moe_intermediate_size": 2048, "moe_layer_freq": 1, "n_routed_experts": 256, "n_shared_experts": 1,
        "num_attention_heads": 64, "num_experts_per_tok": 8, "num_hidden_layers": 78, "num_key_value_heads": 64,
        "q_lora_rank": 2048, "qk_head_dim": 256, "qk_nope_head_dim": 192, "qk_rope_head_dim": 64, "v_head_dim": 256,
        "vocab_size": 154880, "tie_word_embeddings": false})"},
      {"kimi-k2.5", R"({"model_type": "kimi_k25", "text_config": {"model_type": "kimi_k2", "first_k_dense_replace": 1,
        "hidden_size": 7168, "intermediate_size": 18432, "is_encoder_decoder": false, "kv_lora_rank": 512,
        "moe_intermediate_size": 2048, "moe_layer_freq": 1, "n_routed_experts": 384, "n_shared_experts": 1,
        "num_attention_heads": 64, "num_experts_per_tok": 8, "num_hidden_layers": 61, "num_key_value_heads": 64,
        "q_lora_rank": 1536, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128, "vocab_size": 163840,
        "quantization_config": {"quant_method": "compressed-tensors", "format": "pack-quantized", "config_groups": {"group_0": {
        "input_activations": null, "weights": {"group_size": 32, "num_bits": 4, "type": "int"}}}, "kv_cache_scheme": null,
        "ignore": ["lm_head", "re:.*self_attn.*", "re:.*shared_experts.*", "re:.*mlp\\.(gate|up|gate_up|down)_proj.*"]}},
        "tie_word_embeddings": false})"},
      {"minimax-m2", R"({"model_type": "minimax_m2", "head_dim": 128, "hidden_size": 3072, "intermediate_size": 1536,
        "max_position_embeddings": 196608, "mtp_transformer_layers": 1, "num_attention_heads": 48, "num_experts_per_tok": 8,
        "num_hidden_layers": 62, "num_key_value_heads": 8, "num_local_experts": 256, "num_mtp_modules": 3,
        "shared_intermediate_size": 0, "tie_word_embeddings": false, "vocab_size": 200064, "quantization_config": {
        "quant_method": "fp8", "activation_scheme": "dynamic", "weight_block_size": [128, 128],
        "modules_to_not_convert": ["gate", "e_score_correction_bias", "lm_head"]}})"},
      {"deepseek-v2-lite", R"({"model_type": "deepseek_v2", "first_k_dense_replace": 1, "hidden_size": 2048,
        "intermediate_size": 10944, "kv_lora_rank": 512, "moe_intermediate_size": 1408, "n_routed_experts": 64,
        "n_shared_experts": 2, "num_attention_heads": 16, "num_experts_per_tok": 6, "num_hidden_layers": 27,
        "num_key_value_heads": 16, "q_lora_rank": null, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128,
        "vocab_size": 102400})"},
      {"gemma-3-27b", R"({"model_type": "gemma3", "text_config": {"model_type": "gemma3_text", "head_dim": 128,
        "hidden_size": 5376, "intermediate_size": 21504, "num_attention_heads": 32, "num_hidden_layers": 62,
        "num_key_value_heads": 16, "sliding_window": 1024, "sliding_window_pattern": 6, "vocab_size": 262208}})"},
      {"gemma-4-26b-a4b", R"({"model_type": "gemma4", "tie_word_embeddings": true, "text_config": {"model_type": "gemma4_text",
        "attention_k_eq_v": true, "enable_moe_block": true, "moe_intermediate_size": 704, "global_head_dim": 512, "head_dim": 256,
        "hidden_size": 2816, "hidden_size_per_layer_input": 0, "intermediate_size": 2112, "sliding_window_pattern": 6,
        "max_position_embeddings": 262144, "num_attention_heads": 16, "num_experts": 128, "num_global_key_value_heads": 2,
        "num_hidden_layers": 30, "num_key_value_heads": 8, "num_kv_shared_layers": 0, "sliding_window": 1024,
        "top_k_experts": 8, "vocab_size": 262144}})"},
      {"phi-4", R"({"model_type": "phi3", "hidden_size": 5120, "intermediate_size": 17920, "num_attention_heads": 40,
        "num_hidden_layers": 40, "num_key_value_heads": 10, "sliding_window": null, "tie_word_embeddings": false,
        "vocab_size": 100352})"},
      {"opt-13b", R"({"model_type": "opt", "hidden_size": 5120, "ffn_dim": 20480, "num_attention_heads": 40,
        "num_hidden_layers": 40, "vocab_size": 50272})"},
      {"eagle3-llama-3.1-8b", R"({"architectures": ["LlamaForCausalLMEagle3"], "model_type": "llama", "hidden_size": 4096,
        "intermediate_size": 14336, "num_attention_heads": 32, "num_hidden_layers": 1, "num_key_value_heads": 8,
        "vocab_size": 128256, "draft_vocab_size": 32000})"},
      {"eagle3-gemma-3-27b", R"({"architectures": ["LlamaForCausalLMEagle3"], "model_type": "llama", "head_dim": 128,
        "hidden_size": 5376, "intermediate_size": 21504, "num_attention_heads": 32, "num_hidden_layers": 1,
        "num_key_value_heads": 16, "sliding_window": 512, "use_sliding_window": false, "vocab_size": 262208,
        "draft_vocab_size": 262208, "eagle_config": {"eagle_aux_hidden_state_layer_ids": [1, 29, 61]},
        "reuse_target_lm_head": true})"}};
  for (const Row& row : rows) {
    INFO(row.name);
    const ModelShape read = shape_of_json(row.json);
    check_same(read, tests::shape_of(row.name));
    CHECK(read.assumed.empty());
  }
  // GLM-5.2's list of indexers, and the rule that gives it.
  std::string types;
  for (int layer = 0; layer < 78; ++layer)
    types += fmt::format("{}\"{}\"", layer > 0 ? ", " : "", layer < 3 || layer % 4 == 2 ? "full" : "shared");
  const std::string glm =
      R"({"model_type": "glm_moe_dsa", "first_k_dense_replace": 3, "hidden_size": 6144, "index_head_dim": 128, "index_n_heads": 32,
      "index_topk": 2048, "intermediate_size": 12288, "kv_lora_rank": 512, "moe_intermediate_size": 2048, "n_routed_experts": 256,
      "n_shared_experts": 1, "num_attention_heads": 64, "num_experts_per_tok": 8, "num_hidden_layers": 78, "q_lora_rank": 2048,
      "num_key_value_heads": 64, "qk_nope_head_dim": 192, "qk_rope_head_dim": 64, "v_head_dim": 256, "vocab_size": 154880, )";
  check_same(shape_of_json(glm + "\"indexer_types\": [" + types + "]}"), tests::shape_of("glm-5.2"));
  check_same(shape_of_json(glm + "\"index_topk_freq\": 4, \"index_skip_topk_offset\": 3}"), tests::shape_of("glm-5.2"));
  // EAGLE's first heads are plain models of one layer: their assumptions are reported.
  const ModelShape head = shape_of_json(
      R"({"model_type": "llama", "hidden_size": 4096, "intermediate_size": 14336, "num_attention_heads": 32,
      "num_hidden_layers": 1, "num_key_value_heads": 8, "vocab_size": 128256})");
  check_same(head, tests::shape_of("eagle-head-8b"));
  REQUIRE(head.assumed.size() == 1);
  CHECK(head.assumed[0].find("EAGLE head") != std::string::npos);
  // Layers listed one by one count as the pattern does.
  std::string layers;
  for (int layer = 0; layer < 62; ++layer)
    layers += fmt::format("{}\"{}_attention\"", layer > 0 ? ", " : "", layer % 6 == 5 ? "full" : "sliding");
  check_same(shape_of_json(fmt::format(
                 R"({{"model_type": "gemma3_text", "head_dim": 128, "hidden_size": 5376, "intermediate_size": 21504,
                 "num_attention_heads": 32, "num_hidden_layers": 62, "num_key_value_heads": 16, "sliding_window": 1024,
                 "vocab_size": 262208, "layer_types": [{}]}})",
                 layers)),
             tests::shape_of("gemma-3-27b"));
}

TEST_CASE("config.json: the context that servers derive from it", "[cost][models][hugging_face]") {
  const auto context = [](const std::string& more) {
    return shape_of_json(R"({"model_type": "llama", "hidden_size": 4096, "intermediate_size": 14336, "num_attention_heads": 32,
                         "num_hidden_layers": 32, "num_key_value_heads": 8, "vocab_size": 128256, )" +
                         more + "}")
        .context;
  };
  CHECK_FALSE(shape_of_json(kLlama + "}").context.has_value());
  CHECK(context(R"("max_position_embeddings": 131072)") == 131072.0);
  CHECK(context(R"("n_positions": 2048)") == 2048.0);
  // vLLM takes the shortest of the keys. Mutant: the first.
  CHECK(context(R"("max_position_embeddings": 8192, "seq_length": 4096)") == 4096.0);
  CHECK_FALSE(context(R"("model_max_length": 1000000000000000019884624838656)").has_value());
  // Scaled embeddings: YaRN's length is the original one times the factor; Llama 3's is already in the file. Mutants: no factor;
  // the factor of all.
  CHECK(context(R"("max_position_embeddings": 40960, "rope_scaling": {"rope_type": "yarn", "factor": 4.0,
                   "original_max_position_embeddings": 32768})") == 131072.0);
  CHECK(context(R"("max_position_embeddings": 4096, "rope_scaling": {"type": "linear", "factor": 2.0})") == 8192.0);
  CHECK(context(R"("max_position_embeddings": 131072, "rope_scaling": {"rope_type": "llama3", "factor": 8.0,
                   "original_max_position_embeddings": 8192})") == 131072.0);
  CHECK(shape_of_json(R"({"model_type": "gemma3", "text_config": {"model_type": "gemma3_text", "head_dim": 128,
        "hidden_size": 5376, "intermediate_size": 21504, "num_attention_heads": 32, "num_hidden_layers": 62,
        "num_key_value_heads": 16, "sliding_window": 1024, "sliding_window_pattern": 6, "vocab_size": 262208,
        "max_position_embeddings": 131072, "rope_scaling": {"rope_type": "linear", "factor": 8.0}}})")
            .context == tests::shape_of("gemma-3-27b").context);
  CHECK(shape_of_json(kLlama + "}").architecture == "llama");
}

TEST_CASE("presets: the context of a model, of its aliases, and the user's own", "[cost][models]") {
  CHECK(tests::shape_of("llama-3.3-70b").context == 131072.0);  // mutant: aliases have none
  CHECK(tests::shape_of("llama-3-70b").context == 8192.0);
  CHECK(tests::shape_of("{preset: llama-3-70b, tensor_parallel: 4}").context == 8192.0);
  CHECK(tests::shape_of("{preset: llama-3-70b, context: 4096}").context == 4096.0);
  CHECK_FALSE(tests::shape_of("{preset: qwen3-8b, context: 0}").context.has_value());
  CHECK_FALSE(tests::shape_of("chinchilla-70b").context.has_value());
}

TEST_CASE("config.json: a file, a folder, and a preset with changes", "[cost][models][hugging_face]") {
  const ModelFolder folder(kLlama + "}");
  const double expected = tests::shape_of("llama-3.1-8b").total_parameters();
  const std::string name = std::filesystem::path(folder.path()).filename().string();
  CHECK(tests::shape_of(folder.path()).total_parameters() == expected);
  CHECK(tests::shape_of(folder.file()).total_parameters() == expected);
  CHECK(tests::shape_of(folder.file()).name == name);
  const ModelShape changed = tests::shape_of(fmt::format("{{preset: {}, dtype: fp8, tensor_parallel: 2}}", folder.file()));
  CHECK(changed.total_parameters() == expected);
  CHECK(changed.product_type == "fp8");
  CHECK(changed.tensor_parallel == 2);
  CHECK(tests::shape_of(fmt::format("{{model: {}, dtype: fp8}}", folder.path())).product_type == "fp8");
  const auto cost =
      make_cost("roofline", fmt::format("{{hardware: h100-sxm, target: {}, draft: {}}}", folder.file(), folder.path()));
  CHECK(cost->pass(Role::target, {1, 1, 100, 1}).total() ==
        make_cost("roofline", "{hardware: h100-sxm, target: llama-3.1-8b, draft: llama-3.1-8b}")
            ->pass(Role::target, {1, 1, 100, 1})
            .total());
  CHECK(cost->warnings().empty());
}

TEST_CASE("config.json: how a checkpoint is quantised", "[cost][models][hugging_face]") {
  struct Row {
    const char* config;
    const char* type;
    double bits;
    double kv_bits;
  };
  const std::vector<Row> rows = {
      {R"({"quant_method": "awq", "bits": 4, "group_size": 128})", "int4_wo", 4.125, 16},
      {R"({"quant_method": "gptq", "bits": 4, "group_size": 32})", "int4_wo", 4.5, 16},
      {R"({"quant_method": "gptq", "bits": 8, "desc_act": false})", "int8_wo", 8, 16},
      {R"({"quant_method": "fp8", "activation_scheme": "static"})", "fp8", 8, 16},
      {R"({"quant_method": "fp8", "weight_block_size": [128, 128]})", "fp8_block", 8, 16},
      {R"({"quant_method": "bitsandbytes", "load_in_4bit": true})", "int4_wo", 4.125, 16},
      {R"({"quant_method": "compressed-tensors", "config_groups": {"group_0": {"weights": {"num_bits": 8, "type": "float"},
        "input_activations": {"num_bits": 8, "type": "float"}}}, "kv_cache_scheme": {"num_bits": 8, "type": "float"}})",
       "fp8", 8, 8},
      {R"({"quant_method": "compressed-tensors", "config_groups": {"group_0": {"weights": {"num_bits": 8, "type": "int"},
        "input_activations": {"num_bits": 8, "type": "int"}}}})",
       "sq", 8, 16},
      {R"({"quant_method": "compressed-tensors", "config_groups": {"group_0": {"weights": {"num_bits": 4, "type": "int"},
        "input_activations": null}}})",
       "int4_wo", 4.125, 16},
      {R"({"quant_method": "modelopt", "quant_algo": "NVFP4", "kv_cache_quant_algo": "FP8"})", "nvfp4", 4.5, 8},
      {R"({"quant_method": "modelopt", "quantization": {"quant_algo": "FP8", "kv_cache_quant_algo": null}})", "fp8", 8, 16}};
  for (const Row& row : rows) {
    INFO(row.config);
    const ModelShape shape = shape_of_json(quantised(row.config));
    CHECK(shape.product_type == row.type);
    CHECK(shape.weight_bits == row.bits);
    CHECK(shape.kv_bits == row.kv_bits);
    // Kernels of bitsandbytes' own types are not measured, which is reported.
    CHECK(shape.assumed.empty() == (std::string(row.config).find("bitsandbytes") == std::string::npos));
  }
  const ModelShape three = shape_of_json(quantised(R"({"quant_method": "gptq", "bits": 3})"));
  REQUIRE(three.assumed.size() == 1);
  CHECK(three.weight_bits == 3);
  CHECK(three.assumed[0].find("weights of 3 bits are estimated by their bytes") != std::string::npos);
  const ModelShape odd = shape_of_json(quantised(R"({"quant_method": "quip"})"));
  CHECK(odd.weight_bits == 16);
  REQUIRE(odd.assumed.size() == 1);
  CHECK(odd.assumed[0].find("quantization_config quip is not known") != std::string::npos);
}

TEST_CASE("config.json: unknown keys are reported, missing ones are refused at their place", "[cost][models][hugging_face]") {
  const ModelShape unknown = shape_of_json(
      R"({"model_type": "novel", "hidden_size": 512, "intermediate_size": 1024, "num_attention_heads": 8, "num_hidden_layers": 4,
      "vocab_size": 1000})");
  REQUIRE(unknown.assumed.size() == 2);
  CHECK(unknown.assumed[0].find("model_type novel is not known") != std::string::npos);
  CHECK(unknown.assumed[1].find("gate and up") != std::string::npos);
  CHECK(unknown.kv_heads == 8);
  // A multimodal file of Gemma 3 without transformers' default keys.
  const ModelShape defaults = shape_of_json(
      R"({"model_type": "gemma3", "text_config": {"model_type": "gemma3_text", "hidden_size": 2560, "intermediate_size": 10240,
      "num_hidden_layers": 34, "sliding_window": 1024}})");
  CHECK(defaults.kv_heads == 4);
  CHECK(defaults.head_dim == 256);
  CHECK(defaults.window_layers == 29);
  CHECK(defaults.assumed.size() == 4);
  const ModelShape hybrid = shape_of_json(
      R"({"model_type": "qwen3_next", "hidden_size": 2048, "intermediate_size": 5120, "num_attention_heads": 16, "head_dim": 256,
      "num_hidden_layers": 48, "num_key_value_heads": 2, "num_experts": 512, "num_experts_per_tok": 10, "moe_intermediate_size": 512,
      "shared_expert_intermediate_size": 512, "full_attention_interval": 4, "vocab_size": 151936})");
  CHECK(hybrid.linear_layers == 36);
  CHECK(hybrid.kv_bytes_per_token() == 12.0 * 2 * 2 * 256 * 2);
  CHECK(hybrid.assumed.back() == "36 layers without full attention are estimated with its projections and no cache");
  // Qwen3.5 and later files describe their linear attention in the language model's part.
  const ModelShape delta = shape_of_json(
      R"({"model_type": "qwen3_5", "text_config": {"model_type": "qwen3_5_text", "attn_output_gate": true, "hidden_size": 5120,
      "intermediate_size": 17408, "num_attention_heads": 24, "num_key_value_heads": 4, "head_dim": 256, "num_hidden_layers": 64,
      "full_attention_interval": 4, "linear_conv_kernel_dim": 4, "linear_key_head_dim": 128, "linear_num_key_heads": 16,
      "linear_num_value_heads": 48, "linear_value_head_dim": 128, "mamba_ssm_dtype": "float32", "tie_word_embeddings": false,
      "vocab_size": 248320}})");
  const ModelShape preset = specsim::tests::shape_of("qwen3.6-27b");
  CHECK(delta.assumed.empty());
  CHECK(delta.total_parameters() == preset.total_parameters());
  CHECK(delta.recurrent_bytes() == preset.recurrent_bytes());
  CHECK(delta.kv_bytes_per_token() == preset.kv_bytes_per_token());
  const ModelShape blocks = shape_of_json(
      R"({"model_type": "minimax_m3", "hidden_size": 512, "intermediate_size": 1024, "num_attention_heads": 8, "head_dim": 64,
      "num_hidden_layers": 4, "num_key_value_heads": 2, "vocab_size": 1000, "sparse_attention_config": {"sparse_topk_blocks": 16}})");
  REQUIRE(blocks.assumed.size() == 1);
  CHECK(blocks.assumed[0].find("sparse attention by blocks") == 0);
  const ModelShape lightning = shape_of_json(
      R"({"model_type": "minimax_text_01", "hidden_size": 512, "intermediate_size": 1024, "num_attention_heads": 8,
      "num_hidden_layers": 4, "num_key_value_heads": 2, "attn_type_list": [0, 0, 0, 1], "vocab_size": 1000})");
  CHECK(lightning.linear_layers == 3);

  CHECK(mistakes_of("{\n \"model_type\": \"llama\",\n \"hidden_size\": 512, \"num_hidden_layers\": 4, \"vocab_size\": 9,\n"
                    " \"intermediate_size\": 9\n}") ==
        "config.json:1:1: config.json lacks \"num_attention_heads\", allowed: an integer of at least 1");
  CHECK(mistakes_of("{\"model_type\": \"llama\",\n \"hidden_size\": \"wide\", \"num_hidden_layers\": 0}") ==
        "config.json:2:17: hidden_size is \"wide\", allowed: an integer in [1, 10000000]\n"
        "config.json:2:46: num_hidden_layers is 0, allowed: an integer in [1, 100000]");
  CHECK(mistakes_of("{\"is_encoder_decoder\": true}") ==
        "config.json:1:24: is_encoder_decoder is true, allowed: a decoder-only model");
  CHECK(mistakes_of("{\"medusa_num_heads\": 4}").find("config.json:1:22: the file of these heads does not give") == 0);
  CHECK(mistakes_of("{\"kv_source_layers\": [0]}").find("config.json:1:22: kv_source_layers has layers that read the cache") ==
        0);
  const auto small = [](const char* more) {
    return std::string(R"({"model_type": "llama", "hidden_size": 64, "intermediate_size": 64, "num_attention_heads": 4,
      "num_hidden_layers": 4, "vocab_size": 1000, )") +
           more + "}";
  };
  // Mutants: any word except true is false; every type that begins with float8 is known.
  CHECK(mistakes_of(small(R"("tie_word_embeddings": "yes")")).find("tie_word_embeddings is \"yes\", allowed: true, false") !=
        std::string::npos);
  CHECK_FALSE(shape_of_json(small(R"("tie_word_embeddings": null)")).tied_embeddings);
  for (const char* type : {"float8", "float8_e4m3fn"}) {
    const ModelShape wide = shape_of_json(small(fmt::format(R"("torch_dtype": "{}")", type).c_str()));
    REQUIRE(wide.assumed.size() == 1);
    CHECK(wide.assumed[0].find(fmt::format("torch_dtype \"{}\" is not known", type)) == 0);
  }
  CHECK(mistakes_of(kLlama + ", \"compress_ratios\": [0, 4, 128]}")
            .find("compress_ratios has 3 layers and 2 ratios above 0, allowed: at least the 32 layers") != std::string::npos);
  CHECK(mistakes_of(kLlama + ", \"full_attention_interval\": 0}")
            .find("full_attention_interval is 0, allowed: an integer in [1, 100000]") != std::string::npos);
  const std::string mixture = kLlama + ", \"num_experts\": 8, \"num_experts_per_tok\": 2, \"moe_intermediate_size\": 64, ";
  CHECK(
      mistakes_of(mixture + "\"decoder_sparse_step\": 0}").find("decoder_sparse_step is 0, allowed: an integer in [1, 100000]") !=
      std::string::npos);
  CHECK(mistakes_of(mixture + "\"mlp_only_layers\": [0, 99]}").find("mlp_only_layers has \"99\", allowed: layers from 0 to 31") !=
        std::string::npos);
  CHECK(mistakes_of("[1]") == "config.json:1:1: no JSON object, allowed: a model's config.json");
  CHECK(mistakes_of("{\"text_config\": 5}") == "config.json:1:17: the language model's part is 5, allowed: a map");
  CHECK(mistakes_of("{\"hidden_size\": 5,}").find("config.json:1:") == 0);
  CHECK(mistakes_of(quantised("5")).find("quantization_config is 5, allowed: a map or null") != std::string::npos);
  CHECK(mistakes_of(kLlama + ", \"layer_types\": [\"full_attention\"]}").find("layer_types has 1 layers, allowed: 32") !=
        std::string::npos);
  std::string mistakes;
  make_cost("roofline", "{hardware: h100-sxm, target: no/such/config.json, draft: none}", &mistakes);
  CHECK(mistakes.find("t:1:30: model no/such/config.json: cannot be read") == 0);
  make_cost("roofline",
            fmt::format("{{hardware: h100-sxm, target: {}, draft: none}}", std::filesystem::temp_directory_path().string()),
            &mistakes);
  CHECK(mistakes.find("the folder holds no config.json and no GGUF file, allowed: a folder with one of them") !=
        std::string::npos);
}

// Configs of many kinds, for the mutations below.
const std::vector<std::string>& known_configs() {
  static const std::vector<std::string> configs = {
      kLlama + "}",
      R"({"model_type": "qwen3_moe", "decoder_sparse_step": 1, "head_dim": 128, "hidden_size": 2048, "intermediate_size": 6144,
      "mlp_only_layers": [], "moe_intermediate_size": 768, "num_attention_heads": 32, "num_experts": 128, "num_experts_per_tok": 8,
      "num_hidden_layers": 48, "num_key_value_heads": 4, "tie_word_embeddings": false, "vocab_size": 151936})",
      R"({"model_type": "deepseek_v3", "first_k_dense_replace": 3, "hidden_size": 7168, "intermediate_size": 18432,
      "kv_lora_rank": 512, "moe_intermediate_size": 2048, "n_routed_experts": 256, "n_shared_experts": 1,
      "num_attention_heads": 128, "num_experts_per_tok": 8, "num_hidden_layers": 61, "num_key_value_heads": 128,
      "q_lora_rank": 1536, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128, "vocab_size": 129280})",
      R"({"model_type": "qwen3_5", "text_config": {"model_type": "qwen3_5_text", "attn_output_gate": true, "hidden_size": 5120,
      "intermediate_size": 17408, "num_attention_heads": 24, "num_key_value_heads": 4, "head_dim": 256, "num_hidden_layers": 64,
      "full_attention_interval": 4, "linear_conv_kernel_dim": 4, "linear_key_head_dim": 128, "linear_num_key_heads": 16,
      "linear_num_value_heads": 48, "linear_value_head_dim": 128, "tie_word_embeddings": false, "vocab_size": 248320}})",
      R"({"model_type": "nemotron_h", "hidden_size": 2688, "num_attention_heads": 32, "num_key_value_heads": 2, "head_dim": 128,
      "num_hidden_layers": 8, "hybrid_override_pattern": "MEM*EMEM", "intermediate_size": 1856, "n_routed_experts": 128,
      "num_experts_per_tok": 6, "moe_intermediate_size": 1856, "mamba_num_heads": 64, "mamba_head_dim": 64, "n_groups": 8,
      "ssm_state_size": 128, "conv_kernel": 4, "vocab_size": 131072})",
      R"({"model_type": "gemma3_text", "head_dim": 128, "hidden_size": 5376, "intermediate_size": 21504,
      "num_attention_heads": 32, "num_hidden_layers": 62, "num_key_value_heads": 16, "sliding_window": 1024,
      "sliding_window_pattern": 6, "vocab_size": 262144})"};
  return configs;
}

// The config with one more key in its language part, or at the top.
std::string with_key(std::string config, const std::string& key, const std::string& value) {
  const std::size_t part = config.find("\"text_config\": {");
  const std::size_t at = part == std::string::npos ? config.find('{') + 1 : config.find('{', part) + 1;
  return config.insert(at, fmt::format("\"{}\": {}, ", key, value));
}

TEST_CASE("a key about layers that is not understood is refused, whatever it is called", "[cost][models][hugging_face]") {
  for (const std::string& config : known_configs()) {
    INFO(config);
    const double layers = shape_of_json(config).layers;
    std::string list;
    for (int i = 0; i < static_cast<int>(layers); ++i) list += fmt::format("{}{}", i > 0 ? ", " : "", i % 3);
    for (const char* key : {"attention_layer_kinds", "ffn_pattern", "novel_period", "skip_interval", "block_type_list"}) {
      INFO(key);
      CHECK(mistakes_of(with_key(config, key, "[" + list + "]")).find(fmt::format("{} is a list, a key about layers", key)) !=
            std::string::npos);
      CHECK(mistakes_of(with_key(config, key, "7")).find(fmt::format("{} is 7, a key about layers", key)) != std::string::npos);
      CHECK(mistakes_of(with_key(config, key, "null")).empty());
      CHECK(mistakes_of(with_key(config, key, "[]")).empty());
    }
    // A list with one entry per layer is a list by layer, whatever its name.
    CHECK(mistakes_of(with_key(config, "novel_widths", "[" + list + "]")).find("novel_widths is a list") != std::string::npos);
    // Keys without a relation to layers change nothing.
    check_same(shape_of_json(with_key(config, "novel_switch", "true")), shape_of_json(config));
  }
}

TEST_CASE("quantisation in a file next to the config means the same", "[cost][models][hugging_face]") {
  struct Row {
    const char* file;
    const char* text;
  };
  const std::vector<Row> rows = {
      {"hf_quant_config.json", R"({"producer": {"name": "modelopt"}, "quantization": {"quant_algo": "FP8",
        "kv_cache_quant_algo": "FP8", "exclude_modules": ["lm_head"]}})"},
      {"hf_quant_config.json", R"({"quantization": {"quant_algo": "NVFP4", "group_size": 16, "exclude_modules": ["lm_head",
        "*self_attn*"]}})"},
      {"quantize_config.json", R"({"bits": 4, "group_size": 128, "desc_act": false, "sym": true})"},
      {"quant_config.json", R"({"w_bit": 4, "q_group_size": 128, "zero_point": true})"}};
  for (const Row& row : rows)
    for (const std::string& config : known_configs()) {
      INFO(row.text);
      INFO(config);
      const ModelFolder folder(config);
      write_whole_file(folder.path() + "/" + row.file, row.text);
      Diagnostics diagnostics;
      const ModelShape beside = read_model(config::scalar(folder.path(), {"t", 1, 1}), "model", diagnostics);
      INFO(all_messages(diagnostics));
      REQUIRE(diagnostics.empty());
      std::string whole = config;
      whole.insert(whole.find('{') + 1, fmt::format("\"quantization_config\": {}, ", row.text));
      const ModelShape inside = shape_of_json(whole);
      check_same(beside, inside);
      CHECK(beside.weight_bytes() == inside.weight_bytes());
      CHECK(beside.weight_bytes() < shape_of_json(config).weight_bytes());
    }
}

TEST_CASE("names with escapes and signs of other scripts", "[cost][models][hugging_face]") {
  // An escape means the same as the letter.
  check_same(shape_of_json(R"({"model\u005ftype": "ll\u0061ma", "hidden_size": 64, "intermediate_size": 64,
      "num_attention_heads": 4, "num_hidden_layers": 4, "vocab_size": 1000})"),
             shape_of_json(R"({"model_type": "llama", "hidden_size": 64, "intermediate_size": 64, "num_attention_heads": 4,
      "num_hidden_layers": 4, "vocab_size": 1000})"));
  CHECK(shape_of_json(kLlama + R"(, "_name_or_path": "\u5343\u554f/\u6a21\u578b"})").name == "\u5343\u554f/\u6a21\u578b");
  // A name that would move a terminal's cursor is ignored: the folder's name replaces it.
  const std::string escaped = shape_of_json(kLlama + R"(, "_name_or_path": "a\u001b[31mb"})").name;
  CHECK(escaped.find("specsim_hf_") == 0);
  CHECK(shape_of_json(kLlama + fmt::format(R"(, "_name_or_path": "{}"}})", std::string(500, 'a'))).name.find("specsim_hf_") == 0);
  // Modules that are excluded from quantisation, by an escaped name.
  const auto with_ignored = [](const std::string& name) {
    return quantised(fmt::format(R"({{"quant_method": "fp8", "modules_to_not_convert": ["{}"]}})", name));
  };
  CHECK(shape_of_json(with_ignored("model.layers.0.self_attn.q\\u005fproj")).weight_bytes() ==
        shape_of_json(with_ignored("model.layers.0.self_attn.q_proj")).weight_bytes());
}

TEST_CASE("config.json: defaults of a language part, and models that are no decoders", "[cost][models][hugging_face]") {
  const ModelShape llava = shape_of_json(
      R"({"model_type": "llava", "text_config": {"_name_or_path": "lmsys/vicuna-7b-v1.5", "model_type": "llama", "vocab_size": 32064},
      "vision_config": {"hidden_size": 1024}})");
  CHECK(llava.layers == 32);
  CHECK(llava.hidden == 4096);
  CHECK(llava.ffn == 11008);
  CHECK(llava.vocab == 32064);
  CHECK(llava.assumed.size() == 4);
  CHECK(mistakes_of(R"({"model_type": "llama", "vocab_size": 32064})").find("config.json lacks \"hidden_size\"") !=
        std::string::npos);
  CHECK(mistakes_of(R"({"model_type": "bert", "hidden_size": 768})").find("model_type bert is an encoder, allowed: decoders") !=
        std::string::npos);
  CHECK(mistakes_of(with_key(known_configs()[0], "embd_layer", R"({"embedding_cls": "image"})")).empty());
}

TEST_CASE("a preset keeps the name that was asked for", "[cost][models]") {
  CHECK(tests::shape_of("llama-3.3-70b").name == "llama-3.3-70b");
  CHECK(tests::shape_of("llama-3.1-70b").name == "llama-3.1-70b");
  CHECK(tests::shape_of("{preset: llama-3.3-70b, tensor_parallel: 2}").name == "llama-3.3-70b");
}

}  // namespace specsim::hugging_face_test
