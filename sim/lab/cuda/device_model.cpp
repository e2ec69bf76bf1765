#include "sim/lab/cuda/device_model.h"

#include "sim/foundation/base/check.h"
#include "sim/foundation/base/error.h"
#include "sim/foundation/rng/address.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <type_traits>

namespace specsim::cuda {

namespace {

constexpr std::size_t kBeyond = 128;  // places of a text after the cache's, for a round's drafts

std::size_t chunks_of(std::size_t context) { return (context + kChunk - 1) / kChunk; }
std::size_t padded_capacity(std::size_t capacity) { return (capacity + 31) / 32 * 32; }

// Sizes of the working buffers in elements, in the order of the model's members.
struct BufferSizes {
  std::size_t hidden, normed, qkv, queries, partial, peak_sum, attended, gate_up, gated, logits;
};
BufferSizes sizes_of(const llm::ModelConfig& c, const Limits& limits) {
  const std::size_t rows = limits.rows;
  const std::size_t width = cache_width(c);
  const std::size_t parts = rows * c.heads * chunks_of(limits.context);
  return {rows * c.hidden,
          std::max(rows, limits.logit_rows) * llm::padded(c.hidden),
          rows * c.qkv_rows(),
          rows * c.heads * width,
          parts * width,
          parts * 2,
          rows * llm::padded(c.heads * c.head_dim),
          rows > 8 ? rows * 2 * llm::padded(c.ffn) : 0,
          rows * llm::padded(c.ffn),
          limits.logit_rows * c.vocab};
}

}  // namespace

unsigned cache_width(const llm::ModelConfig& config) {
  for (const unsigned width : {32U, 64U, 128U})
    if (config.head_dim <= width) return width;
  throw BadInput({"GPU", 0, 0}, fmt::format("heads of {} numbers, allowed: up to 128", config.head_dim));
}

std::size_t cache_bytes(const llm::ModelConfig& config, std::size_t sequences, std::size_t capacity) {
  return 2 * config.layers * sequences * config.kv_heads * padded_capacity(capacity) * cache_width(config) * sizeof(Bf16);
}

std::size_t work_bytes(const llm::ModelConfig& config, const Limits& limits) {
  const BufferSizes w = sizes_of(config, limits);
  return 4 * (w.hidden + w.qkv + w.partial + w.peak_sum + w.gate_up + w.logits) +
         2 * (w.normed + w.queries + w.attended + w.gated);
}

DeviceCache::DeviceCache(Device& device, const llm::ModelConfig& config, std::size_t sequences, std::size_t capacity)
    : device_(device),
      config_(config),
      capacity_(padded_capacity(capacity)),
      width_(cache_width(config)),
      layer_size_(sequences * config.kv_heads * capacity_ * width_),
      lengths_(sequences, 0),
      keys_(device, config.layers * layer_size_, true),  // a head's padding stays zero
      values_(device, config.layers * layer_size_, true),
      text_(device, sequences * (capacity_ + kBeyond), true),
      device_lengths_(device, sequences) {}

void DeviceCache::rewind(std::size_t sequence, std::size_t length) {
  SPECSIM_CHECK(length <= lengths_.at(sequence), "{} of {} tokens", length, lengths_[sequence]);
  lengths_[sequence] = length;
}

void DeviceCache::keep_path(std::size_t sequence, std::size_t length, std::span<const std::uint32_t> path) {
  for (std::size_t i = 0; i < path.size(); ++i)
    SPECSIM_CHECK(path[i] >= i && length + path[i] < lengths_.at(sequence), "place {} of the tree at step {}", path[i], i);
  if (!path.empty()) {
    const Buffer<std::uint32_t> steps(device_, path);
    device_.launch(KeepPath{.cache = layer(0),
                            .layer_stride = layer_size_,
                            .sequence = static_cast<unsigned>(sequence),
                            .kv_heads = static_cast<unsigned>(config_.kv_heads),
                            .layers = static_cast<unsigned>(config_.layers),
                            .length = length,
                            .path = steps.data(),
                            .steps = static_cast<unsigned>(path.size())});
    device_.finish();
  }
  rewind(sequence, length + path.size());
}

LayerCache DeviceCache::layer(std::size_t index) const {
  return {keys_.data() + index * layer_size_, values_.data() + index * layer_size_, width_, capacity_};
}

void DeviceCache::fill_random(std::uint64_t seed) {
  std::uint64_t index = 0;
  for (const Buffer<Bf16>* const buffer : {&keys_, &values_})
    device_.launch(FillRandom{.out = buffer->data(), .count = buffer->size(), .deviation = 1.0F, .key = seed, .index = index++});
}

PassRows::PassRows(Device& device, std::size_t sequences, std::size_t tokens, std::size_t logit_rows) {
  const std::vector<Token> text(tokens, 0);
  std::vector<llm::Extension> extensions;
  for (std::size_t s = 0; s < sequences; ++s) extensions.push_back({.sequence = s, .tokens = text, .logit_rows = logit_rows});
  *this = PassRows(device, extensions);
}

PassRows::PassRows(Device& device, std::span<const llm::Extension> extensions) : batch(static_cast<unsigned>(extensions.size())) {
  std::vector<std::uint32_t> of_sequence;
  std::vector<std::uint32_t> slots;
  std::vector<std::uint32_t> depths;
  std::vector<std::uint32_t> tokens;
  std::vector<std::uint64_t> seen;
  std::vector<std::uint32_t> first;
  std::vector<std::uint32_t> counts;
  std::vector<std::uint32_t> wanted;
  const bool tree = std::any_of(extensions.begin(), extensions.end(), [](const llm::Extension& e) { return !e.parents.empty(); });
  for (const llm::Extension& extension : extensions) {
    const std::size_t size = extension.tokens.size();
    const std::size_t begin = of_sequence.size();
    SPECSIM_CHECK(size > 0 && extension.logit_rows <= size, "{} rows of {}", extension.logit_rows, size);
    SPECSIM_CHECK(extension.parents.empty() || extension.parents.size() == size, "{} parents", extension.parents.size());
    SPECSIM_CHECK(!tree || size <= 64, "{} tokens of a pass with trees, of which 64 fit", size);
    first.push_back(static_cast<std::uint32_t>(begin));
    counts.push_back(static_cast<std::uint32_t>(size));
    most_tokens = std::max(most_tokens, static_cast<unsigned>(size));
    for (std::size_t i = 0; i < size; ++i) {
      const int parent = extension.parents.empty() ? static_cast<int>(i) - 1 : extension.parents[i];
      SPECSIM_CHECK(parent >= -1 && parent < static_cast<int>(i), "parent {} of token {}", parent, i);
      const std::size_t up = begin + static_cast<std::size_t>(std::max(parent, 0));
      of_sequence.push_back(static_cast<std::uint32_t>(extension.sequence));
      slots.push_back(static_cast<std::uint32_t>(i));
      depths.push_back(parent >= 0 ? depths[up] + 1 : 0);
      tokens.push_back(static_cast<std::uint32_t>(size));
      if (tree) seen.push_back((parent >= 0 ? seen[up] : 0) | std::uint64_t{1} << i);
      if (i + extension.logit_rows >= size) wanted.push_back(static_cast<std::uint32_t>(begin + i));
    }
  }
  count = static_cast<unsigned>(of_sequence.size());
  logits = static_cast<unsigned>(wanted.size());
  sequence = Buffer<std::uint32_t>(device, of_sequence);
  slot = Buffer<std::uint32_t>(device, slots);
  depth = Buffer<std::uint32_t>(device, depths);
  all = Buffer<std::uint32_t>(device, tokens);
  if (tree) ancestors = Buffer<std::uint64_t>(device, seen);
  first_row = Buffer<std::uint32_t>(device, first);
  row_count = Buffer<std::uint32_t>(device, counts);
  if (logits > 0) logit_source = Buffer<std::uint32_t>(device, wanted);
}

DeviceModel::DeviceModel(Device& device, std::shared_ptr<const DeviceWeights> weights, const Limits& limits)
    : device_(device), weights_(std::move(weights)), limits_(limits), width_(cache_width(weights_->config)) {
  const BufferSizes sizes = sizes_of(config(), limits);
  hidden_ = Buffer<float>(device, sizes.hidden);
  normed_ = Buffer<Bf16>(device, sizes.normed, true);  // elements after a row's columns stay zero
  qkv_ = Buffer<float>(device, sizes.qkv);
  queries_ = Buffer<Bf16>(device, sizes.queries, true);
  partial_ = Buffer<float>(device, sizes.partial);
  peak_sum_ = Buffer<float>(device, sizes.peak_sum);
  attended_ = Buffer<Bf16>(device, sizes.attended, true);
  gate_up_ = Buffer<float>(device, sizes.gate_up);
  gated_ = Buffer<Bf16>(device, sizes.gated);
  logits_ = Buffer<float>(device, sizes.logits);
}

std::unique_ptr<llm::Cache> DeviceModel::make_cache(std::size_t sequences, std::size_t capacity) const {
  return std::make_unique<DeviceCache>(device_, config(), sequences, std::min(capacity, config().context));
}

void DeviceModel::forward(std::span<const llm::Extension> batch, llm::Cache& cache, std::span<float> logits) {
  auto& own = dynamic_cast<DeviceCache&>(cache);
  const PassRows pass(device_, batch);
  SPECSIM_CHECK(logits.size() == pass.logits * config().vocab, "{} logits for {} rows of {}", logits.size(), pass.logits,
                config().vocab);
  std::size_t longest = 0;
  const std::size_t stride = own.capacity_ + kBeyond;
  std::vector<std::uint32_t> lengths(own.lengths_.begin(), own.lengths_.end());
  own.device_lengths_.upload(lengths);
  for (const llm::Extension& extension : batch) {
    const std::size_t base = own.length(extension.sequence);
    SPECSIM_CHECK(base + extension.tokens.size() <= own.capacity_, "{} tokens onto {} of {}", extension.tokens.size(), base,
                  own.capacity_);
    for (const Token token : extension.tokens) SPECSIM_CHECK(token < config().vocab, "token {} of {}", token, config().vocab);
    device_.upload(own.text_.data() + extension.sequence * stride + base, extension.tokens.data(), extension.tokens.size_bytes());
    longest = std::max(longest, base + extension.tokens.size());
  }
  enqueue(pass, own, {own.text_.data(), stride, own.device_lengths_.data(), 0}, longest, logits_.data());
  for (const llm::Extension& extension : batch) own.lengths_[extension.sequence] += extension.tokens.size();
  if (!logits.empty()) device_.download(logits.data(), logits_.data(), logits.size_bytes());
  device_.finish();
}

void DeviceModel::enqueue(const PassRows& pass, DeviceCache& cache, const Texts& texts, std::size_t longest, float* logits) {
  const llm::ModelConfig& c = config();
  SPECSIM_CHECK(pass.count <= limits_.rows && pass.logits <= limits_.logit_rows && longest <= limits_.context &&
                    longest <= cache.capacity(),
                "{} rows, {} of logits, {} places, limits {}, {}, {} and {} of the cache", pass.count, pass.logits, longest,
                limits_.rows, limits_.logit_rows, limits_.context, cache.capacity());
  const Rows rows{pass.sequence.data(), pass.slot.data(), pass.depth.data(), pass.ancestors.data(), texts.lengths, texts.shift};
  const auto hidden = static_cast<unsigned>(c.hidden);
  device_.launch(Embed{.rows = rows,
                       .text = texts.text,
                       .text_stride = texts.stride,
                       .embedding = weights_->embedding.data.data(),
                       .stride = weights_->embedding.columns,
                       .hidden = hidden_.data(),
                       .columns = hidden,
                       .count = pass.count});
  for (std::size_t i = 0; i < weights_->layers.size(); ++i) {
    const DeviceLayer& layer = weights_->layers[i];
    norm(layer.attention_norm, nullptr, pass.count);
    multiply(kQkv, layer.qkv, normed_.data(), pass.count, Finish::store, qkv_.data(), nullptr);
    device_.launch(Rotate{.rows = rows,
                          .qkv = qkv_.data(),
                          .stride = c.qkv_rows(),
                          .bias = layer.qkv_bias.data(),
                          .cosines = weights_->cosines.data(),
                          .sines = weights_->sines.data(),
                          .queries = queries_.data(),
                          .cache = cache.layer(i),
                          .heads = static_cast<unsigned>(c.heads),
                          .kv_heads = static_cast<unsigned>(c.kv_heads),
                          .head_dim = static_cast<unsigned>(c.head_dim),
                          .count = pass.count});
    attend(pass, rows, cache.layer(i), static_cast<unsigned>(chunks_of(longest)));
    multiply(kOutput, layer.output, attended_.data(), pass.count, Finish::add, hidden_.data(), nullptr);
    norm(layer.ffn_norm, nullptr, pass.count);
    multiply(kGateUp, layer.gate_up, normed_.data(), pass.count, Finish::swiglu, nullptr, gated_.data());
    multiply(kDown, layer.down, gated_.data(), pass.count, Finish::add, hidden_.data(), nullptr);
  }
  if (pass.logits == 0) return;
  norm(weights_->final_norm, pass.logit_source.data(), pass.logits);
  multiply(kHead, weights_->lm_head(), normed_.data(), pass.logits, Finish::store, logits, nullptr);
}

void DeviceModel::norm(const Buffer<float>& weight, const std::uint32_t* source, unsigned rows) {
  device_.launch(RmsNorm{.x = hidden_.data(),
                         .source = source,
                         .weight = weight.data(),
                         .epsilon = static_cast<float>(config().norm_epsilon),
                         .out = normed_.data(),
                         .columns = static_cast<unsigned>(config().hidden),
                         .stride = llm::padded(config().hidden),
                         .count = rows,
                         .mean_columns = static_cast<float>(weights_->norm_columns)});
}

void DeviceModel::multiply(Product product, const DeviceMatrix& matrix, const Bf16* x, unsigned rows, Finish finish, float* out,
                           Bf16* gated) {
  const bool many = rows > kFewRows || (rows > 8 && by_library_[product][rows > 16 ? 1 : 0]);
  if (many && multiply_many(matrix, x, rows, finish, out, gated)) return;
  const std::size_t out_stride = matrix.rows;
  for (unsigned first = 0; first < rows; first += kFewRows)
    multiply_few(matrix, x + static_cast<std::size_t>(first) * matrix.columns, std::min(rows - first, kFewRows), finish,
                 out != nullptr ? out + first * out_stride : nullptr,
                 gated != nullptr ? gated + first * (out_stride / 2) : nullptr);
}

// NOLINTNEXTLINE(readability-non-const-parameter): kernels write there
void DeviceModel::multiply_few(const DeviceMatrix& matrix, const Bf16* x, unsigned rows, Finish finish, float* out, Bf16* gated) {
  const auto fill = [&](auto kernel) {
    kernel.weights = matrix.data.data();
    kernel.outputs = matrix.rows;
    kernel.columns = matrix.columns;
    kernel.x = x;
    kernel.x_stride = matrix.columns;
    kernel.rows = rows;
    kernel.finish = finish;
    kernel.out = out;
    kernel.gated = gated;
    kernel.out_stride = finish == Finish::swiglu ? matrix.rows / 2 : matrix.rows;
    device_.launch(kernel);
  };
  if (rows <= ProductKernel<1>::kMostRows)
    fill(ProductKernel<1>());
  else if (rows <= ProductKernel<2>::kMostRows)
    fill(ProductKernel<2>());
  else
    fill(ProductKernel<4>());
}

bool DeviceModel::multiply_many(const DeviceMatrix& matrix, const Bf16* x, unsigned rows, Finish finish, float* out,
                                Bf16* gated) {
  if (!device_.multiply({.weights = matrix.data.data(),
                         .outputs = matrix.rows,
                         .columns = matrix.columns,
                         .x = x,
                         .rows = rows,
                         .y = finish == Finish::swiglu ? gate_up_.data() : out,
                         .add = finish == Finish::add}))
    return false;
  if (finish == Finish::swiglu)
    device_.launch(Swiglu{.y = gate_up_.data(), .gated = gated, .width = matrix.rows / 2, .count = rows});
  return true;
}

void DeviceModel::attend(const PassRows& pass, const Rows& rows, const LayerCache& cache, unsigned chunks) {
  const llm::ModelConfig& c = config();
  const unsigned tiles = (pass.most_tokens * static_cast<unsigned>(c.heads / c.kv_heads) + kTileRows - 1) / kTileRows;
  const std::size_t stride = llm::padded(c.heads * c.head_dim);
  const auto fill = [&](auto kernel) {
    kernel.queries = queries_.data();
    kernel.cache = cache;
    kernel.rows = rows;
    kernel.first_row = pass.first_row.data();
    kernel.row_count = pass.row_count.data();
    kernel.heads = static_cast<unsigned>(c.heads);
    kernel.kv_heads = static_cast<unsigned>(c.kv_heads);
    kernel.scale = 1.0F / std::sqrt(static_cast<float>(c.head_dim));
    kernel.batch = pass.batch;
    kernel.most_rows = pass.most_tokens;
    kernel.chunks = chunks;
    kernel.row_warps = tiles >= 4 ? 4 : tiles >= 2 ? 2 : 1;
    kernel.partial = partial_.data();
    kernel.peak_sum = peak_sum_.data();
    kernel.out = attended_.data();
    kernel.stride = stride;
    kernel.head_dim = static_cast<unsigned>(c.head_dim);
    device_.launch(kernel);
  };
  if (width_ == 32)
    fill(AttentionKernel<32>());
  else if (width_ == 64)
    fill(AttentionKernel<64>());
  else
    fill(AttentionKernel<128>());
  if (chunks == 1) return;
  device_.launch(Combine{.rows = rows,
                         .row_all = pass.all.data(),
                         .partial = partial_.data(),
                         .peak_sum = peak_sum_.data(),
                         .chunks = chunks,
                         .heads = static_cast<unsigned>(c.heads),
                         .head_dim = static_cast<unsigned>(c.head_dim),
                         .width = width_,
                         .out = attended_.data(),
                         .stride = stride,
                         .count = pass.count});
}

void DeviceModel::tune() {
  if (device_.info().library.empty()) return;
  for (const Buffer<Bf16>* const x : {&normed_, &attended_, &gated_})  // times of zeros would differ
    device_.launch(FillRandom{.out = x->data(), .count = x->size() / 8 * 8, .deviation = 1.0F, .key = 1, .index = 0});
  // Times one product of each layer in turn: more memory than caches hold, as in a pass.
  for (const Product product : {kQkv, kOutput, kGateUp, kDown, kHead}) {
    const auto each = [&](unsigned rows, bool library) {
      bool there = true;
      const auto once = [&](const DeviceMatrix& matrix, const Bf16* x, Finish finish, float* out) {
        Bf16* const gated = finish == Finish::swiglu ? gated_.data() : nullptr;
        if (library)
          there = multiply_many(matrix, x, rows, finish, out, gated) && there;
        else
          multiply_few(matrix, x, rows, finish, out, gated);
      };
      if (product == kHead) {
        once(weights_->lm_head(), normed_.data(), Finish::store, logits_.data());
        return there;
      }
      for (const DeviceLayer& layer : weights_->layers) {
        if (product == kQkv) once(layer.qkv, normed_.data(), Finish::store, qkv_.data());
        if (product == kOutput) once(layer.output, attended_.data(), Finish::add, hidden_.data());
        if (product == kGateUp) once(layer.gate_up, normed_.data(), Finish::swiglu, nullptr);
        if (product == kDown) once(layer.down, gated_.data(), Finish::add, hidden_.data());
      }
      return there;
    };
    for (std::size_t bucket = 0; bucket < 2; ++bucket) {
      const auto rows = static_cast<unsigned>(std::size_t{16} << bucket);
      if (rows > limits_.rows || (product == kHead && rows > limits_.logit_rows)) continue;
      // Timed as graphs, which is how passes run: launched singly, short products would be limited by the host.
      std::array<std::unique_ptr<Graph>, 2> graphs;
      bool there = true;
      for (const bool library : {false, true}) {
        there = each(rows, library) && there;  // libraries choose their kernels outside of a recording
        device_.finish();
        if (there) graphs[library ? 1 : 0] = device_.record([&] { each(rows, library); });
      }
      if (!there) continue;
      std::array<std::vector<double>, 2> times;
      constexpr int kTries = 5;
      for (int i = 0; i < kTries + 1; ++i)
        for (std::size_t way = 0; way < 2; ++way) {
          const double seconds = device_.seconds([&] { device_.replay(*graphs[way]); });
          if (i > 0) times[way].push_back(seconds);
        }
      for (std::vector<double>& list : times) std::sort(list.begin(), list.end());
      by_library_[product][bucket] = times[1][kTries / 2] < times[0][kTries / 2];
    }
  }
  for (const Buffer<Bf16>* const x : {&normed_, &attended_, &gated_})  // a row's padding is zero again
    device_.clear_rows(x->data(), x->size() * sizeof(Bf16), x->size() * sizeof(Bf16), 1);
}

}  // namespace specsim::cuda
