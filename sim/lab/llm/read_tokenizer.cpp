#include "sim/lab/llm/read_tokenizer.h"

#include "sim/lab/llm/gguf_model.h"
#include "sim/lab/llm/gguf_tokenizer.h"
#include "sim/lab/llm/tokenizer_json.h"

#include <filesystem>

namespace specsim::llm {

std::unique_ptr<Tokenizer> read_tokenizer(const std::string& path) {
  if (is_gguf(path)) return read_gguf_tokenizer(GgufFile(path));
  const std::string json = path + "/tokenizer.json";
  const std::string sentencepiece = path + "/tokenizer.model";
  if (std::filesystem::exists(json)) return read_tokenizer_json(json);
  return std::filesystem::exists(sentencepiece) ? read_sentencepiece(sentencepiece) : nullptr;
}

}  // namespace specsim::llm
