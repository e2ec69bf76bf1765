// The kernels from logits to emitted tokens: softmax with temperature, top-k and top-p, draws, acceptance. Distributions are
// doubles, one row of `vocab` each. Every uniform has the address that decoding on the CPU gives it (sim/rng/address.h), and sums
// run in the order of math::ScanSums: the same distributions give the same tokens.
#pragma once

#include "sim/cuda/launch.h"

namespace specsim::cuda {

constexpr unsigned kMostVocab = 262144;
constexpr unsigned kScan = 512;    // weights that are summed together, by eight interleaved accumulators
constexpr unsigned kSlice = 2048;  // of a distribution, a block's; a multiple of kScan
constexpr unsigned kMostSlices = kMostVocab / kSlice;
constexpr unsigned kMostScans = kMostVocab / kScan;

// A thread's part of a slice is loaded before any of it is used: one round trip of memory.
constexpr unsigned kSliceThreads = 256;
constexpr unsigned kSlicePart = kSlice / kSliceThreads;

// Neighbours first, first + 1, ...; 0 from `end` on.
template <unsigned kAtOnce>
SPECSIM_KERNEL void load_some(const double* from, unsigned first, unsigned end, double (&to)[kAtOnce]) {
  SPECSIM_UNROLL
  for (unsigned k = 0; k < kAtOnce; ++k) to[k] = first + k < end ? from[first + k] : 0.0;
}
// first, first + kSliceThreads, ...: a slice's threads side by side; 0 from `end` on.
template <class T>
SPECSIM_KERNEL void load_part(const T* from, unsigned first, unsigned end, T (&to)[kSlicePart]) {
  SPECSIM_UNROLL
  for (unsigned k = 0; k < kSlicePart; ++k)
    to[k] = first + k * kSliceThreads < end ? from[first + k * kSliceThreads] : static_cast<T>(0);
}

SPECSIM_KERNEL unsigned scans_of(unsigned vocab) { return (vocab + kScan - 1) / kScan; }
inline unsigned slices_of(unsigned vocab) { return (vocab + kSlice - 1) / kSlice; }

struct RandomBits {
  std::uint64_t first;
  std::uint64_t second;
};

// Philox4x32-10 as sim/rng/philox.h has it.
SPECSIM_KERNEL RandomBits random_bits_at(std::uint32_t c0, std::uint32_t c1, std::uint64_t sequence, std::uint64_t key) {
  std::uint32_t x[4] = {c0, c1, static_cast<std::uint32_t>(sequence), static_cast<std::uint32_t>(sequence >> 32)};
  auto low = static_cast<std::uint32_t>(key);
  auto high = static_cast<std::uint32_t>(key >> 32);
  SPECSIM_UNROLL
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t product0 = std::uint64_t{0xD2511F53U} * x[0];
    const std::uint64_t product1 = std::uint64_t{0xCD9E8D57U} * x[2];
    x[0] = static_cast<std::uint32_t>(product1 >> 32) ^ x[1] ^ low;
    x[1] = static_cast<std::uint32_t>(product1);
    x[2] = static_cast<std::uint32_t>(product0 >> 32) ^ x[3] ^ high;
    x[3] = static_cast<std::uint32_t>(product0);
    low += 0x9E3779B9U;
    high += 0xBB67AE85U;
  }
  return {x[0] | std::uint64_t{x[1]} << 32, x[2] | std::uint64_t{x[3]} << 32};
}

// Purposes of sim/rng/address.h.
constexpr std::uint32_t kDraftAccept = 1U << 24;
constexpr std::uint32_t kFinalToken = 2U << 24;

SPECSIM_KERNEL double to_unit(std::uint64_t word) { return static_cast<double>(word >> 11) * 0x1.0p-53; }

// A block's fill of bf16 numbers, uniform with a standard deviation of `deviation`.
struct FillRandom {
  static constexpr unsigned kThreads = 256;
  Bf16* out = nullptr;    // 16-byte aligned
  std::size_t count = 0;  // a multiple of 8
  float deviation = 0.0F;
  std::uint64_t key = 0;
  std::uint64_t index = 0;

  [[nodiscard]] Grid grid() const {
    constexpr std::size_t kMostBlocks = 65536;
    const std::size_t blocks = (count / 8 + kThreads - 1) / kThreads;
    return {static_cast<unsigned>(blocks < kMostBlocks ? blocks : kMostBlocks), 1, 1, kThreads, 0};
  }
  SPECSIM_KERNEL void operator()(const Thread& thread) const {
    thread.wait_for_previous();
    thread.release_next();
    const std::size_t stride = static_cast<std::size_t>(thread.blocks_x()) * kThreads;
    for (std::size_t i = static_cast<std::size_t>(thread.block_x()) * kThreads + thread.index(); i < count / 8; i += stride) {
      const RandomBits words = random_bits_at(static_cast<std::uint32_t>(i), static_cast<std::uint32_t>(i >> 32), index, key);
      for (unsigned k = 0; k < 8; ++k) {
        const std::uint64_t bits = ((k < 4 ? words.first : words.second) >> (16 * (k % 4))) & 0xFFFFU;
        constexpr float kSqrt12 = 3.4641016F;  // a uniform on [-1/2, 1/2] has variance 1/12
        out[8 * i + k] = to_bf16(((static_cast<float>(bits) + 0.5F) / 65536.0F - 0.5F) * kSqrt12 * deviation);
      }
    }
  }
};

