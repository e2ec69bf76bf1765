#include "sim/lab/llm/weights.h"

#include "sim/foundation/base/check.h"
#include "sim/foundation/base/error.h"
#include "sim/foundation/rng/address.h"
#include "sim/lab/llm/gguf_model.h"
#include "sim/lab/llm/tensor_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

namespace specsim::llm {

namespace {

class Loader {
 public:
  Loader(const TensorSource& source, std::optional<Precision> precision) : source_(source), precision_(precision) {}

  // Copies the tensor of `rows` rows into `matrix` from row `first` on.
  void copy(const std::string& name, std::size_t rows, Matrix& matrix, std::size_t first) const {
    const TensorRows tensor = source_.rows(name, {rows, matrix.columns()});
    std::vector<float> row(matrix.columns());
    for (std::size_t r = 0; r < rows; ++r) {
      tensor.read(r, row);
      check(tensor.path, name, row, matrix.precision());
      matrix.set(first + r, 0, row);
    }
  }

  [[nodiscard]] Matrix matrix(const std::string& name, std::size_t rows, std::size_t columns) const {
    Matrix matrix(rows, columns, kept(name, rows, columns));
    copy(name, rows, matrix, 0);
    return matrix;
  }

  [[nodiscard]] std::vector<float> vector(const std::string& name, std::size_t size) const {
    const TensorRows tensor = source_.rows(name, {size});
    std::vector<float> values(size);
    tensor.read(0, values);
    check(tensor.path, name, values, Precision::f32);
    return values;
  }

  [[nodiscard]] std::vector<float> norm(const std::string& name, std::size_t size, bool less_one) const {
    std::vector<float> values = vector(name, size);
    for (float& x : values) x += less_one ? 1.0F : 0.0F;
    return values;
  }

  [[nodiscard]] Precision kept(const std::string& name, std::size_t rows, std::size_t columns) const {
    return precision_ ? *precision_ : source_.rows(name, {rows, columns}).precision;
  }

 private:
  static void check(const std::string& path, const std::string& name, std::span<const float> values, Precision precision) {
    constexpr float kLargestHalf = 65504.0F;
    constexpr float kLargestBfloat = 0x1.FEp127F;
    const float largest = precision == Precision::f16 ? kLargestHalf : kLargestBfloat;
    for (const float x : values) {
      if (!std::isfinite(x))
        throw BadInput({path, 0, 0}, fmt::format("tensor \"{}\" holds {}, allowed: finite numbers", name, x));
      if (std::abs(x) > largest && precision != Precision::f32)
        throw BadInput({path, 0, 0}, fmt::format("tensor \"{}\" holds {}, allowed in {}: up to {}; keep it in {}F32", name, x,
                                                 to_text(precision), largest, precision == Precision::f16 ? "BF16 or " : ""));
    }
  }

