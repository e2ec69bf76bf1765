// The kernels from logits to a distribution: softmax with temperature, top-k, top-p and min-p, and the sums that draws need.
// Distributions are doubles, one row of `vocab` each. Sums are added in the order of math::ScanSums, so the same distributions
// give the same tokens as on the CPU.
#pragma once

#include "sim/lab/cuda/launch.h"

namespace specsim::cuda {

constexpr unsigned kMostVocab = 262144;
constexpr unsigned kScan = 512;    // weights that are summed together, in eight interleaved accumulators
constexpr unsigned kSlice = 2048;  // tokens of a distribution per block; a multiple of kScan
constexpr unsigned kMostSlices = kMostVocab / kSlice;
constexpr unsigned kMostScans = kMostVocab / kScan;

// A thread's part of a slice is loaded before any of it is used, for one round trip to memory.
constexpr unsigned kSliceThreads = 256;
constexpr unsigned kSlicePart = kSlice / kSliceThreads;

// Loads the neighbours first, first + 1, ...; 0 from `end` on.
template <unsigned kAtOnce>
SPECSIM_KERNEL void load_some(const double* from, unsigned first, unsigned end, double (&to)[kAtOnce]) {
  SPECSIM_UNROLL
  for (unsigned k = 0; k < kAtOnce; ++k) to[k] = first + k < end ? from[first + k] : 0.0;
}
// Loads first, first + kSliceThreads, ..., so that a slice's threads are side by side; 0 from `end` on.
template <class T>
SPECSIM_KERNEL void load_part(const T* from, unsigned first, unsigned end, T (&to)[kSlicePart]) {
  SPECSIM_UNROLL
  for (unsigned k = 0; k < kSlicePart; ++k)
    to[k] = first + k * kSliceThreads < end ? from[first + k * kSliceThreads] : static_cast<T>(0);
}

SPECSIM_KERNEL unsigned scans_of(unsigned vocab) { return (vocab + kScan - 1) / kScan; }
inline unsigned slices_of(unsigned vocab) { return (vocab + kSlice - 1) / kSlice; }

// The range of a row that a block processes.
struct Slice {
  unsigned begin;
  unsigned end;
};
SPECSIM_KERNEL Slice slice_of(const Thread& thread, unsigned vocab) {
  const unsigned begin = thread.block_x() * kSlice;
  return {begin, begin + kSlice < vocab ? begin + kSlice : vocab};
}

struct Peak {
  float value;
  std::uint32_t token;
};
// The larger one; ties: the lower token.
SPECSIM_KERNEL Peak larger(Peak a, Peak b) { return b.value > a.value || (b.value == a.value && b.token < a.token) ? b : a; }
// The largest over the block, using `room` in shared memory for one value per warp.
SPECSIM_KERNEL Peak block_peak(const Thread& thread, Peak peak, unsigned threads, Peak* room) {
  for (unsigned mask = kWarp / 2; mask > 0; mask /= 2)
    peak = larger(peak, {thread.shuffle_xor(peak.value, mask), thread.shuffle_xor(peak.token, mask)});
  thread.sync();
  if (thread.index() % kWarp == 0) room[thread.index() / kWarp] = peak;
  thread.sync();
  for (unsigned w = 0; w < threads / kWarp; ++w) peak = larger(peak, room[w]);
  return peak;
}

// Cuts a distribution to its `top_k` likeliest tokens or, if that is 0, to the shortest run of likeliest tokens whose share
// reaches `top_p`; ties go to the lower token. Weights are floats here, and their bits rise with them. So the smallest weight
// that stays is found as a number of 30 bits, ten bits at a time. Each step uses a histogram of the next ten bits of the weights
// that begin with the bits found so far. The sums are token counts, or masses in units of 2^-41, exact from a weight of 2^-18 on.
// They are integers, so the order of addition does not matter. A cut takes three launches, and the first histogram, which the
// kernel that wrote the distribution computes on the way. Each launch reads the row once, one block per slice, and the last
// writes it: 32 bytes per token, mostly from second-level caches.
struct Cut {
  static constexpr unsigned kLevels = 3;
  static constexpr unsigned kBits = 10;
  static constexpr unsigned kBins = 1U << kBits;
  static constexpr unsigned kLowBits = 21;  // low bits of a mass: a slice of these adds up in 32 bits, and so do the high bits