// Reads memory and does nothing with it: a sum that is written only if it is one that no memory gives.
struct ReadAll {
  static constexpr unsigned kThreads = 256;
  const Words* memory = nullptr;
  std::size_t count = 0;
  std::uint32_t* out = nullptr;
  unsigned blocks = 0;

  [[nodiscard]] Grid grid() const { return {blocks, 1, 1, kThreads, 0}; }
  SPECSIM_KERNEL void operator()(const Thread& thread) const {
    thread.wait_for_previous();
    thread.release_next();
    constexpr unsigned kAtOnce = 8;
    const std::size_t step = static_cast<std::size_t>(thread.blocks_x()) * kThreads * kAtOnce;
    std::uint32_t sum = 0;
    for (std::size_t i = static_cast<std::size_t>(thread.block_x()) * kThreads * kAtOnce + thread.index(); i < count; i += step) {
      Words words[kAtOnce];
      SPECSIM_UNROLL
      for (unsigned k = 0; k < kAtOnce; ++k) {
        words[k] = {};
        if (i + k * kThreads < count) words[k] = load_once(reinterpret_cast<const Bf16*>(memory + i + k * kThreads));
      }
      SPECSIM_UNROLL
      for (const Words& w : words) sum += w.word[0] ^ w.word[1] ^ w.word[2] ^ w.word[3];
    }
    if (sum == 0x5EED5EEDU) *out = sum;
  }
};

struct Peak {
  float value;
  std::uint32_t token;
};
// The larger; of equals the lower token.
SPECSIM_KERNEL Peak larger(Peak a, Peak b) { return b.value > a.value || (b.value == a.value && b.token < a.token) ? b : a; }
// Over the block, by way of `room` for one per warp in shared memory.
SPECSIM_KERNEL Peak block_peak(const Thread& thread, Peak peak, unsigned threads, Peak* room) {
  for (unsigned mask = kWarp / 2; mask > 0; mask /= 2)
    peak = larger(peak, {thread.shuffle_xor(peak.value, mask), thread.shuffle_xor(peak.token, mask)});
  thread.sync();
  if (thread.index() % kWarp == 0) room[thread.index() / kWarp] = peak;
  thread.sync();
  for (unsigned w = 0; w < threads / kWarp; ++w) peak = larger(peak, room[w]);
  return peak;
}

// What stays of a distribution: the `top_k` likeliest tokens or, where that is 0, the shortest run of likeliest ones whose share
// reaches `top_p`; of equals the lower token stays. Weights are floats here, and their bits rise with them: the least that stays
// is found as a number of 30 bits, ten at a time, each time from a histogram of the next ten bits of those weights that begin as
// it does. What is added up are tokens, or masses in units of 2^-41, exact from a weight of 2^-18 on: whole numbers, whose sums
// have no order. A cut takes three launches, beside the first histogram, which whoever wrote the distribution before makes on the
// way. Each reads the row once, a block for each slice of it, and the last writes it: 32 bytes a token, from second-level caches
// mostly.
struct Cut {
  static constexpr unsigned kLevels = 3;
  static constexpr unsigned kBits = 10;
  static constexpr unsigned kBins = 1U << kBits;
  static constexpr unsigned kLowBits = 21;  // of a mass: a slice of them adds up in 32 bits, and so does what is above

  // How far the search for the least weight has come: its leading bits, what those that begin so must still add to the goal, and
  // what all of them would.
  struct Found {
    std::uint32_t prefix;
    std::uint64_t wanted;
    std::uint64_t there;
  };

  unsigned top_k = 0;
  double top_p = 1.0;
  std::uint64_t* histograms = nullptr;  // [row][kLevels][kBins], from zeros; null: nothing is cut
  Found* found = nullptr;               // [row][kLevels]

  SPECSIM_KERNEL std::uint64_t measure(double weight) const {
    return top_k > 0 ? 1 : static_cast<std::uint64_t>(weight * 0x1.0p41);
  }
  static SPECSIM_KERNEL std::uint32_t bits(double weight) { return bits_of(static_cast<float>(weight)); }
  SPECSIM_KERNEL std::uint64_t* histogram(std::size_t row, unsigned level) const {
    return histograms + (row * kLevels + level) * kBins;
  }

