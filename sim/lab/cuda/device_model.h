// A Llama-architecture model on a device, with the interface of the CPU's. Few rows are computed by kernels that stream the
// weights once, many rows by a library if there is one. In passes of up to 8 rows, with equally many tokens per sequence, a row's
// logits do not depend on the other sequences, to the last bit. In larger passes they may, for two reasons: tune() leaves 9 rows
// and more to a library if it is faster, and attention adds up a text's places in an order that depends on the largest number of
// tokens of a sequence in the pass.
#pragma once

#include "sim/lab/cuda/device_weights.h"
#include "sim/lab/llm/model.h"

#include <array>
#include <map>
#include <memory>

namespace specsim::cuda {

constexpr unsigned kFewRows = 32;

// Limits of a pass; memory for it is allocated when the model is made.
struct Limits {
  std::size_t rows = 64;
  std::size_t logit_rows = 64;
  std::size_t context = 256;  // cached tokens and those of the pass
};

// Keys and values of a batch, and its text.
class DeviceCache final : public llm::Cache {
 public:
  DeviceCache(Device& device, const llm::ModelConfig& config, std::size_t sequences, std::size_t capacity);
  [[nodiscard]] std::size_t length(std::size_t sequence) const override { return lengths_.at(sequence); }
  void rewind(std::size_t sequence, std::size_t length) override;
  void keep_path(std::size_t sequence, std::size_t length, std::span<const std::uint32_t> path) override;

  [[nodiscard]] std::size_t sequences() const { return lengths_.size(); }
  [[nodiscard]] std::size_t capacity() const { return capacity_; }  // a multiple of 32
  [[nodiscard]] LayerCache layer(std::size_t index) const;
  // Sets the number of cached tokens without writing them: any contents are good enough for timing.
  void assume_length(std::size_t sequence, std::size_t length) { lengths_.at(sequence) = length; }
  void fill_random(std::uint64_t seed);

 private:
  friend class DeviceModel;
  Device& device_;
  llm::ModelConfig config_;
  std::size_t capacity_;
  unsigned width_;
  std::size_t layer_size_;
  std::vector<std::size_t> lengths_;
  Buffer<Bf16> keys_;
  Buffer<Bf16> values_;
  Buffer<std::uint32_t> text_;
  Buffer<std::uint32_t> device_lengths_;
};

// The memory of a cache of these dimensions.
std::size_t cache_bytes(const llm::ModelConfig& config, std::size_t sequences, std::size_t capacity);
// The head width in the cache that attention is compiled for. Throws BadInput if no kernel is wide enough.
unsigned cache_width(const llm::ModelConfig& config);

// The rows of a pass, on the device: fixed, while lengths change.
struct PassRows {
  // Every sequence of a batch has `tokens` in a chain; logits of the last `logit_rows`.
  PassRows(Device& device, std::size_t sequences, std::size_t tokens, std::size_t logit_rows);
  PassRows(Device& device, std::span<const llm::Extension> extensions);

  unsigned count = 0;
  unsigned batch = 0;
  unsigned most_tokens = 0;
  unsigned logits = 0;
  Buffer<std::uint32_t> sequence;
  Buffer<std::uint32_t> slot;
  Buffer<std::uint32_t> depth;
  Buffer<std::uint32_t> all;
  Buffer<std::uint64_t> ancestors;  // empty for chains
  Buffer<std::uint32_t> first_row;
  Buffer<std::uint32_t> row_count;
  Buffer<std::uint32_t> logit_source;
};

// The addresses of the rows' text and lengths.
struct Texts {
  const std::uint32_t* text = nullptr;
  std::size_t stride = 0;
  const std::uint32_t* lengths = nullptr;
  int shift = 0;
};

class DeviceModel final : public llm::Model {
 public:
  DeviceModel(Device& device, std::shared_ptr<const DeviceWeights> weights, const Limits& limits);
  [[nodiscard]] const llm::ModelConfig& config() const override { return weights_->config; }
  [[nodiscard]] std::size_t pass_bytes() const override { return weights_->pass_bytes(); }
  [[nodiscard]] std::unique_ptr<llm::Cache> make_cache(std::size_t sequences, std::size_t capacity) const override;
  // Trees must come whole, not level by level.
  void forward(std::span<const llm::Extension> batch, llm::Cache& cache, std::span<float> logits) override;

  // Enqueues a pass and returns; `longest`: the largest number of cached tokens and tokens of the pass of any sequence. `logits`:
  // pass.logits rows. May be recorded.
  void enqueue(const PassRows& pass, DeviceCache& cache, const Texts& texts, std::size_t longest, float* logits);
  // Measures for 9 to 32 rows which of the two ways is faster on this device.
  void tune();
  [[nodiscard]] const DeviceWeights& weights() const { return *weights_; }
  [[nodiscard]] Device& device() const { return device_; }

 private:
  enum Product { kQkv, kOutput, kGateUp, kDown, kHead, kProducts };

  void multiply(Product product, const DeviceMatrix& matrix, const Bf16* x, unsigned rows, Finish finish, float* out,
                Bf16* gated);
  void multiply_few(const DeviceMatrix& matrix, const Bf16* x, unsigned rows, Finish finish, float* out, Bf16* gated);
  bool multiply_many(const DeviceMatrix& matrix, const Bf16* x, unsigned rows, Finish finish, float* out, Bf16* gated);
  void attend(const PassRows& pass, const Rows& rows, const LayerCache& cache, unsigned chunks);
  void norm(const Buffer<float>& weight, const std::uint32_t* source, unsigned rows);

  Device& device_;
  std::shared_ptr<const DeviceWeights> weights_;
  Limits limits_;
  unsigned width_;
  // [product][rows up to 16, or up to 32]: whether the library multiplies instead of the kernel for few rows.
  std::array<std::array<bool, 2>, kProducts> by_library_ = {};
  Buffer<float> hidden_;
  Buffer<Bf16> normed_;
  Buffer<float> qkv_;
  Buffer<Bf16> queries_;
  Buffer<float> partial_;
  Buffer<float> peak_sum_;
  Buffer<Bf16> attended_;
  Buffer<float> gate_up_;
  Buffer<Bf16> gated_;
  Buffer<float> logits_;
};

// A model's working memory, without weights and caches.
std::size_t work_bytes(const llm::ModelConfig& config, const Limits& limits);

}  // namespace specsim::cuda
