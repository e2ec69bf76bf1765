// What a Hugging Face config.json leaves to its architecture: defaults of transformers, by the beginning of model_type.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace specsim::cost {

// What is known of an architecture, by the beginning of its model_type; the longest that fits counts.
struct Architecture {
  std::string_view type;
  bool gated;  // gate and up projections
  bool tied;   // embeddings and LM head, where the file does not say
};
inline constexpr std::array<Architecture, 69> kArchitectures = {{
    {"llama", true, false},       {"llama4", true, false},      {"mistral", true, false},     {"mistral3", true, false},
    {"ministral", true, false},   {"mixtral", true, false},     {"qwen2", true, false},       {"qwen2_moe", true, false},
    {"qwen3", true, false},       {"qwen3_moe", true, false},   {"qwen2_vl", true, false},    {"qwen2_5_vl", true, false},
    {"qwen3_vl", true, false},    {"gemma", true, true},        {"gemma2", true, true},       {"gemma3", true, true},
    {"gemma4", true, true},       {"phi3", true, false},        {"phi4", true, false},        {"phimoe", true, false},
    {"deepseek", true, false},    {"deepseek_v2", true, false}, {"deepseek_v3", true, false}, {"kimi_k2", true, false},
    {"deepseek_v4", true, false}, {"gpt_oss", true, false},     {"cohere", true, true},       {"olmo", true, false},
    {"olmoe", true, false},       {"granite", true, false},     {"granitemoe", true, false},  {"glm", true, false},
    {"exaone", true, false},      {"internlm", true, false},    {"baichuan", true, false},    {"yi", true, false},
    {"stablelm", true, false},    {"smollm", true, true},       {"ernie4_5", true, true},     {"hunyuan", true, false},
    {"minicpm", true, false},     {"seed_oss", true, false},    {"minimax", true, false},     {"mimo", true, false},
    {"xverse", true, false},      {"aquila", true, false},      {"orion", true, false},       {"eagle", true, false},
    {"dots1", true, false},       {"bailing", true, false},     {"longcat", true, false},     {"arcee", false, false},
    {"phi", false, false},        {"opt", false, true},         {"gpt2", false, true},        {"gpt_neo", false, true},
    {"gpt_neox", false, false},   {"gptj", false, false},       {"gpt_bigcode", false, true}, {"bloom", false, true},
    {"falcon", false, true},      {"mpt", false, true},         {"starcoder2", false, true},  {"codegen", false, false},
    {"nemotron", false, false},   {"persimmon", false, false},  {"pythia", false, false},     {"qwen3_next", true, false},
    {"qwen3_5", true, false},
}};

// Families whose newer members are something else than their names' beginning tells.
inline constexpr std::array<std::string_view, 10> kOthers = {"gemma3n",      "falcon_h1",        "falcon_mamba", "nemotron_h",
                                                             "minimax_text", "granitemoehybrid", "minimax_m1",   "longcat_flash",
                                                             "mimo_v2",      "glm5_next"};

// Keys of models whose passes are not priced, and why.
struct Refused {
  const char* key;
  const char* text;
};
inline constexpr std::array<Refused, 4> kRefused = {
    {{"block_configs",
      "gives each layer a shape of its own, allowed: layers that are alike; a model's file in YAML may state means over the "
      "layers"},
     {"hybrid_override_pattern",
      "mixes layers of one kind each (state space, attention, feed-forward), allowed: layers of attention and feed-forward; a "
      "model's file in YAML may state means over the layers"},
     {"kv_source_layers",
      "has layers that look at the cache of others (DeepSeek-V4.1), allowed: layers with a cache of their own"},
     {"medusa_num_heads",
      "is of Medusa heads, whose file does not say how wide they are, allowed: medusa-heads-7b, -13b, -33b, or a model's file in "
      "YAML with their prediction_heads and head_matrices"}}};

// Defaults of transformers that files of these types leave out.
struct LeftOut {
  std::string_view type;
  std::string_view key;
  std::int64_t value;
};
inline constexpr std::array<LeftOut, 9> kLeftOut = {{{"gemma3", "num_attention_heads", 8},
                                                     {"gemma3", "num_key_value_heads", 4},
                                                     {"gemma3", "head_dim", 256},
                                                     {"gemma3", "vocab_size", 262208},
                                                     {"gemma3", "sliding_window_pattern", 6},
                                                     {"gemma", "head_dim", 256},
                                                     {"cohere2", "sliding_window_pattern", 4},
                                                     {"llama4", "no_rope_layer_interval", 4},
                                                     {"llama4", "interleave_moe_layer_step", 1}}};

}  // namespace specsim::cost
