// The kernels of attention: over chunks of the cache, and the sum of their parts.
#pragma once

#include "sim/lab/cuda/rows.h"

namespace specsim::cuda {

// Places of keys and values per chunk; each chunk is one block's work.
constexpr unsigned kChunk = 128;
constexpr unsigned kTileRows = 16;

// Attention of the queries that share a key-value head, over one chunk of its cache. The result is the largest score, the sum of
// exp(score - largest), and the values weighted by these, which Combine joins. If there is only one chunk, it writes what Combine
// would. Four warps share the queries in tiles of 16 (`row_warps` of them) and the chunk's places in groups of 32.
template <unsigned kWidth>
struct AttentionKernel {
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
  unsigned most_rows = 0;  // the most rows of a sequence
  unsigned chunks = 0;
  unsigned row_warps = 1;     // 1, 2 or 4
  float* partial = nullptr;   // [row][head][chunk][kWidth]
  float* peak_sum = nullptr;  // [row][head][chunk][2]
  Bf16* out = nullptr;        // [row][stride], as in Combine; written if there is only one chunk
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
    const Part part = part_of(thread);
    Softmax softmax = {{negative_infinity(), negative_infinity()}, {}, {}};
    if (part.works) {
      Queries own = queries_of(part);
      for (unsigned at = part.warp / row_warps * kStep; at < kChunk; at += kWarps / row_warps * kStep) {
        const std::size_t base = part.begin + at;
        if (base >= part.all) break;
        float scores[4][4] = {};
        score(thread, part, own, base, scores);
        Words values[kWidth / 8];  // all loads are in flight at once, hidden by the softmax's arithmetic
        load_values(part, base, values);
        if (base + kStep > part.cached) mask_future_keys(part, own, base, scores);
        std::uint32_t weights[4][2];
        weigh(thread, scores, softmax, weights);
        if (base + kStep > part.all) {
          SPECSIM_UNROLL
          for (Words& words : values) clear_beyond(words, base + 8 * part.t, part.all);
        }
        SPECSIM_UNROLL
        for (unsigned d = 0; d < kWidth / 8; ++d) {
          const Words& v = values[d];
          thread.multiply(softmax.values[d], weights[0][0], weights[0][1], weights[1][0], weights[1][1], v.word[0], v.word[1]);
          thread.multiply(softmax.values[d], weights[2][0], weights[2][1], weights[3][0], weights[3][1], v.word[2], v.word[3]);
        }
      }
      SPECSIM_UNROLL
      for (float& sum : softmax.sum) {
        sum += thread.shuffle_xor(sum, 1U);
        sum += thread.shuffle_xor(sum, 2U);
      }
    }
    share(thread, part, softmax);
    thread.sync();
    if (part.begin < part.all) join_warps(thread, part);
  }

 private:
  static constexpr unsigned kStep = 32;  // places that a warp processes at a time

  // The part of the work that one thread does.
  struct Part {
    unsigned warp;
    unsigned g;  // row and column of the thread's operands in matrix instructions (Thread::multiply)
    unsigned t;
    unsigned group;  // query heads that share a key-value head
    unsigned kv_head;
    unsigned first;      // the sequence's first row in the pass
    unsigned queries;    // the sequence's rows times `group`
    unsigned tile;       // index of the tile of 16 queries
    std::size_t cached;  // places before those of the pass
    std::size_t all;     // places including those of the pass
    std::size_t begin;   // the chunk's first place
    bool works;          // false if the tile has no queries or the chunk no places
  };
  // Queries g and g + 8 of the tile: their values and their rows in the pass.
  struct Queries {
    unsigned row[2];
    Words words[2][kWidth / 32];
  };
  // Softmax of these two queries over the places so far.
  struct Softmax {
    float peak[2];                // largest score
    float sum[2];                 // sum of exp(score - peak)
    float values[kWidth / 8][4];  // weighted by exp(score - peak), in the layout of matrix instructions' sums
  };