  // Adds the tokens [begin, end) of a row, a slice of it, to its histogram of a level, by way of 2 kBins numbers of shared
  // memory.
  SPECSIM_KERNEL void count(const Thread& thread, const double* distribution, unsigned begin, unsigned end, std::size_t row,
                            unsigned level, std::uint32_t prefix) const {
    auto* const low = reinterpret_cast<std::uint32_t*>(thread.shared());
    std::uint32_t* const high = low + kBins;
    thread.sync();
    for (unsigned bin = thread.index(); bin < 2 * kBins; bin += kSliceThreads) low[bin] = 0;
    double own[kSlicePart];
    load_part(distribution, begin + thread.index(), end, own);
    thread.sync();
    const unsigned below = (kLevels - 1 - level) * kBits;  // bits that later levels look at
    SPECSIM_UNROLL
    for (unsigned k = 0; k < kSlicePart; ++k) {
      const std::uint32_t key = bits(own[k]) >> below;
      if (begin + thread.index() + k * kSliceThreads >= end || key >> kBits != prefix) continue;
      const std::uint64_t amount = measure(own[k]);
      add_to(low + key % kBins, static_cast<std::uint32_t>(amount) % (1U << kLowBits));
      if (amount >> kLowBits > 0) add_to(high + key % kBins, static_cast<std::uint32_t>(amount >> kLowBits));
    }
    thread.sync();
    for (unsigned bin = thread.index(); bin < kBins; bin += kSliceThreads) {
      const std::uint64_t amount = low[bin] + (std::uint64_t{high[bin]} << kLowBits);
      if (amount > 0) add_to(histogram(row, level) + bin, amount);
    }
  }

  // What a level's histogram says, the same in all threads of the block. `threads` divides kBins.
  SPECSIM_KERNEL Found search(const Thread& thread, unsigned threads, std::size_t row, unsigned level) const {
    auto* const sums = reinterpret_cast<std::uint64_t*>(thread.shared());  // of a thread's bins and all later ones
    auto* const result = reinterpret_cast<Found*>(sums + threads);
    const Found before = level > 0 ? found[row * kLevels + level - 1] : Found{0, 0, 0};
    const std::uint64_t* const amounts = histogram(row, level);
    const unsigned width = kBins / threads;
    const unsigned first = thread.index() * width;
    std::uint64_t own = 0;
    for (unsigned bin = first; bin < first + width; ++bin) own += amounts[bin];
    thread.sync();
    if (thread.index() == 0) *result = {0, 0, 0};
    sums_from(thread, threads, own, sums);
    const std::uint64_t all = sums[0];
    std::uint64_t goal = before.wanted;
    if (level == 0) {
      goal = top_k > 0 ? top_k : static_cast<std::uint64_t>(top_p * static_cast<double>(all));
      if (top_k == 0 && static_cast<double>(goal) < top_p * static_cast<double>(all)) ++goal;
      if (goal == 0) goal = 1;
      if (goal > all) goal = all;
    }
    std::uint64_t sum = sums[thread.index()] - own;
    if (sum < goal && sum + own >= goal) {
      unsigned bin = first + width - 1;
      while (sum + amounts[bin] < goal) sum += amounts[bin--];
      *result = {before.prefix << kBits | bin, goal - sum, amounts[bin]};
    }
    thread.sync();
    return *result;
  }
  // sums[i] = the values of threads i and above.
  static SPECSIM_KERNEL void sums_from(const Thread& thread, unsigned threads, std::uint64_t value, std::uint64_t* sums) {
    thread.sync();
    sums[thread.index()] = value;
    thread.sync();
    for (unsigned step = 1; step < threads; step *= 2) {
      const std::uint64_t other = thread.index() + step < threads ? sums[thread.index() + step] : 0;
      thread.sync();
      sums[thread.index()] += other;
      thread.sync();
    }
  }
};

// The largest logit of each slice.
struct SlicePeaks {
  static constexpr unsigned kThreads = kSliceThreads;
  const float* logits = nullptr;  // [row][vocab]
  unsigned vocab = 0;
  Peak* peaks = nullptr;  // [row][slice]
  unsigned count = 0;
  std::uint64_t* zeros = nullptr;  // histograms of cuts to come
  std::size_t zeros_size = 0;

  [[nodiscard]] Grid grid() const { return {slices_of(vocab), count, 1, kThreads, kThreads / kWarp * sizeof(Peak)}; }
  SPECSIM_KERNEL void operator()(const Thread& thread) const {
    thread.wait_for_previous();
    thread.release_next();
    const std::size_t row = thread.block_y();
    const std::size_t turn = std::size_t{count} * thread.blocks_x() * kThreads;
    for (std::size_t i = (row * thread.blocks_x() + thread.block_x()) * kThreads + thread.index(); i < zeros_size; i += turn)
      zeros[i] = 0;
    const unsigned begin = thread.block_x() * kSlice;
    const unsigned end = begin + kSlice < vocab ? begin + kSlice : vocab;
    float own[kSlicePart];
    load_part(logits + row * vocab, begin + thread.index(), end, own);
    Peak peak = {negative_infinity(), vocab};
    SPECSIM_UNROLL
    for (unsigned k = 0; k < kSlicePart; ++k) {
      const unsigned i = begin + thread.index() + k * kThreads;
      if (i < end) peak = larger(peak, {own[k], i});
    }
    peak = block_peak(thread, peak, kThreads, reinterpret_cast<Peak*>(thread.shared()));
    if (thread.index() == 0) peaks[row * thread.blocks_x() + thread.block_x()] = peak;
  }
};

