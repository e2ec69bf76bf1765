// The kernels of a transformer's layers. Each is a struct: its members are the arguments, grid() says how it is launched.
// Rows are tokens, side by side; strides count elements. Rows of bf16 numbers that are multiplied have a stride that is a
// multiple of 32, with zeros behind their columns.
#pragma once

#include "sim/cuda/launch.h"

namespace specsim::cuda {

// Where a pass's tokens stand. A sequence's tokens lie side by side; the token at `slot` behind those cached has place
// lengths[sequence] + shift + slot in the text and in the cache, and `depth` takes slot's place where positions are counted.
struct Rows {
  const std::uint32_t* sequence = nullptr;   // [row]
  const std::uint32_t* slot = nullptr;       // [row]
  const std::uint32_t* depth = nullptr;      // [row]
  const std::uint64_t* ancestors = nullptr;  // [row] bit j: sees slot j; null: every token sees those before it and itself
  const std::uint32_t* lengths = nullptr;    // [sequence] cached tokens
  int shift = 0;

  SPECSIM_KERNEL std::size_t cached(unsigned row) const {
    return static_cast<std::size_t>(static_cast<std::int64_t>(lengths[sequence[row]]) + shift);
  }
};

// hidden[row] = the embedding of the row's token.
struct Embed {
  static constexpr unsigned kThreads = 128;
  Rows rows;
  const std::uint32_t* text = nullptr;  // [sequence][text_stride]
  std::size_t text_stride = 0;
  const Bf16* embedding = nullptr;  // [vocab][stride]
  std::size_t stride = 0;           // a multiple of 8
  float* hidden = nullptr;          // [row][columns]
  unsigned columns = 0;
  unsigned count = 0;

  [[nodiscard]] Grid grid() const { return {count, (columns + 8 * kThreads - 1) / (8 * kThreads), 1, kThreads, 0}; }
  SPECSIM_KERNEL void operator()(const Thread& thread) const {
    thread.wait_for_previous();
    thread.release_next();
    const unsigned row = thread.block_x();
    const unsigned first = 8 * (thread.block_y() * kThreads + thread.index());
    if (first >= columns) return;
    const std::uint32_t token = text[rows.sequence[row] * text_stride + rows.cached(row) + rows.slot[row]];
    const Words own = load(embedding + token * stride + first);
    float* const to = hidden + static_cast<std::size_t>(row) * columns + first;
    SPECSIM_UNROLL
    for (unsigned i = 0; i < 8; ++i)
      if (first + i < columns) to[i] = to_float({static_cast<std::uint16_t>(own.word[i / 2] >> (16 * (i % 2)))});
  }
};

// out[i] = x[i] weight[i] / sqrt(mean of squares + epsilon), as bf16.
struct RmsNorm {
  static constexpr unsigned kThreads = 512;
  static constexpr unsigned kOwn = 16;    // columns of a thread that it loads at once and keeps; those beyond cost a second look
  const float* x = nullptr;               // [row][columns]
  const std::uint32_t* source = nullptr;  // [row of out] its row of x; null: the same
  const float* weight = nullptr;
  float epsilon = 0.0F;
  Bf16* out = nullptr;  // [row][stride]
  unsigned columns = 0;
  std::size_t stride = 0;
  unsigned count = 0;
  // The mean is over so many columns: fewer than `columns` where the others are known to be zero.
  float mean_columns = 0.0F;

  [[nodiscard]] Grid grid() const { return {count, 1, 1, kThreads, kThreads / kWarp * sizeof(float)}; }
  SPECSIM_KERNEL void operator()(const Thread& thread) const {
    const unsigned row = thread.block_x();
    float weights[kOwn];
    take(weight, thread.index(), weights);
    thread.wait_for_previous();  // weights stand; x is the previous kernel's
    thread.release_next();
    const float* const from = x + static_cast<std::size_t>(source != nullptr ? source[row] : row) * columns;
    float own[kOwn];
    take(from, thread.index(), own);
    constexpr unsigned kKept = kOwn * kThreads;
    float squares = 0.0F;
    SPECSIM_UNROLL
    for (const float value : own) squares += value * value;
    for (unsigned i = thread.index() + kKept; i < columns; i += kThreads) squares += from[i] * from[i];
    squares = block_sum(thread, squares, kThreads, reinterpret_cast<float*>(thread.shared()));
    const float scale = reciprocal_root(squares / mean_columns + epsilon);
    Bf16* const to = out + row * stride;
    SPECSIM_UNROLL
    for (unsigned k = 0; k < kOwn; ++k) {
      const unsigned i = thread.index() + k * kThreads;
      if (i < columns) to[i] = to_bf16(own[k] * scale * weights[k]);
    }
    for (unsigned i = thread.index() + kKept; i < columns; i += kThreads) to[i] = to_bf16(from[i] * scale * weight[i]);
  }

