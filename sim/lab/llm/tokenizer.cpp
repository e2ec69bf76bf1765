#include "sim/lab/llm/tokenizer.h"

#include "sim/foundation/base/error.h"
#include "sim/foundation/base/whole_file.h"
#include "sim/lab/llm/gguf_model.h"

#include <fmt/format.h>
#include <sentencepiece_processor.h>

#include <filesystem>
#include <utility>

namespace specsim::llm {

namespace {

class SentencePiece final : public Tokenizer {
 public:
  // `model`: the serialised protocol buffer.
  SentencePiece(std::string path, const std::string& model) : path_(std::move(path)) {
    const auto status = pieces_.LoadFromSerializedProto(model);
    if (!status.ok() || model.empty())
      throw BadInput({path_, 0, 0}, "this is not a SentencePiece model, allowed: a tokenizer.model");
  }
  [[nodiscard]] const std::string& path() const override { return path_; }
  [[nodiscard]] std::size_t vocab() const override { return static_cast<std::size_t>(pieces_.GetPieceSize()); }
  [[nodiscard]] std::vector<Token> encode(std::string_view text) const override {
    std::vector<Token> tokens;
    for (const int id : pieces_.EncodeAsIds({text.data(), text.size()})) tokens.push_back(static_cast<Token>(id));
    return tokens;
  }
  [[nodiscard]] std::vector<Token> before_text(Token begin_token) const override { return {begin_token}; }
  [[nodiscard]] std::string piece(Token token) const override {
    return token < vocab() ? pieces_.IdToPiece(static_cast<int>(token)) : "";
  }

 private:
  std::string path_;
  sentencepiece::SentencePieceProcessor pieces_;
};

}  // namespace

bool same_pieces(const Tokenizer& a, const Tokenizer& b) {
  if (a.vocab() != b.vocab()) return false;
  for (Token token = 0; token < a.vocab(); ++token)
    if (a.piece(token) != b.piece(token)) return false;
  return true;
}

std::unique_ptr<Tokenizer> read_sentencepiece(const std::string& path) {
  try {
    return std::make_unique<SentencePiece>(path, read_regular_file(path));
  } catch (const IoError& error) {
    throw BadInput({"", 0, 0}, fmt::format("{}, allowed: a SentencePiece model", error.what()));
  }
}

std::unique_ptr<Tokenizer> read_tokenizer(const std::string& path) {
  if (is_gguf(path)) return read_gguf_tokenizer(GgufFile(path));
  const std::string json = path + "/tokenizer.json";
  const std::string sentencepiece = path + "/tokenizer.model";
  if (std::filesystem::exists(json)) return read_tokenizer_json(json);
  return std::filesystem::exists(sentencepiece) ? read_sentencepiece(sentencepiece) : nullptr;
}

}  // namespace specsim::llm