// distribution[x] = exp((logit - largest) / temperature), each a float; temperature 0: 1 for the largest logit, 0 for the others.
// Weights below `min_p` are 0. And the sum of each slice, or the first histogram of a cut.
struct DistributionWeights {
  static constexpr unsigned kThreads = kSliceThreads;
  const float* logits = nullptr;
  unsigned vocab = 0;
  const Peak* peaks = nullptr;
  float temperature = 1.0F;
  double min_p = 0.0;               // of the likeliest token's probability
  double* distributions = nullptr;  // [row][vocab]
  double* slice_sums = nullptr;     // [row][slice]
  unsigned count = 0;
  Cut next;

  [[nodiscard]] Grid grid() const { return {slices_of(vocab), count, 1, kThreads, 2 * Cut::kBins * sizeof(std::uint32_t)}; }
  SPECSIM_KERNEL void operator()(const Thread& thread) const {
    thread.wait_for_previous();
    thread.release_next();
    const std::size_t row = thread.block_y();
    const unsigned slices = thread.blocks_x();
    const unsigned begin = thread.block_x() * kSlice;
    const unsigned end = begin + kSlice < vocab ? begin + kSlice : vocab;
    float own[kSlicePart];
    load_part(logits + row * vocab, begin + thread.index(), end, own);
    Peak peak = {negative_infinity(), vocab};
    if (thread.index() < slices) peak = peaks[row * slices + thread.index()];
    peak = block_peak(thread, peak, kThreads, reinterpret_cast<Peak*>(thread.shared()));
    double sum = 0.0;
    SPECSIM_UNROLL
    for (unsigned k = 0; k < kSlicePart; ++k) {
      const unsigned i = begin + thread.index() + k * kThreads;
      if (i >= end) continue;
      float weight = temperature > 0.0F ? exponential((own[k] - peak.value) / temperature) : (i == peak.token ? 1.0F : 0.0F);
      if (static_cast<double>(weight) < min_p) weight = 0.0F;
      distributions[row * vocab + i] = static_cast<double>(weight);
      sum += static_cast<double>(weight);
    }
    sum = block_sum(thread, sum, kThreads, reinterpret_cast<double*>(thread.shared()));
    if (thread.index() == 0) slice_sums[row * slices + thread.block_x()] = sum;
    if (next.histograms != nullptr) next.count(thread, distributions + row * vocab, begin, end, row, 0, 0);
  }
};
static_assert(kMostSlices <= DistributionWeights::kThreads);

// The next ten bits of the least weight that stays: reads the histogram of the level before, makes that of its own.
struct NarrowCut {
  static constexpr unsigned kThreads = kSliceThreads;
  const double* distributions = nullptr;
  unsigned vocab = 0;
  Cut cut;
  unsigned level = 1;  // 1, then 2
  unsigned count = 0;

  [[nodiscard]] Grid grid() const { return {slices_of(vocab), count, 1, kThreads, 2 * Cut::kBins * sizeof(std::uint32_t)}; }
  SPECSIM_KERNEL void operator()(const Thread& thread) const {
    thread.wait_for_previous();
    thread.release_next();
    const std::size_t row = thread.block_y();
    const Cut::Found found = cut.search(thread, kThreads, row, level - 1);
    if (thread.block_x() == 0 && thread.index() == 0) cut.found[row * Cut::kLevels + level - 1] = found;
    const unsigned begin = thread.block_x() * kSlice;
    const unsigned end = begin + kSlice < vocab ? begin + kSlice : vocab;
    cut.count(thread, distributions + row * vocab, begin, end, row, level, found.prefix);
  }
};

// Zeroes what the cut does not leave, and weights below `min_p`. And the sum of each slice, or the first histogram of another
// cut.
struct CutDistribution {
  static constexpr unsigned kThreads = kSliceThreads;
  double* distributions = nullptr;
  unsigned vocab = 0;
  Cut cut;
  double min_p = 0.0;
  double* slice_sums = nullptr;
  unsigned count = 0;
  Cut next;