 private:
  SPECSIM_KERNEL void take(const float* values, unsigned first, float (&to)[kOwn]) const {
    SPECSIM_UNROLL
    for (unsigned k = 0; k < kOwn; ++k) to[k] = first + k * kThreads < columns ? values[first + k * kThreads] : 0.0F;
  }
};

enum class Finish : unsigned {
  store,   // out = y
  add,     // out += y
  swiglu,  // rows of weights in turns of 8 gates and 8 ups: gated[8 i + r] = silu(y[16 i + r]) y[16 i + 8 + r]
};

// y[row][o] = weights[o] . x[row] for up to 8 kTiles rows; weights are read once, straight into the operands of matrix
// instructions: the order of summation is free, so a thread takes 8 neighbouring columns of its row as if they were those that
// the instruction wants. A sum does not depend on how many rows there are.
template <unsigned kTiles>
struct Product {
  static constexpr unsigned kThreads = 256;
  static constexpr unsigned kWarps = kThreads / kWarp;
  static constexpr unsigned kOutputs = 16;  // of a block
  static constexpr unsigned kPieces = 4;    // of 32 columns, a warp's at a time
  static constexpr unsigned kMostRows = 8 * kTiles;
  const Bf16* weights = nullptr;  // [outputs][columns]
  unsigned outputs = 0;
  unsigned columns = 0;     // a multiple of 32
  const Bf16* x = nullptr;  // [rows][x_stride]
  std::size_t x_stride = 0;
  unsigned rows = 0;
  Finish finish = Finish::store;
  float* out = nullptr;   // [rows][out_stride]
  Bf16* gated = nullptr;  // [rows][out_stride]
  std::size_t out_stride = 0;

  [[nodiscard]] Grid grid() const {
    return {(outputs + kOutputs - 1) / kOutputs, 1, 1, kThreads, kWarps * kOutputs * kMostRows * sizeof(float)};
  }

  SPECSIM_KERNEL void operator()(const Thread& thread) const {
    thread.release_next();
    const unsigned warp = thread.index() / kWarp;
    const unsigned lane = thread.index() % kWarp;
    const unsigned g = lane / 4;
    const unsigned t = lane % 4;
    const unsigned first = thread.block_x() * kOutputs;
    const Bf16* const upper = weights + static_cast<std::size_t>(first + g < outputs ? first + g : outputs - 1) * columns + 8 * t;
    const Bf16* const lower =
        weights + static_cast<std::size_t>(first + g + 8 < outputs ? first + g + 8 : outputs - 1) * columns + 8 * t;
    const unsigned step = kWarps * kPieces * 32;
    unsigned column = warp * kPieces * 32;
    Words a[kPieces];
    Words b[kPieces];
    fetch(upper, lower, column, a, b);
    thread.wait_for_previous();  // weights stand; x is the previous kernel's

    float sums[kTiles][4] = {};
    for (; column < columns; column += step) {
      Words next_a[kPieces];
      Words next_b[kPieces];
      fetch(upper, lower, column + step, next_a, next_b);
      SPECSIM_UNROLL
      for (unsigned p = 0; p < kPieces; ++p) {
        const unsigned from = column + 32 * p;
        SPECSIM_UNROLL
        for (unsigned tile = 0; tile < kTiles; ++tile) {
          const unsigned row = 8 * tile + g;
          Words y = {};
          if (row < rows && from < columns) y = load(x + row * x_stride + from + 8 * t);
          thread.multiply(sums[tile], a[p].word[0], b[p].word[0], a[p].word[1], b[p].word[1], y.word[0], y.word[1]);
          thread.multiply(sums[tile], a[p].word[2], b[p].word[2], a[p].word[3], b[p].word[3], y.word[2], y.word[3]);
        }
      }
      SPECSIM_UNROLL
      for (unsigned p = 0; p < kPieces; ++p) {
        a[p] = next_a[p];
        b[p] = next_b[p];
      }
    }

    auto* const shared = reinterpret_cast<float*>(thread.shared());  // [warp][row][output]
    SPECSIM_UNROLL
    for (unsigned tile = 0; tile < kTiles; ++tile) {
      float* const own = shared + (warp * kMostRows + 8 * tile) * kOutputs;
      own[(2 * t) * kOutputs + g] = sums[tile][0];
      own[(2 * t + 1) * kOutputs + g] = sums[tile][1];
      own[(2 * t) * kOutputs + g + 8] = sums[tile][2];
      own[(2 * t + 1) * kOutputs + g + 8] = sums[tile][3];
    }
    thread.sync();
    if (finish == Finish::swiglu) {
      for (unsigned i = thread.index(); i < rows * 8; i += kThreads) {
        const unsigned row = i / 8;
        const float gate = total(shared, row, i % 8);
        const float up = total(shared, row, i % 8 + 8);
        gated[row * out_stride + first / 2 + i % 8] = to_bf16(gate / (1.0F + exponential(-gate)) * up);
      }
      return;
    }
    for (unsigned i = thread.index(); i < rows * kOutputs; i += kThreads) {
      const unsigned row = i / kOutputs;
      const unsigned output = first + i % kOutputs;
      if (output >= outputs) continue;
      const float y = total(shared, row, i % kOutputs);
      float& to = out[row * out_stride + output];
      to = finish == Finish::add ? to + y : y;
    }
  }

