#include "sim/foundation/rng/philox.h"

#include "sim/foundation/rng/philox_instructions.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace specsim::rng {

namespace {

constexpr std::uint32_t kMultiplier0 = 0xD2511F53;
constexpr std::uint32_t kMultiplier1 = 0xCD9E8D57;
constexpr std::uint32_t kWeyl0 = 0x9E3779B9;
constexpr std::uint32_t kWeyl1 = 0xBB67AE85;
constexpr int kRounds = 10;

void scalar_batch(const CounterBatch& counters, Key key, std::size_t begin, std::size_t end, std::uint64_t* first,
                  std::uint64_t* second) {
  for (std::size_t i = begin; i < end; ++i) {
    const std::uint32_t c0 = counters.c0 + (counters.positions != nullptr ? counters.positions[i] : 0);
    const std::uint32_t c1 = counters.c1 != nullptr ? counters.c1[i] : counters.c1_common;
    const std::uint32_t lane = counters.lanes != nullptr ? counters.lanes[i] : static_cast<std::uint32_t>(i);
    const BitsPair random_bits = philox_bits({c0, c1, counters.c2 + lane, counters.c3}, key);
    first[i] = random_bits.first;
    second[i] = random_bits.second;
  }
}

#if defined(__x86_64__)
// Four counters per register, each 32-bit word in the low half of a 64-bit lane. The multiply reads only low halves, so the high
// halves may hold garbage until the end.
__attribute__((target("avx2"))) void avx2_batch(const CounterBatch& counters, Key key, std::size_t count, std::uint64_t* first,
                                                std::uint64_t* second) {
  constexpr std::size_t kGroups = 2;
  constexpr std::size_t kWidth = 4 * kGroups;
  const __m256i m0 = _mm256_set1_epi64x(kMultiplier0);
  const __m256i m1 = _mm256_set1_epi64x(kMultiplier1);
  const __m256i low_half = _mm256_set1_epi64x(0xFFFFFFFF);
  __m256i keys0[kRounds];  // NOLINT(modernize-avoid-c-arrays): std::array drops the vector type's alignment attribute
  __m256i keys1[kRounds];  // NOLINT(modernize-avoid-c-arrays): std::array drops the vector type's alignment attribute
  for (std::uint32_t r = 0; r < kRounds; ++r) {
    keys0[r] = _mm256_set1_epi64x(static_cast<std::uint32_t>(key.low + r * kWeyl0));
    keys1[r] = _mm256_set1_epi64x(static_cast<std::uint32_t>(key.high + r * kWeyl1));
  }
  std::size_t i = 0;
  for (; i + kWidth <= count; i += kWidth) {
    __m256i x0[kGroups];  // NOLINT(modernize-avoid-c-arrays)
    __m256i x1[kGroups];  // NOLINT(modernize-avoid-c-arrays)
    __m256i x2[kGroups];  // NOLINT(modernize-avoid-c-arrays)
    __m256i x3[kGroups];  // NOLINT(modernize-avoid-c-arrays)
    for (std::size_t g = 0; g < kGroups; ++g) {
      const std::size_t at = i + 4 * g;
      x0[g] = _mm256_set1_epi64x(counters.c0);
      if (counters.positions != nullptr)
        x0[g] = _mm256_add_epi64(
            x0[g], _mm256_cvtepu32_epi64(_mm_loadu_si128(reinterpret_cast<const __m128i*>(counters.positions + at))));
      x1[g] = counters.c1 != nullptr ? _mm256_cvtepu32_epi64(_mm_loadu_si128(reinterpret_cast<const __m128i*>(counters.c1 + at)))
                                     : _mm256_set1_epi64x(counters.c1_common);
      const __m128i lane = counters.lanes != nullptr
                               ? _mm_loadu_si128(reinterpret_cast<const __m128i*>(counters.lanes + at))
                               : _mm_add_epi32(_mm_set1_epi32(static_cast<int>(at)), _mm_setr_epi32(0, 1, 2, 3));
      x2[g] = _mm256_cvtepu32_epi64(_mm_add_epi32(lane, _mm_set1_epi32(static_cast<int>(counters.c2))));
      x3[g] = _mm256_set1_epi64x(counters.c3);
    }
#pragma GCC unroll 10
    for (std::size_t r = 0; r < kRounds; ++r) {
      for (std::size_t g = 0; g < kGroups; ++g) {
        const __m256i product0 = _mm256_mul_epu32(x0[g], m0);
        const __m256i product1 = _mm256_mul_epu32(x2[g], m1);
        x0[g] = _mm256_xor_si256(_mm256_xor_si256(_mm256_srli_epi64(product1, 32), x1[g]), keys0[r]);
        x2[g] = _mm256_xor_si256(_mm256_xor_si256(_mm256_srli_epi64(product0, 32), x3[g]), keys1[r]);
        x1[g] = product1;
        x3[g] = product0;
      }
    }
    for (std::size_t g = 0; g < kGroups; ++g) {
      const __m256i word0 = _mm256_or_si256(_mm256_and_si256(x0[g], low_half), _mm256_slli_epi64(x1[g], 32));
      const __m256i word1 = _mm256_or_si256(_mm256_and_si256(x2[g], low_half), _mm256_slli_epi64(x3[g], 32));
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(first + i + 4 * g), word0);
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(second + i + 4 * g), word1);
    }
  }
  scalar_batch(counters, key, i, count, first, second);
}