  [[nodiscard]] Grid grid() const { return {slices_of(vocab), count, 1, kThreads, 2 * Cut::kBins * sizeof(std::uint32_t)}; }
  SPECSIM_KERNEL void operator()(const Thread& thread) const {
    thread.wait_for_previous();
    thread.release_next();
    const std::size_t row = thread.block_y();
    double* const distribution = distributions + row * vocab;
    const Cut::Found found = cut.search(thread, kThreads, row, Cut::kLevels - 1);
    const std::uint32_t least = found.prefix;
    const std::uint64_t each = cut.measure(static_cast<double>(float_of(least)));
    const std::uint64_t places = each > 0 ? (found.wanted + each - 1) / each : 0;  // for those that equal the least
    const bool all_stay = places * each >= found.there;
    const unsigned begin = thread.block_x() * kSlice;
    const unsigned end = begin + kSlice < vocab ? begin + kSlice : vocab;
    const unsigned first = begin + thread.index() * kSlicePart;  // neighbours: equals are counted in the order of tokens
    double own[kSlicePart];
    load_some(distribution, first, end, own);
    std::uint64_t taken = all_stay ? 0 : equals_before(thread, distribution, least, begin, first, end);
    double sum = 0.0;
    SPECSIM_UNROLL
    for (unsigned k = 0; k < kSlicePart; ++k) {
      if (first + k >= end) continue;
      const std::uint32_t key = Cut::bits(own[k]);
      const bool stays = key > least || (key == least && (all_stay || taken++ < places));
      if (!stays || own[k] < min_p)
        distribution[first + k] = 0.0;
      else
        sum += own[k];
    }
    sum = block_sum(thread, sum, kThreads, reinterpret_cast<double*>(thread.shared()));
    if (thread.index() == 0) slice_sums[row * thread.blocks_x() + thread.block_x()] = sum;
    if (next.histograms != nullptr) next.count(thread, distribution, begin, end, row, 0, 0);
  }

 private:
  // How many tokens before `first`, where this thread's begin, have the weight that is the least. Other blocks may zero some of
  // them meanwhile, but only behind as many as there are places, which keep theirs: whoever finds fewer has seen all.
  static SPECSIM_KERNEL std::uint64_t equals_before(const Thread& thread, const double* distribution, std::uint32_t least,
                                                    unsigned begin, unsigned first, unsigned end) {
    auto* const room = reinterpret_cast<std::uint64_t*>(thread.shared());
    std::uint64_t earlier = 0;
    for (unsigned x = thread.index(); x < begin; x += kThreads) earlier += Cut::bits(distribution[x]) == least ? 1 : 0;
    earlier = block_sum(thread, earlier, kThreads, room);
    std::uint64_t own = 0;
    for (unsigned x = first; x < first + kSlicePart && x < end; ++x) own += Cut::bits(distribution[x]) == least ? 1 : 0;
    Cut::sums_from(thread, kThreads, own, room);
    return earlier + room[0] - room[thread.index()];
  }
};

// Divides a distribution by its sum, and sums it anew as draws want it.
struct NormaliseDistribution {
  static constexpr unsigned kThreads = kSliceThreads;
  double* distributions = nullptr;
  unsigned vocab = 0;
  const double* slice_sums = nullptr;
  double* scan_sums = nullptr;  // [row][scans_of(vocab)]
  unsigned count = 0;

  [[nodiscard]] Grid grid() const { return {slices_of(vocab), count, 1, kThreads, sizeof(Room)}; }
  SPECSIM_KERNEL void operator()(const Thread& thread) const;

 private:
  struct Room {
    double distribution[kSlice];
    double ways[kSlice / kScan * 8];
    double sums[kThreads / kWarp];
  };
};

// Partial sums of scan blocks [first, last) by math::ScanSums' eight accumulators, into ways[block - first][8].
template <class F>
SPECSIM_KERNEL void scan_ways(const Thread& thread, unsigned threads, unsigned vocab, unsigned first, unsigned last,
                              const F& weight, double* ways) {
  for (unsigned item = thread.index(); item < (last - first) * 8; item += threads) {
    const unsigned begin = (first + item / 8) * kScan;
    const unsigned size = begin + kScan < vocab ? kScan : vocab - begin;
    const unsigned way = item % 8;
    double sum = 0.0;
    unsigned i = 0;
    for (; i + 8 <= size; i += 8) sum += weight(begin + i + way);
    if (way == 0)
      for (; i < size; ++i) sum += weight(begin + i);
    ways[item] = sum;
  }
}
SPECSIM_KERNEL double fold_ways(const double* w) { return ((w[0] + w[4]) + (w[2] + w[6])) + ((w[1] + w[5]) + (w[3] + w[7])); }

SPECSIM_KERNEL void NormaliseDistribution::operator()(const Thread& thread) const {
  thread.wait_for_previous();
  thread.release_next();
  const std::size_t row = thread.block_y();
  const unsigned slices = thread.blocks_x();
  auto* const room = reinterpret_cast<Room*>(thread.shared());
  double* const distribution = distributions + row * vocab;
  const unsigned begin = thread.block_x() * kSlice;
  const unsigned end = begin + kSlice < vocab ? begin + kSlice : vocab;
  double own[kSlicePart];
  load_part(distribution, begin + thread.index(), end, own);
  const double total =
      block_sum(thread, thread.index() < slices ? slice_sums[row * slices + thread.index()] : 0.0, kThreads, room->sums);
  SPECSIM_UNROLL
  for (unsigned k = 0; k < kSlicePart; ++k) {
    const unsigned i = begin + thread.index() + k * kThreads;
    if (i < end) distribution[i] = room->distribution[i - begin] = own[k] / total;
  }
  thread.sync();
  const unsigned first = begin / kScan;
  const unsigned last = (end + kScan - 1) / kScan;
  scan_ways(
      thread, kThreads, vocab, first, last, [&](unsigned x) { return room->distribution[x - begin]; }, room->ways);
  thread.sync();
  if (thread.index() < last - first)
    scan_sums[row * scans_of(vocab) + first + thread.index()] = fold_ways(room->ways + 8 * thread.index());
}