  SPECSIM_KERNEL Part part_of(const Thread& thread) const {
    Part part;
    part.warp = thread.index() / kWarp;
    const unsigned lane = thread.index() % kWarp;
    part.g = lane / 4;
    part.t = lane % 4;
    part.group = heads / kv_heads;
    part.kv_head = thread.block_y() % kv_heads;
    const unsigned sequence = thread.block_y() / kv_heads;
    part.first = first_row[sequence];
    part.queries = row_count[sequence] * part.group;
    part.tile = thread.block_z() * row_warps + part.warp % row_warps;
    part.cached = rows.cached(part.first);
    part.all = part.cached + row_count[sequence];
    part.begin = static_cast<std::size_t>(thread.block_x()) * kChunk;
    part.works = part.begin < part.all && part.tile * kTileRows < part.queries;
    return part;
  }

  SPECSIM_KERNEL Queries queries_of(const Part& part) const {
    Queries own;
    SPECSIM_UNROLL
    for (unsigned h = 0; h < 2; ++h) {
      const unsigned q = part.tile * kTileRows + part.g + 8 * h;
      const unsigned within = q < part.queries ? q : 0;
      own.row[h] = part.first + within / part.group;
      const std::size_t head = static_cast<std::size_t>(own.row[h]) * heads + part.kv_head * part.group + within % part.group;
      const Bf16* const query = queries + head * kWidth + 8 * part.t;
      SPECSIM_UNROLL
      for (unsigned c = 0; c < kWidth / 32; ++c) own.words[h][c] = load(query + 32 * c);
    }
    return own;
  }

  // The cache's head that the thread's queries use, counted from the cache's beginning.
  SPECSIM_KERNEL std::size_t cached_head(const Part& part) const {
    return static_cast<std::size_t>(rows.sequence[part.first]) * kv_heads + part.kv_head;
  }

  // Products of the queries and the keys of places base to base + 31. Key column n of tile j is place base + 8 (n / 2) + 2 j + n
  // % 2, so that a thread has the scores of 8 neighbouring places.
  SPECSIM_KERNEL void score(const Thread& thread, const Part& part, const Queries& own, std::size_t base,
                            float (&scores)[4][4]) const {
    const Bf16* const keys = cache.keys + cached_head(part) * cache.capacity * kWidth + 8 * part.t;
    SPECSIM_UNROLL
    for (unsigned j = 0; j < 4; ++j) {
      const std::size_t place = base + 8 * (part.g / 2) + 2 * j + part.g % 2;  // within the capacity; later ones are masked
      SPECSIM_UNROLL
      for (unsigned c = 0; c < kWidth / 32; ++c) {
        const Words k = load(keys + place * kWidth + 32 * c);
        const Words& a = own.words[0][c];
        const Words& b = own.words[1][c];
        thread.multiply(scores[j], a.word[0], b.word[0], a.word[1], b.word[1], k.word[0], k.word[1]);
        thread.multiply(scores[j], a.word[2], b.word[2], a.word[3], b.word[3], k.word[2], k.word[3]);
      }
    }
  }

  SPECSIM_KERNEL void load_values(const Part& part, std::size_t base, Words (&values)[kWidth / 8]) const {
    const Bf16* const from = cache.values + cached_head(part) * kWidth * cache.capacity + 8 * part.t;
    SPECSIM_UNROLL
    for (unsigned d = 0; d < kWidth / 8; ++d) values[d] = load(from + (8 * d + part.g) * cache.capacity + base);
  }

  // Masks the scores of places that a query does not see: those after its own token or, in a tree, tokens that are not its
  // ancestors.
  SPECSIM_KERNEL void mask_future_keys(const Part& part, const Queries& own, std::size_t base, float (&scores)[4][4]) const {
    const bool tree = rows.ancestors != nullptr;
    const std::uint64_t seen[2] = {tree ? rows.ancestors[own.row[0]] : 0, tree ? rows.ancestors[own.row[1]] : 0};
    const std::size_t last[2] = {part.cached + rows.slot[own.row[0]], part.cached + rows.slot[own.row[1]]};
    SPECSIM_UNROLL
    for (unsigned j = 0; j < 4; ++j) {
      SPECSIM_UNROLL
      for (unsigned e = 0; e < 4; ++e) {
        const unsigned h = e / 2;
        const std::size_t place = base + 8 * part.t + 2 * j + e % 2;
        const bool visible =
            place < part.cached || (tree ? place < part.all && (seen[h] >> (place - part.cached) & 1U) != 0 : place <= last[h]);
        if (!visible) scores[j][e] = negative_infinity();
      }
    }
  }

