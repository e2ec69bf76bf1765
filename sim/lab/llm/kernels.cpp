#include "sim/lab/llm/kernels.h"

#include <hwy/cache_control.h>

#include <algorithm>
#include <array>
#include <cmath>

// This file is compiled once for each instruction set that the program may run on. Arrays of vectors need vectors of known size.
#define HWY_DISABLED_TARGETS (HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "sim/lab/llm/kernels.cpp"
#include <hwy/foreach_target.h>  // first

#include <hwy/highway.h>

#include <hwy/contrib/math/math-inl.h>

HWY_BEFORE_NAMESPACE();
namespace specsim::llm::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
// Eight lanes even if a machine has more. A sum over columns is that of its lanes' sums, so AVX-512 rounds as AVX2 does, term by
// term, and a model's output is the same on both. This costs no speed when products wait for loads. Machines with four lanes, or
// that round a product before adding it (SSE4), give other bits.
using Floats = HWY_CAPPED(float, 8);
using Lanes = hn::Vec<Floats>;

template <class Element>
HWY_INLINE Lanes load(const Element* at) {
  const Floats d;
  if constexpr (sizeof(Element) == sizeof(float))
    return hn::LoadU(d, at);
  else
    return hn::PromoteTo(d, hn::LoadU(hn::Rebind<Element, Floats>(), at));
}

// Weights to prefetch while others are in use: in every step of the loop one place per output, `between` elements apart, each
// `step` further than before.
template <class Element>
struct Ahead {
  const Element* at = nullptr;
  std::size_t between = 0;
  std::size_t step = 0;
};

// `Outputs` x `Rows` sums at a time: their accumulators fill the registers, and each loaded weight is used for all rows.
template <std::size_t Outputs, std::size_t Rows, class Element>
HWY_INLINE void tile(const Element* weights, std::size_t columns, Ahead<Element> ahead, RowsIn x, RowsOut y, bool add) {
  const Floats d;
  std::array<std::array<Lanes, Rows>, Outputs> sums;
  for (auto& row : sums) row.fill(hn::Zero(d));
  for (std::size_t i = 0; i < columns; i += hn::Lanes(d), ahead.at += ahead.step) {
    std::array<Lanes, Rows> in;
    for (std::size_t r = 0; r < Rows; ++r) in[r] = hn::LoadU(d, x.data + r * x.stride + i);
    for (std::size_t o = 0; o < Outputs; ++o) {
      hwy::Prefetch(ahead.at + o * ahead.between);
      const Lanes weight = load(weights + o * columns + i);
      for (std::size_t r = 0; r < Rows; ++r) sums[o][r] = hn::MulAdd(weight, in[r], sums[o][r]);
    }
  }
  for (std::size_t o = 0; o < Outputs; ++o)
    for (std::size_t r = 0; r < Rows; ++r) {
      const float sum = hn::GetLane(hn::SumOfLanes(d, sums[o][r]));
      float& out = y.data[r * y.stride + o];
      out = add ? out + sum : sum;
    }
}

// The weights of these outputs stay in the first-level cache while all rows are processed, in groups of up to four. Meanwhile the
// weights of the next outputs are prefetched, a part with each group, so that arithmetic and loads overlap. Long rows are
// prefetched along the row, where the processor's own prefetching helps; short rows one after the other.
template <std::size_t Outputs, class Element>
HWY_INLINE void tiles(const Element* weights, std::size_t columns, RowsIn x, RowsOut y, bool add) {
  constexpr std::size_t kRows = 4;
  constexpr std::size_t kFarBytes = 4096;
  constexpr std::size_t kShortBytes = 2048;  // a row with fewer bytes is short
  const std::size_t here = Outputs * columns;
  const std::size_t distance = (kFarBytes / sizeof(Element) + here - 1) / here * here;
  const std::size_t groups = (x.rows + kRows - 1) / kRows;
  const std::size_t lanes = hn::Lanes(Floats());
  const bool one_by_one = columns * sizeof(Element) <= kShortBytes;
  const std::size_t step = ((one_by_one ? Outputs * lanes : lanes) + groups - 1) / groups;
  Ahead<Element> ahead{weights + distance, one_by_one ? lanes : columns, step};
  std::size_t r = 0;
  const auto run = [&]<std::size_t Rows>() {
    tile<Outputs, Rows>(weights, columns, ahead, {x.data + r * x.stride, x.stride, Rows}, {y.data + r * y.stride, y.stride}, add);
    r += Rows;
    ahead.at += columns / lanes * step;
  };
  // Groups of nearly equal size: a single row would wait for each of its additions.
  for (std::size_t left = groups; left > 0; --left) {
    const std::size_t size = (x.rows - r + left - 1) / left;
    if (size == 4) run.template operator()<4>();
    if (size == 3) run.template operator()<3>();
    if (size == 2) run.template operator()<2>();
    if (size == 1) run.template operator()<1>();
  }
}