// Shared memory of a draw.
struct DrawRoom {
  double sums[kMostScans];
  double weights[kScan];
  double left;
  std::uint32_t block;
  std::uint32_t token;
  std::uint32_t last_positive;
};

// The token of math::ScanSums::pick(weights, u), by all threads of the block; room->sums holds the scan blocks' sums. Whoever
// adds and subtracts does it one after the other: the order is part of the outcome. He loads some at a time, so that the chain
// waits for arithmetic alone; behind the end there are zeros, which change nothing.
template <class F>
SPECSIM_KERNEL std::uint32_t pick(const Thread& thread, unsigned threads, unsigned vocab, double u, const F& weight,
                                  DrawRoom* room) {
  constexpr unsigned kAtOnce = 8;
  const unsigned blocks = scans_of(vocab);
  thread.sync();
  if (thread.index() == 0) {
    double total = 0.0;
    for (unsigned b = 0; b < blocks; b += kAtOnce) {
      double sums[kAtOnce];
      load_some(room->sums, b, blocks, sums);
      SPECSIM_UNROLL
      for (const double sum : sums) total += sum;
    }
    double left = u * total;
    unsigned block = 0;
    for (bool there = blocks == 1; !there;) {
      double sums[kAtOnce];
      load_some(room->sums, block, blocks, sums);
      SPECSIM_UNROLL
      for (const double sum : sums) {
        there = there || block + 1 == blocks || left < sum;
        left -= there ? 0.0 : sum;
        block += there ? 0 : 1;
      }
    }
    room->left = left;
    room->block = block;
    room->token = vocab;
    room->last_positive = vocab;
  }
  thread.sync();
  for (unsigned block = room->block; block < blocks; ++block) {  // rounding may carry a draw beyond its block's end
    const unsigned begin = block * kScan;
    const unsigned size = begin + kScan < vocab ? kScan : vocab - begin;
    for (unsigned i = thread.index(); i < size; i += threads) room->weights[i] = weight(begin + i);
    thread.sync();
    if (thread.index() == 0) {
      double left = room->left;
      std::uint32_t last_positive = room->last_positive;
      bool there = false;
      for (unsigned i = 0; i < size && !there; i += kAtOnce) {
        double weights[kAtOnce];
        load_some(room->weights, i, size, weights);
        SPECSIM_UNROLL
        for (unsigned k = 0; k < kAtOnce; ++k) {
          if (there || !(weights[k] > 0.0)) continue;
          last_positive = begin + i + k;
          there = left < weights[k];
          left -= there ? 0.0 : weights[k];
        }
      }
      room->last_positive = last_positive;
      if (there) room->token = last_positive;
      room->left = left;
    }
    thread.sync();
    if (room->token < vocab) return room->token;
  }
  if (thread.index() == 0 && room->last_positive == vocab) {  // beyond the end altogether: the last token that can be
    unsigned last = vocab;
    while (last > 0 && !(weight(last - 1) > 0.0)) --last;
    room->last_positive = last > 0 ? last - 1 : 0;
  }
  thread.sync();
  return room->last_positive;
}

// The batch that decodes, a sequence's state side by side.
struct Sequences {
  std::uint32_t* text = nullptr;  // [sequence][text_stride]: prompt, emitted, and the round's drafts behind them
  std::size_t text_stride = 0;
  std::uint32_t* lengths = nullptr;    // tokens that the target has cached: all of the text but its last
  std::uint32_t* rounds = nullptr;     // how many it has had
  const std::uint64_t* ids = nullptr;  // its address
  std::uint64_t key = 0;               // low word, high word << 32
};

// Draws draft token `index` of every sequence from its distribution and puts it behind the text.
struct DrawDraft {
  static constexpr unsigned kThreads = 128;
  const double* distributions = nullptr;  // [sequence][distribution_stride]
  std::size_t distribution_stride = 0;
  const double* scan_sums = nullptr;  // [sequence][scans_of(vocab)]
  unsigned vocab = 0;
  unsigned index = 0;
  Sequences sequences;
  unsigned count = 0;

  [[nodiscard]] Grid grid() const { return {count, 1, 1, kThreads, sizeof(DrawRoom)}; }
  SPECSIM_KERNEL void operator()(const Thread& thread) const {
    thread.wait_for_previous();
    thread.release_next();
    const unsigned s = thread.block_x();
    auto* const room = reinterpret_cast<DrawRoom*>(thread.shared());
    for (unsigned b = thread.index(); b < scans_of(vocab); b += kThreads)
      room->sums[b] = scan_sums[static_cast<std::size_t>(s) * scans_of(vocab) + b];
    const double* const distribution = distributions + s * distribution_stride;
    const double u = to_unit(random_bits_at(kDraftAccept | index, sequences.rounds[s], sequences.ids[s], sequences.key).first);
    const std::uint32_t token = pick(
        thread, kThreads, vocab, u, [&](unsigned x) { return distribution[x]; }, room);
    if (thread.index() == 0) sequences.text[s * sequences.text_stride + sequences.lengths[s] + 1 + index] = token;
  }
};

