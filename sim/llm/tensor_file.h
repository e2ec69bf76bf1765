// model.safetensors: named arrays in one file. Eight bytes give the header's size, the header is JSON, the arrays follow.
// https://github.com/huggingface/safetensors#format
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace specsim::llm {

enum class Precision { f32, f16, bf16 };
[[nodiscard]] const char* to_text(Precision precision);  // as safetensors writes it: "F32"
[[nodiscard]] std::size_t bytes_of(Precision precision);

struct Tensor {
  Precision precision = Precision::f32;
  std::vector<std::size_t> shape;
  std::size_t offset = 0;  // of its first byte in the file; little endian, row-major
  std::size_t bytes = 0;
  [[nodiscard]] std::size_t size() const { return bytes / bytes_of(precision); }
};

class TensorFile {
 public:
  // Reads the header. Throws BadInput with the file, and the tensor where it is one: a header or an array that is cut off,
  // offsets that overlap, leave gaps or contradict the shape, an element type other than F32, F16 and BF16.
  explicit TensorFile(std::string path);
  ~TensorFile();
  TensorFile(const TensorFile&) = delete;
  TensorFile& operator=(const TensorFile&) = delete;

  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] bool has(const std::string& name) const { return tensors_.contains(name); }
  // Throws BadInput where there is no such tensor, or none of this shape.
  [[nodiscard]] const Tensor& tensor(const std::string& name, const std::vector<std::size_t>& shape) const;
  // Reads a tensor's bytes from `first` on. Not from a mapping: what somebody cuts meanwhile would end the program. Throws
  // BadInput where the file is shorter than it was, IoError where it cannot be read.
  void read(const Tensor& tensor, std::size_t first, std::span<std::byte> to) const;

 private:
  void read_header();
  void read_at(std::size_t offset, std::span<std::byte> to) const;

  std::string path_;
  int file_ = -1;
  std::size_t size_ = 0;  // when it was opened
  std::map<std::string, Tensor> tensors_;
};

// A model's tensors, in one file or in several.
class TensorFiles {
 public:
  // DIR/model.safetensors, or where there is none, the files beside DIR/model.safetensors.index.json that its "weight_map" names.
  // Throws BadInput as TensorFile does, and for an index that is broken or names files elsewhere.
  explicit TensorFiles(const std::string& directory);
  // Throws BadInput where the index does not name the tensor.
  [[nodiscard]] const TensorFile& file_of(const std::string& name) const;

 private:
  std::string index_;                                         // its path; empty: one file
  std::map<std::string, std::unique_ptr<TensorFile>> files_;  // by name
  std::map<std::string, const TensorFile*> file_of_;          // by tensor
};

}  // namespace specsim::llm
