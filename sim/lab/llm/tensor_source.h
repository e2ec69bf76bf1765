// Sources of a model's named arrays: safetensors files or a GGUF file. Names are those of Hugging Face's Llama.
#pragma once

#include "sim/lab/llm/precision.h"

#include <boost/core/noncopyable.hpp>

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace specsim::llm {

// One matrix, or a vector as its only row.
struct TensorRows {
  std::string path;  // the file, for messages
  // The precision that holds the values exactly; F32 for quantised blocks.
  Precision precision = Precision::f32;
  std::function<void(std::size_t row, std::span<float> values)> read;
};

class TensorSource : boost::noncopyable {
 public:
  virtual ~TensorSource() = default;
  // Throws BadInput with the file if there is no such tensor, or if its shape differs ([rows, columns] or [size]). The source
  // must outlive the result.
  [[nodiscard]] virtual TensorRows rows(const std::string& name, const std::vector<std::size_t>& shape) const = 0;
};

}  // namespace specsim::llm
