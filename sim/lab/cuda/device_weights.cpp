#include "sim/lab/cuda/device_weights.h"

#include "sim/foundation/base/check.h"
#include "sim/foundation/rng/address.h"
#include "sim/lab/llm/model.h"

#include <algorithm>
#include <cmath>
#include <functional>

namespace specsim::cuda {

namespace {

// Fills matrices: random numbers first, if anything is added, then the real part.
class Builder {
 public:
  Builder(Device& device, const llm::Weights* real, const llm::ModelConfig& config, std::uint64_t seed)
      : device_(device),
        real_(real),
        random_(real == nullptr || !(real->config == config)),
        key_(rng::make_key(seed, rng::hash_text("device weights"))) {
    weights_.config = config;
    weights_.origin = real == nullptr ? Origin::random : random_ ? Origin::enlarged : Origin::real;
    weights_.norm_columns = real == nullptr ? config.hidden : real->config.hidden;
  }

  DeviceWeights build() {
    const llm::ModelConfig& c = weights_.config;
    const std::size_t queries = c.heads * c.head_dim;
    weights_.embedding = matrix(c.vocab, c.hidden, true, real_ != nullptr ? &real_->embedding : nullptr, same_row);
    if (real_ != nullptr) clear_columns(weights_.embedding, real_->config.hidden, c.hidden);  // added coordinates start at zero
    if (!c.tied_embeddings) weights_.head = matrix(c.vocab, c.hidden, true, real_ != nullptr ? &real_->head : nullptr, same_row);
    weights_.final_norm = norm(real_ != nullptr ? &real_->final_norm : nullptr);
    for (std::size_t i = 0; i < c.layers; ++i) {
      const llm::LayerWeights* const from = real_ != nullptr && i < real_->layers.size() ? &real_->layers[i] : nullptr;
      DeviceLayer layer;
      layer.attention_norm = norm(from != nullptr ? &from->attention_norm : nullptr);
      layer.ffn_norm = norm(from != nullptr ? &from->ffn_norm : nullptr);
      const auto qkv_row = [&](std::size_t row) { return row_of_qkv(row); };
      layer.qkv = matrix(c.qkv_rows(), c.hidden, true, from != nullptr ? &from->qkv : nullptr, qkv_row);
      if (c.qkv_bias) {
        std::vector<float> bias(c.qkv_rows(), 0.0F);
        for (std::size_t r = 0; from != nullptr && r < from->qkv_bias.size(); ++r) bias[qkv_row(r)] = from->qkv_bias[r];
        layer.qkv_bias = Buffer<float>(device_, bias);
      }
      layer.output = matrix(c.hidden, queries, false, from != nullptr ? &from->output : nullptr, same_row);
      const std::size_t neurons = llm::padded(c.ffn);  // padding neurons give silu(0) 0 into columns of zeros
      const std::size_t own = from != nullptr ? real_->config.ffn : c.ffn;
      layer.gate_up = matrix(2 * neurons, c.hidden, true, from != nullptr ? &from->gate_up : nullptr, [own](std::size_t row) {
        const std::size_t neuron = row % own;
        return neuron / 8 * 16 + neuron % 8 + (row >= own ? 8 : 0);
      });
      layer.down = matrix(c.hidden, c.ffn, false, from != nullptr ? &from->down : nullptr, same_row);
      weights_.layers.push_back(std::move(layer));
    }
    rotary();
    return std::move(weights_);
  }

 private:
  static std::size_t same_row(std::size_t row) { return row; }

  std::size_t row_of_qkv(std::size_t row) const {
    const llm::ModelConfig& c = weights_.config;
    const llm::ModelConfig& r = real_->config;
    const std::size_t queries = r.heads * r.head_dim;
    const std::size_t keys = r.kv_heads * r.head_dim;
    if (row < queries) return row;
    if (row < queries + keys) return c.heads * c.head_dim + row - queries;
    return (c.heads + c.kv_heads) * c.head_dim + row - queries - keys;
  }

