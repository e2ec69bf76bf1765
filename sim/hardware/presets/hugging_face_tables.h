// Properties that a Hugging Face config.json leaves to its architecture: defaults of transformers, by the beginning of
// model_type.
#pragma once

#include "sim/foundation/config/words.h"

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

namespace specsim::cost {

// Defaults of an architecture, by the beginning of its model_type; the longest that fits counts.
struct Architecture {
  std::string_view type;
  bool gated;  // gate and up projections
  bool tied;   // embeddings and LM head, if the file does not state it
};
inline const std::vector<Architecture>& architectures() {
  struct Group {
    std::string_view types;
    bool gated;
    bool tied;
  };
  static const std::vector<Architecture> list = [] {
    std::vector<Architecture> all;
    for (const auto& [types, gated, tied] :
         {Group{"llama llama4 mistral mistral3 ministral mixtral qwen2 qwen2_moe qwen3 qwen3_moe qwen2_vl qwen2_5_vl "
                "qwen3_vl phi3 phi4 phimoe deepseek deepseek_v2 deepseek_v3 kimi_k2 deepseek_v4 gpt_oss olmo olmoe "
                "granite granitemoe glm exaone internlm baichuan yi stablelm hunyuan seed_oss minimax mimo xverse "
                "aquila orion eagle dots1 bailing longcat qwen3_next qwen3_5 qwen jamba falcon_h1 kimi_linear kimi_k3 "
                "mimo_v2 bamba minimax_text minimax_m1 step3 nemotron-nas deci exaone4 afmoe flex_olmo helium medusa "
                "speculator chatglm gguf arctic",
                true, false},
          Group{"gemma gemma2 gemma3 gemma4 cohere smollm ernie4_5 minicpm lfm2 gemma3n granitemoehybrid smollm3 bitnet", true,
                true},
          Group{"arcee phi gpt_neox gptj codegen nemotron persimmon pythia nemotron_h apertus mlp_speculator gguf_plain", false,
                false},
          Group{"opt gpt2 gpt_neo gpt_bigcode bloom falcon mpt starcoder2", false, true}})
      for (const std::string_view type : config::words_of(types)) all.push_back({type, gated, tied});
    return all;
  }();
  return list;
}

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
  std::string_view types;  // their beginnings
  const char* text;
};
inline constexpr RefusedType kRefusedTypes[] = {
    {"falcon_mamba mamba rwkv xlstm", "has no attention, allowed: models with layers of attention"},
    {"recurrent_gemma", "has recurrent units that are not modelled, allowed: Gated DeltaNet, Mamba and similar"},
    {"zamba", "repeats shared blocks, allowed: layers with weights of their own"},
    {"openelm", "has layers of different shapes, allowed: equal layers"},
    {"longcat_flash", "has two attentions and experts without weights in a layer, allowed: layers of attention and feed-forward"},
    {"bert roberta xlm-roberta camembert distilbert albert electra deberta modernbert nomic_bert",
     "is an encoder, allowed: decoders"},
    {"clip siglip", "encodes images, allowed: language models"},
    {"whisper", "has an encoder, allowed: a decoder-only model"},
    {"dbrx", "has its widths in nested maps, allowed: the keys of other models"},
};

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
