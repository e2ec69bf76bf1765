// A weight matrix in memory: one row per output, in its precision.
#pragma once

#include "sim/foundation/base/huge_array.h"
#include "sim/lab/llm/precision.h"

#include <cstddef>
#include <span>

namespace specsim::llm {

// Rows are padded with zeros to whole vectors, so that no kernel has a tail.
constexpr std::size_t kPadding = 32;
constexpr std::size_t padded(std::size_t n) { return (n + kPadding - 1) / kPadding * kPadding; }

class Matrix {
 public:
  Matrix() = default;
  Matrix(std::size_t rows, std::size_t columns, Precision precision)
      : rows_(rows), columns_(columns), precision_(precision), data_((rows * padded(columns) * bytes_of(precision) + 7) / 8) {}

  [[nodiscard]] std::size_t rows() const { return rows_; }
  [[nodiscard]] std::size_t columns() const { return columns_; }
  [[nodiscard]] Precision precision() const { return precision_; }
  [[nodiscard]] std::size_t bytes() const { return rows_ * padded(columns_) * bytes_of(precision_); }
  [[nodiscard]] std::byte* row(std::size_t r) {
    return reinterpret_cast<std::byte*>(data_.data()) + r * padded(columns_) * bytes_of(precision_);
  }
  [[nodiscard]] const std::byte* row(std::size_t r) const {
    return reinterpret_cast<const std::byte*>(data_.data()) + r * padded(columns_) * bytes_of(precision_);
  }
  // Rounds `values` to the precision and writes them from `column` on.
  void set(std::size_t r, std::size_t column, std::span<const float> values);
  void get(std::size_t r, std::span<float> values) const;  // the first values.size() columns

 private:
  std::size_t rows_ = 0;
  std::size_t columns_ = 0;
  Precision precision_ = Precision::f32;
  HugeArray data_;
};

// Converts elements in `precision` to floats and back (to the nearest, ties to even).
void to_floats(const std::byte* elements, Precision precision, std::span<float> values);
void from_floats(std::span<const float> values, Precision precision, std::byte* elements);

}  // namespace specsim::llm
