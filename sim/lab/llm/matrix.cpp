#include "sim/lab/llm/matrix.h"

#include <bit>
#include <cstdint>
#include <cstring>

namespace specsim::llm {

namespace {

float float_of_half(std::uint16_t h) {
  const std::uint32_t sign = (h & 0x8000U) << 16;
  const std::uint32_t exponent = (h >> 10) & 0x1FU;
  const std::uint32_t mantissa = h & 0x3FFU;
  if (exponent == 0) {  // zero and subnormals: mantissa 2^-24
    const float magnitude = static_cast<float>(mantissa) * 0x1.0p-24F;
    return sign != 0 ? -magnitude : magnitude;
  }
  if (exponent == 31) return std::bit_cast<float>(sign | 0x7F800000U | mantissa << 13);
  return std::bit_cast<float>(sign | (exponent + 112) << 23 | mantissa << 13);
}

std::uint16_t half_of_float(float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  const auto sign = static_cast<std::uint16_t>((bits >> 16) & 0x8000U);
  const std::uint32_t magnitude = bits & 0x7FFFFFFFU;
  if (magnitude >= 0x7F800000U) return static_cast<std::uint16_t>(sign | 0x7C00U | (magnitude > 0x7F800000U ? 0x200U : 0U));
  if (magnitude >= 0x477FF000U) return static_cast<std::uint16_t>(sign | 0x7C00U);  // rounds to infinity
  if (magnitude < 0x38800000U) {                                                    // subnormal: the addition rounds at 2^-24
    const float rounded = std::bit_cast<float>(magnitude) + 0.5F;
    return static_cast<std::uint16_t>(sign | (std::bit_cast<std::uint32_t>(rounded) - 0x3F000000U));
  }
  const std::uint32_t odd = (magnitude >> 13) & 1U;
  return static_cast<std::uint16_t>(sign | ((magnitude - 0x38000000U + 0xFFFU + odd) >> 13));
}

std::uint16_t bfloat_of_float(float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  if ((bits & 0x7FFFFFFFU) > 0x7F800000U) return static_cast<std::uint16_t>(bits >> 16 | 0x40U);
  return static_cast<std::uint16_t>((bits + 0x7FFFU + ((bits >> 16) & 1U)) >> 16);
}

}  // namespace

void to_floats(const std::byte* elements, Precision precision, std::span<float> values) {
  if (precision == Precision::f32) {
    std::memcpy(values.data(), elements, values.size_bytes());
    return;
  }
  for (std::size_t i = 0; i < values.size(); ++i) {
    std::uint16_t half = 0;
    std::memcpy(&half, elements + 2 * i, 2);
    values[i] = precision == Precision::f16 ? float_of_half(half) : std::bit_cast<float>(std::uint32_t{half} << 16);
  }
}

void from_floats(std::span<const float> values, Precision precision, std::byte* elements) {
  if (precision == Precision::f32) {
    std::memcpy(elements, values.data(), values.size_bytes());
    return;
  }
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::uint16_t half = precision == Precision::f16 ? half_of_float(values[i]) : bfloat_of_float(values[i]);
    std::memcpy(elements + 2 * i, &half, 2);
  }
}

void Matrix::set(std::size_t r, std::size_t column, std::span<const float> values) {
  from_floats(values, precision_, row(r) + column * bytes_of(precision_));
}

void Matrix::get(std::size_t r, std::span<float> values) const { to_floats(row(r), precision_, values); }

}  // namespace specsim::llm