template <class Element>
void multiply_as(const Matrix& weights, std::size_t first, std::size_t last, RowsIn x, RowsOut y, bool add) {
  const std::size_t columns = padded(weights.columns());
  const auto* const elements = reinterpret_cast<const Element*>(weights.row(0));
  std::size_t o = first;
  const auto out = [&] { return RowsOut{y.data + o, y.stride}; };
  constexpr std::size_t kOutputs = 3;
  for (; o + kOutputs <= last; o += kOutputs) tiles<kOutputs>(elements + o * columns, columns, x, out(), add);
  for (; o < last; ++o) tiles<1>(elements + o * columns, columns, x, out(), add);
}

void multiply(const Matrix& weights, std::size_t first, std::size_t last, RowsIn x, RowsOut y, bool add) {
  switch (weights.precision()) {
    case Precision::f32:
      return multiply_as<float>(weights, first, last, x, y, add);
    case Precision::f16:
      return multiply_as<hwy::float16_t>(weights, first, last, x, y, add);
    case Precision::bf16:
      return multiply_as<hwy::bfloat16_t>(weights, first, last, x, y, add);
  }
}

void attend(const Attention& a, float* scores, float* out) {
  const Floats d;
  const std::size_t lanes = hn::Lanes(d);
  const std::size_t count = a.slots.size();
  float highest = -HUGE_VALF;
  for (std::size_t j = 0; j < count; ++j) {
    const float* const key = a.keys + a.slots[j] * a.slot_stride;
    Lanes sum = hn::Zero(d);
    for (std::size_t i = 0; i < a.width; i += lanes) sum = hn::MulAdd(hn::LoadU(d, a.query + i), hn::LoadU(d, key + i), sum);
    scores[j] = hn::GetLane(hn::SumOfLanes(d, sum)) * a.scale;
    highest = std::max(highest, scores[j]);
  }
  for (std::size_t j = count; j % lanes != 0; ++j) scores[j] = highest - 1e6F;  // its exponential is zero
  Lanes total = hn::Zero(d);
  for (std::size_t j = 0; j < count; j += lanes) {
    const Lanes e = hn::Exp(d, hn::Sub(hn::LoadU(d, scores + j), hn::Set(d, highest)));
    hn::StoreU(e, d, scores + j);
    total = hn::Add(total, e);
  }
  const Lanes scale = hn::Set(d, 1.0F / hn::GetLane(hn::SumOfLanes(d, total)));
  // Several sums side by side: a single sum would wait for each of its additions.
  const auto mix = [&]<std::size_t Vectors>(std::size_t from) {
    std::array<Lanes, Vectors> sums;
    sums.fill(hn::Zero(d));
    for (std::size_t j = 0; j < count; ++j) {
      const Lanes weight = hn::Set(d, scores[j]);
      const float* const value = a.values + a.slots[j] * a.slot_stride + from;
      for (std::size_t v = 0; v < Vectors; ++v) sums[v] = hn::MulAdd(weight, hn::LoadU(d, value + v * lanes), sums[v]);
    }
    for (std::size_t v = 0; v < Vectors; ++v) hn::StoreU(hn::Mul(sums[v], scale), d, out + from + v * lanes);
  };
  std::size_t from = 0;
  for (; from + 4 * lanes <= a.width; from += 4 * lanes) mix.template operator()<4>(from);
  for (; from < a.width; from += lanes) mix.template operator()<1>(from);
}

// out[i] = gate[i] / (1 + exp(-exponent(gate[i]))) up[i].
template <class Exponent>
HWY_INLINE void gated_unit(const float* gate, const float* up, std::size_t count, float* out, const Exponent& exponent) {
  const Floats d;
  for (std::size_t i = 0; i < count; i += hn::Lanes(d)) {
    const auto inside = hn::FirstN(d, count - i);
    const Lanes g = hn::MaskedLoad(inside, d, gate + i);
    // Beyond 88 the exponential exceeds the range of floats; the quotient is practically zero there.
    const Lanes e = hn::Exp(d, hn::Min(hn::Neg(exponent(g)), hn::Set(d, 88.0F)));
    const Lanes gated = hn::Div(g, hn::Add(hn::Set(d, 1.0F), e));
    hn::BlendedStore(hn::Mul(gated, hn::MaskedLoad(inside, d, up + i)), inside, d, out + i);
  }
}

