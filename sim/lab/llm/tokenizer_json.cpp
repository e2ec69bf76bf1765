#include "sim/foundation/base/error.h"
#include "sim/foundation/base/whole_file.h"
#include "sim/lab/llm/bpe_tokenizer.h"
#include "sim/lab/llm/model_json.h"

#include <fmt/format.h>

#include <optional>
#include <string_view>

namespace specsim::llm {

using config::description_of_found;
using config::Value;

namespace {

constexpr const char* kGpt2 = R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
constexpr const char* kLlama3 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr const char* kQwen2 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

const Value kNothing;

class Reader {
 public:
  explicit Reader(const std::string& path) : path_(path) {}

  BpeParts read(const Value& root) {
    if (!root.is_map()) fail(root, "no JSON object", "a tokenizer.json");
    BpeParts parts;
    parts.path = path_;
    const Value& model = at(root, "model");
    if (const Value& type = at(model, "type"); !is_text(type, "BPE") && !(type.is_null() && at(model, "merges").is_list()))
      fail(type, "model.type is " + description_of_found(type),
           "\"BPE\", or a tokenizer.model in its folder, without tokenizer.json");
    read_vocab(model, parts);
    for (const char* const key : {"continuing_subword_prefix", "end_of_word_suffix"})
      if (const Value& text = at(model, key); !text.is_null() && !is_text(text, ""))
        fail(text, fmt::format("model.{} is {}", key, description_of_found(text)), "null");
    if (const Value& dropout = at(model, "dropout"); !dropout.is_null() && config::as_number(dropout) != 0.0)
      fail(dropout, "model.dropout is " + description_of_found(dropout), "null");
    parts.fuse_unknown = flag(model, "fuse_unk", false);
    parts.byte_fallback = flag(model, "byte_fallback", false);
    parts.whole_words = flag(model, "ignore_merges", false);
    read_added(at(root, "added_tokens"), parts);
    if (const Value& unknown = at(model, "unk_token"); is_text(unknown)) {
      const auto found = parts.vocab.find(unknown.text);
      if (found == parts.vocab.end())
        fail(unknown, "model.unk_token is " + description_of_found(unknown), "a token of the vocabulary");
      parts.unknown = found->second;
    }
    read_normaliser(at(root, "normalizer"), parts);
    read_step(at(root, "pre_tokenizer"), parts);
    parts.before_text = std::vector<Token>();
    read_processor(at(root, "post_processor"), parts);
    return parts;
  }

 private:
  // `value`: the wrong value; the message has its place if it has one.
  [[noreturn]] void fail(const Value& value, const std::string& found, const std::string& allowed) const {
    throw BadInput(value.where.line > 0 ? value.where : Location{path_, 0, 0}, fmt::format("{}, allowed: {}", found, allowed));
  }
  [[nodiscard]] static const Value& at(const Value& object, const char* key) {
    const Value* const value = object.find(key);
    return value != nullptr ? *value : kNothing;
  }
  [[nodiscard]] static bool is_text(const Value& value) { return value.is_scalar() && value.quoted; }
  [[nodiscard]] static bool is_text(const Value& value, std::string_view text) { return is_text(value) && value.text == text; }
  [[nodiscard]] bool flag(const Value& object, const char* key, bool fallback) const {
    const Value& value = at(object, key);
    if (value.is_null()) return fallback;
    if (!value.is_scalar() || value.quoted || (value.text != "true" && value.text != "false"))
      fail(value, fmt::format("{} is {}", key, description_of_found(value)), "true or false");
    return value.text == "true";
  }
  [[nodiscard]] std::string text(const Value& object, const char* key) const {
    const Value& value = at(object, key);
    if (!is_text(value)) fail(value, fmt::format("{} is {}", key, description_of_found(value)), "a text");
    return value.text;
  }
  [[nodiscard]] Token id(const Value& value) const {
    const std::optional<std::int64_t> id = config::as_integer(value);
    if (!id || *id < 0 || *id >= kMaxVocab)
      fail(value, "a token's id is " + description_of_found(value), fmt::format("integers below {}", kMaxVocab));
    return static_cast<Token>(*id);
  }