// The same for eight counters per register.
__attribute__((target("avx512f"))) void avx512_batch(const CounterBatch& counters, Key key, std::size_t count,
                                                     std::uint64_t* first, std::uint64_t* second) {
  constexpr std::size_t kGroups = 2;
  constexpr std::size_t kLanesOfRegister = 8;
  constexpr std::size_t kWidth = kLanesOfRegister * kGroups;
  constexpr int kXor3 = 0x96;  // the truth table of a ^ b ^ c
  const __m512i m0 = _mm512_set1_epi64(kMultiplier0);
  const __m512i m1 = _mm512_set1_epi64(kMultiplier1);
  __m512i keys0[kRounds];  // NOLINT(modernize-avoid-c-arrays)
  __m512i keys1[kRounds];  // NOLINT(modernize-avoid-c-arrays)
  for (std::uint32_t r = 0; r < kRounds; ++r) {
    keys0[r] = _mm512_set1_epi64(static_cast<std::uint32_t>(key.low + r * kWeyl0));
    keys1[r] = _mm512_set1_epi64(static_cast<std::uint32_t>(key.high + r * kWeyl1));
  }
  const __m512i steps = _mm512_setr_epi64(0, 1, 2, 3, 4, 5, 6, 7);
  for (std::size_t i = 0; i < count; i += kWidth) {
    __m512i x0[kGroups];       // NOLINT(modernize-avoid-c-arrays)
    __m512i x1[kGroups];       // NOLINT(modernize-avoid-c-arrays)
    __m512i x2[kGroups];       // NOLINT(modernize-avoid-c-arrays)
    __m512i x3[kGroups];       // NOLINT(modernize-avoid-c-arrays)
    __mmask8 inside[kGroups];  // NOLINT(modernize-avoid-c-arrays)
    for (std::size_t g = 0; g < kGroups; ++g) {
      const std::size_t at = i + kLanesOfRegister * g;
      const std::size_t left = count > at ? count - at : 0;
      inside[g] = static_cast<__mmask8>(left >= kLanesOfRegister ? 0xFF : (1U << left) - 1);
      const auto narrow = static_cast<__mmask16>(inside[g]);
      const auto words = [&](const std::uint32_t* from) __attribute__((target("avx512f"))) {
        return _mm512_cvtepu32_epi64(_mm512_castsi512_si256(_mm512_maskz_loadu_epi32(narrow, from)));
      };
      x0[g] = _mm512_set1_epi64(counters.c0);
      if (counters.positions != nullptr) x0[g] = _mm512_add_epi64(x0[g], words(counters.positions + at));
      x1[g] = counters.c1 != nullptr ? words(counters.c1 + at) : _mm512_set1_epi64(counters.c1_common);
      const __m512i lane = counters.lanes != nullptr ? words(counters.lanes + at)
                                                     : _mm512_add_epi64(_mm512_set1_epi64(static_cast<std::int64_t>(at)), steps);
      // The carry into the high half is garbage, which the multiply does not read.
      x2[g] = _mm512_add_epi64(lane, _mm512_set1_epi64(counters.c2));
      x3[g] = _mm512_set1_epi64(counters.c3);
    }
#pragma GCC unroll 10
    for (std::size_t r = 0; r < kRounds; ++r) {
      for (std::size_t g = 0; g < kGroups; ++g) {
        const __m512i product0 = _mm512_mul_epu32(x0[g], m0);
        const __m512i product1 = _mm512_mul_epu32(x2[g], m1);
        x0[g] = _mm512_ternarylogic_epi64(_mm512_srli_epi64(product1, 32), x1[g], keys0[r], kXor3);
        x2[g] = _mm512_ternarylogic_epi64(_mm512_srli_epi64(product0, 32), x3[g], keys1[r], kXor3);
        x1[g] = product1;
        x3[g] = product0;
      }
    }
    constexpr __mmask16 kEven = 0x5555;
    for (std::size_t g = 0; g < kGroups; ++g) {
      // The low half of one register, and that of the other shifted up.
      const __m512i word0 = _mm512_mask_mov_epi32(_mm512_slli_epi64(x1[g], 32), kEven, x0[g]);
      const __m512i word1 = _mm512_mask_mov_epi32(_mm512_slli_epi64(x3[g], 32), kEven, x2[g]);
      _mm512_mask_storeu_epi64(first + i + kLanesOfRegister * g, inside[g], word0);
      _mm512_mask_storeu_epi64(second + i + kLanesOfRegister * g, inside[g], word1);
    }
  }
}
#endif

}  // namespace