enum class Acceptance : unsigned { token, greedy, block };

// The drafts of a round, to be judged:
//   token   accept while u draft(x) < target(x); then the residual max(target - draft, 0), or the target after the last
//   greedy  while x is the target's one token; then the target
//   block   Sun et al., arXiv 2403.10444: p_i = min(1, p_{i-1} target/draft); the longest prefix that accepts with p at the end,
//           Z / (Z + 1 - p_i) before it, Z the mass of max(p_i target - draft, 0); then that residual
struct Trial {
  static constexpr unsigned kMostDrafts = 64;
  const double* target = nullptr;   // [sequence][draft_length + 1][vocab]
  const double* drafted = nullptr;  // [draft token][sequence][vocab]
  unsigned vocab = 0;
  unsigned draft_length = 0;
  Acceptance rule = Acceptance::token;
  Sequences sequences;
  unsigned count = 0;

  // In shared memory: the drafts' own probabilities and what follows from them.
  struct Marks {
    double target[kMostDrafts];
    double drafted[kMostDrafts];
    double stays[kMostDrafts + 1];  // p_i, block
    std::uint32_t last;             // accepted drafts, of block: those with a p that is not 0
    std::uint32_t whole;            // all of them
  };

  // After how many accepted drafts the final token may be due: block may end anywhere, the others' end is known at once.
  [[nodiscard]] unsigned ends() const { return rule == Acceptance::block ? draft_length + 1 : 1; }
  SPECSIM_KERNEL std::uint32_t* drafts(unsigned s) const {
    return sequences.text + s * sequences.text_stride + sequences.lengths[s] + 1;
  }
  SPECSIM_KERNEL double decision(unsigned s, unsigned place) const {
    return to_unit(random_bits_at(kDraftAccept | place, sequences.rounds[s], sequences.ids[s], sequences.key).second);
  }
  // By all threads of the block.
  SPECSIM_KERNEL void mark(const Thread& thread, unsigned s, Marks* marks) const {
    if (thread.index() < draft_length) {
      const std::uint32_t token = drafts(s)[thread.index()];
      marks->target[thread.index()] = distribution(s, thread.index())[token];
      marks->drafted[thread.index()] = draft_distribution(s, thread.index())[token];
    }
    thread.sync();
    if (thread.index() == 0) {
      constexpr double kNever = 1e-300;  // 1 / p stays finite
      unsigned last = 0;
      bool stays = true;
      marks->stays[0] = 1.0;
      while (stays && last < draft_length) {
        if (rule == Acceptance::block) {
          const double p = marks->stays[last] * marks->target[last] / marks->drafted[last];
          marks->stays[last + 1] = p < 1.0 ? p : 1.0;
          stays = marks->stays[last + 1] > kNever;
        } else {
          stays = rule == Acceptance::greedy ? marks->target[last] > 0.5
                                             : decision(s, last) * marks->drafted[last] < marks->target[last];
        }
        if (stays) ++last;
      }
      marks->last = last;
      marks->whole = last == draft_length ? 1 : 0;
    }
    thread.sync();
  }
  // Weight of a final token after so many accepted drafts: max(target - cut draft, 0).
  SPECSIM_KERNEL double cut(unsigned accepts, const Marks& marks) const {
    if (accepts == draft_length || rule == Acceptance::greedy) return 0.0;
    return rule == Acceptance::block ? 1.0 / marks.stays[accepts] : 1.0;
  }
  SPECSIM_KERNEL double weight(unsigned s, unsigned accepts, double cut, unsigned x) const {
    const double whole = distribution(s, accepts)[x];
    if (!(cut > 0.0)) return whole;
    const double rest = whole - cut * draft_distribution(s, accepts)[x];
    return rest > 0.0 ? rest : 0.0;
  }

 private:
  SPECSIM_KERNEL const double* distribution(unsigned s, unsigned place) const {
    return target + (static_cast<std::size_t>(s) * (draft_length + 1) + place) * vocab;
  }
  SPECSIM_KERNEL const double* draft_distribution(unsigned s, unsigned place) const {
    return drafted + (static_cast<std::size_t>(place) * count + s) * vocab;
  }
};

// Sums of the final token's weights as draws want them, at each of its ends: a block for each slice.
struct ResidualSums {
  static constexpr unsigned kThreads = kSliceThreads;
  Trial trial;
  double* sums = nullptr;  // [sequence][end][scans_of(vocab)]