  const TensorSource& source_;
  std::optional<Precision> precision_;
};

// Reads the layers' tensors by their names in Hugging Face's Llama.
LayerWeights load_layer(const Loader& loader, const ModelConfig& c, std::size_t index) {
  const std::string prefix = fmt::format("model.layers.{}.", index);
  LayerWeights layer;
  layer.attention_norm = loader.norm(prefix + "input_layernorm.weight", c.hidden, c.norms_less_one);
  layer.ffn_norm = loader.norm(prefix + "post_attention_layernorm.weight", c.hidden, c.norms_less_one);
  const std::size_t queries = c.heads * c.head_dim;
  const std::size_t keys = c.kv_heads * c.head_dim;
  layer.qkv = Matrix(c.qkv_rows(), c.hidden, loader.kept(prefix + "self_attn.q_proj.weight", queries, c.hidden));
  std::size_t row = 0;
  for (const auto& [name, rows] : {std::pair("q", queries), std::pair("k", keys), std::pair("v", keys)}) {
    const std::string projection = fmt::format("{}self_attn.{}_proj.", prefix, name);
    loader.copy(projection + "weight", rows, layer.qkv, row);
    row += rows;
    if (!c.qkv_bias) continue;
    const std::vector<float> bias = loader.vector(projection + "bias", rows);
    layer.qkv_bias.insert(layer.qkv_bias.end(), bias.begin(), bias.end());
  }
  if (c.qk_norm) {
    layer.query_norm = loader.norm(prefix + "self_attn.q_norm.weight", c.head_dim, c.norms_less_one);
    layer.key_norm = loader.norm(prefix + "self_attn.k_norm.weight", c.head_dim, c.norms_less_one);
  }
  layer.output = loader.matrix(prefix + "self_attn.o_proj.weight", c.hidden, queries);
  layer.gate_up = Matrix(2 * c.ffn, c.hidden, loader.kept(prefix + "mlp.gate_proj.weight", c.ffn, c.hidden));
  loader.copy(prefix + "mlp.gate_proj.weight", c.ffn, layer.gate_up, 0);
  loader.copy(prefix + "mlp.up_proj.weight", c.ffn, layer.gate_up, c.ffn);
  layer.down = loader.matrix(prefix + "mlp.down_proj.weight", c.hidden, c.ffn);
  return layer;
}

Weights load_from(const TensorSource& source, const ModelConfig& c, std::optional<Precision> precision) {
  Weights weights;
  weights.config = c;
  const Loader loader(source, precision);
  weights.embedding = loader.matrix("model.embed_tokens.weight", c.vocab, c.hidden);
  if (!c.tied_embeddings) weights.head = loader.matrix("lm_head.weight", c.vocab, c.hidden);
  weights.final_norm = loader.norm("model.norm.weight", c.hidden, c.norms_less_one);
  for (std::size_t i = 0; i < c.layers; ++i) weights.layers.push_back(load_layer(loader, c, i));
  return weights;
}

// Fills rows [first, rows) and columns [from, columns) with uniform numbers of variance 1 / inputs.
void fill_random(Matrix& matrix, std::size_t first, std::size_t from, std::size_t inputs, rng::Key key, std::uint32_t index) {
  const double half_width = std::sqrt(3.0 / static_cast<double>(inputs));
  const std::size_t blocks = (matrix.columns() - from + 1) / 2;
  std::vector<std::uint64_t> bits(2 * blocks);
  std::vector<float> row(matrix.columns() - from);
  for (std::size_t r = first; r < matrix.rows(); ++r) {
    rng::philox_batch({.c0 = rng::counter_word0(rng::Purpose::distribution, 0),
                       .positions = nullptr,
                       .c1_common = index,
                       .c1 = nullptr,
                       .c2 = 0,
                       .lanes = nullptr,
                       .c3 = static_cast<std::uint32_t>(r)},
                      key, blocks, bits.data(), bits.data() + blocks);
    for (std::size_t i = 0; i < row.size(); ++i) row[i] = static_cast<float>((2.0 * rng::to_unit(bits[i]) - 1.0) * half_width);
    matrix.set(r, from, row);
  }
}

Matrix random_matrix(std::size_t rows, std::size_t columns, Precision precision, rng::Key key, std::uint32_t& index) {
  Matrix matrix(rows, columns, precision);
  fill_random(matrix, 0, 0, columns, key, index++);
  return matrix;
}

Matrix copy_of(const Matrix& matrix) {
  Matrix copy(matrix.rows(), matrix.columns(), matrix.precision());
  std::copy_n(matrix.row(0), matrix.bytes(), copy.row(0));
  return copy;
}

}  // namespace

std::size_t Weights::pass_bytes(std::size_t depth) const {
  std::size_t bytes = lm_head().bytes();
  for (std::size_t i = 0; i < depth; ++i)
    bytes += layers[i].qkv.bytes() + layers[i].output.bytes() + layers[i].gate_up.bytes() + layers[i].down.bytes();
  return bytes;
}

bool is_model(const std::string& path) { return std::filesystem::is_directory(path) || is_gguf(path); }

WeightsFacts inspect_weights(const std::string& path) {
  const auto facts_of = [](const TensorSource& source, const ModelConfig& c) {
    return WeightsFacts{c, source.rows("model.embed_tokens.weight", {c.vocab, c.hidden}).precision};
  };
  if (is_gguf(path)) {
    const GgufModel model(path);
    return facts_of(model, model.config());
  }
  const ModelConfig config = read_model_config(path + "/config.json");
  return facts_of(TensorFiles(path), config);
}

std::size_t weight_bytes(const ModelConfig& c, Precision precision) {
  const auto matrix = [&](std::size_t rows, std::size_t columns) { return rows * padded(columns) * bytes_of(precision); };
  const std::size_t vectors = 2 * c.hidden + (c.qkv_bias ? c.qkv_rows() : 0) + (c.qk_norm ? 2 * c.head_dim : 0);
  const std::size_t layer = matrix(c.qkv_rows(), c.hidden) + matrix(c.hidden, c.heads * c.head_dim) +
                            matrix(2 * c.ffn, c.hidden) + matrix(c.hidden, c.ffn) + vectors * sizeof(float);
  return (c.tied_embeddings ? 1 : 2) * matrix(c.vocab, c.hidden) + c.hidden * sizeof(float) + c.layers * layer;
}

Weights load_weights(const std::string& path, std::optional<Precision> precision) {
  Weights weights;
  if (is_gguf(path)) {
    const GgufModel model(path);
    weights = load_from(model, model.config(), precision);
  } else {
    const ModelConfig config = read_model_config(path + "/config.json");
    weights = load_from(TensorFiles(path), config, precision);
  }
  weights.path = path;
  return weights;
}

Weights random_weights(const ModelConfig& config, Precision precision, std::uint64_t seed) {
  const rng::Key key = rng::make_key(seed, rng::hash_text("random weights"));
  std::uint32_t index = 0;
  Weights weights;
  weights.config = config;
  weights.embedding = random_matrix(config.vocab, config.hidden, precision, key, index);
  if (!config.tied_embeddings) weights.head = random_matrix(config.vocab, config.hidden, precision, key, index);
  weights.final_norm.assign(config.hidden, 1.0F);
  for (std::size_t i = 0; i < config.layers; ++i) {
    LayerWeights layer;
    layer.attention_norm.assign(config.hidden, 1.0F);
    layer.ffn_norm.assign(config.hidden, 1.0F);
    layer.qkv = random_matrix(config.qkv_rows(), config.hidden, precision, key, index);
    if (config.qkv_bias) layer.qkv_bias.assign(config.qkv_rows(), 0.0F);
    if (config.qk_norm) layer.query_norm = layer.key_norm = std::vector<float>(config.head_dim, 1.0F);
    layer.output = random_matrix(config.hidden, config.heads * config.head_dim, precision, key, index);
    layer.gate_up = random_matrix(2 * config.ffn, config.hidden, precision, key, index);
    layer.down = random_matrix(config.hidden, config.ffn, precision, key, index);
    weights.layers.push_back(std::move(layer));
  }
  return weights;
}

Weights widened(const Weights& weights, std::size_t ffn, std::uint64_t seed) {
  const std::size_t old = weights.config.ffn;
  SPECSIM_CHECK(ffn >= old, "from {} to {} neurons", old, ffn);
  const rng::Key key = rng::make_key(seed, rng::hash_text("widened"));
  std::uint32_t index = 0;
  Weights wide;
  wide.path = weights.path;
  wide.config = weights.config;
  wide.config.ffn = ffn;
  wide.embedding = copy_of(weights.embedding);
  wide.head = copy_of(weights.head);
  wide.final_norm = weights.final_norm;
  for (const LayerWeights& from : weights.layers) {
    LayerWeights layer;
    layer.attention_norm = from.attention_norm;
    layer.ffn_norm = from.ffn_norm;
    layer.qkv = copy_of(from.qkv);
    layer.qkv_bias = from.qkv_bias;
    layer.query_norm = from.query_norm;
    layer.key_norm = from.key_norm;
    layer.output = copy_of(from.output);
    layer.gate_up = Matrix(2 * ffn, from.gate_up.columns(), from.gate_up.precision());
    fill_random(layer.gate_up, 0, 0, from.gate_up.columns(), key, index++);
    const std::size_t row_bytes = from.gate_up.bytes() / from.gate_up.rows();
    std::copy_n(from.gate_up.row(0), old * row_bytes, layer.gate_up.row(0));
    std::copy_n(from.gate_up.row(old), old * row_bytes, layer.gate_up.row(ffn));
    layer.down = Matrix(from.down.rows(), ffn, from.down.precision());
    for (std::size_t r = 0; r < from.down.rows(); ++r)
      std::copy_n(from.down.row(r), old * bytes_of(from.down.precision()), layer.down.row(r));
    wide.layers.push_back(std::move(layer));
  }
  return wide;
}

}  // namespace specsim::llm
