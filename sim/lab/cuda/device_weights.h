// A model's parameters in a device's memory, as bf16. They are real, or random for a shape, or those of a small trained model
// inside a large one. The latter computes the small model's function in the large model's time.
#pragma once

#include "sim/lab/cuda/device.h"
#include "sim/lab/llm/weights.h"

#include <vector>

namespace specsim::cuda {

// One row per output; columns padded to a multiple of 32.
struct DeviceMatrix {
  Buffer<Bf16> data;
  unsigned rows = 0;
  unsigned columns = 0;
  [[nodiscard]] std::size_t bytes() const { return data.size() * sizeof(Bf16); }
};

struct DeviceLayer {
  Buffer<float> attention_norm;
  DeviceMatrix qkv;
  Buffer<float> qkv_bias;  // empty without
  DeviceMatrix output;
  Buffer<float> ffn_norm;
  DeviceMatrix gate_up;  // rows alternate between 8 gates and 8 ups
  DeviceMatrix down;
};

enum class Origin { real, random, enlarged };
[[nodiscard]] const char* to_text(Origin origin);

struct DeviceWeights {
  llm::ModelConfig config;
  Origin origin = Origin::real;
  std::size_t norm_columns = 0;  // coordinates of the hidden state that are not zero by construction
  DeviceMatrix embedding;
  DeviceMatrix head;  // no rows if embeddings are tied
  Buffer<float> final_norm;
  std::vector<DeviceLayer> layers;
  Buffer<float> cosines;  // [position][head_dim / 2]
  Buffer<float> sines;

  [[nodiscard]] const DeviceMatrix& lm_head() const { return config.tied_embeddings ? embedding : head; }
  [[nodiscard]] std::size_t pass_bytes() const;  // read by every pass
};

// The memory of the parameters of a shape.
std::size_t weight_bytes(const llm::ModelConfig& config);

DeviceWeights real_weights(Device& device, const llm::Weights& weights);
DeviceWeights random_weights(Device& device, const llm::ModelConfig& config, std::uint64_t seed);
// `weights` as a part of a model of the shape `large`. Added coordinates of the hidden state stay zero, and added neurons, heads
// and layers see only these. Everything that multiplies a zero is random, so all of it is read and multiplied. Both models must
// have the same vocabulary, head width, and queries per key; SPECSIM_CHECKs that.
DeviceWeights enlarged_weights(Device& device, const llm::Weights& weights, const llm::ModelConfig& large, std::uint64_t seed);

// The shape with the given hidden, feed-forward and layer sizes around a small model, for enlarged_weights; hidden must be a
// multiple of the columns of one group of its heads.
llm::ModelConfig enlarged_shape(const llm::ModelConfig& small, std::size_t hidden, std::size_t ffn, std::size_t layers);

}  // namespace specsim::cuda
