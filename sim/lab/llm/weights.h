// The parameters of a Llama-architecture model in memory.
#pragma once

#include "sim/lab/llm/matrix.h"
#include "sim/lab/llm/model_config.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace specsim::llm {

struct LayerWeights {
  std::vector<float> attention_norm;
  Matrix qkv;                     // queries, keys, values: config.qkv_rows() x hidden
  std::vector<float> qkv_bias;    // empty without
  std::vector<float> query_norm;  // head_dim each; empty if the model has none
  std::vector<float> key_norm;
  Matrix output;  // hidden x heads head_dim
  std::vector<float> ffn_norm;
  Matrix gate_up;  // gate, then up: 2 ffn x hidden
  Matrix down;     // hidden x ffn
};

struct Weights {
  std::string path;  // source, for messages; empty for random weights
  ModelConfig config;
  Matrix embedding;  // vocab x hidden
  Matrix head;       // like the embedding; no rows if embeddings are tied
  std::vector<float> final_norm;
  std::vector<LayerWeights> layers;

  [[nodiscard]] const Matrix& lm_head() const { return config.tied_embeddings ? embedding : head; }
  // Bytes that a pass through the first `depth` layers reads once, however many tokens it has: matrices and the LM head.
  [[nodiscard]] std::size_t pass_bytes(std::size_t depth) const;
};

// Whether there is a model at `path`: a directory, or a file that ends in .gguf.
bool is_model(const std::string& path);

// The description of a model, before any of its weights is read.
struct WeightsFacts {
  ModelConfig config;
  Precision precision = Precision::f32;  // precision of its embedding, and in practice of all matrices
};
// Reads the config and the tensors' headers. Throws BadInput like load_weights for mistakes in these.
WeightsFacts inspect_weights(const std::string& path);

// Bytes of memory of a model's weights, with all matrices in one precision.
std::size_t weight_bytes(const ModelConfig& config, Precision precision);

// Reads config.json and model.safetensors in the directory `path`, or the GGUF file there. Matrices are kept in `precision`, or
// as the file has them; quantised blocks become F32. Throws BadInput with file and tensor: missing, of another shape than the
// config gives, with a NaN, an infinity, or a number that is one in `precision`.
Weights load_weights(const std::string& path, std::optional<Precision> precision = std::nullopt);

// Random weights of the scale used at the start of training, for timing: uniform with variance 1 / inputs.
Weights random_weights(const ModelConfig& config, Precision precision, std::uint64_t seed);

// The same function at the cost of a larger model: feed-forward parts are widened to `ffn` neurons. Added neurons have random
// inputs and are multiplied by zero weights. Every pass reads and multiplies them; logits stay the same to the last bit.
Weights widened(const Weights& weights, std::size_t ffn, std::uint64_t seed);

}  // namespace specsim::llm
