#include "sim/llm/tokenizer.h"

#include "sim/base/error.h"
#include "sim/base/whole_file.h"

#include <fmt/format.h>
#include <sentencepiece_processor.h>

namespace specsim::llm {

struct Tokenizer::Processor {
  sentencepiece::SentencePieceProcessor pieces;
};

Tokenizer::Tokenizer(const std::string& path) : processor_(std::make_unique<Processor>()) {
  std::string serialized;
  try {
    serialized = read_whole_file(path);
  } catch (const IoError& error) {
    throw BadInput({"", 0, 0}, fmt::format("{}, allowed: a SentencePiece model", error.what()));
  }
  const auto status = processor_->pieces.LoadFromSerializedProto(serialized);
  if (!status.ok() || serialized.empty())
    throw BadInput({path, 0, 0}, "this is no SentencePiece model, allowed: a tokenizer.model");
}

Tokenizer::~Tokenizer() = default;

std::size_t Tokenizer::vocab() const { return static_cast<std::size_t>(processor_->pieces.GetPieceSize()); }

std::vector<Token> Tokenizer::encode(std::string_view text) const {
  std::vector<Token> tokens;
  for (const int id : processor_->pieces.EncodeAsIds({text.data(), text.size()})) tokens.push_back(static_cast<Token>(id));
  return tokens;
}

std::string Tokenizer::decode(const std::vector<Token>& tokens) const {
  return processor_->pieces.DecodeIds(std::vector<int>(tokens.begin(), tokens.end()));
}

bool Tokenizer::same_pieces(const Tokenizer& other) const {
  if (vocab() != other.vocab()) return false;
  for (int id = 0; id < processor_->pieces.GetPieceSize(); ++id)
    if (processor_->pieces.IdToPiece(id) != other.processor_->pieces.IdToPiece(id)) return false;
  return true;
}

}  // namespace specsim::llm