void swiglu(const float* gate, const float* up, std::size_t count, float* out) {
  gated_unit(gate, up, count, out, [](const Lanes& g) HWY_ATTR { return g; });
}

void geglu(const float* gate, const float* up, std::size_t count, float* out) {
  gated_unit(gate, up, count, out, [](const Lanes& g) HWY_ATTR {
    const Floats d;
    constexpr float kScale = 1.5957691216F;  // 2 sqrt(2 / pi)
    const Lanes cubic = hn::Mul(hn::Set(d, 0.044715F), hn::Mul(g, hn::Mul(g, g)));
    return hn::Mul(hn::Set(d, kScale), hn::Add(g, cubic));
  });
}

void exponentials(std::span<const float> logits, float highest, double temperature, std::span<double> out) {
  const HWY_CAPPED(double, kHeadPadding / 2) d;
  const hn::Rebind<float, decltype(d)> half;
  for (std::size_t i = 0; i < logits.size(); i += hn::Lanes(d)) {
    const std::size_t left = logits.size() - i;
    const auto x = hn::PromoteTo(d, hn::MaskedLoad(hn::FirstN(half, left), half, logits.data() + i));
    const auto e = hn::Exp(d, hn::Div(hn::Sub(x, hn::Set(d, static_cast<double>(highest))), hn::Set(d, temperature)));
    hn::BlendedStore(e, hn::FirstN(d, left), d, out.data() + i);
  }
}

std::uint64_t read_all(std::span<const std::uint64_t> words) {
  const hn::ScalableTag<std::uint64_t> d;
  constexpr std::size_t kStreams = 4;
  std::array<hn::Vec<decltype(d)>, kStreams> sums;
  sums.fill(hn::Zero(d));
  const std::size_t step = kStreams * hn::Lanes(d);
  for (std::size_t i = 0; i + step <= words.size(); i += step)
    for (std::size_t s = 0; s < kStreams; ++s) sums[s] = hn::Add(sums[s], hn::LoadU(d, words.data() + i + s * hn::Lanes(d)));
  return hn::GetLane(hn::SumOfLanes(d, hn::Add(hn::Add(sums[0], sums[1]), hn::Add(sums[2], sums[3]))));
}

}  // namespace specsim::llm::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace specsim::llm {

HWY_EXPORT(multiply);
HWY_EXPORT(attend);
HWY_EXPORT(swiglu);
HWY_EXPORT(geglu);
HWY_EXPORT(exponentials);
HWY_EXPORT(read_all);

void multiply(const Matrix& weights, std::size_t first, std::size_t last, RowsIn x, RowsOut y, bool add) {
  HWY_DYNAMIC_DISPATCH(multiply)(weights, first, last, x, y, add);
}
void attend(const Attention& attention, float* scores, float* out) { HWY_DYNAMIC_DISPATCH(attend)(attention, scores, out); }
void swiglu(const float* gate, const float* up, std::size_t count, float* out) {
  HWY_DYNAMIC_DISPATCH(swiglu)(gate, up, count, out);
}
void geglu(const float* gate, const float* up, std::size_t count, float* out) {
  HWY_DYNAMIC_DISPATCH(geglu)(gate, up, count, out);
}
void exponentials(std::span<const float> logits, float highest, double temperature, std::span<double> out) {
  HWY_DYNAMIC_DISPATCH(exponentials)(logits, highest, temperature, out);
}
std::uint64_t read_all(std::span<const std::uint64_t> words) { return HWY_DYNAMIC_DISPATCH(read_all)(words); }

void rms_norm(const float* x, std::span<const float> weight, double epsilon, float* out) {
  double squares = 0.0;
  for (std::size_t i = 0; i < weight.size(); ++i) squares += static_cast<double>(x[i]) * static_cast<double>(x[i]);
  const auto scale = static_cast<float>(1.0 / std::sqrt(squares / static_cast<double>(weight.size()) + epsilon));
  for (std::size_t i = 0; i < weight.size(); ++i) out[i] = x[i] * scale * weight[i];
}

}  // namespace specsim::llm
#endif
