#include "sim/rounds/decode/wide_steps.h"

#include "sim/rounds/decode/prepared.h"

#if defined(__EMSCRIPTEN__)

// The browser's program is compiled without the vector library (Highway).
namespace specsim::decode::wide {

bool available() { return false; }
void columns(const std::uint64_t*, std::size_t, std::uint64_t, std::uint64_t*, std::uint64_t*) {}
void tokens(const std::uint64_t*, const std::uint64_t*, const std::uint64_t*, std::size_t, std::uint64_t*) {}
std::uint32_t judge(const std::uint64_t*, const std::uint64_t*, std::uint32_t, std::uint32_t*, std::uint32_t*) { return 0; }

}  // namespace specsim::decode::wide

#else

// This file is compiled once for each instruction set that the program may run on.
#define HWY_DISABLED_TARGETS (HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "sim/rounds/decode/wide_steps.cpp"
#include <hwy/foreach_target.h>  // first

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace specsim::decode::wide::HWY_NAMESPACE {

#if HWY_TARGET == HWY_SCALAR || HWY_TARGET == HWY_EMU128

bool has_vectors() { return false; }
void columns_of(const std::uint64_t*, std::size_t, std::uint64_t, std::uint64_t*, std::uint64_t*) {}
void tokens_of(const std::uint64_t*, const std::uint64_t*, const std::uint64_t*, std::size_t, std::uint64_t*) {}
std::uint32_t judge_lanes(const std::uint64_t*, const std::uint64_t*, std::uint32_t, std::uint32_t*, std::uint32_t*) { return 0; }

#else

namespace hn = hwy::HWY_NAMESPACE;
using Words = hn::ScalableTag<std::uint64_t>;
using Signed = hn::RebindToSigned<Words>;
using Halves = hn::Repartition<std::uint32_t, Words>;  // two of each word
using Narrow = hn::Rebind<std::uint32_t, Words>;       // one of each word
using Vector = hn::Vec<Words>;

bool has_vectors() { return true; }

// The product of the words' low halves with a factor in every low half.
HWY_INLINE Vector times(Vector words, Vector factor) {
  const Halves d;
  return hn::MulEven(hn::BitCast(d, words), hn::BitCast(d, factor));
}

// Words below 2^63 are compared as signed ones, which more processors can.
HWY_INLINE hn::Mask<Words> less(Vector a, Vector b) {
  const Signed d;
  return hn::RebindMask(Words(), hn::Lt(hn::BitCast(d, a), hn::BitCast(d, b)));
}

void columns_of(const std::uint64_t* random_bits, std::size_t count, std::uint64_t vocab, std::uint64_t* column,
                std::uint64_t* rest) {
  const Words d;
  const Vector factor = hn::Set(d, vocab);
  for (std::size_t i = 0; i < count; i += hn::Lanes(d)) {
    const Vector bits = hn::LoadU(d, random_bits + i);
    // The 128-bit product from two of the halves; vocab has at most 18 bits.
    const Vector low = times(bits, factor);
    const Vector high = hn::Add(times(hn::ShiftRight<32>(bits), factor), hn::ShiftRight<32>(low));
    hn::StoreU(hn::ShiftRight<32>(high), d, column + i);
    const Vector product = hn::Or(hn::ShiftLeft<32>(high), hn::And(low, hn::Set(d, 0xFFFFFFFF)));
    hn::StoreU(hn::ShiftRight<18>(product), d, rest + i);
  }
}

void tokens_of(const std::uint64_t* entry, const std::uint64_t* column, const std::uint64_t* rest, std::size_t count,
               std::uint64_t* token) {
  const Words d;
  for (std::size_t i = 0; i < count; i += hn::Lanes(d)) {
    const Vector own = hn::LoadU(d, entry + i);
    const hn::Mask<Words> stays = less(hn::LoadU(d, rest + i), hn::ShiftRight<18>(own));
    hn::StoreU(hn::IfThenElse(stays, hn::LoadU(d, column + i), hn::And(own, hn::Set(d, 0x3FFFF))), d, token + i);
  }
}

std::uint32_t judge_lanes(const std::uint64_t* accept_bits, const std::uint64_t* entry, std::uint32_t count, std::uint32_t* lanes,
                          std::uint32_t* accepted) {
  const Words d;
  std::uint32_t on = 0;
#if HWY_TARGET <= HWY_AVX3
  const Narrow narrow;
  const Vector class_mask = hn::Set(d, (std::uint64_t{1} << kClassBits) - 1);
  const auto lane_mask = hn::Set(narrow, 0xFFFF);
  for (std::size_t i = 0; i < count; i += hn::Lanes(d)) {
    const Vector own = hn::LoadU(d, entry + i);
    const Vector u = hn::ShiftRight<11>(hn::LoadU(d, accept_bits + i));
    const hn::Mask<Words> yes = hn::And(less(u, hn::ShiftRight<kClassBits>(own)), hn::FirstN(d, count - i));
    const auto kind = hn::TruncateTo(narrow, hn::ShiftLeft<16>(hn::And(own, class_mask)));
    // The bits are set one by one: the library's own sort of words uses a table that GCC copies for each vector.
    std::uint8_t bits = 0;
    hn::StoreMaskBits(d, yes, &bits);
    const auto sorted = hn::CompressBits(hn::Or(hn::LoadU(narrow, lanes + i), kind), &bits);
    // The store never overtakes the reads: at most as many lanes have gone on as have been judged.
    hn::StoreU(sorted, narrow, accepted + on);
    hn::StoreU(hn::And(sorted, lane_mask), narrow, lanes + on);
    on += static_cast<std::uint32_t>(hn::CountTrue(d, yes));
  }
#else
  for (std::uint32_t i = 0; i < count; ++i) {  // without a branch
    const std::uint32_t lane = lanes[i];
    const std::uint64_t own = entry[i];
    lanes[on] = lane;
    accepted[on] = lane | static_cast<std::uint32_t>(own & ((std::uint64_t{1} << kClassBits) - 1)) << 16;
    on += (accept_bits[i] >> 11) < (own >> kClassBits) ? 1 : 0;
  }
#endif
  return on;
}

#endif

}  // namespace specsim::decode::wide::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace specsim::decode::wide {

HWY_EXPORT(has_vectors);
HWY_EXPORT(columns_of);
HWY_EXPORT(tokens_of);
HWY_EXPORT(judge_lanes);

bool available() { return HWY_DYNAMIC_DISPATCH(has_vectors)(); }

void columns(const std::uint64_t* random_bits, std::size_t count, std::uint64_t vocab, std::uint64_t* column,
             std::uint64_t* rest) {
  HWY_DYNAMIC_DISPATCH(columns_of)(random_bits, count, vocab, column, rest);
}

void tokens(const std::uint64_t* entry, const std::uint64_t* column, const std::uint64_t* rest, std::size_t count,
            std::uint64_t* token) {
  HWY_DYNAMIC_DISPATCH(tokens_of)(entry, column, rest, count, token);
}

std::uint32_t judge(const std::uint64_t* accept_bits, const std::uint64_t* entry, std::uint32_t count, std::uint32_t* lanes,
                    std::uint32_t* accepted) {
  return HWY_DYNAMIC_DISPATCH(judge_lanes)(accept_bits, entry, count, lanes, accepted);
}

}  // namespace specsim::decode::wide

#endif

#endif
