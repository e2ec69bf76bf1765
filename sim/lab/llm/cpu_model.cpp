#include "sim/foundation/base/check.h"
#include "sim/foundation/base/error.h"
#include "sim/lab/llm/kernels.h"
#include "sim/lab/llm/model.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numbers>
#include <numeric>
#include <utility>
#include <vector>

namespace specsim::llm {

namespace {

// A thread with fewer multiplications than this takes longer to wake than it saves.
constexpr std::size_t kGrainOperations = 1 << 15;

std::size_t head_stride(const ModelConfig& config) { return (config.head_dim + kHeadPadding - 1) / kHeadPadding * kHeadPadding; }

// Frequencies of the rotary embedding, one per pair of a head's coordinates.
std::vector<double> rope_frequencies(const ModelConfig& config) {
  std::vector<double> frequencies;
  const RopeScaling& scaling = config.rope_scaling;
  for (std::size_t i = 0; i < config.head_dim / 2; ++i) {
    double frequency = std::pow(config.rope_theta, -2.0 * static_cast<double>(i) / static_cast<double>(config.head_dim));
    if (scaling.method == RopeScaling::Method::linear) frequency /= scaling.factor;
    if (scaling.method == RopeScaling::Method::factors) frequency /= scaling.factors[i];
    if (scaling.method == RopeScaling::Method::llama3) {
      const double turns = scaling.trained_context * frequency / (2.0 * std::numbers::pi);  // within the trained context
      const double kept = std::clamp(
          (turns - scaling.low_frequency_factor) / (scaling.high_frequency_factor - scaling.low_frequency_factor), 0.0, 1.0);
      frequency *= kept + (1.0 - kept) / scaling.factor;
    }
    frequencies.push_back(frequency);
  }
  return frequencies;
}

// Number of floats for the keys of a cache; its values need as many.
std::size_t cache_floats(const ModelConfig& config, std::size_t depth, std::size_t sequences, std::size_t capacity) {
  return depth * sequences * config.kv_heads * capacity * head_stride(config);
}

class CpuCache final : public Cache {
 public:
  CpuCache(const ModelConfig& config, std::size_t depth, std::size_t sequences, std::size_t capacity)
      : kv_heads_(config.kv_heads), stride_(head_stride(config)), capacity_(capacity), lengths_(sequences, 0) {
    keys_.resize(cache_floats(config, depth, sequences, capacity));
    values_.resize(keys_.size());
  }
  [[nodiscard]] std::size_t length(std::size_t sequence) const override { return lengths_.at(sequence); }
  void rewind(std::size_t sequence, std::size_t length) override {
    SPECSIM_CHECK(length <= lengths_.at(sequence), "{} of {} tokens", length, lengths_[sequence]);
    lengths_[sequence] = length;
  }
  void keep_path(std::size_t sequence, std::size_t length, std::span<const std::uint32_t> path) override {
    const std::size_t layers = keys_.size() / (lengths_.size() * kv_heads_ * capacity_ * stride_);
    for (std::size_t i = 0; i < path.size(); ++i) {
      SPECSIM_CHECK(path[i] >= i && length + path[i] < lengths_.at(sequence), "place {} of the tree at step {}", path[i], i);
      for (std::size_t head = 0; head < layers * kv_heads_; ++head) {
        const std::size_t to = head_start(head / kv_heads_, sequence, head % kv_heads_) + (length + i) * stride_;
        const std::size_t from = to + (path[i] - i) * stride_;
        std::copy_n(keys_.begin() + static_cast<std::ptrdiff_t>(from), stride_, keys_.begin() + static_cast<std::ptrdiff_t>(to));
        std::copy_n(values_.begin() + static_cast<std::ptrdiff_t>(from), stride_,
                    values_.begin() + static_cast<std::ptrdiff_t>(to));
      }
    }
    rewind(sequence, length + path.size());
  }

  void extend(std::size_t sequence, std::size_t tokens) { lengths_[sequence] += tokens; }
  [[nodiscard]] std::size_t capacity() const { return capacity_; }
  // The start of the keys (or values) of one head, stored slot after slot.
  [[nodiscard]] std::size_t head_start(std::size_t layer, std::size_t sequence, std::size_t kv_head) const {
    return ((layer * lengths_.size() + sequence) * kv_heads_ + kv_head) * capacity_ * stride_;
  }
  [[nodiscard]] float* keys(std::size_t layer, std::size_t sequence, std::size_t kv_head) {
    return keys_.data() + head_start(layer, sequence, kv_head);
  }
  [[nodiscard]] float* values(std::size_t layer, std::size_t sequence, std::size_t kv_head) {
    return values_.data() + head_start(layer, sequence, kv_head);
  }