 private:
  SPECSIM_KERNEL void fetch(const Bf16* upper, const Bf16* lower, unsigned column, Words (&a)[kPieces],
                            Words (&b)[kPieces]) const {
    SPECSIM_UNROLL
    for (unsigned p = 0; p < kPieces; ++p) {
      a[p] = {};
      b[p] = {};
      if (column + 32 * p >= columns) continue;
      a[p] = load_once(upper + column + 32 * p);
      b[p] = load_once(lower + column + 32 * p);
    }
  }
  static SPECSIM_KERNEL float total(const float* shared, unsigned row, unsigned output) {
    float sum = 0.0F;
    for (unsigned w = 0; w < kWarps; ++w) sum += shared[(w * kMostRows + row) * kOutputs + output];
    return sum;
  }
};

// The same activation where a library made the products.
struct Swiglu {
  static constexpr unsigned kThreads = 256;
  const float* y = nullptr;  // [row][2 width], in turns of 8 gates and 8 ups
  Bf16* gated = nullptr;     // [row][width]
  unsigned width = 0;
  unsigned count = 0;

  [[nodiscard]] Grid grid() const { return {(width + kThreads - 1) / kThreads, count, 1, kThreads, 0}; }
  SPECSIM_KERNEL void operator()(const Thread& thread) const {
    thread.wait_for_previous();
    thread.release_next();
    const unsigned i = thread.block_x() * kThreads + thread.index();
    if (i >= width) return;
    const float* const from = y + static_cast<std::size_t>(thread.block_y()) * 2 * width + i / 8 * 16 + i % 8;
    const float gate = from[0];
    gated[static_cast<std::size_t>(thread.block_y()) * width + i] = to_bf16(gate / (1.0F + exponential(-gate)) * from[8]);
  }
};

// The cache of one layer. Values lie transposed, so that attention reads them as they are multiplied.
struct LayerCache {
  Bf16* keys = nullptr;      // [sequence][kv head][slot][width]
  Bf16* values = nullptr;    // [sequence][kv head][width][slot]
  unsigned width = 0;        // of a head, padded
  std::size_t capacity = 0;  // slots, a multiple of 32
};

// Turns queries and keys by their positions (a head's first half against its second), writes queries out and keys and values into
// the cache.
struct Rotate {
  static constexpr unsigned kThreads = 128;
  Rows rows;
  float* qkv = nullptr;  // [row][stride]: heads, then kv_heads keys, then values
  std::size_t stride = 0;
  const float* bias = nullptr;     // added first; null: none
  const float* cosines = nullptr;  // [position][head_dim / 2]
  const float* sines = nullptr;
  Bf16* queries = nullptr;  // [row][head][width]
  LayerCache cache;
  unsigned heads = 0;
  unsigned kv_heads = 0;
  unsigned head_dim = 0;
  unsigned count = 0;

