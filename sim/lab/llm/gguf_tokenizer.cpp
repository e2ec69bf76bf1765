#include "sim/foundation/base/error.h"
#include "sim/foundation/config/value.h"
#include "sim/lab/llm/bpe_tokenizer.h"
#include "sim/lab/llm/gguf_model.h"

#include <fmt/format.h>

#include <optional>

namespace specsim::llm {

namespace {

enum TokenType : std::uint64_t { kControl = 3, kUserDefined = 4 };

std::uint64_t whole(const GgufValue& value) {
  if (const auto* n = std::get_if<std::uint64_t>(&value.value)) return *n;
  if (const auto* n = std::get_if<std::int64_t>(&value.value)) return *n < 0 ? 0 : static_cast<std::uint64_t>(*n);
  return 0;
}

// Sets how the vocabulary's authors cut a text.
void set_cuts(const GgufFile& file, BpeParts& parts) {
  const std::string* const pre = file.text("tokenizer.ggml.pre");
  const std::string name = pre == nullptr ? "missing" : *pre;
  if (name == "llama-bpe" || name == "llama3" || name == "llama-v3") {
    parts.steps = {SplitPattern::llama3, SplitBytes{false, false}};
    parts.whole_words = true;
  } else if (name == "qwen2") {
    parts.normalisers = {Compose()};
    parts.steps = {SplitPattern::qwen2, SplitBytes{false, false}};
  } else if (name == "gpt-2") {
    parts.steps = {SplitBytes{false, true}};
  } else if (name == "smollm") {
    parts.steps = {SplitDigits{true}, SplitBytes{false, true}};
  } else {
    throw BadInput({file.path(), 0, 0}, fmt::format("tokenizer.ggml.pre is {}, allowed: llama-bpe, qwen2, gpt-2, smollm",
                                                    config::quote_for_message(name)));
  }
}

}  // namespace

std::unique_ptr<Tokenizer> read_gguf_tokenizer(const GgufFile& file) {
  const std::string* const model = file.text("tokenizer.ggml.model");
  const GgufValue::List* const tokens = file.list("tokenizer.ggml.tokens");
  const GgufValue::List* const merges = file.list("tokenizer.ggml.merges");
  const GgufValue::List* const types = file.list("tokenizer.ggml.token_type");
  if (model == nullptr || *model != "gpt2" || tokens == nullptr) return nullptr;
  const auto fail = [&](const std::string& what) { throw BadInput({file.path(), 0, 0}, what); };
  if (merges == nullptr || (types != nullptr && types->size() != tokens->size()))
    fail(
        "tokenizer.ggml.merges is missing or token_type of another size than tokens, allowed: merges, and a type for each token");
  BpeParts parts;
  parts.path = file.path();
  for (std::size_t i = 0; i < tokens->size(); ++i) {
    const auto* const text = std::get_if<std::string>(&(*tokens)[i].value);
    if (text == nullptr) fail("tokenizer.ggml.tokens has an item that is not a text, allowed: texts");
    parts.vocab.emplace(*text, static_cast<Token>(i));
    const std::uint64_t type = types == nullptr ? 1 : whole((*types)[i]);
    if (type == kControl || type == kUserDefined) parts.added.push_back({static_cast<Token>(i), *text, false, false, false});
  }
  for (const GgufValue& merge : *merges) {
    const auto* const both = std::get_if<std::string>(&merge.value);
    const std::size_t space = both == nullptr ? std::string::npos : both->find(' ', 1);
    if (space == std::string::npos) fail("a merge of tokenizer.ggml.merges has no space, allowed: \"A B\"");
    parts.merges.emplace_back(both->substr(0, space), both->substr(space + 1));
  }
  set_cuts(file, parts);
  const bool begins = file.flag("tokenizer.ggml.add_bos_token", parts.whole_words);
  if (!begins) parts.before_text = std::vector<Token>();
  return make_bpe_tokenizer(std::move(parts));
}

}  // namespace specsim::llm