 private:
  std::size_t kv_heads_;
  std::size_t stride_;  // floats of a slot
  std::size_t capacity_;
  std::vector<std::size_t> lengths_;
  LineFloats keys_;
  LineFloats values_;
};

// A row of floats per token of a pass, padded for the kernels.
class Rows {
 public:
  explicit Rows(std::size_t columns) : stride_(padded(columns)) {}
  void resize(std::size_t rows) {
    if (data_.size() < rows * stride_) data_.resize(rows * stride_, 0.0F);
  }
  [[nodiscard]] float* row(std::size_t r) { return data_.data() + r * stride_; }
  [[nodiscard]] RowsIn in(std::size_t rows) const { return {data_.data(), stride_, rows}; }
  [[nodiscard]] RowsOut out() { return {data_.data(), stride_}; }

 private:
  std::size_t stride_;
  LineFloats data_;
};

class CpuModel final : public Model {
 public:
  CpuModel(std::shared_ptr<const Weights> weights, std::size_t depth, std::shared_ptr<ThreadTeam> team)
      : weights_(std::move(weights)),
        team_(std::move(team)),
        depth_(depth),
        rotary_(rotary_table(config())),
        hidden_(config().hidden),
        normed_(config().hidden),
        qkv_(config().qkv_rows()),
        queries_(config().heads * head_stride(config())),
        attended_(config().heads * config().head_dim),
        gate_up_(2 * config().ffn),
        gated_(config().ffn) {
    SPECSIM_CHECK(depth >= 1 && depth <= config().layers, "{} of {} layers", depth, config().layers);
  }

  [[nodiscard]] const ModelConfig& config() const override { return weights_->config; }
  [[nodiscard]] std::size_t pass_bytes() const override { return weights_->pass_bytes(depth_); }
  [[nodiscard]] std::unique_ptr<Cache> make_cache(std::size_t sequences, std::size_t capacity) const override {
    return std::make_unique<CpuCache>(config(), depth_, sequences, std::min(capacity, config().context));
  }

  void forward(std::span<const Extension> batch, Cache& cache, std::span<float> logits) override {
    auto& own = dynamic_cast<CpuCache&>(cache);
    place(batch, own);
    const std::size_t count = tokens_.size();
    for (Rows* rows : {&hidden_, &normed_, &qkv_, &queries_, &attended_, &gate_up_, &gated_}) rows->resize(count);
    for (std::size_t r = 0; r < count; ++r) weights_->embedding.get(tokens_[r].token, {hidden_.row(r), config().hidden});
    if (config().scaled_embeddings) {
      const auto scale = static_cast<float>(std::sqrt(static_cast<double>(config().hidden)));
      for (std::size_t r = 0; r < count; ++r)
        for (std::size_t i = 0; i < config().hidden; ++i) hidden_.row(r)[i] *= scale;
    }
    for (std::size_t layer = 0; layer < depth_; ++layer) run_layer(layer, own);
    for (const Extension& extension : batch) own.extend(extension.sequence, extension.tokens.size());

    std::size_t wanted = 0;
    std::size_t end = 0;
    for (const Extension& extension : batch) {
      end += extension.tokens.size();
      for (std::size_t r = end - extension.logit_rows; r < end; ++r)
        rms_norm(hidden_.row(r), weights_->final_norm, config().norm_epsilon,
                 normed_.row(wanted++));  // wanted <= r: rows move up
    }
    SPECSIM_CHECK(logits.size() == wanted * config().vocab, "{} logits for {} rows of {}", logits.size(), wanted, config().vocab);
    if (wanted > 0) multiply_all(weights_->lm_head(), normed_.in(wanted), {logits.data(), config().vocab}, false);
    for (const float x : logits)
      if (!std::isfinite(x))
        throw BadInput({weights_->path, 0, 0},
                       fmt::format("a pass ends in the logit {}, allowed: weights whose products and sums are finite in F32", x));
  }