  [[nodiscard]] Grid grid() const {
    return {((heads + 2 * kv_heads) * (head_dim / 2) + kThreads - 1) / kThreads, count, 1, kThreads, 0};
  }
  SPECSIM_KERNEL void operator()(const Thread& thread) const {
    thread.wait_for_previous();
    thread.release_next();
    const unsigned half = head_dim / 2;
    const unsigned item = thread.block_x() * kThreads + thread.index();
    const unsigned head = item / half;
    const unsigned i = item % half;
    if (head >= heads + 2 * kv_heads) return;
    const unsigned row = thread.block_y();
    const std::size_t slot = rows.cached(row) + rows.slot[row];
    const std::size_t position = rows.cached(row) + rows.depth[row];
    const std::size_t at = static_cast<std::size_t>(head) * head_dim + i;
    float low = qkv[row * stride + at];
    float high = qkv[row * stride + at + half];
    if (bias != nullptr) {
      low += bias[at];
      high += bias[at + half];
    }
    if (head >= heads + kv_heads) {
      const std::size_t base = (rows.sequence[row] * kv_heads + head - heads - kv_heads) * cache.width * cache.capacity + slot;
      cache.values[base + i * cache.capacity] = to_bf16(low);
      cache.values[base + (i + half) * cache.capacity] = to_bf16(high);
      return;
    }
    const float cosine = cosines[position * half + i];
    const float sine = sines[position * half + i];
    Bf16* const to = head < heads
                         ? queries + (static_cast<std::size_t>(row) * heads + head) * cache.width
                         : cache.keys + ((rows.sequence[row] * kv_heads + head - heads) * cache.capacity + slot) * cache.width;
    to[i] = to_bf16(low * cosine - high * sine);
    to[i + half] = to_bf16(high * cosine + low * sine);
  }
};

// Moves the tokens of a tree's path together: slot length + path[i] to length + i, in every layer.
struct KeepPath {
  static constexpr unsigned kThreads = 128;  // at most: a head's width
  LayerCache cache;                          // of layer 0; the others follow
  std::size_t layer_stride = 0;              // of keys, and of values
  unsigned sequence = 0;
  unsigned kv_heads = 0;
  unsigned layers = 0;
  std::size_t length = 0;
  const std::uint32_t* path = nullptr;
  unsigned steps = 0;

  [[nodiscard]] Grid grid() const { return {layers * kv_heads, 1, 1, cache.width, 0}; }
  SPECSIM_KERNEL void operator()(const Thread& thread) const {
    thread.wait_for_previous();
    thread.release_next();
    const unsigned d = thread.index();
    const std::size_t head = static_cast<std::size_t>(sequence) * kv_heads + thread.block_x() % kv_heads;
    const std::size_t layer = thread.block_x() / kv_heads * layer_stride;
    Bf16* const keys = cache.keys + layer + head * cache.capacity * cache.width + d;
    Bf16* const values = cache.values + layer + (head * cache.width + d) * cache.capacity;
    for (unsigned i = 0; i < steps; ++i) {
      keys[(length + i) * cache.width] = keys[(length + path[i]) * cache.width];
      values[length + i] = values[length + path[i]];
    }
  }
};

// A stretch of every key's and value's place in turn, a block each: how far attention has come there.
constexpr unsigned kChunk = 128;
constexpr unsigned kTileRows = 16;

// Attention of the queries that share a key-value head, over one chunk of its cache: the largest score, the sum of
// exp(score - largest), and the values weighted so, for Combine to join; where there is one chunk alone, what Combine would make
// of it. Four warps share rows in tiles of 16 (`row_warps` of
// them) and the chunk's places in 32s.
template <unsigned kWidth>
struct Attention {
  static constexpr unsigned kThreads = 128;
  static constexpr unsigned kWarps = kThreads / kWarp;
  const Bf16* queries = nullptr;  // [row][head][kWidth]
  LayerCache cache;
  Rows rows;
  const std::uint32_t* first_row = nullptr;  // [sequence of the pass]
  const std::uint32_t* row_count = nullptr;
  unsigned heads = 0;
  unsigned kv_heads = 0;
  float scale = 0.0F;
  unsigned batch = 0;
  unsigned most_rows = 0;  // of a sequence
  unsigned chunks = 0;
  unsigned row_warps = 1;     // 1, 2 or 4
  float* partial = nullptr;   // [row][head][chunk][kWidth]
  float* peak_sum = nullptr;  // [row][head][chunk][2]
  Bf16* out = nullptr;        // of one chunk: [row][stride], as Combine has it
  std::size_t stride = 0;
  unsigned head_dim = 0;

