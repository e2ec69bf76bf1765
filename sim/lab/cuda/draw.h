// The kernels that draw a token from a distribution. Every uniform has the same address as in decoding on the CPU
// (sim/foundation/rng/address.h).
#pragma once

#include "sim/lab/cuda/random_bits.h"
#include "sim/lab/cuda/sampling.h"

namespace specsim::cuda {

// Shared memory of a draw.
struct DrawRoom {
  double sums[kMostScans];
  double weights[kScan];
  double left;
  std::uint32_t block;
  std::uint32_t token;
  std::uint32_t last_positive;
};

// The token of math::ScanSums::pick(weights, u), by all threads of the block; room->sums holds the scan blocks' sums. One thread
// adds and subtracts in sequence, because the order affects the rounding. It loads several values at a time, so that the chain
// waits only for arithmetic. Values after the end are zeros, which change nothing.
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
  if (thread.index() == 0 && room->last_positive == vocab) {  // beyond the end: takes the last token of positive weight
    unsigned last = vocab;
    while (last > 0 && !(weight(last - 1) > 0.0)) --last;
    room->last_positive = last > 0 ? last - 1 : 0;
  }
  thread.sync();
  return room->last_positive;
}

// The state of the batch that is decoded, in arrays by sequence.
struct Sequences {
  std::uint32_t* text = nullptr;  // [sequence][text_stride]: prompt, emitted tokens, then the round's drafts
  std::size_t text_stride = 0;
  std::uint32_t* lengths = nullptr;    // tokens cached by the target: all of the text except its last
  std::uint32_t* rounds = nullptr;     // number of finished rounds
  const std::uint64_t* ids = nullptr;  // its address
  std::uint64_t key = 0;               // low word, high word << 32
};

// Draws draft token `index` of every sequence from its distribution and appends it to the text.
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
    thread.take_turn();
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

}  // namespace specsim::cuda