 private:
  struct Place {
    Token token = 0;
    std::size_t sequence = 0;
    std::size_t slot = 0;
    std::size_t position = 0;
    std::vector<std::uint32_t> visible;  // slots; its own is the last
  };

  void place(std::span<const Extension> batch, const CpuCache& cache) {
    tokens_.clear();
    for (const Extension& extension : batch) {
      const std::size_t length = cache.length(extension.sequence);
      const std::size_t size = extension.tokens.size();
      SPECSIM_CHECK(length + size <= cache.capacity(), "{} tokens onto {} of {}", size, length, cache.capacity());
      SPECSIM_CHECK(extension.logit_rows <= size, "{} rows of {}", extension.logit_rows, size);
      const bool tree = !extension.parents.empty();
      SPECSIM_CHECK(!tree || (extension.parents.size() >= size && extension.parents.size() - size <= length),
                    "{} parents of {} tokens onto {}", extension.parents.size(), size, length);
      const std::size_t earlier = tree ? extension.parents.size() - size : 0;  // tokens of the tree that are cached
      const std::size_t base = length - earlier;
      std::vector<Place> places(earlier + size);
      for (std::size_t i = 0; i < places.size(); ++i) {
        const int parent = tree ? extension.parents[i] : static_cast<int>(i) - 1;
        SPECSIM_CHECK(parent >= -1 && parent < static_cast<int>(i), "parent {} of token {}", parent, i);
        Place& place = places[i];
        place.sequence = extension.sequence;
        place.slot = base + i;
        if (parent >= 0) {
          place.visible = places[static_cast<std::size_t>(parent)].visible;
        } else {
          place.visible.resize(base);
          std::iota(place.visible.begin(), place.visible.end(), 0U);
        }
        place.position = place.visible.size();
        place.visible.push_back(static_cast<std::uint32_t>(place.slot));
        if (i < earlier) continue;
        place.token = extension.tokens[i - earlier];
        SPECSIM_CHECK(place.token < config().vocab, "token {} of {}", place.token, config().vocab);
      }
      std::move(places.begin() + static_cast<std::ptrdiff_t>(earlier), places.end(), std::back_inserter(tokens_));
    }
  }

  void run_layer(std::size_t layer, CpuCache& cache) {
    const LayerWeights& w = weights_->layers[layer];
    const ModelConfig& c = config();
    const std::size_t count = tokens_.size();
    norm_all(w.attention_norm);
    multiply_all(w.qkv, normed_.in(count), qkv_.out(), false);
    for (std::size_t r = 0; r < count; ++r) rotate(r, layer, w, cache);
    const std::size_t attention_work = c.head_dim * 2 * (tokens_.back().visible.size() + 1);
    team_->split(count * c.heads, kGrainOperations / attention_work + 1,
                 [&](std::size_t first, std::size_t last) { attend_heads(first, last, layer, cache); });
    multiply_all(w.output, attended_.in(count), hidden_.out(), true);
    norm_all(w.ffn_norm);
    multiply_all(w.gate_up, normed_.in(count), gate_up_.out(), false);
    constexpr std::size_t kPiece = 1024;
    const std::size_t pieces = (c.ffn + kPiece - 1) / kPiece;
    team_->split(count * pieces, 4, [&](std::size_t first, std::size_t last) {
      for (std::size_t i = first; i < last; ++i) {
        const std::size_t from = i % pieces * kPiece;
        const float* const gate = gate_up_.row(i / pieces) + from;
        (c.gelu_gate ? geglu : swiglu)(gate, gate + c.ffn, std::min(kPiece, c.ffn - from), gated_.row(i / pieces) + from);
      }
    });
    multiply_all(w.down, gated_.in(count), hidden_.out(), true);
  }

  void norm_all(std::span<const float> weight) {
    for (std::size_t r = 0; r < tokens_.size(); ++r) rms_norm(hidden_.row(r), weight, config().norm_epsilon, normed_.row(r));
  }

  void multiply_all(const Matrix& matrix, RowsIn x, RowsOut y, bool add) {
    team_->split(matrix.rows(), kGrainOperations / (matrix.columns() * std::max<std::size_t>(x.rows, 1)) + 1,
                 [&](std::size_t first, std::size_t last) { multiply(matrix, first, last, x, y, add); });
  }