  [[nodiscard]] Grid grid() const { return {slices_of(trial.vocab), trial.ends(), trial.count, kThreads, sizeof(Room)}; }
  SPECSIM_KERNEL void operator()(const Thread& thread) const {
    thread.wait_for_previous();
    thread.release_next();
    const unsigned s = thread.block_z();
    auto* const room = reinterpret_cast<Room*>(thread.shared());
    trial.mark(thread, s, &room->marks);
    unsigned accepts = room->marks.last;
    unsigned ends = 1;
    if (trial.rule == Acceptance::block) {
      accepts = thread.block_y();
      ends = trial.draft_length + 1;
      if (accepts > room->marks.last) return;  // which no one asks for
    }
    const double cut = trial.cut(accepts, room->marks);
    const unsigned begin = thread.block_x() * kSlice;
    const unsigned end = begin + kSlice < trial.vocab ? begin + kSlice : trial.vocab;
    double own[kSlicePart];
    SPECSIM_UNROLL
    for (unsigned k = 0; k < kSlicePart; ++k) {
      const unsigned x = begin + thread.index() + k * kThreads;
      own[k] = x < end ? trial.weight(s, accepts, cut, x) : 0.0;
    }
    SPECSIM_UNROLL
    for (unsigned k = 0; k < kSlicePart; ++k) room->weights[thread.index() + k * kThreads] = own[k];
    thread.sync();
    const unsigned first = begin / kScan;
    const unsigned last = (end + kScan - 1) / kScan;
    scan_ways(
        thread, kThreads, trial.vocab, first, last, [&](unsigned x) { return room->weights[x - begin]; }, room->ways);
    thread.sync();
    double* const to = sums + (static_cast<std::size_t>(s) * ends + thread.block_y()) * scans_of(trial.vocab) + first;
    if (thread.index() < last - first) to[thread.index()] = fold_ways(room->ways + 8 * thread.index());
  }

 private:
  struct Room {
    Trial::Marks marks;
    double weights[kSlice];
    double ways[kSlice / kScan * 8];
  };
};

// Judges the drafts of every sequence, writes the final token behind those that stay, and moves the sequence on.
struct Accept {
  static constexpr unsigned kThreads = 256;
  Trial trial;
  const double* sums = nullptr;       // that ResidualSums made
  std::uint32_t* accepted = nullptr;  // [sequence]

  [[nodiscard]] Grid grid() const { return {trial.count, 1, 1, kThreads, sizeof(Room)}; }

  SPECSIM_KERNEL void operator()(const Thread& thread) const {
    thread.wait_for_previous();
    thread.release_next();
    const unsigned s = thread.block_x();
    const Sequences& sequences = trial.sequences;
    auto* const room = reinterpret_cast<Room*>(thread.shared());
    trial.mark(thread, s, &room->marks);
    const bool block = trial.rule == Acceptance::block;
    const unsigned accepts = block ? longest(thread, s, room) : room->marks.last;
    const double cut = trial.cut(accepts, room->marks);
    if (!block) take_sums(thread, s, 0, room);
    const double u =
        to_unit(random_bits_at(kFinalToken | (block ? accepts : 0), sequences.rounds[s], sequences.ids[s], sequences.key).first);
    const std::uint32_t token = pick(
        thread, kThreads, trial.vocab, u, [&](unsigned x) { return trial.weight(s, accepts, cut, x); }, &room->draw);
    thread.sync();
    if (thread.index() != 0) return;
    trial.drafts(s)[accepts] = token;
    accepted[s] = accepts;
    sequences.lengths[s] += accepts + 1;
    ++sequences.rounds[s];
  }

 private:
  struct Room {
    DrawRoom draw;
    Trial::Marks marks;
  };
  static_assert(sizeof(Room) <= 48 * 1024);

  SPECSIM_KERNEL void take_sums(const Thread& thread, unsigned s, unsigned end, Room* room) const {
    const unsigned ends = trial.rule == Acceptance::block ? trial.draft_length + 1 : 1;
    const unsigned blocks = scans_of(trial.vocab);
    const double* const from = sums + (static_cast<std::size_t>(s) * ends + end) * blocks;
    thread.sync();
    for (unsigned b = thread.index(); b < blocks; b += kThreads) room->draw.sums[b] = from[b];
    thread.sync();
  }
  // Accepted drafts of block, from the longest prefix down; its sums are taken then.
  SPECSIM_KERNEL unsigned longest(const Thread& thread, unsigned s, Room* room) const {
    unsigned accepts = room->marks.last;
    for (; accepts > 0; --accepts) {
      take_sums(thread, s, accepts, room);
      const double stays = room->marks.stays[accepts];
      const double u = trial.decision(s, accepts - 1);
      if (room->marks.whole != 0 && accepts == room->marks.last) {
        if (u < stays) return accepts;
        continue;
      }
      double z = 0.0;
      for (unsigned b = 0; b < scans_of(trial.vocab); ++b) z += room->draw.sums[b];
      z *= stays;
      if (u * (z + 1.0 - stays) < z) return accepts;
    }
    take_sums(thread, s, 0, room);
    return 0;
  }
};

}  // namespace specsim::cuda