  [[nodiscard]] Grid grid() const {
    const unsigned tiles = (most_rows * (heads / kv_heads) + kTileRows - 1) / kTileRows;
    return {chunks, batch * kv_heads, (tiles + row_warps - 1) / row_warps, kThreads,
            kWarps * kTileRows * (kWidth + 2) * sizeof(float)};
  }

  SPECSIM_KERNEL void operator()(const Thread& thread) const {
    thread.release_next();
    thread.wait_for_previous();
    const unsigned warp = thread.index() / kWarp;
    const unsigned lane = thread.index() % kWarp;
    const unsigned g = lane / 4;
    const unsigned t = lane % 4;
    const unsigned group = heads / kv_heads;
    const unsigned kv_head = thread.block_y() % kv_heads;
    const unsigned first = first_row[thread.block_y() / kv_heads];
    const unsigned queries_here = row_count[thread.block_y() / kv_heads] * group;
    const std::size_t cached = rows.cached(first);
    const std::size_t all = cached + row_count[thread.block_y() / kv_heads];
    const std::size_t begin = static_cast<std::size_t>(thread.block_x()) * kChunk;
    const unsigned tile = thread.block_z() * row_warps + warp % row_warps;
    const bool works = begin < all && tile * kTileRows < queries_here;

    // Queries g and g + 8 of the tile: token and head, and what they see.
    unsigned token[2];
    const Bf16* query[2];
    SPECSIM_UNROLL
    for (unsigned h = 0; h < 2; ++h) {
      const unsigned q = tile * kTileRows + g + 8 * h;
      const unsigned within = works && q < queries_here ? q : 0;
      token[h] = first + within / group;
      query[h] = queries + (static_cast<std::size_t>(token[h]) * heads + kv_head * group + within % group) * kWidth + 8 * t;
    }
    float peak[2] = {negative_infinity(), negative_infinity()};
    float sum[2] = {};
    float o[kWidth / 8][4] = {};
    if (works) {
      Words q[2][kWidth / 32];
      SPECSIM_UNROLL
      for (unsigned c = 0; c < kWidth / 32; ++c) {
        q[0][c] = load(query[0] + 32 * c);
        q[1][c] = load(query[1] + 32 * c);
      }
      const std::size_t head = static_cast<std::size_t>(rows.sequence[first]) * kv_heads + kv_head;
      const Bf16* const keys = cache.keys + head * cache.capacity * kWidth + 8 * t;
      const Bf16* const values = cache.values + head * kWidth * cache.capacity + 8 * t;
      const unsigned place_warps = kWarps / row_warps;
      for (unsigned at = warp / row_warps * 32; at < kChunk; at += place_warps * 32) {
        const std::size_t base = begin + at;
        if (base >= all) break;
        // Key column n of tile j is place base + 8 (n / 2) + 2 j + n % 2, so that a thread's scores are of 8 neighbouring places.
        float s[4][4] = {};
        SPECSIM_UNROLL
        for (unsigned j = 0; j < 4; ++j) {
          const std::size_t place = base + 8 * (g / 2) + 2 * j + g % 2;  // within the capacity; a score beyond `all` is masked
          SPECSIM_UNROLL
          for (unsigned c = 0; c < kWidth / 32; ++c) {
            const Words k = load(keys + place * kWidth + 32 * c);
            thread.multiply(s[j], q[0][c].word[0], q[1][c].word[0], q[0][c].word[1], q[1][c].word[1], k.word[0], k.word[1]);
            thread.multiply(s[j], q[0][c].word[2], q[1][c].word[2], q[0][c].word[3], q[1][c].word[3], k.word[2], k.word[3]);
          }
        }
        Words v[kWidth / 8];  // all of them on their way at once, behind the softmax's arithmetic
        SPECSIM_UNROLL
        for (unsigned d = 0; d < kWidth / 8; ++d) v[d] = load(values + (8 * d + g) * cache.capacity + base);
        if (base + 32 > cached) {
          const std::uint64_t seen[2] = {rows.ancestors != nullptr ? rows.ancestors[token[0]] : 0,
                                         rows.ancestors != nullptr ? rows.ancestors[token[1]] : 0};
          const std::size_t last[2] = {cached + rows.slot[token[0]], cached + rows.slot[token[1]]};
          SPECSIM_UNROLL
          for (unsigned j = 0; j < 4; ++j) SPECSIM_UNROLL
          for (unsigned e = 0; e < 4; ++e) {
            const unsigned h = e / 2;
            const std::size_t place = base + 8 * t + 2 * j + e % 2;
            const bool visible =
                place < cached ||
                (rows.ancestors != nullptr ? place < all && (seen[h] >> (place - cached) & 1U) != 0 : place <= last[h]);
            if (!visible) s[j][e] = negative_infinity();
          }
        }
        std::uint32_t weights[4][2];
        SPECSIM_UNROLL
        for (unsigned h = 0; h < 2; ++h) {
          float highest = peak[h];
          SPECSIM_UNROLL
          for (unsigned j = 0; j < 4; ++j) SPECSIM_UNROLL
          for (unsigned i = 0; i < 2; ++i) {
            float& score = s[j][2 * h + i];
            score *= scale;
            highest = score > highest ? score : highest;
          }
          SPECSIM_UNROLL
          for (unsigned mask = 1; mask < 4; mask *= 2) {  // NOLINT(readability-misleading-indentation)
            const float other = thread.shuffle_xor(highest, mask);
            highest = other > highest ? other : highest;
          }
          const float zero = highest == negative_infinity() ? 0.0F : highest;  // nothing seen so far: all weights are 0
          const float shrink = exponential(peak[h] - zero);
          peak[h] = highest;
          sum[h] *= shrink;
          SPECSIM_UNROLL
          for (unsigned d = 0; d < kWidth / 8; ++d) {
            o[d][2 * h] *= shrink;
            o[d][2 * h + 1] *= shrink;
          }
          SPECSIM_UNROLL
          for (unsigned j = 0; j < 4; ++j) {
            const float low = exponential(s[j][2 * h] - zero);
            const float high = exponential(s[j][2 * h + 1] - zero);
            sum[h] += low + high;
            weights[j][h] = pair_of(low, high);
          }
        }
        if (base + 32 > all) {
          SPECSIM_UNROLL
          for (Words& words : v) clear_beyond(words, base + 8 * t, all);
        }
        SPECSIM_UNROLL
        for (unsigned d = 0; d < kWidth / 8; ++d) {
          thread.multiply(o[d], weights[0][0], weights[0][1], weights[1][0], weights[1][1], v[d].word[0], v[d].word[1]);
          thread.multiply(o[d], weights[2][0], weights[2][1], weights[3][0], weights[3][1], v[d].word[2], v[d].word[3]);
        }
      }
      SPECSIM_UNROLL
      for (unsigned h = 0; h < 2; ++h) {  // NOLINT(modernize-loop-convert)
        sum[h] += thread.shuffle_xor(sum[h], 1U);
        sum[h] += thread.shuffle_xor(sum[h], 2U);
      }
    }

    // Warps that took other places of the same rows are joined.
    auto* const shared = reinterpret_cast<float*>(thread.shared());  // [warp][query][kWidth + 2]
    SPECSIM_UNROLL
    for (unsigned h = 0; h < 2; ++h) {
      float* const own = shared + (warp * kTileRows + g + 8 * h) * (kWidth + 2);
      SPECSIM_UNROLL
      for (unsigned d = 0; d < kWidth / 8; ++d) {
        own[8 * d + 2 * t] = o[d][2 * h];
        own[8 * d + 2 * t + 1] = o[d][2 * h + 1];
      }
      if (t == 0) {
        own[kWidth] = peak[h];
        own[kWidth + 1] = sum[h];
      }
    }
    thread.sync();
    if (begin >= all) return;
    for (unsigned i = thread.index(); i < row_warps * kTileRows * kWidth; i += kThreads) {
      const unsigned row_warp = i / (kTileRows * kWidth);
      const unsigned r = i / kWidth % kTileRows;
      const unsigned q = (thread.block_z() * row_warps + row_warp) * kTileRows + r;
      if (q >= queries_here) continue;
      float highest = negative_infinity();
      for (unsigned w = row_warp; w < kWarps; w += row_warps) {
        const float other = shared[(w * kTileRows + r) * (kWidth + 2) + kWidth];
        highest = other > highest ? other : highest;
      }
      float joined = 0.0F;
      float weight = 0.0F;
      for (unsigned w = row_warp; w < kWarps; w += row_warps) {
        const float* const part = shared + (w * kTileRows + r) * (kWidth + 2);
        if (part[kWidth] == negative_infinity()) continue;
        const float share = exponential(part[kWidth] - highest);
        joined += share * part[i % kWidth];
        weight += share * part[kWidth + 1];
      }
      const std::size_t row = first + q / group;
      const std::size_t query_head = kv_head * group + q % group;
      if (chunks == 1) {
        if (i % kWidth < head_dim) out[row * stride + query_head * head_dim + i % kWidth] = to_bf16(joined / weight);
        continue;
      }
      const std::size_t to = (row * heads + query_head) * chunks + thread.block_x();
      partial[to * kWidth + i % kWidth] = joined;
      if (i % kWidth == 0) {
        peak_sum[2 * to] = highest;
        peak_sum[2 * to + 1] = weight;
      }
    }
  }