  // Applies bias, norm and rotation to token r's queries and keys, and writes keys and values into the cache. A head's first half
  // is rotated with its second half.
  void rotate(std::size_t r, std::size_t layer, const LayerWeights& w, CpuCache& cache) {
    const ModelConfig& c = config();
    const Place& token = tokens_[r];
    const std::size_t half = c.head_dim / 2;
    const std::size_t stride = head_stride(c);
    float* const qkv = qkv_.row(r);
    for (std::size_t i = 0; i < w.qkv_bias.size(); ++i) qkv[i] += w.qkv_bias[i];
    if (c.qk_norm)
      for (std::size_t head = 0; head < c.heads + c.kv_heads; ++head) {
        float* const at = qkv + head * c.head_dim;
        rms_norm(at, head < c.heads ? w.query_norm : w.key_norm, c.norm_epsilon, at);
      }
    const float* const cosine = rotary_.cosines.data() + token.position * half;
    const float* const sine = rotary_.sines.data() + token.position * half;
    const auto turned = [&](const float* from, float* to) {
      for (std::size_t i = 0; i < half; ++i) {
        to[i] = from[i] * cosine[i] - from[i + half] * sine[i];
        to[i + half] = from[i + half] * cosine[i] + from[i] * sine[i];
      }
    };
    for (std::size_t head = 0; head < c.heads; ++head) turned(qkv + head * c.head_dim, queries_.row(r) + head * stride);
    for (std::size_t head = 0; head < c.kv_heads; ++head) {
      turned(qkv + (c.heads + head) * c.head_dim, cache.keys(layer, token.sequence, head) + token.slot * stride);
      std::copy_n(qkv + (c.heads + c.kv_heads + head) * c.head_dim, c.head_dim,
                  cache.values(layer, token.sequence, head) + token.slot * stride);
    }
  }

  // Items are (token, query head).
  void attend_heads(std::size_t first, std::size_t last, std::size_t layer, CpuCache& cache) {
    const ModelConfig& c = config();
    const std::size_t stride = head_stride(c);
    std::vector<float> scores;
    std::vector<float> out(stride);
    for (std::size_t item = first; item < last; ++item) {
      const std::size_t r = item / c.heads;
      const std::size_t head = item % c.heads;
      const Place& token = tokens_[r];
      const std::size_t kv_head = head / (c.heads / c.kv_heads);
      scores.resize(padded(token.visible.size()));
      attend({.query = queries_.row(r) + head * stride,
              .keys = cache.keys(layer, token.sequence, kv_head),
              .values = cache.values(layer, token.sequence, kv_head),
              .slot_stride = stride,
              .width = stride,
              .slots = token.visible,
              .scale = 1.0F / std::sqrt(static_cast<float>(c.head_dim))},
             scores.data(), out.data());
      std::copy_n(out.begin(), c.head_dim, attended_.row(r) + head * c.head_dim);
    }
  }

  std::shared_ptr<const Weights> weights_;
  std::shared_ptr<ThreadTeam> team_;
  std::size_t depth_;
  RotaryTable rotary_;
  std::vector<Place> tokens_;  // [token of the running pass]
  Rows hidden_;
  Rows normed_;
  Rows qkv_;
  Rows queries_;
  Rows attended_;
  Rows gate_up_;
  Rows gated_;
};

}  // namespace

RotaryTable rotary_table(const ModelConfig& config) {
  RotaryTable table;
  const std::vector<double> frequencies = rope_frequencies(config);
  for (std::size_t position = 0; position < config.context; ++position)
    for (const double frequency : frequencies) {
      const double angle = static_cast<double>(position) * frequency;
      table.cosines.push_back(static_cast<float>(std::cos(angle)));
      table.sines.push_back(static_cast<float>(std::sin(angle)));
    }
  return table;
}

std::size_t cpu_cache_bytes(const ModelConfig& config, std::size_t depth, std::size_t sequences, std::size_t capacity) {
  return 2 * cache_floats(config, depth, sequences, capacity) * sizeof(float);
}

std::unique_ptr<Model> make_cpu_model(std::shared_ptr<const Weights> weights, std::size_t depth,
                                      std::shared_ptr<ThreadTeam> team) {
  return std::make_unique<CpuModel>(std::move(weights), depth, std::move(team));
}

}  // namespace specsim::llm
