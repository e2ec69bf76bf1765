// The time-critical loops, in vector instructions chosen at run time (Highway). Each sum runs over its own terms in one order. So
// no result depends on how many rows are computed together, on how the work is divided, or on whether the machine has AVX2 or
// AVX-512.
#pragma once

#include "sim/foundation/base/line_allocator.h"
#include "sim/lab/llm/matrix.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace specsim::llm {

// Aligned so that no vector crosses two cache lines: crossing loads take a tenth of a pass.
using LineFloats = std::vector<float, LineAllocator<float>>;

// Rows of floats with room for whole vectors; elements after a row's columns stay zero.
struct RowsIn {
  const float* data = nullptr;
  std::size_t stride = 0;
  std::size_t rows = 0;
};
struct RowsOut {
  float* data = nullptr;
  std::size_t stride = 0;
};

// y[r][o] = sum over columns of weights[o] x[r], for outputs first <= o < last; added to the old value if `add`. Reads the
// weights from memory once for all rows. x's stride is at least padded(columns).
void multiply(const Matrix& weights, std::size_t first, std::size_t last, RowsIn x, RowsOut y, bool add);

// One query head of one token: out = softmax(scale q . key) value over the cache's `slots`, in their order.
struct Attention {
  const float* query = nullptr;
  const float* keys = nullptr;    // keys of slot 0; the others follow
  const float* values = nullptr;  // values of slot 0, likewise
  std::size_t slot_stride = 0;
  std::size_t width = 0;  // width of a head, padded to a multiple of kHeadPadding
  std::span<const std::uint32_t> slots;
  float scale = 1.0F;
};
constexpr std::size_t kHeadPadding = 16;
// `scores` has room for padded(slots.size()).
void attend(const Attention& attention, float* scores, float* out);

// out[i] = gate[i] / (1 + exp(-gate[i])) up[i].
void swiglu(const float* gate, const float* up, std::size_t count, float* out);
// out[i] = gate[i] / (1 + exp(-2 sqrt(2 / pi) (gate[i] + 0.044715 gate[i]^3))) up[i]: the gate through GELU in its tanh form.
void geglu(const float* gate, const float* up, std::size_t count, float* out);

// out[i] = x[i] weight[i] / sqrt(mean of squares + epsilon).
void rms_norm(const float* x, std::span<const float> weight, double epsilon, float* out);

// out[i] = exp((logits[i] - highest) / temperature).
void exponentials(std::span<const float> logits, float highest, double temperature, std::span<double> out);

// The bytes' sum as 64-bit words, read once from front to end; to measure the read bandwidth of memory.
std::uint64_t read_all(std::span<const std::uint64_t> words);

}  // namespace specsim::llm
