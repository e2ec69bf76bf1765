// The shape and the constants of a Llama-architecture model, from the config.json of a Hugging Face directory.
#pragma once

#include "sim/foundation/base/token.h"
#include "sim/hardware/model/model_shape.h"

#include <string>
#include <vector>

namespace specsim::llm {

// Rotary positions beyond the trained context. `linear` divides every frequency by `factor`. `llama3` (Llama 3.1) divides the
// slow ones, keeps the fast ones and interpolates between, by the ratio of wavelength to trained context. `factors` divides each
// frequency by its own factor, as in a GGUF file.
struct RopeScaling {
  enum class Method { none, linear, llama3, factors };
  Method method = Method::none;
  double factor = 1.0;
  double low_frequency_factor = 1.0;
  double high_frequency_factor = 4.0;
  double trained_context = 8192.0;
  std::vector<double> factors = {};  // head_dim / 2

  bool operator==(const RopeScaling&) const = default;
};

struct ModelConfig {
  std::size_t vocab = 0;
  std::size_t hidden = 0;
  std::size_t layers = 0;
  std::size_t heads = 0;
  std::size_t kv_heads = 0;
  std::size_t head_dim = 0;  // even
  std::size_t ffn = 0;
  std::size_t context = 0;  // most positions of a sequence
  double norm_epsilon = 1e-5;
  double rope_theta = 1e4;
  RopeScaling rope_scaling;
  bool tied_embeddings = false;
  bool qkv_bias = false;
  bool qk_norm = false;  // Qwen3: every head's query and key is normalised before it is rotated
  // Gemma: gates use the tanh form of GELU instead of SiLU, embeddings are multiplied by sqrt(hidden), norm weights are stored
  // less one.
  bool gelu_gate = false;
  bool scaled_embeddings = false;
  bool norms_less_one = false;
  Token begin_token = 1;

  bool operator==(const ModelConfig&) const = default;
  [[nodiscard]] std::size_t qkv_rows() const { return (heads + 2 * kv_heads) * head_dim; }
};

// Reads config.json of the architectures Llama, Mistral, Qwen2, Qwen3 and Gemma, as transformers 4 or 5 writes it. Throws
// BadInput with the place of every wrong key: missing, of a wrong type, out of range, unsupported (another activation or scaling,
// quantised weights, a sliding window that has an effect), or unknown, since it may change the function.
ModelConfig read_model_config(const std::string& path);

// A model of configs/models. Throws BadInput for features that the forward pass lacks: experts, ungated layers, draft heads.
ModelConfig config_of_shape(const cost::ModelShape& shape, std::size_t context);

}  // namespace specsim::llm
