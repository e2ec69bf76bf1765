// Properties that a Hugging Face config.json leaves to its architecture: defaults of transformers, by the beginning of
// model_type.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace specsim::cost {

// Defaults of an architecture, by the beginning of its model_type; the longest that fits counts.
struct Architecture {
  std::string_view type;
  bool gated;  // gate and up projections
  bool tied;   // embeddings and LM head, if the file does not state it
};
inline constexpr auto kArchitectures = std::to_array<Architecture>({
    {"llama", true, false},        {"llama4", true, false},
    {"mistral", true, false},      {"mistral3", true, false},
    {"ministral", true, false},    {"mixtral", true, false},
    {"qwen2", true, false},        {"qwen2_moe", true, false},
    {"qwen3", true, false},        {"qwen3_moe", true, false},
    {"qwen2_vl", true, false},     {"qwen2_5_vl", true, false},
    {"qwen3_vl", true, false},     {"gemma", true, true},
    {"gemma2", true, true},        {"gemma3", true, true},
    {"gemma4", true, true},        {"phi3", true, false},
    {"phi4", true, false},         {"phimoe", true, false},
    {"deepseek", true, false},     {"deepseek_v2", true, false},
    {"deepseek_v3", true, false},  {"kimi_k2", true, false},
    {"deepseek_v4", true, false},  {"gpt_oss", true, false},
    {"cohere", true, true},        {"olmo", true, false},
    {"olmoe", true, false},        {"granite", true, false},
    {"granitemoe", true, false},   {"glm", true, false},
    {"exaone", true, false},       {"internlm", true, false},
    {"baichuan", true, false},     {"yi", true, false},
    {"stablelm", true, false},     {"smollm", true, true},
    {"ernie4_5", true, true},      {"hunyuan", true, false},
    {"minicpm", true, true},       {"seed_oss", true, false},
    {"minimax", true, false},      {"mimo", true, false},
    {"xverse", true, false},       {"aquila", true, false},
    {"orion", true, false},        {"eagle", true, false},
    {"dots1", true, false},        {"bailing", true, false},
    {"longcat", true, false},      {"arcee", false, false},
    {"phi", false, false},         {"opt", false, true},
    {"gpt2", false, true},         {"gpt_neo", false, true},
    {"gpt_neox", false, false},    {"gptj", false, false},
    {"gpt_bigcode", false, true},  {"bloom", false, true},
    {"falcon", false, true},       {"mpt", false, true},
    {"starcoder2", false, true},   {"codegen", false, false},
    {"nemotron", false, false},    {"persimmon", false, false},
    {"pythia", false, false},      {"qwen3_next", true, false},
    {"qwen3_5", true, false},      {"qwen", true, false},
    {"jamba", true, false},        {"nemotron_h", false, false},
    {"falcon_h1", true, false},    {"lfm2", true, true},
    {"kimi_linear", true, false},  {"kimi_k3", true, false},
    {"mimo_v2", true, false},      {"apertus", false, false},
    {"gemma3n", true, true},       {"granitemoehybrid", true, true},
    {"bamba", true, false},        {"minimax_text", true, false},
    {"minimax_m1", true, false},   {"step3", true, false},
    {"nemotron-nas", true, false}, {"deci", true, false},
    {"exaone4", true, false},      {"afmoe", true, false},
    {"flex_olmo", true, false},    {"smollm3", true, true},
    {"helium", true, false},       {"medusa", true, false},
    {"speculator", true, false},   {"mlp_speculator", false, false},
    {"chatglm", true, false},      {"gguf", true, false},
    {"bitnet", true, true},        {"arctic", true, false},
    {"gguf_plain", false, false},
});

// Families whose newer members differ from the architecture that the beginning of their name suggests.
inline constexpr std::array<std::string_view, 4> kOthers = {"falcon_mamba", "longcat_flash", "glm5_next", "qwen_audio"};

// Keys of models whose passes are not estimated, and why.
struct Refused {
  const char* key;
  const char* text;
};
inline constexpr std::array<Refused, 2> kRefused = {
    {{"kv_source_layers", "has layers that read the cache of others (DeepSeek-V4.1), allowed: layers with a cache of their own"},
     {"cross_attention_layers", "has layers that attend to images' features, allowed: layers that attend to the text's tokens"}}};

// Types of models whose passes are not estimated, and why.
struct RefusedType {
  std::string_view type;
  const char* text;
};
inline constexpr std::array<RefusedType, 22> kRefusedTypes = {
    {{"falcon_mamba", "has no attention, allowed: models with layers of attention"},
     {"mamba", "has no attention, allowed: models with layers of attention"},
     {"rwkv", "has no attention, allowed: models with layers of attention"},
     {"xlstm", "has no attention, allowed: models with layers of attention"},
     {"recurrent_gemma", "has recurrent units that are not modelled, allowed: Gated DeltaNet, Mamba and similar"},
     {"zamba", "repeats shared blocks, allowed: layers with weights of their own"},
     {"openelm", "has layers of different shapes, allowed: equal layers"},
     {"longcat_flash",
      "has two attentions and experts without weights in a layer, allowed: layers of attention and feed-forward"},
     {"bert", "is an encoder, allowed: decoders"},
     {"roberta", "is an encoder, allowed: decoders"},
     {"xlm-roberta", "is an encoder, allowed: decoders"},
     {"camembert", "is an encoder, allowed: decoders"},
     {"distilbert", "is an encoder, allowed: decoders"},
     {"albert", "is an encoder, allowed: decoders"},
     {"electra", "is an encoder, allowed: decoders"},
     {"deberta", "is an encoder, allowed: decoders"},
     {"modernbert", "is an encoder, allowed: decoders"},
     {"nomic_bert", "is an encoder, allowed: decoders"},
     {"clip", "encodes images, allowed: language models"},
     {"siglip", "encodes images, allowed: language models"},
     {"whisper", "has an encoder, allowed: a decoder-only model"},
     {"dbrx", "has its widths in nested maps, allowed: the keys of other models"}}};

// Defaults of transformers that files of these types leave out.
struct LeftOut {
  std::string_view type;
  std::string_view key;
  std::int64_t value;
  bool anywhere = true;  // only in the language part of a multimodal model
};
inline constexpr std::array<LeftOut, 18> kLeftOut = {{{"gemma3", "num_attention_heads", 8},
                                                      {"gemma3", "num_key_value_heads", 4},
                                                      {"gemma3", "head_dim", 256},
                                                      {"gemma3", "vocab_size", 262208},
                                                      {"gemma", "head_dim", 256},
                                                      {"gemma2", "vocab_size", 256000},
                                                      {"gemma", "vocab_size", 256000},
                                                      {"llama", "hidden_size", 4096, false},
                                                      {"llama", "intermediate_size", 11008, false},
                                                      {"llama", "num_hidden_layers", 32, false},
                                                      {"llama", "num_attention_heads", 32, false},
                                                      {"llama", "vocab_size", 32000, false},
                                                      {"mistral", "hidden_size", 4096, false},
                                                      {"mistral", "intermediate_size", 14336, false},
                                                      {"mistral", "num_hidden_layers", 32, false},
                                                      {"mistral", "num_attention_heads", 32, false},
                                                      {"mistral", "num_key_value_heads", 8, false},
                                                      {"mistral", "vocab_size", 32000, false}}};

}  // namespace specsim::cost