Block philox4x32_10(Block counter, Key key) {
  for (int r = 0; r < kRounds; ++r) {
    const std::uint64_t product0 = std::uint64_t{kMultiplier0} * counter[0];
    const std::uint64_t product1 = std::uint64_t{kMultiplier1} * counter[2];
    counter = {static_cast<std::uint32_t>(product1 >> 32) ^ counter[1] ^ key.low, static_cast<std::uint32_t>(product1),
               static_cast<std::uint32_t>(product0 >> 32) ^ counter[3] ^ key.high, static_cast<std::uint32_t>(product0)};
    key.low += kWeyl0;
    key.high += kWeyl1;
  }
  return counter;
}

BitsPair philox_bits(Block counter, Key key) {
  const Block out = philox4x32_10(counter, key);
  return {out[0] | std::uint64_t{out[1]} << 32, out[2] | std::uint64_t{out[3]} << 32};
}

void philox_batch(const CounterBatch& counters, Key key, std::size_t count, std::uint64_t* first, std::uint64_t* second) {
#if defined(__x86_64__)
  static const bool has_avx512 = __builtin_cpu_supports("avx512f") != 0;
  if (has_avx512) return avx512_batch(counters, key, count, first, second);
  static const bool has_avx2 = __builtin_cpu_supports("avx2") != 0;
  if (has_avx2) return avx2_batch(counters, key, count, first, second);
#endif
  scalar_batch(counters, key, 0, count, first, second);
}

bool philox_batch_by(Instructions instructions, const CounterBatch& counters, Key key, std::size_t count, std::uint64_t* first,
                     std::uint64_t* second) {
  if (instructions == Instructions::plain) {
    scalar_batch(counters, key, 0, count, first, second);
    return true;
  }
#if defined(__x86_64__)
  if (instructions == Instructions::avx2 && __builtin_cpu_supports("avx2") != 0) {
    avx2_batch(counters, key, count, first, second);
    return true;
  }
  if (instructions == Instructions::avx512 && __builtin_cpu_supports("avx512f") != 0) {
    avx512_batch(counters, key, count, first, second);
    return true;
  }
#endif
  return false;
}

}  // namespace specsim::rng
