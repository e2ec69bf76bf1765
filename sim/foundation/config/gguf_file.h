// GGUF, llama.cpp's file of a model: metadata, then tensors, some of them in quantised blocks.
// https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
#pragma once

#include "sim/foundation/base/input_file.h"

#include <cstdint>
#include <map>
#include <string>
#include <variant>
#include <vector>

namespace specsim::config {

struct GgufValue {
  using List = std::vector<GgufValue>;
  std::variant<std::uint64_t, std::int64_t, double, bool, std::string, List> value;
};

struct GgufTensor {
  std::uint32_t type = 0;          // ggml's number of the element format
  std::vector<std::size_t> shape;  // [rows, columns] or [size]: the reverse of the file's order
  std::size_t offset = 0;          // position of its first byte in the file
  std::size_t bytes = 0;           // size that follows from type and shape
};

// The formats of elements. Quantised formats consist of blocks of several values.
struct GgufFormat {
  std::uint32_t type;
  const char* name;
  std::size_t block_values;
  std::size_t block_bytes;
};
// Null if no format has this number.
const GgufFormat* gguf_format(std::uint32_t type);

class GgufFile {
 public:
  // Reads metadata and the table of tensors. Every length and offset is checked against the file's size. Lists of more than
  // `longest_list` values are skipped and stay empty. Throws BadInput with the file and what is wrong.
  explicit GgufFile(std::string path, std::size_t longest_list = std::size_t{1} << 22U);

  [[nodiscard]] const std::string& path() const { return file_.path(); }
  [[nodiscard]] const InputFile& file() const { return file_; }
  [[nodiscard]] const std::map<std::string, GgufValue>& metadata() const { return metadata_; }
  [[nodiscard]] const std::map<std::string, GgufTensor>& tensors() const { return tensors_; }
  // Null if there is no such key, or it has another type. std::int64_t accepts integers of any width, double any number.
  [[nodiscard]] const std::string* text(const std::string& key) const;
  [[nodiscard]] const GgufValue::List* list(const std::string& key) const;
  // The number under `key`, or `fallback` if there is none. Throws BadInput if it is not a number or not in [low, high].
  [[nodiscard]] double number(const std::string& key, double fallback, double low, double high) const;
  [[nodiscard]] std::size_t count(const std::string& key, std::size_t fallback, double low, double high) const;
  [[nodiscard]] bool flag(const std::string& key, bool fallback) const;

 private:
  InputFile file_;
  std::map<std::string, GgufValue> metadata_;
  std::map<std::string, GgufTensor> tensors_;
};

}  // namespace specsim::config
