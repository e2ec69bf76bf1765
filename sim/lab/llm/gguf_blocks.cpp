// Converts blocks of ggml to floats, with the layouts of ggml-common.h and the order of operations of ggml-quants.c.
#include "sim/lab/llm/gguf_model.h"

#include "sim/foundation/base/check.h"
#include "sim/foundation/base/error.h"
#include "sim/lab/llm/matrix.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

namespace specsim::llm {

namespace {

// The supported types: F32, F16, BF16, Q4_0, Q8_0, Q4_K, Q5_K, Q6_K.
constexpr std::array<std::uint32_t, 8> kRead = {0, 1, 30, 2, 8, 12, 13, 14};

float half_at(const std::byte* at) {
  float x = 0.0F;
  to_floats(at, Precision::f16, {&x, 1});
  return x;
}

int byte_at(const std::byte* at, std::size_t i) { return std::to_integer<int>(at[i]); }
int signed_at(const std::byte* at, std::size_t i) { return static_cast<signed char>(std::to_integer<unsigned char>(at[i])); }

// Scale and minimum of sub-block j, six bits each, from twelve bytes.
std::pair<int, int> scale_and_min(const std::byte* scales, std::size_t j) {
  if (j < 4) return {byte_at(scales, j) & 63, byte_at(scales, j + 4) & 63};
  return {(byte_at(scales, j + 4) & 15) | byte_at(scales, j - 4) >> 6 << 4,
          byte_at(scales, j + 4) >> 4 | byte_at(scales, j) >> 6 << 4};
}

void read_q4_0(const std::byte* block, float* out) {
  const float d = half_at(block);
  for (std::size_t i = 0; i < 16; ++i) {
    const int q = byte_at(block + 2, i);
    out[i] = static_cast<float>((q & 15) - 8) * d;
    out[i + 16] = static_cast<float>((q >> 4) - 8) * d;
  }
}

void read_q8_0(const std::byte* block, float* out) {
  const float d = half_at(block);
  for (std::size_t i = 0; i < 32; ++i) out[i] = static_cast<float>(signed_at(block + 2, i)) * d;
}

// Q4_K, and Q5_K with a fifth bit per value.
void read_k(const std::byte* block, bool fifth_bits, float* out) {
  const float d = half_at(block);
  const float smallest = half_at(block + 2);
  const std::byte* const scales = block + 4;
  const std::byte* const high = block + 16;
  const std::byte* const low = fifth_bits ? high + 32 : high;
  for (std::size_t part = 0; part < 8; ++part) {  // 32 values each; two parts share 32 bytes
    const auto [scale, minimum] = scale_and_min(scales, part);
    const float step = d * static_cast<float>(scale);
    const float offset = smallest * static_cast<float>(minimum);
    for (std::size_t i = 0; i < 32; ++i) {
      const int both = byte_at(low, part / 2 * 32 + i);
      int q = part % 2 == 0 ? both & 15 : both >> 4;
      if (fifth_bits && (byte_at(high, i) >> part & 1) != 0) q += 16;
      out[32 * part + i] = step * static_cast<float>(q) - offset;
    }
  }
}

void read_q6_k(const std::byte* block, float* out) {
  const std::byte* const low = block;
  const std::byte* const high = block + 128;
  const std::byte* const scales = block + 192;
  const float d = half_at(block + 208);
  for (std::size_t half = 0; half < 2; ++half)
    for (std::size_t i = 0; i < 32; ++i) {
      const int top = byte_at(high, 32 * half + i);
      for (std::size_t part = 0; part < 4; ++part) {
        const int both = byte_at(low, 64 * half + part % 2 * 32 + i);
        const int q = ((part < 2 ? both & 15 : both >> 4) | (top >> (2 * part) & 3) << 4) - 32;
        out[128 * half + 32 * part + i] =
            d * static_cast<float>(signed_at(scales, 8 * half + 2 * part + i / 16)) * static_cast<float>(q);
      }
    }
}

// Values of whole blocks in order, as ggml dequantises them. values.size() must be a multiple of the format's block.
void dequantise(const GgufFormat& format, const std::byte* blocks, std::span<float> values) {
  switch (format.type) {
    case 0:
      return to_floats(blocks, Precision::f32, values);
    case 1:
      return to_floats(blocks, Precision::f16, values);
    case 30:
      return to_floats(blocks, Precision::bf16, values);
    default:
      break;
  }
  for (std::size_t at = 0; at < values.size(); at += format.block_values, blocks += format.block_bytes) {
    float* const out = values.data() + at;
    if (format.type == 2) read_q4_0(blocks, out);
    if (format.type == 8) read_q8_0(blocks, out);
    if (format.type == 12 || format.type == 13) read_k(blocks, format.type == 13, out);
    if (format.type == 14) read_q6_k(blocks, out);
  }
}

}  // namespace

void check_gguf_types(const GgufFile& file) {
  for (const auto& [name, tensor] : file.tensors())
    if (std::find(kRead.begin(), kRead.end(), tensor.type) == kRead.end())
      throw BadInput({file.path(), 0, 0},
                     fmt::format("tensor {} is of ggml type {} ({}), allowed: F32, F16, BF16, Q4_0, Q8_0, Q4_K, Q5_K, Q6_K; "
                                 "llama-quantize writes the model in one of them",
                                 config::quote_for_message(name), tensor.type, config::gguf_format(tensor.type)->name));
}

void read_gguf_row(const GgufFile& file, const GgufTensor& tensor, std::size_t row, std::span<float> to) {
  const GgufFormat& format = *config::gguf_format(tensor.type);
  std::vector<std::byte> blocks(to.size() / format.block_values * format.block_bytes);
  SPECSIM_CHECK((row + 1) * blocks.size() <= tensor.bytes, "row {} of {} bytes in {}", row, blocks.size(), tensor.bytes);
  file.file().read(tensor.offset + row * blocks.size(), blocks);
  dequantise(format, blocks.data(), to);
}

}  // namespace specsim::llm
