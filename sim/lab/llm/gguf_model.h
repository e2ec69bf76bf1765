// A GGUF file as a model: its shape from the metadata, its tensors under Hugging Face's names.
#pragma once

#include "sim/foundation/config/gguf_file.h"
#include "sim/lab/llm/model_config.h"
#include "sim/lab/llm/tensor_source.h"

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace specsim::llm {

using config::GgufFile;
using config::GgufFormat;
using config::GgufTensor;
using config::GgufValue;

// Throws BadInput with the first tensor of a type that read_gguf_row() does not read.
void check_gguf_types(const GgufFile& file);
// Reads a row of `to.size()` values. Throws BadInput if the file is shorter than when it was opened, IoError if it cannot be
// read.
void read_gguf_row(const GgufFile& file, const GgufTensor& tensor, std::size_t row, std::span<float> to);

// Whether `path` names a GGUF file, by its extension.
bool is_gguf(const std::string& path);

class GgufModel final : public TensorSource {
 public:
  // Throws BadInput with the file and the key: an architecture other than llama (including Mistral), qwen2, qwen3 and gemma; an
  // unknown key of the architecture or an unknown tensor, which may change the function.
  explicit GgufModel(const std::string& path);
  [[nodiscard]] const ModelConfig& config() const { return config_; }
  [[nodiscard]] TensorRows rows(const std::string& name, const std::vector<std::size_t>& shape) const override;

 private:
  void read_config();
  void read_rope(const std::string& prefix);
  void check_names(const std::string& prefix) const;

  GgufFile file_;
  ModelConfig config_;
  // llama.cpp interleaves the two halves of a head's rows if its rotary embedding rotates neighbours: only for `llama`.
  bool interleaved_ = false;
};

}  // namespace specsim::llm