  void read_vocab(const Value& model, BpeParts& parts) const {
    const Value& vocab = at(model, "vocab");
    if (!vocab.is_map() || vocab.fields.empty())
      fail(vocab, "model.vocab is " + description_of_found(vocab), "a map of tokens to ids");
    for (const config::Field& entry : vocab.fields) parts.vocab.emplace(entry.key, id(entry.value));
    const Value& merges = at(model, "merges");
    if (!merges.is_list()) fail(merges, "model.merges is " + description_of_found(merges), "a list");
    for (const Value& merge : merges.items) {
      if (merge.items.size() == 2 && is_text(merge.items[0]) && is_text(merge.items[1])) {
        parts.merges.emplace_back(merge.items[0].text, merge.items[1].text);
        continue;
      }
      const std::string both = is_text(merge) ? merge.text : "";
      const std::size_t space = both.find(' ');
      if (space == std::string::npos || both.find(' ', space + 1) != std::string::npos)
        fail(merge, "a merge is " + description_of_found(merge), "two tokens, as [A, B] or \"A B\"");
      parts.merges.emplace_back(both.substr(0, space), both.substr(space + 1));
    }
  }

  void read_added(const Value& list, BpeParts& parts) const {
    if (list.is_null()) return;
    if (!list.is_list()) fail(list, "added_tokens is " + description_of_found(list), "a list");
    for (const Value& item : list.items) {
      AddedToken token;
      token.id = id(at(item, "id"));
      token.text = text(item, "content");
      token.strip_left = flag(item, "lstrip", false);
      token.strip_right = flag(item, "rstrip", false);
      token.normalised = flag(item, "normalized", !flag(item, "special", false));
      if (flag(item, "single_word", false)) fail(item, "an added token has single_word", "tokens without it");
      parts.vocab.emplace(token.text, token.id);
      parts.added.push_back(std::move(token));
    }
  }

  void read_normaliser(const Value& value, BpeParts& parts) const {
    if (value.is_null()) return;
    const std::string type = text(value, "type");
    if (type == "Sequence") {
      for (const Value& item : at(value, "normalizers").items) read_normaliser(item, parts);
    } else if (type == "NFC") {
      parts.normalisers.emplace_back(Compose());
    } else if (type == "Prepend") {
      parts.normalisers.emplace_back(Prepend{text(value, "prepend")});
    } else if (type == "Replace") {
      const std::string from = text(at(value, "pattern"), "String");
      if (from.empty()) fail(value, "normalizer Replace of an empty text", "one that is not empty");
      parts.normalisers.emplace_back(Replace{from, text(value, "content")});
    } else {
      fail(value, "normalizer is " + description_of_found(at(value, "type")),
           "null, NFC, Prepend, Replace of a text, Sequence of these");
    }
  }

  void read_step(const Value& value, BpeParts& parts) const {
    if (value.is_null()) return;
    const std::string type = text(value, "type");
    if (type == "Sequence") {
      for (const Value& item : at(value, "pretokenizers").items) read_step(item, parts);
    } else if (type == "ByteLevel") {
      parts.steps.emplace_back(SplitBytes{flag(value, "add_prefix_space", true), flag(value, "use_regex", true)});
    } else if (type == "Digits") {
      parts.steps.emplace_back(SplitDigits{flag(value, "individual_digits", false)});
    } else if (type == "Metaspace") {
      read_metaspace(value, parts);
    } else if (type == "Split") {
      read_split(value, parts);
    } else {
      fail(value, "pre_tokenizer is " + description_of_found(at(value, "type")),
           "null, ByteLevel, Digits, Metaspace, Split, Sequence of these");
    }
  }

