#include "sim/foundation/base/error.h"
#include "sim/lab/llm/gguf_model.h"
#include "sim/lab/llm/model_config.h"
#include "sim/lab/llm/prompts.h"
#include "sim/lab/llm/tensor_file.h"
#include "sim/lab/llm/tokenizer.h"
#include "tests/fuzz/fuzzers.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace specsim::fuzz {

namespace {

// Test text for a tokenizer: words, digits, blanks, an accent and an emoji.
constexpr const char* kText = "It's  12345 h\xc3\xa9llo\n\n world\t\xf0\x9f\x98\x80 don't";

void try_tokenizer(const llm::Tokenizer& tokenizer) {
  for (const Token token : tokenizer.encode(kText))
    require(static_cast<std::size_t>(token) < tokenizer.vocab(), "a token is one of the vocabulary");
  static_cast<void>(tokenizer.before_text(1));
  static_cast<void>(tokenizer.piece(0));
}

// A header, followed by as many bytes as its first two bytes state, so that arrays may fit.
void feed_safetensors(std::string_view bytes) {
  std::size_t data = 0;
  if (bytes.size() >= 2) data = static_cast<std::size_t>(static_cast<unsigned char>(bytes[0])) * 16;
  const bool framed = bytes.size() >= 2 && bytes[1] != 'r';
  const std::string_view header = bytes.substr(std::min<std::size_t>(2, bytes.size()));
  std::string file;
  if (framed)
    for (int i = 0; i < 8; ++i) file += static_cast<char>(static_cast<std::uint64_t>(header.size()) >> (8 * i) & 0xff);
  file += header;
  file += std::string(data, '\0');
  const llm::TensorFile tensors(file_of(file));
  if (!tensors.has("a")) return;
  const llm::Tensor& tensor = tensors.tensor("a", {4, 2});
  std::vector<std::byte> read(tensor.bytes);
  tensors.read(tensor, 0, read);
}

void feed_gguf(std::string_view bytes) {
  const std::string path = file_of(bytes);
  {
    const llm::GgufFile file(path);
    llm::check_gguf_types(file);
    for (const auto& [name, tensor] : file.tensors()) {
      if (tensor.shape.empty() || tensor.shape.back() > 65536) continue;
      std::vector<float> row(tensor.shape.back());
      const std::size_t rows = tensor.shape.size() == 1 ? 1 : tensor.shape.front();
      if (rows > 0) llm::read_gguf_row(file, tensor, rows - 1, row);
    }
    if (const auto tokenizer = llm::read_gguf_tokenizer(file)) try_tokenizer(*tokenizer);
  }
  static_cast<void>(llm::GgufModel(path));
}

void feed_tokenizer(std::string_view bytes) { try_tokenizer(*llm::read_tokenizer_json(file_of(bytes))); }

void feed_model_config(std::string_view bytes) { static_cast<void>(llm::read_model_config(file_of(bytes))); }

void feed_prompts(std::string_view bytes) {
  llm::ModelConfig model;
  model.vocab = 100;
  model.context = 64;
  static_cast<void>(llm::read_prompts(file_of(bytes), nullptr, model, 8, llm::Overlong::cut));
}

}  // namespace

const std::vector<Fuzzer>& model_fuzzers() {
  static const std::vector<Fuzzer> list = {{"safetensors", feed_safetensors},
                                           {"gguf", feed_gguf},
                                           {"tokenizer_json", feed_tokenizer},
                                           {"model_config", feed_model_config},
                                           {"prompts", feed_prompts}};
  return list;
}

}  // namespace specsim::fuzz
