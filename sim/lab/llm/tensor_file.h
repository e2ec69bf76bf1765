// model.safetensors: named arrays in one file.
#pragma once

#include "sim/foundation/base/input_file.h"
#include "sim/lab/llm/tensor_source.h"

#include <cstddef>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace specsim::llm {

struct Tensor {
  Precision precision = Precision::f32;
  std::vector<std::size_t> shape;
  std::size_t offset = 0;  // position of its first byte in the file; little endian, row-major
  std::size_t bytes = 0;
  [[nodiscard]] std::size_t size() const { return bytes / bytes_of(precision); }
};

class TensorFile {
 public:
  // Reads the header. Throws BadInput like config::read_safetensors_header(), and for an element type other than F32, F16 and
  // BF16.
  explicit TensorFile(std::string path);

  [[nodiscard]] const std::string& path() const { return file_.path(); }
  [[nodiscard]] bool has(const std::string& name) const { return tensors_.contains(name); }
  // Throws BadInput if there is no such tensor, or if its shape differs.
  [[nodiscard]] const Tensor& tensor(const std::string& name, const std::vector<std::size_t>& shape) const;
  // Reads a tensor's bytes from `first` on. Throws BadInput if the file is shorter than when it was opened, IoError if it cannot
  // be read.
  void read(const Tensor& tensor, std::size_t first, std::span<std::byte> to) const;

 private:
  InputFile file_;
  std::map<std::string, Tensor> tensors_;
};

// A model's tensors, in one file or in several.
class TensorFiles final : public TensorSource {
 public:
  // DIR/model.safetensors. If it does not exist, the files next to DIR/model.safetensors.index.json that its "weight_map" names.
  // Throws BadInput as TensorFile does, for an index that is broken or names files elsewhere, and if the directory has weights
  // only in another form (pytorch_model.bin).
  explicit TensorFiles(const std::string& directory);
  [[nodiscard]] TensorRows rows(const std::string& name, const std::vector<std::size_t>& shape) const override;

 private:
  // Throws BadInput if the index does not name the tensor.
  [[nodiscard]] const TensorFile& file_of(const std::string& name) const;

  std::string index_;                                         // path of the index; empty: one file
  std::map<std::string, std::unique_ptr<TensorFile>> files_;  // [name]
  std::map<std::string, const TensorFile*> file_by_tensor_;
};

}  // namespace specsim::llm
