// The header of a safetensors file: eight bytes give its size, the header is JSON, the arrays follow.
// https://github.com/huggingface/safetensors#format
#pragma once

#include "sim/foundation/base/input_file.h"

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace specsim::config {

struct SafeTensor {
  std::string dtype;               // "BF16"
  std::vector<std::size_t> shape;  // row-major
  std::size_t offset = 0;          // position of its first byte in the file
  std::size_t bytes = 0;
};

// Bits of an element; 0 for an unknown type.
std::size_t bits_of_dtype(std::string_view dtype);

// Tensors by name. Throws BadInput with the file, and with the tensor if it concerns one: a header or an array that is cut off,
// offsets that overlap, leave gaps or contradict the shape, an unknown element type.
std::map<std::string, SafeTensor> read_safetensors_header(const InputFile& file);

}  // namespace specsim::config