  void read_metaspace(const Value& value, BpeParts& parts) const {
    Metaspace space;
    space.replacement = text(value, "replacement");
    if (space.replacement.empty()) fail(value, "Metaspace with an empty replacement", "a character");
    const std::string scheme = at(value, "prepend_scheme").is_null() ? flag(value, "add_prefix_space", true) ? "always" : "never"
                                                                     : text(value, "prepend_scheme");
    if (scheme != "always" && scheme != "never" && scheme != "first")
      fail(value, "prepend_scheme is " + description_of_found(at(value, "prepend_scheme")), "always, first, never");
    space.prefix = scheme == "always"  ? Metaspace::Prefix::always
                   : scheme == "first" ? Metaspace::Prefix::first
                                       : Metaspace::Prefix::never;
    space.cut = flag(value, "split", true);
    parts.steps.emplace_back(space);
  }

  void read_split(const Value& value, BpeParts& parts) const {
    const Value& pattern = at(value, "pattern");
    const std::string behaviour = text(value, "behavior");
    if (flag(value, "invert", false)) fail(value, "Split with invert", "false");
    if (const Value& expression = at(pattern, "Regex"); is_text(expression)) {
      if (behaviour != "Isolated")
        fail(value, "Split of an expression with behavior " + description_of_found(at(value, "behavior")), "\"Isolated\"");
      if (expression.text == kGpt2)
        parts.steps.emplace_back(SplitPattern::gpt2);
      else if (expression.text == kLlama3)
        parts.steps.emplace_back(SplitPattern::llama3);
      else if (expression.text == kQwen2)
        parts.steps.emplace_back(SplitPattern::qwen2);
      else
        fail(expression, "Split by the expression " + description_of_found(expression),
             "those of GPT-2, Llama 3 and Qwen2; for another model give prompts as {\"tokens\": [ids]}");
      return;
    }
    const std::string mark = text(pattern, "String");
    if (behaviour != "MergedWithPrevious" || mark.empty())
      fail(value, "Split by a text with behavior " + description_of_found(at(value, "behavior")), "MergedWithPrevious");
    parts.steps.emplace_back(SplitAfter{mark});
  }

  // Reads the tokens in front of a text. Tokens that a template puts after the text would end the prompt and are left out.
  void read_processor(const Value& value, BpeParts& parts) const {
    if (value.is_null()) return;
    const std::string type = text(value, "type");
    if (type == "Sequence") {
      for (const Value& item : at(value, "processors").items) read_processor(item, parts);
    } else if (type == "TemplateProcessing") {
      for (const Value& item : at(value, "single").items) {
        if (!at(item, "SpecialToken").is_map()) break;
        const std::string name = text(at(item, "SpecialToken"), "id");
        const Value& ids = at(at(at(value, "special_tokens"), name.c_str()), "ids");
        if (!ids.is_list())
          fail(ids, "post_processor has no ids of " + description_of_found(at(at(item, "SpecialToken"), "id")), "special_tokens");
        for (const Value& one : ids.items) parts.before_text->push_back(id(one));
      }
    } else if (type != "ByteLevel") {  // ByteLevel changes only offsets
      fail(value, "post_processor is " + description_of_found(at(value, "type")),
           "null, ByteLevel, TemplateProcessing, Sequence of these");
    }
  }

  const std::string& path_;
};

}  // namespace

std::unique_ptr<Tokenizer> read_tokenizer_json(const std::string& path) {
  constexpr std::size_t kLargest = std::size_t{256} << 20;
  std::string text;
  try {
    text = read_regular_file(path);
  } catch (const IoError& error) {
    throw BadInput({"", 0, 0}, fmt::format("{}, allowed: a tokenizer.json", error.what()));
  }
  if (text.size() > kLargest) throw BadInput({path, 0, 0}, fmt::format("{} bytes, allowed: {}", text.size(), kLargest));
  return make_bpe_tokenizer(Reader(path).read(parse_model_json(text, path)));
}

}  // namespace specsim::llm
