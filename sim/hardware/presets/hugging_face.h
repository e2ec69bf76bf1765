// A Hugging Face config.json as a description of a model: the keys that the files of configs/models have.
#pragma once

#include "sim/foundation/config/value.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace specsim::cost {

// The path of the config.json that `text` names: itself where it ends in .json, or that of a directory which holds one. None for
// other texts.
std::optional<std::string> config_json_path(const std::string& text);

// The model that `path` describes: Llama and its kin, mixtures of experts, latent attention (DeepSeek), windows by layer (Gemma,
// gpt-oss, Llama 4, Mistral), older models (GPT-2, OPT, GPT-NeoX, Falcon, Phi), heads of EAGLE and EAGLE-3; the language part of
// a multimodal one. Each value stands where the JSON says it. What the file leaves open is taken as its architecture has it, or
// as most have it, and `assumed` says so. Null after reporting a file that cannot be read, a key that is missing or wrong.
config::Value read_config_json(const std::string& path, Diagnostics& diagnostics);

// How a checkpoint is quantised: the value of `dtype` that its quantization_config amounts to, or null for 16 bits. What is not
// known is told in `assumed`. `mixture`: whether the model has experts, which may be quantised alone.
config::Value dtype_of_quantization(const config::Value& quantization, bool mixture, std::vector<std::string>& assumed,
                                    Diagnostics& diagnostics);

// Keys that speak of single layers, in the language model's part `text`: what cannot be is reported, what is not known is told in
// `assumed`.
void check_layer_keys(const config::Value& text, std::int64_t layers, bool mixture, std::vector<std::string>& assumed,
                      Diagnostics& diagnostics);

}  // namespace specsim::cost