  // Scales the scores, adds them to the softmax, and turns them into weights, as operands of matrix instructions.
  SPECSIM_KERNEL void weigh(const Thread& thread, float (&scores)[4][4], Softmax& softmax, std::uint32_t (&weights)[4][2]) const {
    SPECSIM_UNROLL
    for (unsigned h = 0; h < 2; ++h) {
      float highest = softmax.peak[h];
      SPECSIM_UNROLL
      for (auto& tile : scores) {
        SPECSIM_UNROLL
        for (unsigned i = 0; i < 2; ++i) {
          float& own = tile[2 * h + i];
          own *= scale;
          highest = own > highest ? own : highest;
        }
      }
      SPECSIM_UNROLL
      for (unsigned mask = 1; mask < 4; mask *= 2) {
        const float other = thread.shuffle_xor(highest, mask);
        highest = other > highest ? other : highest;
      }
      const float zero = highest == negative_infinity() ? 0.0F : highest;  // nothing seen so far: all weights are 0
      const float shrink = exponential(softmax.peak[h] - zero);
      softmax.peak[h] = highest;
      softmax.sum[h] *= shrink;
      SPECSIM_UNROLL
      for (unsigned d = 0; d < kWidth / 8; ++d) {
        softmax.values[d][2 * h] *= shrink;
        softmax.values[d][2 * h + 1] *= shrink;
      }
      SPECSIM_UNROLL
      for (unsigned j = 0; j < 4; ++j) {
        const float low = exponential(scores[j][2 * h] - zero);
        const float high = exponential(scores[j][2 * h + 1] - zero);
        softmax.sum[h] += low + high;
        weights[j][h] = pair_of(low, high);
      }
    }
  }

  // Writes a warp's softmax to shared memory: [warp][query][kWidth + 2], the values, the largest score and the sum.
  SPECSIM_KERNEL void share(const Thread& thread, const Part& part, const Softmax& softmax) const {
    auto* const shared = reinterpret_cast<float*>(thread.shared());
    SPECSIM_UNROLL
    for (unsigned h = 0; h < 2; ++h) {
      float* const own = shared + (part.warp * kTileRows + part.g + 8 * h) * (kWidth + 2);
      SPECSIM_UNROLL
      for (unsigned d = 0; d < kWidth / 8; ++d) {
        own[8 * d + 2 * part.t] = softmax.values[d][2 * h];
        own[8 * d + 2 * part.t + 1] = softmax.values[d][2 * h + 1];
      }
      if (part.t == 0) {
        own[kWidth] = softmax.peak[h];
        own[kWidth + 1] = softmax.sum[h];
      }
    }
  }

  // Joins warps that processed other places of the same queries. Writes the chunk's part, or the result if there is only one
  // chunk.
  SPECSIM_KERNEL void join_warps(const Thread& thread, const Part& part) const {
    const auto* const shared = reinterpret_cast<const float*>(thread.shared());
    for (unsigned i = thread.index(); i < row_warps * kTileRows * kWidth; i += kThreads) {
      const unsigned row_warp = i / (kTileRows * kWidth);
      const unsigned r = i / kWidth % kTileRows;
      const unsigned q = (thread.block_z() * row_warps + row_warp) * kTileRows + r;
      if (q >= part.queries) continue;
      float highest = negative_infinity();
      for (unsigned w = row_warp; w < kWarps; w += row_warps) {
        const float other = shared[(w * kTileRows + r) * (kWidth + 2) + kWidth];
        highest = other > highest ? other : highest;
      }
      float joined = 0.0F;
      float weight = 0.0F;
      for (unsigned w = row_warp; w < kWarps; w += row_warps) {
        const float* const of_warp = shared + (w * kTileRows + r) * (kWidth + 2);
        if (of_warp[kWidth] == negative_infinity()) continue;
        const float factor = exponential(of_warp[kWidth] - highest);
        joined += factor * of_warp[i % kWidth];
        weight += factor * of_warp[kWidth + 1];
      }
      const std::size_t row = part.first + q / part.group;
      const std::size_t query_head = part.kv_head * part.group + q % part.group;
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

  // Places that are not written yet may hold anything, even NaN, which a weight of 0 would not remove.
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
  static constexpr unsigned kThreads = 128;  // at least a head's width
  Rows rows;
  const std::uint32_t* row_all = nullptr;  // [row] tokens of its sequence in the pass
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
    thread.take_turn();
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