 private:
  // Places not written yet hold anything at all, NaN too, which a weight of 0 does not undo.
  static SPECSIM_KERNEL void clear_beyond(Words& v, std::size_t place, std::size_t all) {
    SPECSIM_UNROLL
    for (unsigned i = 0; i < 4; ++i) {
      if (place + 2 * i >= all) v.word[i] = 0;
      if (place + 2 * i + 1 == all) v.word[i] &= 0xFFFFU;
    }
  }
};

// out[row][head] = the chunks' parts, joined.
struct Combine {
  static constexpr unsigned kThreads = 128;  // a head's width at most
  Rows rows;
  const std::uint32_t* row_all = nullptr;  // [row] tokens that its sequence brings to the pass
  const float* partial = nullptr;
  const float* peak_sum = nullptr;
  unsigned chunks = 0;
  unsigned heads = 0;
  unsigned head_dim = 0;
  unsigned width = 0;
  Bf16* out = nullptr;  // [row][stride], heads side by side, head_dim each
  std::size_t stride = 0;
  unsigned count = 0;

  [[nodiscard]] Grid grid() const { return {heads, count, 1, kThreads, 0}; }
  SPECSIM_KERNEL void operator()(const Thread& thread) const {
    thread.wait_for_previous();
    thread.release_next();
    const unsigned row = thread.block_y();
    const unsigned head = thread.block_x();
    const auto used = static_cast<unsigned>((rows.cached(row) + row_all[row] + kChunk - 1) / kChunk);
    const std::size_t from = (static_cast<std::size_t>(row) * heads + head) * chunks;
    const unsigned d = thread.index();
    if (d >= head_dim) return;
    constexpr unsigned kAtOnce = 8;
    float highest = negative_infinity();  // finite after the first chunk: every token sees a place there
    float sum = 0.0F;
    float joined = 0.0F;
    for (unsigned c = 0; c < used; c += kAtOnce) {
      float peaks[kAtOnce];
      float sums[kAtOnce];
      float parts[kAtOnce];
      SPECSIM_UNROLL
      for (unsigned k = 0; k < kAtOnce; ++k) {
        const bool there = c + k < used;
        peaks[k] = there ? peak_sum[2 * (from + c + k)] : negative_infinity();
        sums[k] = there ? peak_sum[2 * (from + c + k) + 1] : 0.0F;
        parts[k] = there ? partial[(from + c + k) * width + d] : 0.0F;
      }
      const float before = highest;
      SPECSIM_UNROLL
      for (const float peak : peaks) highest = peak > highest ? peak : highest;
      const float shrink = exponential(before - highest);
      sum *= shrink;
      joined *= shrink;
      SPECSIM_UNROLL
      for (unsigned k = 0; k < kAtOnce; ++k) {
        const float share = exponential(peaks[k] - highest);
        sum += share * sums[k];
        joined += share * parts[k];
      }
    }
    out[row * stride + static_cast<std::size_t>(head) * head_dim + d] = to_bf16(joined / sum);
  }
};

}  // namespace specsim::cuda