  // State of the search for the smallest weight that stays: its leading bits, the amount that weights with these bits must still
  // add to the goal, and the amount of all of them.
  struct Found {
    std::uint32_t prefix;
    std::uint64_t wanted;
    std::uint64_t there;
  };

  unsigned top_k = 0;
  double top_p = 1.0;
  std::uint64_t* histograms = nullptr;  // [row][kLevels][kBins], from zeros; null: no cut
  Found* found = nullptr;               // [row][kLevels]

  SPECSIM_KERNEL std::uint64_t measure(double weight) const {
    return top_k > 0 ? 1 : static_cast<std::uint64_t>(weight * 0x1.0p41);
  }
  static SPECSIM_KERNEL std::uint32_t bits(double weight) { return bits_of(static_cast<float>(weight)); }
  SPECSIM_KERNEL std::uint64_t* histogram(std::size_t row, unsigned level) const {
    return histograms + (row * kLevels + level) * kBins;
  }

  // Adds the tokens [begin, end) of a row, a slice of it, to its histogram of a level, using 2 kBins numbers of shared memory.
  SPECSIM_KERNEL void count(const Thread& thread, const double* distribution, unsigned begin, unsigned end, std::size_t row,
                            unsigned level, std::uint32_t prefix) const {
    auto* const low = reinterpret_cast<std::uint32_t*>(thread.shared());
    std::uint32_t* const high = low + kBins;
    thread.sync();
    for (unsigned bin = thread.index(); bin < 2 * kBins; bin += kSliceThreads) low[bin] = 0;
    double own[kSlicePart];
    load_part(distribution, begin + thread.index(), end, own);
    thread.sync();
    const unsigned below = (kLevels - 1 - level) * kBits;  // bits for later levels
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

  // Searches a level's histogram; the result is the same in all threads of the block. `threads` divides kBins.
  SPECSIM_KERNEL Found search(const Thread& thread, unsigned threads, std::size_t row, unsigned level) const {
    // [thread]: the amounts of its bins and of all later bins.
    auto* const sums = reinterpret_cast<std::uint64_t*>(thread.shared());
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
  // sums[i] = the values of threads i and higher.
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
  std::uint64_t* zeros = nullptr;  // histograms for the next cuts
  std::size_t zeros_size = 0;

  [[nodiscard]] Grid grid() const { return {slices_of(vocab), count, 1, kThreads, kThreads / kWarp * sizeof(Peak)}; }
  SPECSIM_KERNEL void operator()(const Thread& thread) const {
    thread.take_turn();
    const std::size_t row = thread.block_y();
    const std::size_t turn = std::size_t{count} * thread.blocks_x() * kThreads;
    for (std::size_t i = (row * thread.blocks_x() + thread.block_x()) * kThreads + thread.index(); i < zeros_size; i += turn)
      zeros[i] = 0;
    const auto [begin, end] = slice_of(thread, vocab);
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
// Weights below `min_p` are set to 0. Also computes the sum of each slice, or the first histogram of a cut.
struct DistributionWeights {
  static constexpr unsigned kThreads = kSliceThreads;
  const float* logits = nullptr;
  unsigned vocab = 0;
  const Peak* peaks = nullptr;
  float temperature = 1.0F;
  double min_p = 0.0;               // share of the likeliest token's probability
  double* distributions = nullptr;  // [row][vocab]
  double* slice_sums = nullptr;     // [row][slice]
  unsigned count = 0;
  Cut next;

  [[nodiscard]] Grid grid() const { return {slices_of(vocab), count, 1, kThreads, 2 * Cut::kBins * sizeof(std::uint32_t)}; }
  SPECSIM_KERNEL void operator()(const Thread& thread) const {
    thread.take_turn();
    const std::size_t row = thread.block_y();
    const unsigned slices = thread.blocks_x();
    const auto [begin, end] = slice_of(thread, vocab);
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

// Finds the next ten bits of the smallest weight that stays: reads the histogram of the previous level and makes that of its own.
struct NarrowCut {
  static constexpr unsigned kThreads = kSliceThreads;
  const double* distributions = nullptr;
  unsigned vocab = 0;
  Cut cut;
  unsigned level = 1;  // 1, then 2
  unsigned count = 0;

  [[nodiscard]] Grid grid() const { return {slices_of(vocab), count, 1, kThreads, 2 * Cut::kBins * sizeof(std::uint32_t)}; }
  SPECSIM_KERNEL void operator()(const Thread& thread) const {
    thread.take_turn();
    const std::size_t row = thread.block_y();
    const Cut::Found found = cut.search(thread, kThreads, row, level - 1);
    if (thread.block_x() == 0 && thread.index() == 0) cut.found[row * Cut::kLevels + level - 1] = found;
    const auto [begin, end] = slice_of(thread, vocab);
    cut.count(thread, distributions + row * vocab, begin, end, row, level, found.prefix);
  }
};

// Sets everything that the cut removes to zero, and weights below `min_p`. Also computes the sum of each slice, or the first
// histogram of another cut.
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
    thread.take_turn();
    const std::size_t row = thread.block_y();
    double* const distribution = distributions + row * vocab;
    const Cut::Found found = cut.search(thread, kThreads, row, Cut::kLevels - 1);
    const std::uint32_t least = found.prefix;
    const std::uint64_t each = cut.measure(static_cast<double>(float_of(least)));
    const std::uint64_t places = each > 0 ? (found.wanted + each - 1) / each : 0;  // places for weights equal to the smallest one
    const bool all_stay = places * each >= found.there;
    const auto [begin, end] = slice_of(thread, vocab);
    const unsigned first = begin + thread.index() * kSlicePart;  // neighbours, so that ties are counted in the order of tokens
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
  // The number of tokens with the smallest weight that stays, before `first`, where this thread's tokens begin. Other blocks may
  // set some of them to zero meanwhile, but only those after the last place that stays. So a thread that finds fewer has still
  // seen all that stay.
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

// Divides a distribution by its sum, and computes the scan sums that draws need.
struct NormaliseDistribution {
  static constexpr unsigned kThreads = kSliceThreads;
  double* distributions = nullptr;
  unsigned vocab = 0;
  const double* slice_sums = nullptr;
  double* scan_sums = nullptr;  // [row][scans_of(vocab)]
  unsigned count = 0;

  [[nodiscard]] Grid grid() const { return {slices_of(vocab), count, 1, kThreads, sizeof(Room)}; }
  SPECSIM_KERNEL void operator()(const Thread& thread) const {
    thread.take_turn();
    const std::size_t row = thread.block_y();
    const unsigned slices = thread.blocks_x();
    auto* const room = reinterpret_cast<Room*>(thread.shared());
    double* const distribution = distributions + row * vocab;
    const auto [begin, end] = slice_of(thread, vocab);
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
        thread, kThreads, vocab, first, last, [room, begin = begin](unsigned x) { return room->distribution[x - begin]; },
        room->ways);
    thread.sync();
    if (thread.index() < last - first)
      scan_sums[row * scans_of(vocab) + first + thread.index()] = fold_ways(room->ways + 8 * thread.index());
  }

 private:
  struct Room {
    double distribution[kSlice];
    double ways[kSlice / kScan * 8];
    double sums[kThreads / kWarp];
  };
};

}  // namespace specsim::cuda
