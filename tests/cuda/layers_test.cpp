// The kernels of a layer against double precision, on the host's twin of a device: odd shapes, poisoned outputs, both orders of
// threads.
#include "tests/cuda/random_numbers.h"
#include "tests/cuda/twins.h"

#include <catch2/catch.hpp>

#include <stdexcept>

namespace specsim::layers_test {

using namespace specsim::cuda;
using namespace specsim::tests;

namespace {

constexpr double kRounding = 4e-3;  // relative error of rounding to bf16: half a unit in the last of 8 bits

template <class K>
std::vector<float> product(Device& device, unsigned outputs, unsigned columns, unsigned rows, Finish finish) {
  constexpr std::size_t kRowsBeyond = 8;  // mutants read beyond the end, and find numbers there
  const Buffer<Bf16> weights(device, rounded(numbers((outputs + kRowsBeyond) * columns, 1)));
  const Buffer<Bf16> x(device, rounded(numbers(std::size_t{rows} * columns, 2)));
  const std::size_t stride = outputs + 3;
  Buffer<float> out(device, rows * stride);
  Buffer<Bf16> gated(device, rows * stride);
  const std::vector<float> before = numbers(rows * stride, 4);
  if (finish == Finish::add) out.upload(before);
  K kernel;
  kernel.weights = weights.data();
  kernel.outputs = outputs;
  kernel.columns = columns;
  kernel.x = x.data();
  kernel.x_stride = columns;
  kernel.rows = rows;
  kernel.finish = finish;
  kernel.out = out.data();
  kernel.gated = gated.data();
  kernel.out_stride = stride;
  device.launch(kernel);
  const std::vector<float> values = finish == Finish::swiglu ? as_floats(gated.download()) : out.download();
  std::vector<float> used;
  for (std::size_t r = 0; r < rows; ++r)
    for (std::size_t o = 0; o < (finish == Finish::swiglu ? outputs / 2 : outputs); ++o) used.push_back(values[r * stride + o]);
  for (std::size_t r = 0; r < rows; ++r)
    for (std::size_t o = finish == Finish::swiglu ? outputs / 2 : outputs; o < stride; ++o) {
      const float beyond = values[r * stride + o];
      if (!(finish == Finish::add ? beyond == before[r * stride + o] : std::isnan(beyond)))
        throw std::runtime_error("written beyond its columns");
    }
  return used;
}

std::vector<double> product_reference(unsigned outputs, unsigned columns, unsigned rows, Finish finish) {
  const std::vector<float> weights = as_floats(rounded(numbers(std::size_t{outputs} * columns, 1)));
  const std::vector<float> x = as_floats(rounded(numbers(std::size_t{rows} * columns, 2)));
  const std::vector<float> before = numbers(std::size_t{rows} * (outputs + 3), 4);
  std::vector<double> out;
  for (std::size_t r = 0; r < rows; ++r) {
    std::vector<double> y(outputs);
    for (std::size_t o = 0; o < outputs; ++o) {
      for (std::size_t k = 0; k < columns; ++k)
        y[o] += static_cast<double>(weights[o * columns + k]) * static_cast<double>(x[r * columns + k]);
      if (finish == Finish::add) y[o] += static_cast<double>(before[r * (outputs + 3) + o]);
    }
    if (finish == Finish::swiglu)
      for (std::size_t o = 0; o < outputs / 2; ++o) {
        const double gate = y[o / 8 * 16 + o % 8];
        out.push_back(gate / (1.0 + std::exp(-gate)) * y[o / 8 * 16 + o % 8 + 8]);
      }
    else
      out.insert(out.end(), y.begin(), y.end());
  }
  return out;
}

bool product_is_right(const std::vector<float>& out, unsigned outputs, unsigned columns, unsigned rows, Finish finish) {
  return distance(out, product_reference(outputs, columns, rows, finish)) < (finish == Finish::swiglu ? kRounding : 1e-5);
}

template <class K>
void check_product(unsigned outputs, unsigned columns, unsigned rows, Finish finish) {
  CAPTURE(outputs, columns, rows, static_cast<unsigned>(finish));
  const auto device = test_device();
  const std::vector<float> out = product<K>(*device, outputs, columns, rows, finish);
  CHECK(product_is_right(out, outputs, columns, rows, finish));
  const auto backwards = test_device(Order::descending);
  CHECK(product<K>(*backwards, outputs, columns, rows, finish) == out);
}

// Sequences with cached text and a chain or a tree of new tokens.
struct Pass {
  unsigned heads = 0;
  unsigned kv_heads = 0;
  unsigned head_dim = 0;
  std::vector<std::uint32_t> lengths;  // cached
  std::vector<unsigned> tokens;        // new, by sequence
  bool tree = false;
  unsigned row_warps = 1;
};

// The parent of node i of the tree is (i - 1) / 2.
unsigned parent(unsigned i) { return (i - 1) / 2; }

template <unsigned kWidth>
std::vector<float> attended(Device& device, const Pass& pass, bool reference) {
  std::size_t longest = 0;
  for (std::size_t s = 0; s < pass.lengths.size(); ++s)
    longest = std::max<std::size_t>(longest, pass.lengths[s] + pass.tokens[s]);
  const std::size_t capacity = std::max<std::size_t>(320, (longest + 31) / 32 * 32);
  const auto batch = static_cast<unsigned>(pass.lengths.size());
  std::vector<std::uint32_t> sequence;
  std::vector<std::uint32_t> slot;
  std::vector<std::uint32_t> depth;
  std::vector<std::uint64_t> ancestors;
  std::vector<std::uint32_t> first;
  std::vector<std::uint32_t> all;
  for (unsigned s = 0; s < batch; ++s) {
    const auto begin = static_cast<unsigned>(sequence.size());
    first.push_back(begin);
    for (unsigned i = 0; i < pass.tokens[s]; ++i) {
      sequence.push_back(s);
      slot.push_back(i);
      const bool root = i == 0;
      const unsigned up = pass.tree ? parent(i) : i - 1;
      depth.push_back(root ? 0 : depth[begin + up] + 1);
      ancestors.push_back((root ? 0 : ancestors[begin + up]) | std::uint64_t{1} << i);
      all.push_back(pass.tokens[s]);
    }
  }
  const auto rows = static_cast<unsigned>(sequence.size());
  const std::size_t qkv_stride = (pass.heads + 2 * pass.kv_heads) * pass.head_dim;
  const std::vector<float> qkv = numbers(rows * qkv_stride, 5);
  const std::vector<float> bias = numbers(qkv_stride, 6);
  const unsigned half = pass.head_dim / 2;
  std::vector<float> cosines;
  std::vector<float> sines;
  for (std::size_t position = 0; position < capacity; ++position)
    for (unsigned i = 0; i < half; ++i) {
      const double angle = static_cast<double>(position) * std::pow(1e4, -2.0 * i / pass.head_dim);
      cosines.push_back(static_cast<float>(std::cos(angle)));
      sines.push_back(static_cast<float>(std::sin(angle)));
    }
  // Cached values; NaN in every place that has not been written.
  const std::size_t head_size = capacity * kWidth;
  std::vector<Bf16> keys(batch * pass.kv_heads * head_size, Bf16{0xFFFF});
  std::vector<Bf16> values(keys.size(), Bf16{0xFFFF});
  const std::vector<float> cached = numbers(2 * keys.size(), 7);
  for (unsigned head = 0; head < batch * pass.kv_heads; ++head)
    for (std::size_t place = 0; place < capacity; ++place)
      for (unsigned d = 0; d < kWidth; ++d) {
        const std::size_t k = head * head_size + place * kWidth + d;
        const std::size_t v = head * head_size + d * capacity + place;
        const bool there = place < pass.lengths[head / pass.kv_heads];
        if (d >= pass.head_dim) keys[k] = values[v] = {0};
        if (there && d < pass.head_dim) {
          keys[k] = to_bf16(cached[k]);
          values[v] = to_bf16(cached[keys.size() + v]);
        }
      }

  if (reference) {
    std::vector<float> out;
    const auto turned = [&](unsigned r, std::size_t at, std::size_t position, unsigned d) {
      const unsigned i = d % half;
      const double low = static_cast<double>(qkv[r * qkv_stride + at + i]) + static_cast<double>(bias[at + i]);
      const double high = static_cast<double>(qkv[r * qkv_stride + at + i + half]) + static_cast<double>(bias[at + i + half]);
      const auto c = static_cast<double>(cosines[position * half + i]);
      const auto s = static_cast<double>(sines[position * half + i]);
      return d < half ? low * c - high * s : high * c + low * s;
    };
    for (unsigned r = 0; r < rows; ++r)
      for (unsigned head = 0; head < pass.heads; ++head) {
        const unsigned s = sequence[r];
        const unsigned kv = head / (pass.heads / pass.kv_heads);
        const std::size_t base = (s * pass.kv_heads + kv) * head_size;
        std::vector<double> weights;
        std::vector<std::vector<double>> seen;
        const auto see = [&](const auto& key, const auto& value) {
          double score = 0.0;
          for (unsigned d = 0; d < pass.head_dim; ++d)
            score += turned(r, std::size_t{head} * pass.head_dim, pass.lengths[s] + depth[r], d) * key(d);
          weights.push_back(std::exp(score / std::sqrt(pass.head_dim)));
          seen.emplace_back();
          for (unsigned d = 0; d < pass.head_dim; ++d) seen.back().push_back(value(d));
        };
        for (std::size_t place = 0; place < pass.lengths[s]; ++place)
          see([&](unsigned d) { return static_cast<double>(to_float(keys[base + place * kWidth + d])); },
              [&](unsigned d) { return static_cast<double>(to_float(values[base + d * capacity + place])); });
        for (unsigned other = first[s]; other < first[s] + pass.tokens[s]; ++other) {
          if ((ancestors[r] >> slot[other] & 1U) == 0) continue;
          const std::size_t at = (pass.heads + kv) * pass.head_dim;
          see([&](unsigned d) { return turned(other, at, pass.lengths[s] + depth[other], d); },
              [&](unsigned d) {
                const std::size_t v = at + std::size_t{pass.kv_heads} * pass.head_dim + d;
                return static_cast<double>(qkv[other * qkv_stride + v]) + static_cast<double>(bias[v]);
              });
        }
        double sum = 0.0;
        for (const double w : weights) sum += w;
        for (unsigned d = 0; d < pass.head_dim; ++d) {
          double o = 0.0;
          for (std::size_t i = 0; i < weights.size(); ++i) o += weights[i] / sum * seen[i][d];
          out.push_back(static_cast<float>(o));
        }
      }
    return out;
  }

  constexpr std::uint32_t kShift = 2;  // lengths that lag, as a draft model's do
  std::vector<std::uint32_t> lagging = pass.lengths;
  for (std::uint32_t& length : lagging) length += kShift;
  const Buffer<std::uint32_t> d_sequence(device, sequence);
  const Buffer<std::uint32_t> d_slot(device, slot);
  const Buffer<std::uint32_t> d_depth(device, depth);
  const Buffer<std::uint64_t> d_ancestors(device, ancestors);
  const Buffer<std::uint32_t> d_lengths(device, lagging);
  const Buffer<std::uint32_t> d_first(device, first);
  const Buffer<std::uint32_t> d_count(device, pass.tokens);
  const Buffer<std::uint32_t> d_all(device, all);
  const Buffer<float> d_qkv(device, qkv);
  const Buffer<float> d_bias(device, bias);
  const Buffer<float> d_cosines(device, cosines);
  const Buffer<float> d_sines(device, sines);
  const Buffer<Bf16> d_keys(device, keys);
  const Buffer<Bf16> d_values(device, values);
  const Buffer<Bf16> queries(device, std::size_t{rows} * pass.heads * kWidth, true);
  const auto chunks = static_cast<unsigned>((longest + kChunk - 1) / kChunk);
  const Buffer<float> partial(device, std::size_t{rows} * pass.heads * chunks * kWidth);
  const Buffer<float> peak_sum(device, std::size_t{rows} * pass.heads * chunks * 2);
  const std::size_t stride = pass.heads * pass.head_dim;
  const Buffer<Bf16> out(device, rows * stride);
  const Rows where{d_sequence.data(), d_slot.data(),
                   d_depth.data(),    pass.tree ? d_ancestors.data() : nullptr,
                   d_lengths.data(),  -static_cast<int>(kShift)};
  const LayerCache cache{d_keys.data(), d_values.data(), kWidth, capacity};

  Rotate rotate;
  rotate.rows = where;
  rotate.qkv = d_qkv.data();
  rotate.stride = qkv_stride;
  rotate.bias = d_bias.data();
  rotate.cosines = d_cosines.data();
  rotate.sines = d_sines.data();
  rotate.queries = queries.data();
  rotate.cache = cache;
  rotate.heads = pass.heads;
  rotate.kv_heads = pass.kv_heads;
  rotate.head_dim = pass.head_dim;
  rotate.count = rows;
  device.launch(rotate);

  AttentionKernel<kWidth> attention;
  attention.queries = queries.data();
  attention.cache = cache;
  attention.rows = where;
  attention.first_row = d_first.data();
  attention.row_count = d_count.data();
  attention.heads = pass.heads;
  attention.kv_heads = pass.kv_heads;
  attention.scale = 1.0F / std::sqrt(static_cast<float>(pass.head_dim));
  attention.batch = batch;
  attention.most_rows = *std::max_element(pass.tokens.begin(), pass.tokens.end());
  attention.chunks = chunks;
  attention.row_warps = pass.row_warps;
  attention.partial = partial.data();
  attention.peak_sum = peak_sum.data();
  attention.out = out.data();
  attention.stride = stride;
  attention.head_dim = pass.head_dim;
  device.launch(attention);
  if (chunks == 1) return as_floats(out.download());

  Combine combine;
  combine.rows = where;
  combine.row_all = d_all.data();
  combine.partial = partial.data();
  combine.peak_sum = peak_sum.data();
  combine.chunks = chunks;
  combine.heads = pass.heads;
  combine.head_dim = pass.head_dim;
  combine.width = kWidth;
  combine.out = out.data();
  combine.stride = stride;
  combine.count = rows;
  device.launch(combine);
  return as_floats(out.download());
}

template <unsigned kWidth>
bool attention_is_right(Device& device, const Pass& pass) {  // queries, keys, weights and outputs are rounded
  return distance(attended<kWidth>(device, pass, false), attended<kWidth>(device, pass, true)) < 2 * kRounding;
}

template <unsigned kWidth>
void check_attention(const Pass& pass) {
  CAPTURE(kWidth, pass.heads, pass.kv_heads, pass.head_dim, pass.lengths, pass.tokens, pass.tree, pass.row_warps);
  const auto device = test_device();
  const std::vector<float> out = attended<kWidth>(*device, pass, false);
  CHECK(attention_is_right<kWidth>(*device, pass));
  const auto backwards = test_device(Order::descending);
  CHECK(attended<kWidth>(*backwards, pass, false) == out);
}

}  // namespace

TEST_CASE("cuda: products of few rows, any shape, every finish") {
  for (const unsigned rows : {1U, 3U, 8U}) check_product<ProductKernel<1>>(37, 96, rows, Finish::store);
  check_product<ProductKernel<1>>(16, 32, 5, Finish::add);
  check_product<ProductKernel<1>>(5, 1312, 2, Finish::add);  // columns beyond one turn of all warps
  check_product<ProductKernel<2>>(33, 320, 13, Finish::store);
  check_product<ProductKernel<4>>(50, 64, 31, Finish::add);
  check_product<ProductKernel<4>>(64, 160, 32, Finish::swiglu);
  check_product<ProductKernel<1>>(48, 64, 1, Finish::swiglu);
}

TEST_CASE("cuda: a row's product does not depend on how many rows there are") {
  const auto device = test_device();
  const std::vector<float> many = product<ProductKernel<4>>(*device, 20, 352, 29, Finish::store);
  const std::vector<float> one = product<ProductKernel<1>>(*device, 20, 352, 1, Finish::store);
  CHECK(std::equal(one.begin(), one.end(), many.begin()));
}

namespace {

constexpr unsigned kBeyondRegisters = RmsNorm::kOwn * RmsNorm::kThreads + 700;  // columns that a norm reads twice

bool norm_is_right(Device& device, unsigned columns) {
  const std::size_t stride = columns + 20;
  constexpr std::size_t kBeyond = 2;  // mutants read beyond the end, and find numbers there
  const std::vector<float> x = numbers(3 * std::size_t{columns} + kBeyond, 8);
  const std::vector<float> weight = numbers(columns + kBeyond, 9);
  const std::vector<std::uint32_t> source = {2, 0};
  const Buffer<float> d_x(device, x);
  const Buffer<float> d_weight(device, weight);
  const Buffer<std::uint32_t> d_source(device, source);
  const Buffer<Bf16> out(device, 2 * stride);
  RmsNorm norm;
  norm.x = d_x.data();
  norm.source = d_source.data();
  norm.weight = d_weight.data();
  norm.epsilon = 0.03F;
  norm.out = out.data();
  norm.columns = columns;
  norm.stride = stride;
  norm.count = 2;
  norm.mean_columns = static_cast<float>(columns);
  device.launch(norm);
  const std::vector<float> all = as_floats(out.download());
  bool right = true;
  for (std::size_t r = 0; r < 2; ++r) {
    double squares = 0.0;
    for (std::size_t i = 0; i < columns; ++i) squares += std::pow(static_cast<double>(x[source[r] * columns + i]), 2);
    std::vector<double> reference;
    for (std::size_t i = 0; i < columns; ++i)
      reference.push_back(static_cast<double>(x[source[r] * columns + i]) * static_cast<double>(weight[i]) /
                          std::sqrt(squares / columns + 0.03));
    const std::vector<float> row(all.begin() + static_cast<std::ptrdiff_t>(r * stride), all.end());
    right = right && distance(row, reference) < kRounding && std::isnan(row[columns]);
  }
  return right;
}

bool activation_is_right(Device& device) {
  const unsigned width = 264;
  const std::vector<float> y = numbers(4 * width + 8, 10);  // a mutant reads beyond the end, and finds numbers there
  const Buffer<float> d_y(device, y);
  const Buffer<Bf16> gated(device, 2 * width);
  device.launch(Swiglu{.y = d_y.data(), .gated = gated.data(), .width = width, .count = 2});
  std::vector<double> reference;
  for (std::size_t r = 0; r < 2; ++r)
    for (std::size_t i = 0; i < width; ++i) {
      const auto gate = static_cast<double>(y[r * 2 * width + i / 8 * 16 + i % 8]);
      reference.push_back(gate / (1.0 + std::exp(-gate)) * static_cast<double>(y[r * 2 * width + i / 8 * 16 + i % 8 + 8]));
    }
  return distance(as_floats(gated.download()), reference) < kRounding;
}

}  // namespace

TEST_CASE("cuda: norm and activation") {
  const auto device = test_device();
  for (const unsigned columns : {300U, 1500U, kBeyondRegisters}) CHECK(norm_is_right(*device, columns));
  CHECK(activation_is_right(*device));
}

TEST_CASE("cuda: mutants of norm and activation are seen") {
  for (const unsigned columns : {300U, kBeyondRegisters})
    check_rejects({mutant<RmsNorm>("the mean is over other columns too", [](RmsNorm& k) { k.mean_columns *= 1.06F; }),
                   mutant<RmsNorm>("no epsilon", [](RmsNorm& k) { k.epsilon = 0.0F; }),
                   mutant<RmsNorm>("rows as they come", [](RmsNorm& k) { k.source = nullptr; }),
                   mutant<RmsNorm>("the padding is written", [](RmsNorm& k) { ++k.columns; }),
                   mutant<RmsNorm>("the last column is missing", [](RmsNorm& k) { --k.columns; }),
                   mutant<RmsNorm>("rows without padding", [](RmsNorm& k) { k.stride = k.columns; }),
                   mutant<RmsNorm>("weights of the next column", [](RmsNorm& k) { ++k.weight; })},
                  [columns](Device& device) { return norm_is_right(device, columns); });
  check_rejects({mutant<Swiglu>("ups taken for gates", [](Swiglu& k) { k.y += 8; }),
                 mutant<Swiglu>("the last number is missing", [](Swiglu& k) { --k.width; }),
                 mutant<Swiglu>("the last row is missing", [](Swiglu& k) { --k.count; })},
                activation_is_right);
}

TEST_CASE("cuda: mutants of products are seen") {
  const auto mutants_of = []<class K>(K /*kind*/) {
    return std::vector<Mutant>{
        mutant<K>("the last 32 columns are missing", [](K& k) { k.columns -= 32; }),
        mutant<K>("weights of a column before", [](K& k) { k.weights += 8; }),
        mutant<K>("rows of x overlap", [](K& k) { k.x_stride -= 32; }),
        mutant<K>("the last row is missing", [](K& k) { --k.rows; }),
        mutant<K>("the last output is missing", [](K& k) { --k.outputs; }),
        mutant<K>("an output too many", [](K& k) { ++k.outputs; }),
        mutant<K>("rows of the output overlap", [](K& k) { --k.out_stride; }),
        mutant<K>("the other way to finish", [](K& k) { k.finish = k.finish == Finish::store ? Finish::add : Finish::store; })};
  };
  const auto check = [&]<class K>(K kind, unsigned rows, Finish finish) {
    CAPTURE(rows, static_cast<unsigned>(finish));
    check_rejects(mutants_of(kind), [&](Device& device) {
      return product_is_right(product<K>(device, 45, 96, rows, finish), 45, 96, rows, finish);
    });
  };
  check(ProductKernel<1>(), 5, Finish::store);
  check(ProductKernel<2>(), 13, Finish::add);
  check(ProductKernel<4>(), 31, Finish::store);
  check_rejects(
      {mutant<ProductKernel<1>>("ups taken for gates", [](ProductKernel<1>& k) { k.weights += 8 * std::size_t{k.columns}; }),
       mutant<ProductKernel<1>>("no activation", [](ProductKernel<1>& k) { k.finish = Finish::store; })},
      [](Device& device) {
        return product_is_right(product<ProductKernel<1>>(device, 48, 64, 3, Finish::swiglu), 48, 64, 3, Finish::swiglu);
      });
}

TEST_CASE("cuda: rotation, cache and attention: grouped heads, several sequences, chains and trees") {
  check_attention<32>({.heads = 6, .kv_heads = 2, .head_dim = 20, .lengths = {5, 300, 2}, .tokens = {1, 1, 1}});
  check_attention<32>({.heads = 2, .kv_heads = 2, .head_dim = 32, .lengths = {250, 31}, .tokens = {9, 3}, .row_warps = 2});
  check_attention<64>({.heads = 8, .kv_heads = 2, .head_dim = 64, .lengths = {270, 2}, .tokens = {5, 20}, .row_warps = 4});
  check_attention<128>({.heads = 4, .kv_heads = 1, .head_dim = 128, .lengths = {290}, .tokens = {8}});
  check_attention<32>({.heads = 4, .kv_heads = 2, .head_dim = 16, .lengths = {30, 254}, .tokens = {11, 7}, .tree = true});
  // More chunks than are joined at once.
  check_attention<32>({.heads = 2, .kv_heads = 1, .head_dim = 16, .lengths = {1100}, .tokens = {2}});
  // One chunk alone.
  check_attention<32>({.heads = 6, .kv_heads = 2, .head_dim = 20, .lengths = {0, 120, 33}, .tokens = {1, 8, 3}});
  check_attention<128>({.heads = 2, .kv_heads = 1, .head_dim = 96, .lengths = {64}, .tokens = {40}, .row_warps = 4});
}

TEST_CASE("cuda: mutants of rotation and attention are seen") {
  using Attend = AttentionKernel<32>;
  // Angles of another base.
  std::vector<float> cosines;
  for (std::size_t position = 0; position < 320; ++position)
    for (unsigned i = 0; i < 8; ++i)
      cosines.push_back(static_cast<float>(std::cos(static_cast<double>(position) * std::pow(5e3, -0.125 * i))));
  // Each row sees its sequence's tokens except its own root.
  std::vector<std::uint64_t> rootless(18);
  const std::vector<Mutant> of_any = {
      mutant<Rotate>("another base of the angles", [&](Rotate& k) { k.cosines = cosines.data(); }),
      mutant<Rotate>("sines and cosines exchanged", [](Rotate& k) { std::swap(k.cosines, k.sines); }),
      mutant<Rotate>("no bias", [](Rotate& k) { k.bias = nullptr; }),
      mutant<Rotate>("one place late", [](Rotate& k) { ++k.rows.shift; }),
      mutant<Rotate>("the last row is missing", [](Rotate& k) { --k.count; }),
      mutant<Rotate>("keys of half the heads", [](Rotate& k) { k.kv_heads /= 2; }),
      mutant<Rotate>("rows of the product overlap", [](Rotate& k) { k.stride -= 16; }),
      mutant<Attend>("scores too large", [](Attend& k) { k.scale *= 1.1F; }),
      mutant<Attend>("one place too many", [](Attend& k) { ++k.rows.shift; }),
      mutant<Attend>("one place too few", [](Attend& k) { --k.rows.shift; }),
      mutant<Attend>("keys and values exchanged", [](Attend& k) { std::swap(k.cache.keys, k.cache.values); }),
      mutant<Attend>("a head's cache is shorter", [](Attend& k) { k.cache.capacity -= 32; }),
      mutant<Attend>("the last chunk is missing", [](Attend& k) { --k.chunks; }),
      mutant<Attend>("the last sequence is missing", [](Attend& k) { --k.batch; }),
      mutant<Attend>("a query head's key head is the next", [](Attend& k) { k.heads /= 2; }),
      mutant<Combine>("one chunk too few", [](Combine& k) { k.rows.shift -= static_cast<int>(kChunk); }),
      mutant<Combine>("chunks of the next row", [](Combine& k) { --k.chunks; }),
      mutant<Combine>("the last number of a head is missing", [](Combine& k) { --k.head_dim; }),
      mutant<Combine>("the last row is missing", [](Combine& k) { --k.count; }),
      mutant<Combine>("heads overlap", [](Combine& k) { k.stride -= 8; })};
  const Pass chain{.heads = 4, .kv_heads = 2, .head_dim = 16, .lengths = {30, 254}, .tokens = {11, 7}};
  check_rejects(of_any, [&](Device& device) { return attention_is_right<32>(device, chain); });
  const Pass one_chunk{.heads = 4, .kv_heads = 2, .head_dim = 16, .lengths = {30, 100}, .tokens = {11, 7}};
  check_rejects({mutant<Attend>("the last number of a head is missing", [](Attend& k) { --k.head_dim; }),
                 mutant<Attend>("heads overlap", [](Attend& k) { k.stride -= 8; }),
                 mutant<Attend>("one place too many", [](Attend& k) { ++k.rows.shift; }),
                 mutant<Attend>("the last sequence is missing", [](Attend& k) { --k.batch; })},
                [&](Device& device) { return attention_is_right<32>(device, one_chunk); });
  Pass tree = chain;
  tree.tree = true;
  std::vector<Mutant> of_trees = of_any;
  of_trees.push_back(mutant<Rotate>("angles by place instead of depth", [](Rotate& k) { k.rows.depth = k.rows.slot; }));
  of_trees.push_back(mutant<Attend>("a chain's mask", [](Attend& k) { k.rows.ancestors = nullptr; }));
  of_trees.push_back(mutant<Attend>("the root is not seen", [&](Attend& k) {
    for (std::size_t r = 0; r < rootless.size(); ++r) rootless[r] = k.rows.ancestors[r] & ~std::uint64_t{1};
    k.rows.ancestors = rootless.data();
  }));
  of_trees.push_back(mutant<Attend>("masks of the next row", [&](Attend& k) {
    for (std::size_t r = 0; r < rootless.size(); ++r) rootless[r] = k.rows.ancestors[std::min(r + 1, rootless.size() - 1)];
    k.rows.ancestors = rootless.data();
  }));
  check_rejects(of_trees, [&](Device& device) { return attention_is_right<32>(device, tree); });
}

}  // namespace specsim::layers_test