  // `of_hidden`: its inputs are the hidden state, in which the small model's part is not zero in added layers either.
  DeviceMatrix matrix(std::size_t rows, std::size_t columns, bool of_hidden, const llm::Matrix* real,
                      const std::function<std::size_t(std::size_t)>& place) {
    DeviceMatrix out;
    out.rows = static_cast<unsigned>(rows);
    out.columns = static_cast<unsigned>(llm::padded(columns));
    out.data = Buffer<Bf16>(device_, rows * out.columns, !random_);
    if (random_)
      device_.launch(FillRandom{.out = out.data.data(),
                                .count = out.data.size(),
                                .deviation = 1.0F / std::sqrt(static_cast<float>(columns)),
                                .key = key_.low | std::uint64_t{key_.high} << 32,
                                .index = index_++});
    if (real_ == nullptr) return out;
    const std::size_t from_real = real != nullptr ? real->columns() : 0;
    clear_columns(out, 0, of_hidden ? real_->config.hidden : from_real);  // columns that no added output may see
    if (real == nullptr) return out;
    // Read as one array with the small model's columns, and then copied in runs of neighbouring rows.
    std::vector<std::byte> rounded(real->rows() * real->columns() * sizeof(Bf16));
    std::vector<float> row(real->columns());
    const std::size_t width = real->columns() * sizeof(Bf16);
    for (std::size_t r = 0; r < real->rows(); ++r) {
      real->get(r, row);
      llm::from_floats(row, llm::Precision::bf16, rounded.data() + r * width);
    }
    for (std::size_t r = 0; r < real->rows();) {
      std::size_t end = r + 1;
      while (end < real->rows() && place(end) == place(r) + end - r) ++end;
      device_.upload_rows(out.data.data() + place(r) * out.columns, out.columns * sizeof(Bf16), rounded.data() + r * width, width,
                          width, end - r);
      r = end;
    }
    return out;
  }

  void clear_columns(const DeviceMatrix& matrix, std::size_t first, std::size_t last) {
    if (last > first)
      device_.clear_rows(matrix.data.data() + first, matrix.columns * sizeof(Bf16), (last - first) * sizeof(Bf16), matrix.rows);
  }

  Buffer<float> norm(const std::vector<float>* real) {
    std::vector<float> values(weights_.config.hidden, 1.0F);
    if (real != nullptr) std::copy(real->begin(), real->end(), values.begin());
    return {device_, values};
  }

  void rotary() {
    const llm::RotaryTable table = llm::rotary_table(weights_.config);
    weights_.cosines = Buffer<float>(device_, table.cosines);
    weights_.sines = Buffer<float>(device_, table.sines);
  }

  Device& device_;
  const llm::Weights* real_;
  bool random_;
  rng::Key key_;
  std::uint64_t index_ = 0;
  DeviceWeights weights_;
};

}  // namespace

const char* to_text(Origin origin) { return origin == Origin::real ? "real" : origin == Origin::random ? "random" : "enlarged"; }

std::size_t DeviceWeights::pass_bytes() const {
  std::size_t bytes = lm_head().bytes();
  for (const DeviceLayer& layer : layers)
    bytes += layer.qkv.bytes() + layer.output.bytes() + layer.gate_up.bytes() + layer.down.bytes();
  return bytes;
}

std::size_t weight_bytes(const llm::ModelConfig& c) {
  const auto matrix = [](std::size_t rows, std::size_t columns) { return rows * llm::padded(columns) * sizeof(Bf16); };
  const std::size_t layer = matrix(c.qkv_rows(), c.hidden) + matrix(c.hidden, c.heads * c.head_dim) +
                            matrix(2 * llm::padded(c.ffn), c.hidden) + matrix(c.hidden, c.ffn);
  return (c.tied_embeddings ? 1 : 2) * matrix(c.vocab, c.hidden) + c.layers * layer;
}

DeviceWeights real_weights(Device& device, const llm::Weights& weights) {
  return Builder(device, &weights, weights.config, 0).build();
}

DeviceWeights random_weights(Device& device, const llm::ModelConfig& config, std::uint64_t seed) {
  return Builder(device, nullptr, config, seed).build();
}

DeviceWeights enlarged_weights(Device& device, const llm::Weights& weights, const llm::ModelConfig& large, std::uint64_t seed) {
  const llm::ModelConfig& small = weights.config;
  SPECSIM_CHECK(large.vocab == small.vocab && large.head_dim == small.head_dim &&
                    large.heads * small.kv_heads == small.heads * large.kv_heads && large.hidden >= small.hidden &&
                    large.heads >= small.heads && large.ffn >= small.ffn && large.layers >= small.layers,
                "hidden {}, ffn {}, {} layers, {} heads around hidden {}, ffn {}, {} layers, {} heads", large.hidden, large.ffn,
                large.layers, large.heads, small.hidden, small.ffn, small.layers, small.heads);
  return Builder(device, &weights, large, seed).build();
}

llm::ModelConfig enlarged_shape(const llm::ModelConfig& small, std::size_t hidden, std::size_t ffn, std::size_t layers) {
  llm::ModelConfig large = small;
  const std::size_t group = small.heads / small.kv_heads;
  large.hidden = hidden;
  large.ffn = ffn;
  large.layers = layers;
  large.kv_heads = std::max(hidden / (group * small.head_dim), small.kv_heads);
  large.heads = group * large.kv_heads;
  return large;
}

}  // namespace specsim::cuda
